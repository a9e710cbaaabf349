"""Loads the user's own Python code: a module on the path, or a file by its name."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType

from gripfast.errors import InvalidArgument
from gripfast.host.program.own import in_use


def load_module(spec: str) -> ModuleType:
    """Loads `package.module` or `path/to/file.py`. Its code runs: name only what you trust.

    What it prints goes to standard error, because standard output carries the answer or the client's messages.
    """
    with redirect_stdout(sys.stderr):
        return _load(spec)


def _load(spec: str) -> ModuleType:
    if spec.endswith(".py"):
        return _load_file(Path(spec))
    try:
        with _found_here():
            module = importlib.import_module(spec)
    except ModuleNotFoundError as missing:
        raise InvalidArgument(f"no module named {missing.name!r} ({spec!r}); a file needs its .py") from None
    if module.__file__ is not None:
        in_use(module.__file__)
    return module


@contextmanager
def _found_here() -> Generator[None]:
    """Puts the current directory at the end of the import path while a module is loaded. At the end, because it is
    often the workspace, and a file there must never replace a module of ours."""
    here = os.getcwd()
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.reverse()
        sys.path.remove(here)
        sys.path.reverse()


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidArgument(f"no file {str(path)!r}")
    name = f"gripfast_user_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise InvalidArgument(f"{str(path)!r} can't be loaded as Python")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    in_use(path)
    found.loader.exec_module(module)
    return module
