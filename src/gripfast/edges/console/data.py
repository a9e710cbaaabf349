"""What the console shows, as JSON values: read from the records and the queue of questions, escaped and bounded."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, cast

from gripfast.builtin.config import load_config
from gripfast.builtin.write_todos import write_todos
from gripfast.clock import monotonic
from gripfast.edges.settings import SessionSettings
from gripfast.errors import NotFound, ToolError
from gripfast.host.questions.everywhere import questions_in
from gripfast.host.questions.question import QueuedQuestion
from gripfast.host.record.calls import CallsFile, RecordedCall
from gripfast.host.record.compare import compared
from gripfast.host.record.contents import Contents
from gripfast.host.record.elsewhere import SessionCall, calls_everywhere
from gripfast.host.record.record import Record
from gripfast.host.record.shelf import (
    RecordedSession,
    RecordOptions,
    all_sessions,
    bytes_of_all,
    place_of,
    recorded_session,
)
from gripfast.host.record.undo import UndoResult, undo
from gripfast.host.shell.board import RunningShells
from gripfast.host.stores.redis_sessions import RedisSessions
from gripfast.host.stores.sessions import SessionStore
from gripfast.text.colours import coloured
from gripfast.text.cut import character_start
from gripfast.text.escape import escaped, visible
from gripfast.text.terminal import plain

_SUBJECT = 160  # characters of the arguments in a row
_TEXT = 64 << 10  # bytes of arguments or of an answer that are shown
_DIFF_LINES = 2000
_LINE = 2000  # characters of a line of a diff
_OPEN_FILES = 50
_SHELLS = 100
_LOOK_SECONDS = 0.5  # between two looks at the store
_NAMED = ("session", "root", "tool", "reason", "client", "server", "who", "asker")  # of a question
_SUBJECTS = ("command", "file_path", "path", "pattern", "patch", "bash_id")


class ConsoleData:
    """The records of all sessions, read on while somebody looks. Its methods block: call them in a thread."""

    def __init__(self, config_file: str | None = None, store: str | None = None) -> None:
        """`store` is the Redis that servers share, if there is one."""
        self._config_file = config_file
        self._lock = threading.Lock()
        self._files: OrderedDict[str, CallsFile] = OrderedDict()
        self.queue, _ = questions_in(store)
        self._looked: tuple[float, tuple[str, ...]] = (float("-inf"), ())
        self._others = OtherServers(None if store is None else RedisSessions(store, timeout=1.0))
        self.shells = RunningShells()

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions, the newest first."""
        here = {found.place: found for found in all_sessions()}
        there = {found.place: found for found in self._others.sessions()}
        merged = [_newer(here.get(place), there.get(place)) for place in {**here, **there}]
        return [
            {
                "place": found.place,
                "session": escaped(found.session),
                "root": escaped(found.roots[0] if found.roots else ""),
                "last_used": found.last_used,
            }
            for found in sorted(merged, key=lambda one: one.last_used, reverse=True)
        ]

    def questions(self) -> list[dict[str, Any]]:
        """The questions that wait, the oldest first."""
        return [
            {
                **question.to_json(),
                **{name: escaped(getattr(question, name)) for name in _NAMED},
                "widths": {width: escaped(covers) for width, covers in question.widths.items()},
                "shown": visible(_without_diff(question)),
                "diff": visible(_cut(question.diff)),
            }
            for question in self.queue.waiting()
        ]

    def running(self) -> list[dict[str, Any]]:
        """The background shells of all sessions that run, the newest first."""
        return [
            {
                "id": shell.id,
                "session": escaped(shell.session),
                "root": escaped(shell.root),
                "name": escaped(shell.name),
                "command": visible(shell.command),
                "started_at": shell.started_at,
                "ended_at": shell.ended_at,
                "how": escaped(shell.how),
            }
            for shell in self.shells.all()[:_SHELLS]
        ]

    def output(self, id: str) -> dict[str, Any]:
        """The end of what a background shell printed, as pieces of text with their styles."""
        size, tail = self.shells.output(id)
        is_cut = size > len(tail)
        text = (_from_character(tail) if is_cut else tail).decode("utf-8", "replace")
        return {"size": size, "left_out": is_cut, "runs": _runs(text)}

    def todos(self, place: str) -> list[dict[str, Any]]:
        """The plan of a session: what its last `write_todos` answered."""
        file = self._file(place)
        file.look()
        call, found = file.last_of(write_todos.name), recorded_session(place)
        if call is None or found is None or call.answer is None:
            return []
        return _todos(Contents(found.file.parent / "contents", 0).get(call.answer))

    def stamps(self, most: int = 20) -> tuple[object, ...]:
        """Differs whenever a list may have changed."""
        found = all_sessions(most)
        waiting = self._waiting()
        others = tuple((one.place, one.last_used) for one in self._others.sessions()[:most])
        return waiting, tuple((one.place, one.last_used) for one in found), others

    def _waiting(self) -> tuple[str, ...]:
        """The ids of the questions that wait; those of a store as they were a moment ago."""
        looked, ids = self._looked
        if self.queue.is_local or monotonic() - looked >= _LOOK_SECONDS:
            ids = tuple(question.id for question in self.queue.waiting())
            self._looked = monotonic(), ids
        return ids

    def quota(self) -> dict[str, Any]:
        """How much of the record's room is used."""
        return {"used": bytes_of_all(), "quota": self._options().quota}

    def calls(self, place: str, since: int = 0, most: int = 0, others: str = "") -> dict[str, Any]:
        """The calls that changed since a look, or the last ones, as rows. `others` is what the last answer said about
        the calls on other servers: they are all given again if there is something new."""
        is_shared = self._others.has(place)
        file = self._file(place) if recorded_session(place) is not None or not is_shared else None
        look = file.look() if file else 0
        stamp, elsewhere = self._others.calls(place, others, file.all() if file and is_shared else [])
        rows = [self._row(one.call, one.server) for one in elsewhere]
        if file is None:
            return {"look": 0, "calls": rows, "left_out": 0, "todos": 0, "others": stamp}
        found = file.calls(since)
        shown = found[-most:] if most else found
        rows += [self._row(call) for call in shown]
        plan = file.last_of(write_todos.name)
        left_out, todos = len(found) - len(shown), plan.number if plan else 0
        return {"look": look, "calls": rows, "left_out": left_out, "todos": todos, "others": stamp}

    def _row(self, call: RecordedCall, server: str = "") -> dict[str, Any]:
        return {
            "key": SessionCall(call, server).key,
            "server": escaped(server),
            "number": call.number,
            "time": call.time,
            "tool": escaped(call.tool),
            "subject": escaped(_subject(call.arguments)),
            "decision": escaped(call.decision[:200]),
            "milliseconds": round(call.milliseconds, 1),
            "tokens": call.answer_tokens,
            "error": call.error,
            "changes": len(call.changes),
            "undoes": list(call.undoes),
            "ended": call.ended,
        }

    def call(self, place: str, number: int, server: str = "") -> dict[str, Any]:
        """All of one call: arguments, answer, what it changed. Of a call on another server, what it shared."""
        if server:
            return self._elsewhere(place, f"{number}@{server}")
        found, call = self._found(place, number)
        with _opened(found, self._config_file) as record:
            lines = (line for change in call.changes for line in compared(record, call.number, change))
            diff = [visible(line.rstrip("\n")[:_LINE]) for line in islice(lines, _DIFF_LINES + 1)]
            changes = [
                {"path": record.fs.show_real(change.path), "raw": change.path, "kind": _kind(change)}
                for change in call.changes[:_DIFF_LINES]
            ]
            answer, printed, arguments = record.answer(call), record.printed(call), record.arguments(call)
        return {
            **self._row(call),
            **_arguments(arguments),
            "answer": None if answer is None else visible(_cut(answer)),
            "answer_runs": answer and printed and _in_colour(answer, printed),
            "answer_bytes": call.answer_bytes,
            "output_ref": call.output_ref,
            "decision": escaped(call.decision),
            "changes": changes,
            "uncovered": [escaped(path) for path in call.uncovered[:100]],
            "diff": diff[:_DIFF_LINES],
            "diff_is_cut": len(diff) > _DIFF_LINES,
        }

    def _elsewhere(self, place: str, key: str) -> dict[str, Any]:
        one = next((one for one in self._others.calls(place)[1] if one.key == key), None)
        if one is None:
            raise NotFound("the other server's call is no longer in the shared store")
        paths = [{"path": escaped(change.path), "raw": "", "kind": _kind(change)} for change in one.call.changes]
        return {
            **self._row(one.call, one.server),
            **_arguments(one.call.arguments),
            "answer": None,
            "answer_bytes": one.call.answer_bytes,
            "output_ref": one.call.output_ref,
            "decision": escaped(one.call.decision),
            "changes": paths,
            "uncovered": [escaped(path) for path in one.call.uncovered],
            "diff": [],
            "diff_is_cut": False,
        }

    def undo(self, place: str, calls: Sequence[int], paths: Sequence[str], *, dry_run: bool) -> dict[str, Any]:
        """Takes calls back, or says what that would do. Raises ToolError."""
        found, _ = self._found(place, calls[0])
        with _opened(found, self._config_file) as record:
            return _as_json(undo(record, list(calls), list(paths), dry_run=dry_run, by_person=True))

    def _options(self) -> RecordOptions:
        return load_config(self._config_file).record or RecordOptions()

    def _file(self, place: str) -> CallsFile:
        found = recorded_session(place)
        if found is None:
            raise NotFound("there is no such session any more")
        with self._lock:
            file = self._files.setdefault(place, CallsFile(found.file))
            self._files.move_to_end(place)
            while len(self._files) > _OPEN_FILES:
                self._files.popitem(last=False)
        return file

    def _found(self, place: str, number: int) -> tuple[RecordedSession, RecordedCall]:
        found = recorded_session(place)
        file = self._file(place)
        file.look()
        call = file.call(number)
        if found is None or call is None:
            raise NotFound(f"there is no call {number} in this session")
        return found, call


