"""The state of a session that is saved between processes: files read, todos, working directory."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from gripfast.builtin.keys import READS, TODOS
from gripfast.builtin.machine import ShellPlace
from gripfast.builtin.todos import Todos
from gripfast.framework.context import Factory
from gripfast.host.files.guard import ReadLog
from gripfast.host.program.places import is_directory

if TYPE_CHECKING:
    from gripfast.builtin.saved_state import Saved

_VERSION = 1


class State:
    """The state of one session: objects for its tools, and text to save."""

    def __init__(
        self, todos: Todos | None = None, reads: ReadLog | None = None, directory: str | None = None
    ) -> None:
        self.todos = todos or Todos()
        self.reads = reads or ReadLog()
        self.place = ShellPlace(directory)

    @classmethod
    def load(cls, text: str, *, require_read: bool = True) -> State:
        """The state that `dump` wrote. Empty or broken text, or another version, gives a fresh state."""
        reads = ReadLog(required=require_read)
        if not text:
            return cls(reads=reads)
        from gripfast.builtin.saved_state import read_saved  # noqa: PLC0415 - only a named session is saved

        try:
            saved = read_saved(text)
        except ValueError:
            return cls(reads=reads)
        if saved["version"] != _VERSION:
            return cls(reads=reads)
        reads.restore([asdict(seen) for seen in saved["reads"]])
        directory = saved["directory"]
        return cls(Todos(saved["todos"]), reads, directory if directory and is_directory(directory) else None)

    def dump(self) -> str:
        from gripfast.builtin.saved_state import saved_text  # noqa: PLC0415 - only a named session is saved

        saved: Saved = {
            "version": _VERSION,
            "directory": self.place.directory() or None,
            "todos": list(self.todos.items),
            "reads": list(self.reads.seen()),
        }
        return saved_text(saved)

    def overrides(self) -> dict[str, Factory]:
        """What the tools of a session share. Where its shell is, is in `place`."""
        return {TODOS.id: lambda: self.todos, READS.id: lambda: self.reads}
