"""The state of a session as small fields that servers share, each changed on its own.

    head            working directory, finished, roots, background shells
    todos           the list
    read PATH       what was last seen of one file

Fields come from a store that others may write to: what is not valid is left out, and the answer says so.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from gripfast.builtin.session import WorkspaceSession
from gripfast.builtin.state import State
from gripfast.builtin.todos import Todo
from gripfast.errors import ToolError
from gripfast.host.files.guard import Identity, Seen
from gripfast.host.program.machine_names import kernel_name
from gripfast.host.program.places import is_directory
from gripfast.host.record.elsewhere import line_for_others
from gripfast.host.stores.sessions import MOST_LINES
from gripfast.text.below import is_below

_READ = "read "
MOST_READS = 10_000
"""Files that are remembered in the store, those read first are forgotten first."""
_MOST_SHELLS = 200


class _Head(TypedDict):
    version: int
    directory: str | None
    finished: bool
    roots: list[str]
    shells: dict[str, str]


_VERSION = 1
_HEAD = TypeAdapter(_Head)
_TODOS = TypeAdapter(list[Todo])
_Facts: TypeAlias = tuple[str, int, int, int, int, int, str | None, bool, int | None]
_Edited: TypeAlias = tuple[str, int, int, int, int, int, str | None, bool, int | None, tuple[str, ...]]
_SEEN: TypeAdapter[_Facts | _Edited] = TypeAdapter(_Facts | _Edited)


class SharedState:
    """A session's state as fields. Remembers which of them were saved."""

    def __init__(self, state: State, session: WorkspaceSession, server: str, *, tells_calls: bool = False) -> None:
        """`tells_calls`: other servers can't see the session's record, so its calls are reported to them."""
        self._state = state
        self._session = session
        self._server = server
        self._kernel = kernel_name()
        self._saved: dict[str, bytes] = {}
        self._reads: dict[str, None] = {}  # the names of the saved reads, the oldest first
        self._pending: dict[str, bytes | None] = {}
        self.elsewhere: dict[str, str] = {}
        """The background shells that were started on other servers, with these."""
        self._lines: deque[dict[str, Any]] = deque(maxlen=MOST_LINES)
        self.root = session.fs.roots[0]
        state.reads.take_changes()
        if tells_calls:
            session.send_record_to(self._lines.append)

    # --- to the store ---

    def changes(self) -> dict[str, bytes | None]:
        """What changed since the last `saved`."""
        for real, seen in self._state.reads.take_changes().items():
            self._pending[f"{_READ}{real}"] = None if seen is None else self._seen(seen)
        surplus = len(self._reads) + len(self._pending) - MOST_READS
        for name in list(self._reads)[: max(0, surplus)]:
            self._pending.setdefault(name, None)
        head = {name: value for name, value in self._small().items() if self._saved.get(name) != value}
        return {**self._pending, **head}

    def saved(self, changes: Mapping[str, bytes | None]) -> None:
        """These changes are in the store."""
        for name, value in changes.items():
            if not name.startswith(_READ):
                self._saved[name] = value or b""
            elif value is None:
                self._reads.pop(name, None)
            else:
                self._reads[name] = None
            if self._pending.get(name, b"") == value or value is None:
                self._pending.pop(name, None)

    def lines(self) -> list[bytes]:
        """What the record has written since the last `lines_saved`, for other servers."""
        return [line_for_others(value, self._server) for value in list(self._lines)]

    def lines_saved(self, count: int) -> None:
        """So many of the lines are in the store."""
        for _ in range(min(count, len(self._lines))):
            self._lines.popleft()

    def forget_saved(self) -> None:
        """The store has lost everything: all of it is to be saved again."""
        self._saved.clear()
        self._reads.clear()
        self._state.reads.change_all()

    def _small(self) -> dict[str, bytes]:
        place = self._state.place
        running = place.shells.running() if place.shells is not None else ()
        head: _Head = {
            "version": _VERSION,
            "directory": place.directory() or None,
            "finished": self._session.finished,
            "roots": list(self._session.fs.roots),
            "shells": {**self.elsewhere, **dict.fromkeys(running, self._server)},
        }
        return {"head": _json(head), "todos": _TODOS.dump_json(list(self._state.todos.items))}

    def _seen(self, seen: Seen) -> bytes:
        it = seen.identity
        facts = (it.device, it.inode, it.size, it.mtime_ns, it.ctime_ns, seen.digest, seen.settled, seen.lines)
        edits = [seen.edits] if seen.edits else []
        return _json([self._kernel if it.device >= 0 else "", *facts, *edits])

    # --- from the store ---

    def adopt(self, fields: Mapping[str, bytes]) -> list[str]:
        """Makes the state what the fields say, and what this server has seen of other files and could not save.
        Returns what there is to say about it."""
        notes: list[str] = []
        head, ignored = _parsed(_HEAD, fields.get("head"))
        here = list(self._session.fs.roots)
        if head is not None and head["roots"] != here:
            notes.append(
                "[this session was used on a server with other roots: what was read there does not count here]"
            )
        has_same_roots = head is None or head["roots"] == here
        self.changes()
        unsaved = {name: value for name, value in self._pending.items() if value is not None and name not in fields}
        reads, broken = self._restored(fields) if has_same_roots else (list[Seen](), 0)
        self._state.reads.replace([*reads, *self._restored(unsaved)[0]])
        todos, is_broken = _parsed(_TODOS, fields.get("todos"))
        try:
            self._state.todos.restore(todos or ())
        except ToolError:
            is_broken = True
        if head is not None:
            notes += self._take_head(head)
        if ignored or broken or is_broken:
            notes.append("[the shared store has values that gripfast did not write; they were ignored]")
        self._saved = {name: value for name, value in fields.items() if not name.startswith(_READ)}
        self._reads = dict.fromkeys(name for name in fields if name.startswith(_READ))
        self._pending = dict(unsaved)
        return notes

    def _take_head(self, head: _Head) -> list[str]:
        self._session.finished = head["finished"]
        shells = dict(list(head["shells"].items())[-_MOST_SHELLS:])
        self.elsewhere = {name: server for name, server in shells.items() if server != self._server}
        directory, place = head["directory"], self._state.place
        if directory is None or directory == place.directory() or head["roots"] != list(self._session.fs.roots):
            return []
        if not self._is_inside(directory) or not is_directory(directory):
            place.go(self._session.fs.roots[0])
            return ["[the working directory is the workspace's root again: the last one is not there on this server]"]
        place.go(directory)
        return []

    def _restored(self, fields: Mapping[str, bytes]) -> tuple[list[Seen], int]:
        """What was seen of files, and how many fields were not valid."""
        found: list[Seen] = []
        broken = 0
        for name, value in fields.items():
            if not name.startswith(_READ):
                continue
            facts, _ = _parsed(_SEEN, value)
            if facts is None or not self._is_inside(name[len(_READ) :]):
                broken += 1
                continue
            kernel, device, inode, size, mtime, ctime, digest, settled, lines = cast(_Facts, facts[:9])
            edits: tuple[str, ...] = facts[9] if len(facts) > 9 else ()
            is_here = kernel == self._kernel
            identity = Identity(device if is_here else -1, inode, size, mtime, ctime)
            if lines is not None and not 0 <= lines <= identity.size + 1:
                lines = None
            found.append(Seen(name[len(_READ) :], identity, digest, settled and is_here, lines, edits))
        return found, broken

    def _is_inside(self, path: str) -> bool:
        readable = self._session.fs.scope.read
        return readable is None or is_below(path, *(directory.real for directory in readable))


def _parsed(adapter: TypeAdapter[Any], value: bytes | None) -> tuple[Any, bool]:
    """The value, None if there is none or it is not valid; and whether it is not valid."""
    if value is None:
        return None, False
    try:
        return adapter.validate_json(value), False
    except (ValidationError, ValueError, RecursionError):
        return None, True


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
