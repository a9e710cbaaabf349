"""A call of a built-in tool on a real directory, from the highest door."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from holdfast.builtin.session import open_session
from holdfast.host.fs import ScopedFs
from holdfast.host.scope import Scope
from holdfast.messages import ToolMessage


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
    """The error's code; its message names what was asked for."""
    message = call(where, name, **arguments)
    assert message.error is not None, message.content
    return message.error.code


def make(root: Path, files: dict[str, str | bytes]) -> Path:
    """Files by path, with their directories."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


@contextmanager
def powerless() -> Generator[None]:
    """Without root's leave to read everything; as another user this changes nothing."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
