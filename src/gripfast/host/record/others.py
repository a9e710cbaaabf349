"""Others: what other sessions of a workspace say in their records that they changed, since a moment."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gripfast.host.record.calls import PathDelta
from gripfast.records import dataclass

_MOST_READ = 16 * 1024**2  # bytes of one record that are looked at after a command


@dataclass(frozen=True, slots=True)
class ReportedChanges:
    """`exact` are changes that were announced before they were made; `claimed` are paths of commands, which can't
    tell their own changes from those of others."""

    exact: tuple[PathDelta, ...] = ()
    claimed: frozenset[str] = frozenset()


class Others:
    """The records beside one session's own."""

    def __init__(self, own: Path) -> None:
        self._own = own

    def mark(self) -> dict[Path, int]:
        """How long each record is now."""
        found: dict[Path, int] = {}
        for file in self._own.parent.glob("*/calls.jsonl"):
            with contextlib.suppress(OSError):
                if file.parent != self._own:
                    found[file] = file.stat().st_size
        return found

    def since(self, mark: dict[Path, int]) -> ReportedChanges:
        """What was written to them since."""
        exact: list[PathDelta] = []
        claimed: set[str] = set()
        for file, size in self.mark().items():
            if size > mark.get(file, 0):
                for value in _lines(file, mark.get(file, 0)):
                    changes = _changes(value)
                    if "announces" in value:
                        exact += changes
                    else:
                        claimed.update(change.path for change in changes)
        return ReportedChanges(tuple(exact), frozenset(claimed - {change.path for change in exact}))


def _lines(file: Path, start: int) -> Iterable[dict[str, Any]]:
    try:
        with open(file, "rb") as opened:
            opened.seek(start)
            rows = opened.read(_MOST_READ).split(b"\n")
    except OSError:
        return
    for row in rows:
        with contextlib.suppress(ValueError):
            value = json.loads(row)
            if isinstance(value, dict):
                yield value


def _changes(value: dict[str, Any]) -> list[PathDelta]:
    try:
        return [PathDelta.from_json(change) for change in value.get("changes", ())]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return []


def own_part(deltas: Sequence[PathDelta], exact: Iterable[PathDelta]) -> list[PathDelta]:
    """What is left of a command's changes when those that others are known to have made are taken out."""
    known: dict[str, list[PathDelta]] = {}
    for change in exact:
        known.setdefault(change.path, []).append(change)
    left: list[PathDelta] = []
    for delta in deltas:
        theirs = known.get(delta.path)
        left += [delta] if theirs is None else _apart(delta, theirs[0], theirs[-1])
    return left


def _apart(delta: PathDelta, first: PathDelta, last: PathDelta) -> list[PathDelta]:
    """Before the others' change, after it, or on both sides of it: then it is shared."""
    is_before = not delta.before.is_same(first.before)
    is_after = not delta.after.is_same(last.after)
    if is_before and is_after:
        return [replace(delta, shared=True)]
    if is_before:
        return [replace(delta, after=first.before)]
    return [replace(delta, before=last.after, note="")] if is_after else []
