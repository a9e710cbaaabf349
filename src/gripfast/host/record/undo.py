"""Undo: puts back what calls changed, where nobody has changed it since."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from gripfast.errors import InvalidArgument, NotFound, ToolError
from gripfast.host.files.closed_places import ClosedPlaces
from gripfast.host.files.watch import SKIPPED
from gripfast.host.kernel.sparse import copy_file
from gripfast.host.record.calls import PathDelta, RecordedCall
from gripfast.host.record.git_blobs import ignored_below
from gripfast.host.record.record import CallEntry, Record
from gripfast.host.record.states import ABSENT, PathState, state_at
from gripfast.host.record.transaction import Looks, Step, Transaction, open_as_owner
from gripfast.records import dataclass
from gripfast.text.below import is_below
from gripfast.text.escape import escaped


@dataclass(frozen=True, slots=True)
class Restored:
    """A path that was put back: `removed`, `restored`, `mode restored`, or only the name of a directory."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A path that stays as it is, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What an undo did, or with `dry_run` would do. `call` is its own number in the record, by which it can itself be
    undone; `saved` are the paths of which somebody else's version was saved first; `kept` are directories that stay,
    because they hold what others made. Paths are named as answers name them."""

    calls: tuple[int, ...]
    restored: tuple[Restored, ...] = ()
    refused: tuple[Refused, ...] = ()
    dry_run: bool = False
    call: int | None = None
    saved: tuple[str, ...] = ()
    kept: tuple[Refused, ...] = ()


def undo(
    record: Record,
    calls: Sequence[int] | None = None,
    paths: Sequence[str] = (),
    *,
    since: float | None = None,
    all: bool = False,
    dry_run: bool = False,
    save_mine: str | None = None,
    by_person: bool = False,
) -> UndoResult:
    """Takes back the named calls, all, those since a time, or the last one that changed something.

    `paths` are absolute and choose among what those calls changed. A path that somebody else has changed since is
    refused; with `save_mine` it is copied into that directory first and then put back. A protected name is put back
    if a person asks for it, as one may who could have allowed the change; CI files always, because git moves them in
    the sandbox without a question.
    """
    record.collect(all=True)
    known = record.calls()
    chosen = _chosen(known, calls, since, all, [directory.real for directory in record.fs.scope.write])
    plan = _UndoPlan(record, known, chosen, tuple(paths), save_mine is not None, by_person, dry_run)
    numbers = tuple(call.number for call in chosen)
    saved = tuple(map(record.fs.show_real, plan.foreign))
    result = UndoResult(numbers, plan.restored(), tuple(plan.refused), dry_run, saved=saved, kept=tuple(plan.kept))
    if dry_run or not plan.steps:
        return result if dry_run else replace(result, saved=())
    if save_mine is not None:
        _save(record, plan.foreign, save_mine)
    entry = record.begin("", "undo", " ".join(map(str, numbers)))
    _perform(record, plan, entry, numbers)
    return replace(result, call=entry.number)


def _perform(record: Record, plan: _UndoPlan, entry: CallEntry, numbers: Sequence[int]) -> None:
    deltas = [PathDelta(step.path, step.before, step.after) for step in plan.steps]
    error = "INTERNAL"
    try:
        entry.announce(deltas)
        with Transaction(record.fs, record.contents, record.journals, plan.looks) as change:
            change.prepare(plan.steps)
            change.commit()
        entry.add(deltas)
        error = None
    except ToolError as fault:
        error = fault.code
        raise
    finally:
        entry.end(error=error, undoes=() if error else numbers)


def _chosen(
    known: Sequence[RecordedCall],
    numbers: Sequence[int] | None,
    since: float | None,
    every: bool,
    write: Sequence[str],
) -> list[RecordedCall]:
    """The calls to take back, in their order. By default none that changed only what may no longer be written, nor
    what git ignores: after an edit and a build, that is the edit."""
    if numbers is not None:
        missing = set(numbers) - {call.number for call in known}
        if missing:
            raise NotFound(f"there is no call {min(missing)} in this record; `gripfast log` lists them")
        return [call for call in known if call.number in numbers]
    if every or since is not None:
        return [call for call in known if call.changes and call.time >= (since or 0.0)]
    undone = {number for call in known for number in call.undoes}
    left = [call for call in known if call.changes and not call.undoes and call.number not in undone]
    if not left:
        raise NothingToUndo("no call of this session has changes left to undo")
    here = [call for call in left if any(is_below(change.path, *write) for change in call.changes)] or left
    is_ignored = ignored_below(write)
    tracked = (call for call in reversed(here) if not all(is_ignored(change.path) for change in call.changes))
    return [next(tracked, here[-1])]


class NothingToUndo(NotFound):
    """No call is left that could be taken back."""


class _UndoPlan:
    """Which paths become what, and which don't."""

    def __init__(
        self,
        record: Record,
        known: Sequence[RecordedCall],
        chosen: Sequence[RecordedCall],
        paths: tuple[str, ...],
        save_mine: bool,
        by_person: bool,
        dry_run: bool,
    ) -> None:
        self._record, self._known, self._save, self._by_person = record, known, save_mine, by_person
        self._dry_run = dry_run
        self._places = ClosedPlaces(record.fs.scope)
        self.steps: list[Step] = []
        self.refused: list[Refused] = []
        self.kept: list[Refused] = []
        self.foreign: list[str] = []
        self.looks = Looks()
        self._room = record.contents.room
        by_path: dict[str, list[tuple[int, PathDelta]]] = {}
        for call in chosen:
            for change in call.changes:
                if not paths or any(is_below(change.path, path) for path in paths):
                    by_path.setdefault(change.path, []).append((call.number, change))
        self._shared = {path for path, changes in by_path.items() if any(change.shared for _, change in changes)}
        self._targets = {path: changes[0][1].before for path, changes in by_path.items()}
        for path, changes in sorted(by_path.items()):
            reason = self._add(path, changes)
            if reason:
                self._refuse(path, reason)
        self._keep_full_directories()

    def restored(self) -> tuple[Restored, ...]:
        return tuple(Restored(self._record.fs.show_real(step.path), self._what(step)) for step in self.steps)

    def _what(self, step: Step) -> str:
        shared = ", but perhaps made by another command that ran at the same time"
        return f"{_done(step)}{shared if step.path in self._shared else ''}"

    def _refuse(self, path: str, reason: str) -> None:
        self.refused.append(Refused(self._record.fs.show_real(path), reason))

    def _add(self, path: str, changes: Sequence[tuple[int, PathDelta]]) -> str | None:
        """Plans one path. Returns why it can't be put back, if so."""
        target = changes[0][1].before
        try:
            now = self._now(path)
        except ToolError as error:
            return error.message
        except PermissionError:
            return "you may not enter its directory; undo again after chmod u+rwx of that"
        if target.is_same(now):
            return None
        reason = self._conflict(path, changes, now)
        if reason is None and "other" in (target.kind, now.kind):
            reason = "a socket, pipe or device can't be put back"
        if reason is None and not self._is_kept(target):
            noted = next((change.note for _, change in changes if change.note), "it is no longer in the record")
            reason = f"what it was before was not kept: {noted}"
        is_emptied = now.kind == "directory" and target.kind != "directory"
        reason = reason or self._closed(os.path.dirname(path)) or (self._closed(path) if is_emptied else None)
        reason = reason or self._too_large(now)
        if reason is None and now.kind == "file" and now.digest is None:
            now, reason = self._unlocked(path, now)
        if reason is None:
            self.steps.append(Step(path, now, target, self._is_lifted(path)))
        return reason

    def _too_large(self, now: PathState) -> str | None:
        """Why what is there now can't be kept, so that this undo could not be undone."""
        if now.kind != "file" or self._record.contents.has(now.digest):
            return None
        if now.size > self._room:
            return f"its {now.size} bytes don't fit into the record any more; remove it yourself"
        self._room -= now.size
        return None

    def _unlocked(self, path: str, now: PathState) -> tuple[PathState, str | None]:
        """A file that its mode closes to us, with its content kept, so that this undo can be undone."""
        with self._record.fs.writable_entry(path, lifted=self._is_lifted(path)) as place:
            if place.stat is None or place.stat.st_uid != os.geteuid():
                return now, "you may not read what is there now, and it is not yours"
            if self._dry_run:
                return now, None
            fd = open_as_owner(place, place.stat)
        try:
            return replace(now, digest=self._record.contents.put_file(fd)), None
        finally:
            os.close(fd)

    def _is_lifted(self, path: str) -> bool:
        return self._by_person or not self._places.runs_here(path)

    def _closed(self, directory: str) -> str | None:
        """Why nothing can be put back in a directory that is there, by its permissions."""
        every = os.R_OK | os.W_OK | os.X_OK
        if not os.path.isdir(directory) or os.path.realpath(directory) != directory:
            return None  # nothing, or a link on the way, which goes first
        if os.access(directory, every, effective_ids=True):
            return None
        return f"you may not read and write `{escaped(self._record.fs.show_real(directory))}`; chmod u+rwx it first"

    def _now(self, path: str) -> PathState:
        """What is there; nothing, if a directory on the way is about to be put back."""
        at = time.time_ns()
        try:
            with self._record.fs.writable_entry(path, lifted=self._is_lifted(path)) as place:
                state = ABSENT if place.missing else state_at(place.name, place.dir_fd, largest=self._room)
                self.looks.add(path, place.stat, at)
                return state
        except NotFound:
            if any(target.kind == "directory" and is_below(path, above) for above, target in self._targets.items()):
                return ABSENT
            raise

    def _conflict(self, path: str, changes: Sequence[tuple[int, PathDelta]], now: PathState) -> str | None:
        number, last = changes[-1]
        reason = None
        if not last.after.is_same(now):
            reason = self._who(path, number)
        elif any(not one.after.is_same(two.before) for (_, one), (_, two) in pairwise(changes)):
            reason = "it was changed by somebody else between these calls"
        if reason is None or self._save:
            if reason is not None:
                self.foreign.append(path)
            return None
        shown = escaped(self._record.fs.show_real(path))
        return f"{reason}; see the difference: gripfast diff {number} --path {shown}"

    def _who(self, path: str, number: int) -> str:
        for call in self._known:
            if call.number > number and any(change.path == path for change in call.changes):
                return f"call {call.number} changed it later; undo that first, or both together"
        return f"it was changed by somebody else since call {number}"

    def _is_kept(self, target: PathState) -> bool:
        if target.kind == "link":
            return target.target is not None
        return target.kind != "file" or self._record.contents.has(target.digest)

    def _keep_full_directories(self) -> None:
        """A directory goes only if everything in it goes. One that nothing is to replace just stays."""
        going = {step.path for step in self.steps if step.after.kind != "directory"}
        for step in sorted(self.steps, key=lambda step: step.path.count("/"), reverse=True):
            if step.before.kind == "directory" and step.after.kind != "directory":
                left = [name for name in os.listdir(step.path) if f"{step.path}/{name}" not in going]
                if left:
                    going.discard(step.path)
                    self.steps.remove(step)
                    reason = f"it holds `{escaped(sorted(left)[0])}`, which these calls did not make"
                    stays = self.kept if step.after.kind == "absent" else self.refused
                    stays.append(Refused(self._record.fs.show_real(step.path), reason))


def _done(step: Step) -> str:
    if step.after.kind == "absent":
        return "removed"
    if step.after.kind == "directory" and step.before.kind == "absent" and os.path.basename(step.path) in SKIPPED:
        return "restored empty, because what was in it is not recorded"
    same = step.before.kind == step.after.kind and step.before.digest == step.after.digest
    return "mode restored" if same and step.after.kind in ("file", "directory") else "restored"


def _save(record: Record, paths: Iterable[str], directory: str) -> None:
    """Copies what somebody else made of these paths, before they are put back."""
    for path in paths:
        target = Path(directory, os.path.relpath(path, record.fs.roots[0]).replace("../", ""))
        state = state_at(path, largest=-1)
        if target.exists():
            raise InvalidArgument(f"{str(target)!r} exists; name an empty directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        if state.kind == "file":
            copy_file(path, str(target), state.mode)
        elif state.kind == "link":
            target.symlink_to(state.target or "")


__all__ = ["Refused", "Restored", "UndoResult", "undo"]
