"""A workspace and a session in it, for the tests of the built-in tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gripfast.builtin.session import open_session
from gripfast.call.run import Session
from gripfast.host.files.scope import Scope
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import ToolMessage


class Bench:
    """A directory and a session in it. `ok` returns the text of an answer, `fails` the code of an error."""

    def __init__(self, root: Path, session: Session) -> None:
        self.root = root
        self.session = session

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def bytes_of(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    async def call(self, tool: str, **arguments: Any) -> ToolMessage:
        return await self.session.call(tool, arguments)

    async def ok(self, tool: str, **arguments: Any) -> str:
        message = await self.call(tool, **arguments)
        assert not message.is_error, message.content
        return message.text

    async def fails(self, code: str, tool: str, **arguments: Any) -> str:
        message = await self.call(tool, **arguments)
        assert message.error is not None, message.content
        assert message.error.code == code, message.content
        return message.error.message


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = EmbeddedStore(tmp_path / "cache")
    root = tmp_path / "ws"
    root.mkdir()
    async with open_session(Scope.workspace(root), cache=store) as session:
        yield Bench(root, session)
    store.close()
