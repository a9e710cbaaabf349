"""The files of this program itself: its code, the programs it runs, its configuration. No tool may change them."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from gripfast.host.program.places import private_places
from gripfast.host.program.programs import find_program, interpreter
from gripfast.records import dataclass
from gripfast.text.below import is_below

_PROGRAMS = ("bwrap", "git", "rg", "bash", "sh")
_HOMES = ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")  # what `private_places` depends on
_given: dict[str, bool] = {}

_Given: TypeAlias = tuple[tuple[str, bool], ...]
_Homes: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class OwnPlace:
    """A real path that no tool may write. A `secret` one can't be read either."""

    path: str
    secret: bool = False


def in_use(path: str | os.PathLike[str], *, secret: bool = False) -> None:
    """Closes a file that this program uses (code, configuration, tokens) to every tool from now on."""
    real = os.path.realpath(path)
    _given[real] = secret or _given.get(real, False)


def own_places() -> tuple[OwnPlace, ...]:
    """The real paths of all our own places, as they are now."""
    return _places(*_depends_on())


def secret_place_below(directories: tuple[str, ...]) -> bool:
    """Whether any of our own secret places lies below one of these directories now."""
    return _secret_below(directories, *_depends_on())


def _depends_on() -> tuple[_Given, _Homes]:
    home, state, cache = _HOMES
    return tuple(_given.items()), (os.environ.get(home), os.environ.get(state), os.environ.get(cache))


@functools.lru_cache(maxsize=8)
def _places(given: _Given, _homes: _Homes) -> tuple[OwnPlace, ...]:
    ours = (OwnPlace(path, secret) for path, secret in given)
    return (*(OwnPlace(path) for path in _code()), *ours, *(OwnPlace(path, True) for path in private_places()))


@functools.lru_cache(maxsize=64)
def _secret_below(directories: tuple[str, ...], given: _Given, homes: _Homes) -> bool:
    return any(is_below(place.path, *directories) for place in _places(given, homes) if place.secret)


def is_own(absolute: str, *, secret: bool = False) -> bool:
    """Whether a real path is one of our own places or in one; with `secret`, one that can't be read."""
    return f"{absolute}/".startswith(_beginnings(secret, *_depends_on()))


@functools.lru_cache(maxsize=16)
def _beginnings(secret: bool, given: _Given, homes: _Homes) -> tuple[str, ...]:
    return tuple(f"{place.path.rstrip('/')}/" for place in _places(given, homes) if place.secret or not secret)


def own_code_beneath(directory: str) -> str | None:
    """Where this program's code is, if that is beneath a directory; otherwise None."""
    base = os.path.realpath(directory)
    return next((place for place in _code() if is_below(place, base)), None)


@functools.cache
def _code() -> tuple[str, ...]:
    """The package, the environment it is installed in, the interpreter, and the programs it starts."""
    found = dict.fromkeys(os.path.realpath(place) for place in _code_spellings())
    return tuple(place for place in found if os.path.exists(place))


def _code_spellings() -> Iterator[str]:
    package = Path(os.path.realpath(__file__)).parents[2]
    yield str(package)
    if str(package.parent) in map(
        os.path.realpath, sys.path
    ):  # a module put beside the package runs at the next start
        yield str(package.parent)
    if sys.prefix != sys.base_prefix:
        yield sys.prefix  # a virtual environment: any file in it may become code
    yield from (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    yield os.path.join(sys.base_prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}")
    yield sys.executable
    yield interpreter()
    yield from filter(None, (find_program(name, on_path=False) for name in _PROGRAMS))
