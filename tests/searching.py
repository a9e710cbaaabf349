"""Calls a built-in tool on a real directory through a session."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from gripfast.builtin.session import open_session
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from gripfast.messages import ToolMessage


def call(where: Path | Scope | ScopedFs, name: str, /, **arguments: Any) -> ToolMessage:
    scope = Scope.workspace(where) if isinstance(where, Path) else where

    async def once() -> ToolMessage:
        async with open_session(scope) as session:
            return await session.call(name, arguments)

    return anyio.run(once)


def text(where: Path | Scope | ScopedFs, name: str, /, **arguments: Any) -> str:
    message = call(where, name, **arguments)
    assert message.error is None, message.content
    return message.text


def data(where: Path | Scope | ScopedFs, name: str, /, **arguments: Any) -> dict[str, Any]:
    return json.loads(text(where, name, **arguments))


def code(where: Path | Scope | ScopedFs, name: str, /, **arguments: Any) -> str:
    """The error's code, after checking that its message names the value."""
    message = call(where, name, **arguments)
    assert message.error is not None, message.content
    return message.error.code


def make(root: Path, files: dict[str, str | bytes]) -> Path:
    """Creates files by path, with their directories."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


@contextmanager
def powerless() -> Generator[None]:
    """Runs without root's permission to read everything; does nothing for another user.

    Root stays the owner of its files, so a checkout that only root may enter (/root, mode 0700) still works. Only
    this thread and what it starts are affected: see capabilities(7), `SECBIT_NOROOT`.
    """
    if os.geteuid() != 0:
        yield
        return
    held = _capabilities()
    _prctl(_PR_SET_SECUREBITS, _SECBIT_NOROOT)
    try:
        _set_effective(held, held[0].effective & ~_PASS_PERMISSION_BITS)
        yield
    finally:
        _set_effective(held, held[0].effective)
        _prctl(_PR_SET_SECUREBITS, 0)


_PR_SET_SECUREBITS, _SECBIT_NOROOT = 28, 1
_PASS_PERMISSION_BITS = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def _capabilities() -> Any:
    sets = (_Capabilities * 2)()
    _checked(ctypes.CDLL(None, use_errno=True).capget(ctypes.byref(_Header(0x20080522, 0)), sets))
    return sets


def _set_effective(held: Any, effective: int) -> None:
    wanted = (_Capabilities * 2)(_Capabilities(effective, held[0].permitted, held[0].inheritable), held[1])
    _checked(ctypes.CDLL(None, use_errno=True).capset(ctypes.byref(_Header(0x20080522, 0)), wanted))


def _prctl(option: int, value: int) -> None:
    _checked(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0))


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
