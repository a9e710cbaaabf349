"""Record: the calls of one session, and what each did to the files."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from gripfast.errors import NotFound, ToolError
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.watch import Mark, PathChange, Watch
from gripfast.host.files.witness import WITNESS, Replacement
from gripfast.host.record.calls import VERSION, CallsFile, PathDelta, RecordedCall, merged
from gripfast.host.record.contents import Contents
from gripfast.host.record.cover import Cover
from gripfast.host.record.others import Others, own_part
from gripfast.host.record.shelf import (
    RecordOptions,
    hold,
    make_session_directory,
    mark_finished,
    mark_unfinished,
    session_directory,
    tidy,
    tidying_is_due,
)
from gripfast.host.record.states import ABSENT, PathState, file_state, state_of
from gripfast.host.record.transaction import recover
from gripfast.records import dataclass
from gripfast.text.escape import escaped
from gripfast.text.terminal import plain

_LOGGER = logging.getLogger("gripfast")

_LONG = 4096  # characters of arguments that stand in the line itself
_LONGEST_ANSWER = 1 << 16  # characters of an answer that are kept
_NAMED = 10  # paths that an answer names

_BY_HASH = r"sha256:([0-9a-f]{64}) \("

_AS_LINE = json.JSONEncoder(separators=(",", ":")).encode

Redact = Callable[[str], str]


def _as_is(text: str) -> str:
    return text


class Record:
    """One session's record. `redact` is applied to every text before it is written; what files hold is kept as it is,
    or it could not be put back. Whatever fails is said in the next answer, and no call fails because of it."""

    def __init__(
        self, fs: ScopedFs, session: str, options: RecordOptions | None = None, redact: Redact = _as_is
    ) -> None:
        self.fs = fs
        self.options = options or RecordOptions()
        self.redact = redact
        self.session = session
        self.fault: str | None = None
        self.on_line: Callable[[dict[str, Any]], object] | None = None
        """Is given each line about a call that has ended, for other servers."""
        self._already_noted: set[str] = set()
        self._lock = threading.Lock()
        self._number = self._end = self._tidied = 0
        self._held = self._fd = -1
        self._is_closed = False
        self.noting = _NotingFaults(self)
        self._is_marked = False
        self._watch: Watch | None = None
        self._commands: list[CallEntry] = []
        self.stays: list[_Staying] = []
        self.last_command = 0
        self._hidden: list[str] = []  # changed by an earlier command; said in the next answer
        self._late: list[tuple[str, str]] = []  # not covered, by commands in the background; said in the next answer
        self._written: dict[str, PathState] = {}
        self._background: list[threading.Thread] = []
        self.directory = session_directory(fs.roots[0], session)
        self.file = self.directory / "calls.jsonl"
        self._calls = CallsFile(self.file)
        self._reading = threading.Lock()
        self.contents = Contents(self.directory / "contents", self.options.quota)
        self.others = Others(self.directory)
        self.cover = Cover(self.contents, self.options, fs.roots)
        self._open()

    @property
    def journals(self) -> Path:
        return self.directory.parent / "journals"

    def _open(self) -> None:
        with self.noting:
            make_session_directory(self.fs.roots[0], self.session)
            self._held = hold(self.directory)
            recover(self.fs, self.journals)
            if not self.file.exists():
                self._append({"record": VERSION, "session": self.session, "roots": list(self.fs.roots)})
            if tidying_is_due(self.options):
                self._start_tidying()

    def _start_tidying(self) -> None:
        thread = threading.Thread(target=self._tidy, daemon=True)
        thread.start()
        self._background.append(thread)

    def _tidy(self) -> None:
        with contextlib.suppress(OSError):
            tidy(self.options)

    def watch_with(self, watch: Watch) -> None:
        """From here on, what commands change is covered, beginning in the background."""
        if self._watch is None:
            self._watch = watch
            self.cover.start(watch)

    def be_ready(self, watch: Watch) -> bool:
        """Before a command: waits as long as the cover grows. Returns whether all it may change is covered."""
        is_whole = False
        with self.noting:
            self.watch_with(watch)
            is_whole = self.cover.wait_while_it_moves()
            self.cover.refresh(watch)
        return is_whole

    def command_begins(self, entry: CallEntry) -> bool:
        """Whether another command runs already: what changes from now on may be either's."""
        for other in self._commands:
            other.overlap()
        self._commands.append(entry)
        return len(self._commands) + len(self.stays) > 1

    def command_ends(self, entry: CallEntry) -> None:
        if entry in self._commands:
            self._commands.remove(entry)

    def collect(self, *, all: bool = False) -> None:
        """Adds what commands in the background have changed to the calls that started them, and what was found since
        the last command to that. `all`: every file is compared for it."""
        self._add_hidden(all)
        for staying in list(self.stays):
            is_running = staying.is_running()
            mark = staying.watch.mark()
            changes = staying.watch.since(staying.mark, after_command=not is_running).paths
            deltas, named = self.cover.deltas(changes)
            ours = {delta.path for delta in deltas if self._is_written(delta)}
            uncovered = [one for one in named if one not in staying.named and one[0] not in ours]
            staying.named.update(uncovered)
            shared = len(self._commands) + len(self.stays) > 1
            found = [replace(delta, shared=shared) for delta in deltas if delta.path not in ours]
            if found or uncovered:
                added = {"changes": [delta.to_json() for delta in found], "uncovered": _as_lines(uncovered)}
                self.append({"adds": staying.number, **added})
                self.publish({"adds": staying.number, **added})
                self._late += [one for one in uncovered if one not in self._late]
            staying.mark = mark
            if not is_running:
                self.stays.remove(staying)

    def _add_hidden(self, all: bool) -> None:
        """What a command changed by other names of the files, found after its answer."""
        changes = self._watch.hidden(finish=all) if self._watch is not None and self.last_command else ()
        if changes:
            deltas, uncovered = self.cover.deltas(changes)
            added = {"changes": [delta.to_json() for delta in deltas], "uncovered": _as_lines(uncovered)}
            self.append({"adds": self.last_command, **added})
            self._late += uncovered
            self._hidden += [delta.path for delta in deltas if not delta.before.is_same(delta.after)]

    def _is_written(self, delta: PathDelta) -> bool:
        """Whether it was another call that left a path like this."""
        known = self._written.get(delta.path)
        return known is not None and known.is_same(delta.after)

    def written(self, changes: Sequence[PathDelta], writer: CallEntry) -> None:
        """A call has made these changes itself: no command that runs meanwhile has."""
        if self.stays:
            self._written.update((change.path, change.after) for change in changes)
        for command in self._commands:
            if command is not writer:
                command.beside += changes

    # --- reading ---

    def calls(self) -> list[RecordedCall]:
        """All calls so far."""
        with self._reading:
            self._calls.look()
            return self._calls.all()

    def call(self, number: int) -> RecordedCall:
        """Raises NotFound for a number that no call has."""
        for call in self.calls():
            if call.number == number:
                return call
        raise NotFound(f"there is no call {number} in the record of this session")

    def changes(self, call: int) -> tuple[PathDelta, ...]:
        """What a call did, path by path."""
        return self.call(call).changes

    def answer(self, call: RecordedCall) -> str | None:
        """What a call was answered; None if that was not kept."""
        data = self.contents.get(call.answer)
        return None if data is None else data.decode("utf-8", "replace")

    def arguments(self, call: RecordedCall) -> str:
        """The arguments of a call, also where the line has only their hash."""
        named = re.match(_BY_HASH, call.arguments)
        data = self.contents.get(named[1]) if named else None
        return call.arguments if data is None else data.decode("utf-8", "replace")

    def printed(self, call: RecordedCall) -> str | None:
        """How the answer of a call begins, with the colours of a terminal; None if it had none."""
        data = self.contents.get(call.printed)
        return None if data is None else data.decode("utf-8", "replace")

    def keep_answer(self, text: str, printed: str = "") -> tuple[str | None, str | None]:
        """Keeps the text of an answer, and what a command printed of it in colour; None if there is none or no room.
        Colours that hide a part of a secret, or text that a hook took out of the answer, are not kept."""
        answer = self.redact(text)[:_LONGEST_ANSWER]  # not after the cut, which may be inside a secret
        printed = self.redact(printed)[:_LONGEST_ANSWER]
        if not answer.startswith(plain(printed).removesuffix("\n")):
            printed = ""
        return self._keep_text(answer), self._keep_text(printed)

    def _keep_text(self, text: str) -> str | None:
        try:
            return self.contents.put(text.encode("utf-8", "replace")) if text else None
        except OSError:
            return None

    # --- writing ---

    def begin(self, id: str, tool: str, arguments: str) -> CallEntry:
        """A call begins. Ends with `CallEntry.end`."""
        text = self._short(self.redact(arguments))
        started = time.time()
        with self._lock, self.noting:
            fd = self._opened()
            # Numbers are given under a lock: `gripfast undo` may write to the same record.
            fcntl.flock(fd, fcntl.LOCK_EX)
            try:
                if (size := os.fstat(fd).st_size) != self._end:
                    self._number = max((call.number for call in self.calls()), default=self._number)
                    self._end = size
                self._number += 1
                self._write(fd, {"begins": self._number, "id": id, "time": started, "tool": tool, "arguments": text})
            finally:
                fcntl.flock(fd, fcntl.LOCK_UN)
                self._close_if_over()
        return CallEntry(self, self._number, started, tool, text)

    def _short(self, text: str) -> str:
        if len(text) <= _LONG:
            return text
        digest = None
        with self.noting:
            digest = self.contents.put(text.encode("utf-8", "surrogatepass"))
        return f"sha256:{digest} ({len(text)} characters)"

    def append(self, value: dict[str, Any]) -> None:
        with self._lock, self.noting:
            self._append(value)
        if self.contents.size > self._tidied + self.options.quota // 8:
            self._tidied = self.contents.size
            self._start_tidying()

    def _append(self, value: dict[str, Any]) -> None:
        try:
            self._write(self._opened(), value)
        finally:
            self._close_if_over()

    def _opened(self) -> int:
        """The file, open for appending until the record is closed. One that somebody has removed is made again."""
        if self._fd >= 0 and not os.fstat(self._fd).st_nlink:
            self._let_go()
        if self._fd < 0:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(self.file, flags, 0o600)
        return self._fd

    def _close_if_over(self) -> None:
        """After the line of a call that begins or ends later than its session."""
        if self._is_closed:
            self._let_go()

    def _let_go(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, fd: int, value: dict[str, Any]) -> None:
        """Where the file ends is known by counting, so what others append is noticed when the next call begins."""
        line = _AS_LINE(value).encode() + b"\n"
        if os.write(fd, line) < len(line):
            os.write(fd, b"\n")  # a full disk: the half line is one that can't be read, the next one can
            raise OSError(28, "no space left on the device")
        self._end += len(line)

    def publish(self, value: dict[str, Any]) -> None:
        if self.on_line is not None:
            self.on_line(value)

    def notes(self, uncovered: Sequence[tuple[str, str]], *, has_changes: bool) -> str | None:
        """What an answer should say about its record; each thing once in a session, except that a change is not
        recorded."""
        notes: list[str] = []
        fault, self.fault = self.fault, None
        uncovered, self._late = [*self._late, *uncovered], []
        if fault and (has_changes or f"fault {fault}" not in self._already_noted):
            self._already_noted.add(f"fault {fault}")
            notes.append(f"[not recorded, so it can't be undone: {escaped(fault)}]")
        hidden, self._hidden = self._hidden, []
        if hidden:
            notes.append(
                f"[an earlier command also changed, through another name of the file: {self._listed(hidden)}]"
            )
        new = [(path, why) for path, why in uncovered if f"{path} {why}" not in self._already_noted]
        self._already_noted.update(f"{path} {why}" for path, why in new)
        if new:
            shown = ", ".join(f"{self.fs.show_real(path)} ({why})" for path, why in new[:_NAMED])
            more = f" and {len(new) - _NAMED} more" if len(new) > _NAMED else ""
            notes.append(f"[undo does not cover: {shown}{more}]")
        return "\n".join(notes) or None

    def _listed(self, paths: Sequence[str]) -> str:
        shown = ", ".join(map(self.fs.show_real, paths[:_NAMED]))
        return f"{shown} and {len(paths) - _NAMED} more" if len(paths) > _NAMED else shown

    def leave_mark(self) -> None:
        """A command runs on: if the server is killed, readers learn that the record is not whole."""
        self._is_marked = True
        mark_unfinished(self.directory)

    def close(self) -> None:
        """Ends the background work and removes the contents no call refers to."""
        with self.noting:
            self.collect(all=True)
            if self._is_marked:
                mark_finished(self.directory)
        self.cover.close()
        for thread in self._background:
            thread.join()
        with self.noting:
            self._drop_unused()
        with self._lock:
            self._is_closed = True
            self._let_go()
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def _drop_unused(self) -> None:
        changes = [change for call in self.calls() for change in call.changes]
        used = {state.digest for change in changes for state in (change.before, change.after)}
        for digest in self.cover.copied:
            if digest not in used:
                self.contents.drop(digest)


