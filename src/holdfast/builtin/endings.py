"""How a command's end is told: the short lines under its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.host.changes import Changes
from holdfast.host.fs import ScopedFs
from holdfast.host.paths import escaped
from holdfast.host.process import Ended, signal_name

SHOWN = 20


def ending(ended: Ended, timeout_ms: int | None = None) -> Iterator[str]:
    """Nothing for a plain success."""
    if ended.reason == "timeout":
        limit = f" after {timeout_ms / 1000:g} s" if timeout_ms else ""
        yield f"[timed out{limit}: it and everything it started was ended; for longer work use run_in_background]"
    elif ended.reason == "stopped":
        yield "[stopped: it and everything it started was ended]"
    elif ended.reason == "lost":
        yield "[the command killed the process that watches it; everything it started was ended]"
    elif ended.signal is not None:
        yield f"[killed by {signal_name(ended.signal)}]"
    elif ended.exit_code:
        yield f"[exit code {ended.exit_code}{_by_signal(ended.exit_code)}]"
    if ended.left_running:
        yield from _left(ended)


def _by_signal(code: int) -> str:
    name = signal_name(code - 128) if 128 < code < 192 else ""
    return f": a process in it was killed by {name}" if name.startswith("SIG") else ""


def _left(ended: Ended) -> Iterator[str]:
    names = ", ".join(map(escaped, ended.left_names))
    more = ended.left_running - len(ended.left_names)
    if ended.reason in ("timeout", "stopped"):
        yield f"[could not be ended: {names}]"
    else:
        yield f"[left running until the session ends: {names}{f' and {more} more' if more > 0 else ''}]"


def changed_files(changes: Changes, fs: ScopedFs) -> Iterator[str]:
    parts = [
        f"{word} {_names(paths, fs)}"
        for word, paths in (("created", changes.created), ("changed", changes.changed), ("deleted", changes.deleted))
        if paths
    ]
    if parts:
        yield f"[files: {'; '.join(parts)}]"
    if not changes.whole:
        yield "[files: the workspace is large, so only the files this session has read or written were compared]"


def _names(paths: Sequence[str], fs: ScopedFs) -> str:
    shown = ", ".join(fs.show_real(path) for path in paths[:SHOWN])
    return f"{shown} and {len(paths) - SHOWN} more" if len(paths) > SHOWN else shown


def put_together(text: str, notes: Sequence[str]) -> str:
    """The output, then the notes, each on a line of its own."""
    if not text:
        return "\n".join(notes or ["[no output]"])
    return "\n".join([text.removesuffix("\n"), *notes]) if notes else text