class OtherServers:
    """What other servers report about their calls in the store that they share."""

    def __init__(self, store: SessionStore | None) -> None:
        self._store = store
        self._looked = float("-inf")
        self._sessions: list[RecordedSession] = []

    def sessions(self) -> list[RecordedSession]:
        """The sessions that have calls on any server, those used last first, as they were a moment ago."""
        if self._store is not None and monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = monotonic()
            with suppress(ToolError):  # what was known stays
                self._sessions = [
                    RecordedSession(place_of(one.root, one.session), one.session, (one.root,), one.used)
                    for one in self._store.recorded()
                ]
        return self._sessions

    def has(self, place: str) -> bool:
        return any(one.place == place for one in self.sessions())

    def calls(self, place: str, known: str = "", own: Sequence[RecordedCall] = ()) -> tuple[str, list[SessionCall]]:
        """The calls of a session on other servers, and a text that names them; without the calls if that text is
        `known`. `own` are the calls in the record of this machine."""
        if self._store is None or not self.has(place):
            return "", []
        try:
            lines = self._store.lines(place.partition("/")[2])
        except ToolError:
            return known, []
        stamp = hashlib.sha256(b"\n".join(lines)).hexdigest()[:16]
        if stamp == known:
            return stamp, []
        return stamp, [one for one in calls_everywhere(own, lines)[0] if one.server]


