"""What a session remembers between processes: what was read, the todos, the working directory."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from holdfast.builtin.keys import READS, TODOS
from holdfast.builtin.todos import Todo, Todos
from holdfast.host.guard import ReadLog, Seen
from holdfast.tool.context import Factory


class _Kept(TypedDict):
    version: int
    todos: list[Todo]
    reads: list[Seen]


_VERSION = 1
_ADAPTER = TypeAdapter(_Kept)


class State:
    """The state of one session, as objects its tools share and as text between processes."""

    def __init__(self, todos: Todos | None = None, reads: ReadLog | None = None) -> None:
        self.todos = todos or Todos()
        self.reads = reads or ReadLog()

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
        return cls(Todos(kept["todos"]), reads)

    def dump(self) -> str:
        kept: _Kept = {"version": _VERSION, "todos": list(self.todos.items), "reads": list(self.reads.seen())}
        return _ADAPTER.dump_json(kept).decode()

    def overrides(self) -> dict[str, Factory]:
        return {TODOS.id: lambda: self.todos, READS.id: lambda: self.reads}
