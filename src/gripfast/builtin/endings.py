"""A command's output in an answer, and the notes under it: how it ended and which files changed."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from gripfast.host.files.changes import Changes
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.witness import WITNESS
from gripfast.host.shell.background import Background
from gripfast.host.shell.ended import Ended, signal_name
from gripfast.host.shell.held_roots import MovedRoot
from gripfast.host.shell.hook_tools import set_up_by
from gripfast.host.shell.quarantine import REMOVED, Quarantined
from gripfast.host.shell.rehearsal import Differences
from gripfast.host.shell.shells import Shells
from gripfast.text.colours import has_colours
from gripfast.text.escape import escaped
from gripfast.text.plural import plural
from gripfast.text.terminal import controls_in, plain

SHOWN = 20
_MANY = 8
_SHORT_MS = 1_000  # a shorter timeout was perhaps meant in seconds
# Files that coding agents follow. They are the user's to edit with an agent's help, so they are not protected.
_INSTRUCTIONS = frozenset(
    "AGENTS.md AGENTS.override.md AGENT.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md CONVENTIONS.md SKILL.md "
    ".cursorrules .windsurfrules .clinerules .goosehints .rules copilot-instructions.md".split()
)


def printed(text: str) -> str:
    """What a command printed, as plain text for the model. People who look at the record see it with its colours."""
    witness = WITNESS.get()
    if witness is not None and has_colours(text):
        witness.command_printed(text)
    return plain(text)


def left_out(text: str) -> Iterator[str]:
    """A note on what a command printed that is not text."""
    if count := controls_in(text):
        yield f"[{plural(count, 'control character')} left out]"


def ending(ended: Ended, timeout_ms: int | None = None) -> Iterator[str]:
    """Notes on how a command ended; none for a plain success."""
    if ended.reason == "timeout":
        limit = f" after {timeout_ms / 1000:g} s" if timeout_ms else ""
        unit = f" (timeout={timeout_ms} is in milliseconds)" if timeout_ms and timeout_ms < _SHORT_MS else ""
        yield f"[timed out{limit}{unit}: everything it started was ended; use run_in_background for longer work]"
    elif ended.reason == "stopped":
        yield "[stopped: the command and everything it started were ended]"
    elif ended.reason == "closed":
        yield "[the session was closed: the command and everything it started were ended]"
    elif ended.reason == "lost":
        yield "[the command killed the process that watches it; everything it started was ended]"
    elif ended.signal is not None:
        yield f"[killed by {signal_name(ended.signal)}]"
    elif ended.exit_code:
        yield f"[exit code {ended.exit_code}{_by_signal(ended.exit_code)}]"
    if ended.left_running:
        yield from _left(ended)


def taken_out(items: Sequence[Quarantined], fs: ScopedFs) -> Iterator[str]:
    """Notes on what a command made that other programs would run."""
    set_up: dict[str, list[str]] = {}
    for item in items:
        shown, (what, _, names) = fs.show_real(item.path), item.reason.partition(": ")
        settings = names if what.startswith("settings that ") else ""
        back = f"; the user can put it back with: gripfast quarantine release {item.id}" if item.id else ""
        command, place = set_up_by(item)
        if command:
            made = fs.show_real(place)
            set_up.setdefault(command, []).append(f"{escaped(settings)} in {made}" if settings else made)
        elif settings:
            yield f"[settings taken out of {shown}: {escaped(settings)} (they {escaped(what[14:])}){back}]"
        elif item.reason == REMOVED:
            yield f"[put back: {shown} ({REMOVED})]"
        else:
            yield f"[taken out of the workspace: {shown} ({escaped(item.reason)}){back}]"
    for command, places in set_up.items():
        yield (
            f"[not kept, since git would run it outside the sandbox: {', '.join(dict.fromkeys(places))}; "
            f"for these hooks the user runs this once: {command}]"
        )


def moved_roots(moved: Sequence[MovedRoot]) -> Iterator[str]:
    """Notes on roots that are no longer where they were: no tool works there."""
    for root in moved:
        if root.now:
            what = (
                f"was moved to {escaped(root.now)}; what commands made that other programs run was looked for there"
            )
        else:
            what = "is gone or was replaced, and what commands made in it could not be looked at"
        yield f"[the root {escaped(root.path)} {what}. Tell the user: put it back, or start a new session]"


async def late_notes(shell: Background, shells: Shells, fs: ScopedFs) -> list[str]:
    """Notes on what a background shell has left."""
    return [*taken_out(await shells.late_names(shell), fs), *moved_roots(shells.moved())]


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
    instructions = [path for path in (*changes.created, *changes.changed) if path.rpartition("/")[2] in _INSTRUCTIONS]
    if instructions:
        yield f"[agents read these files as instructions; tell the user: {_names(instructions, fs)}]"
    if not changes.whole:
        yield "[files: there was not enough time to compare all of the workspace; what was missed is named next time]"
    if changes.note:
        yield f"[files: {changes.note}]"


def would_change(found: Differences, fs: ScopedFs) -> Iterator[str]:
    parts = [
        f"{word} {_names(paths, fs)}"
        for word, paths in (("create", found.created), ("change", found.changed), ("delete", found.deleted))
        if paths
    ]
    yield f"[dry run, nothing was kept: it would {'; '.join(parts) or 'change no file'}]"


def _names(paths: Sequence[str], fs: ScopedFs) -> str:
    names = [fs.show_real(path) for path in paths]
    if len(names) > SHOWN:
        names = list(_gathered(names))
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def _gathered(names: Sequence[str]) -> Iterator[str]:
    """Names, and one line for each directory with many of them: what a build made must not hide what else changed."""
    groups: dict[str, list[str]] = {}
    for name in names:
        folders = name.split("/")[:-1]
        groups.setdefault("/".join(folders[: 3 if name.startswith("/") else 1]) or name, []).append(name)
    for group in sorted(groups.values(), key=lambda group: len(group) > _MANY):
        if len(group) > _MANY:
            yield f"{posixpath.commonpath(map(posixpath.dirname, group))}/ ({len(group)} files)"
        else:
            yield from group


def with_notes(text: str, notes: Sequence[str]) -> str:
    """The output followed by the notes, each on its own line."""
    if not text:
        return "\n".join(notes or ["[no output]"])
    return "\n".join([text.removesuffix("\n"), *notes]) if notes else text
