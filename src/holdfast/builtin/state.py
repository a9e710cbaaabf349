"""What a session remembers between processes: what was read, the todos, the working directory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from holdfast.builtin.keys import READS, SHELL, TODOS
from holdfast.builtin.todos import Todo, Todos
from holdfast.host.fs import ScopedFs
from holdfast.host.guard import ReadLog, Seen
from holdfast.host.places import is_directory
from holdfast.host.process import Shells
from holdfast.host.sandbox import Mode
from holdfast.tool.context import Factory


class _Kept(TypedDict):
    version: int
    directory: str | None
    todos: list[Todo]
    reads: list[Seen]


_VERSION = 1
_ADAPTER = TypeAdapter(_Kept)


class State:
    """The state of one session, as objects its tools share and as text between processes."""

    def __init__(
        self, todos: Todos | None = None, reads: ReadLog | None = None, directory: str | None = None
    ) -> None:
        self.todos = todos or Todos()
        self.reads = reads or ReadLog()
        self._directory = directory
        self._shells: Shells | None = None

    @classmethod
    def load(cls, text: str, *, require_read: bool = True) -> State:
        """What `dump` gave. Text that is empty, broken or of another version is a session that begins."""
        reads = ReadLog(required=require_read)
        try:
            kept = _ADAPTER.validate_json(text)
        except ValidationError:
            return cls(reads=reads)
        if kept["version"] != _VERSION:
            return cls(reads=reads)
        reads.restore([asdict(seen) for seen in kept["reads"]])
        directory = kept["directory"]
        return cls(Todos(kept["todos"]), reads, directory if directory and is_directory(directory) else None)

    def dump(self) -> str:
        kept: _Kept = {
            "version": _VERSION,
            "directory": self._shells.directory if self._shells else self._directory,
            "todos": list(self.todos.items),
            "reads": list(self.reads.seen()),
        }
        return _ADAPTER.dump_json(kept).decode()

    def overrides(self, fs: ScopedFs, sandbox: Mode, env: Iterable[str]) -> dict[str, Factory]:
        async def shells() -> AsyncGenerator[Shells, None]:
            async with Shells(fs.scope, sandbox=sandbox, allow=tuple(env), directory=self._directory) as opened:
                self._shells = opened
                yield opened

        return {TODOS.id: lambda: self.todos, READS.id: lambda: self.reads, SHELL.id: shells}
