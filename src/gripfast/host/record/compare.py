"""What a call did to one path, in rows that a person can read."""

from __future__ import annotations

from collections.abc import Iterator

from gripfast.host.files.diff import unified, whole_splice
from gripfast.host.kernel.regular import beginning_of
from gripfast.host.record.calls import PathDelta
from gripfast.host.record.record import Record
from gripfast.host.record.states import PathState, state_at

_TEXT_BYTES = 4 * 1024**2


def compared(record: Record, number: int, change: PathDelta) -> Iterator[str]:
    """A unified diff of texts, a sentence for everything else; then what somebody else has made of it since."""
    shown = record.fs.show_real(change.path)
    yield from _rows(record, shown, change.before, change.after, f"call {number}")
    now = state_at(change.path, largest=_TEXT_BYTES)
    if not now.is_same(change.after) and not _changed_later(record, number, change.path):
        if now.kind == "file" and not record.contents.has(now.digest):
            yield from _against_disk(record, shown, change)
        else:
            yield from _rows(record, shown, change.after, now, "since then, by somebody else")


def _changed_later(record: Record, number: int, path: str) -> bool:
    return any(change.path == path for call in record.calls() if call.number > number for change in call.changes)


def _rows(record: Record, shown: str, before: PathState, after: PathState, who: str) -> Iterator[str]:
    yield f"{shown}: {_state_text(before)} -> {_state_text(after)} ({who})"
    old, new = _text(record, before), _text(record, after)
    if old is not None and new is not None and old != new:
        yield from unified(old, [whole_splice(old, new)], shown, created=before.kind == "absent")


def _against_disk(record: Record, shown: str, change: PathDelta) -> Iterator[str]:
    yield f"{shown}: changed since then, by somebody else"
    old = _text(record, change.after)
    new = beginning_of(change.path, _TEXT_BYTES)
    if old is not None and new is not None and b"\0" not in new:
        yield from unified(old, [whole_splice(old, new)], shown)


def _state_text(state: PathState) -> str:
    match state.kind:
        case "absent":
            return "nothing"
        case "link":
            return f"a link to {state.target}" if state.target is not None else "a link"
        case "file":
            return f"a file of {state.size} bytes, mode {state.mode:04o}"
        case _:
            return (
                f"a {'directory' if state.kind == 'directory' else 'socket, pipe or device'}, mode {state.mode:04o}"
            )


def _text(record: Record, state: PathState) -> bytes | None:
    """The content of a text file; empty if there was no file; None if it is not text or was not kept."""
    if state.kind == "absent":
        return b""
    data = record.contents.get(state.digest) if state.kind == "file" and state.size <= _TEXT_BYTES else None
    return None if data is None or b"\0" in data else data