def _newer(one: RecordedSession | None, other: RecordedSession | None) -> RecordedSession:
    found = [session for session in (one, other) if session is not None]
    return max(found, key=lambda session: session.last_used)


def _without_diff(question: QueuedQuestion) -> str:
    """What will run. Its diff is shown beside it, unless it is too long for that."""
    is_whole = question.diff and _cut(question.diff) == question.diff
    return question.shown.removesuffix(f"\n{question.diff}") if is_whole else question.shown


@contextmanager
def _opened(found: RecordedSession, config_file: str | None) -> Generator[Record]:
    """The record of a session while something is done with it. Raises ToolError if its workspace is gone."""
    options = load_config(config_file).record or RecordOptions()
    files = SessionSettings(found.roots[:1], config_file=config_file).files()
    record = Record(files, found.place.partition("/")[2], options)
    try:
        yield record
    finally:
        record.close()


@functools.lru_cache(maxsize=20_000)
def _subject(arguments: str) -> str:
    """What a call is about, in a line: its command, path or pattern, else its arguments."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments[:_SUBJECT]
    known = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    named = [str(known[name]) for name in _SUBJECTS if name in known]
    return " ".join((named[0] if named else arguments).split())[:_SUBJECT]


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a call as JSON; if that would write line breaks as escapes, also each by its name, as text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    named = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    has_lines = any(isinstance(one, str) and "\n" in one.rstrip("\n") for one in named.values())
    if not has_lines or len(text) > _TEXT:
        return {"arguments": visible(_cut(_pretty(text))), "fields": []}
    texts = {
        name: one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for name, one in named.items()
    }
    return {"arguments": "", "fields": [[escaped(name), visible(one)] for name, one in texts.items()]}


def _pretty(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= _TEXT:
        return text
    shown = data[: character_start(data, _TEXT)].decode("utf-8", "replace")
    return f"{shown}\n[cut here; {len(data)} bytes in total]"


def _runs(text: str) -> list[list[str]]:
    return [[run.text, run.style] for run in coloured(text)]


def _in_colour(answer: str, printed: str) -> list[list[str]]:
    """An answer as pieces of text with their styles: what a command printed, then the notes under it."""
    notes = answer[len(plain(printed).removesuffix("\n")) :]
    runs = _runs(_cut(printed))
    if runs:
        runs[-1][0] = runs[-1][0].removesuffix("\n")
    return [*runs, [visible(notes), ""]]


def _from_character(data: bytes) -> bytes:
    """Without the rest of a character whose beginning was cut off."""
    return data[next((at for at, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0) :]


def _todos(answer: bytes | None) -> list[dict[str, Any]]:
    try:
        todos = json.loads(answer or b"{}")["todos"]
        return [{name: escaped(str(todo[name])) for name in ("content", "status")} for todo in todos]
    except (ValueError, KeyError, TypeError):
        return []


def _kind(change: Any) -> str:
    if change.before.kind == "absent":
        return "added"
    return "removed" if change.after.kind == "absent" else "changed"


def _as_json(result: UndoResult) -> dict[str, Any]:
    """The result of an undo. Its paths are escaped already, as answers name them; a reason may quote an error."""
    return {
        "calls": list(result.calls),
        "restored": [{"path": done.path, "what": done.what} for done in result.restored],
        "refused": [{"path": one.path, "reason": escaped(one.reason)} for one in result.refused],
        "kept": [{"path": one.path, "reason": escaped(one.reason)} for one in result.kept],
        "dry_run": result.dry_run,
        "call": result.call,
    }