class _NotingFaults:
    """Notes what fails in the record itself: no call fails because of it."""

    __slots__ = ("_record",)

    def __init__(self, record: Record) -> None:
        self._record = record

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        if not isinstance(error, OSError | ToolError):
            _LOGGER.error("the record failed", exc_info=error)  # a bug, which the note does not explain
        self._record.fault = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return True


@dataclass(slots=True)
class _Staying:
    """A command in the background, and the moment up to which its changes are recorded."""

    number: int
    watch: Watch
    mark: Mark
    is_running: Callable[[], bool]
    named: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


class CallEntry:
    """One call while it runs. It is the witness of what its tool does to files."""

    def __init__(self, record: Record, number: int, began: float, tool: str, arguments: str) -> None:
        self._record = record
        self.number = number
        self._began = began
        self._tool = tool
        self._arguments = arguments
        self._started = time.monotonic()
        self._decision = self._printed = ""
        self._lock = threading.Lock()
        self._changes: list[PathDelta] = []
        self._uncovered: list[tuple[str, str]] = []
        self._overlaps = False
        self._others: dict[Path, int] = {}
        self.beside: list[PathDelta] = []
        """What other calls of the session wrote while the command of this one ran."""
        self._token = WITNESS.set(self)

    def overlap(self) -> None:
        self._overlaps = True

    def decided(self, decision: str) -> None:
        """Notes whether the call was allowed, and by which rule or person."""
        self._decision = self._record.redact(decision)

    # --- the witness ---

    def replacing(self, *files: Replacement) -> None:
        with self._record.noting:
            self.announce([delta for file in files for delta in self._deltas(file)])

    def replaced(self, *files: Replacement) -> None:
        with self._record.noting:
            self.add([delta for file in files for delta in self._deltas(file)])

    def command_nears(self, watch: Watch) -> None:
        self._record.be_ready(watch)

    def command_starts(self, watch: Watch) -> None:
        with self._record.noting:
            self._record.collect()
            self._record.cover.refresh(watch)
            self._overlaps = self._record.command_begins(self)
            self._others = self._record.others.mark()

    def command_stays(self, watch: Watch, is_running: Callable[[], bool]) -> None:
        with self._record.noting:
            self._record.cover.refresh(watch)
            self._record.stays.append(_Staying(self.number, watch, watch.mark(), is_running))
            self._record.leave_mark()

    def command_changed(self, changes: Sequence[PathChange], watch: Watch, *, goes_on: bool) -> Mapping[str, bool]:
        with self._record.noting:
            self._record.command_ends(self)
            self._record.last_command = self.number
            deltas, uncovered = self._record.cover.deltas(changes, goes_on=goes_on)
            said = self._record.others.since(self._others)
            deltas = own_part(deltas, (*self.beside, *said.exact))
            shared = {delta.path for delta in deltas if self._overlaps or delta.path in said.claimed}
            self.add([replace(delta, shared=delta.shared or delta.path in shared) for delta in deltas])
            with self._lock:
                self._uncovered += uncovered
            states = ((delta.path, delta.before.digest, delta.after.digest) for delta in deltas)
            return {path: old != new for path, old, new in states if old is not None and new is not None}
        return {}

    def command_printed(self, text: str) -> None:
        self._printed = text

    def _deltas(self, file: Replacement) -> list[PathDelta]:
        before = ABSENT if file.before is None else file_state(file.before, file.before_mode)
        note = self._store_content(file.path, file.before) or self._store_content(file.path, file.after)
        made = [PathDelta(path, ABSENT, state_of(os.lstat(path))) for path in file.made]
        after = ABSENT if file.after is None else file_state(file.after, file.after_mode)
        return [*made, PathDelta(file.path, before, after, note)]

    def _store_content(self, path: str, data: bytes | None) -> str:
        """Puts a content into the store. Returns why it could not, if so."""
        if data is None:
            return ""
        if len(data) > self._record.options.largest_file:
            why = f"larger than {self._record.options.largest_file} bytes"
        else:
            try:
                self._record.contents.put(data)
            except OSError as error:
                why = error.strerror or "it could not be stored"
            else:
                return ""
        with self._lock:
            self._uncovered.append((path, why))
        return why

    # --- what is known ---

    def announce(self, changes: Sequence[PathDelta]) -> None:
        """What is about to happen, on disk before it does."""
        self._record.append({"announces": self.number, "changes": [change.to_json() for change in changes]})

    def add(self, changes: Sequence[PathDelta]) -> None:
        self._record.written(changes, self)
        with self._lock:
            self._changes += changes

    def end(
        self,
        *,
        size: int = 0,
        output_ref: str | None = None,
        error: str | None = None,
        answer: str = "",
        undoes: Sequence[int] = (),
    ) -> str | None:
        """Writes the call's line. Returns what the answer should say about that, if anything."""
        with contextlib.suppress(ValueError):
            WITNESS.reset(self._token)
        self._record.command_ends(self)
        uncovered = list(dict.fromkeys(self._uncovered))
        kept, printed = self._record.keep_answer(answer, self._printed)
        call = RecordedCall(
            self.number,
            self._began,
            self._tool,
            arguments=self._arguments,
            decision=self._decision,
            milliseconds=(time.monotonic() - self._started) * 1000,
            answer_bytes=size,
            answer_tokens=-(-size // 4),
            output_ref=output_ref,
            error=error,
            changes=merged(self._changes),
            uncovered=_as_lines(uncovered),
            undoes=tuple(undoes),
            answer=kept,
            printed=printed,
        )
        line = call.to_json()
        self._record.append(line)
        self._record.publish(line)
        return self._record.notes(uncovered, has_changes=bool(self._changes))


def _as_lines(uncovered: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{path}: {why}" for path, why in uncovered)


__all__ = ["CallEntry", "PathState", "Record"]
