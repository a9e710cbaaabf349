"""Plans a patch in memory: what each file becomes, hunk after hunk, or every reason why it can't be applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

from gripfast.errors import Conflict, NoMatch, NotFound, NotUnique, ToolError
from gripfast.patch.grammar import Hunk, Patch
from gripfast.patch.lines import FileLines
from gripfast.patch.placing import Misplaced, Placed, place
from gripfast.records import dataclass
from gripfast.text.escape import escaped, visible
from gripfast.text.line_ends import rewritten
from gripfast.text.match import Splice, SplitLines, nearest, spliced

_PLACES = 10  # line numbers that a message names
_NEAREST = 12  # lines of the nearest place that a message shows
_WIDTH = 200  # characters of such a line


class OldFile(Protocol):
    """A file as it is on the disk."""

    def body(self) -> bytes:
        """Its text in UTF-8. Raises ToolError for a file that is not text."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file while and after the patch.

    `origin` is the file on the disk that it was, and whose form it has; `body` its text if that is new; `splices`
    what changed in the origin's text, where one hunk did it.
    """

    exists: bool
    origin: OldFile | None = None
    body: bytes | None = None
    splices: tuple[Splice, ...] | None = None
    hunks: tuple[int, ...] = ()
    moved_from: str | None = None

    def text(self) -> bytes:
        if self.body is not None:
            return self.body
        return self.origin.body() if self.origin is not None else b""


@dataclass(frozen=True, slots=True)
class Failure:
    """A hunk that can't be applied, and why. `line` is where it stands in the patch."""

    hunk: Hunk
    line: int
    error: ToolError

    def __str__(self) -> str:
        return f"{self.hunk}, line {self.line} of the patch: {self.error.message}"


@dataclass(slots=True)
class PatchPlan:
    """The files of a patch by their place, as they are on the `disk` and as they will be, and the hunks that can't be
    applied."""

    disk: dict[str, OldFile | None] = field(default_factory=dict[str, "OldFile | None"])
    files: dict[str, PlannedFile] = field(default_factory=dict[str, PlannedFile])
    failures: list[Failure] = field(default_factory=list[Failure])
    tolerated: list[str] = field(default_factory=list[str])


def plan(patch: Patch, places: Mapping[str, str], read: Callable[[str], OldFile | None]) -> PatchPlan:
    """`places` says where each path of the patch leads; `read` gives the file there, None if there is none, and
    raises ToolError if it may not be changed."""
    planner = _Planner(places, read)
    for hunk in patch.hunks:
        planner.step(hunk)
    return planner.plan


class _Planner:
    def __init__(self, places: Mapping[str, str], read: Callable[[str], OldFile | None]) -> None:
        self.plan = PatchPlan()
        self._places = places
        self._read = read

    def step(self, hunk: Hunk) -> None:
        try:
            {"add": self._add, "delete": self._delete, "update": self._update}[hunk.kind](hunk)
        except ToolError as error:
            self.plan.failures.append(Failure(hunk, hunk.line, error))

    def _now(self, path: str) -> PlannedFile:
        """A file as the hunks so far leave it."""
        there = self._places[path]
        known = self.plan.files.get(there)
        if known is None:
            old = self.plan.disk[there] = self._read(there)
            known = self.plan.files[there] = PlannedFile(old is not None, old)
        return known

    def _put(self, path: str, file: PlannedFile, hunk: Hunk) -> None:
        self.plan.files[self._places[path]] = replace(file, hunks=(*file.hunks, hunk.number))

    def _present(self, path: str) -> PlannedFile:
        now = self._now(path)
        if now.exists:
            return now
        if now.hunks:
            raise NotFound(f"`{escaped(path)}` is deleted or moved away by hunk {now.hunks[-1]}")
        raise NotFound(f"there is no file `{escaped(path)}`")

    def _add(self, hunk: Hunk) -> None:
        now = self._now(hunk.path)
        if now.exists and now.hunks:
            raise Conflict(f"`{escaped(hunk.path)}` is there already, made or changed by hunk {now.hunks[-1]}")
        content = "".join(f"{line}\n" for line in hunk.lines).encode()
        old = self.plan.disk[self._places[hunk.path]]
        body = content if old is None else rewritten(old.body(), content)
        self._put(hunk.path, PlannedFile(True, old, body, hunks=now.hunks), hunk)

    def _delete(self, hunk: Hunk) -> None:
        now = self._present(hunk.path)
        self._put(hunk.path, PlannedFile(False, hunks=now.hunks), hunk)

    def _update(self, hunk: Hunk) -> None:
        now = self._present(hunk.path)
        new = self._changed(hunk, now) if hunk.chunks else now
        if hunk.move_to is None or self._places[hunk.move_to] == self._places[hunk.path]:
            self._put(hunk.path, new, hunk)
            return
        target = self._now(hunk.move_to)
        if target.exists and target.hunks:
            raise Conflict(f"`{escaped(hunk.move_to)}` is there already, made by hunk {target.hunks[-1]}")
        source = now.moved_from or self._places[hunk.path]
        source = source if source != self._places[hunk.move_to] and now.origin is not None else None
        moved = replace(new, hunks=target.hunks, moved_from=source)
        self._put(hunk.move_to, moved, hunk)
        self._put(hunk.path, PlannedFile(False, hunks=now.hunks), hunk)

    def _changed(self, hunk: Hunk, now: PlannedFile) -> PlannedFile:
        body = now.text()
        lines, placed = _placed(body, hunk)
        if not isinstance(placed, Placed):
            self.plan.failures += [Failure(hunk, one.chunk.line, _error(body, one)) for one in placed]
            return now
        self.plan.tolerated += [note for note in placed.tolerated if note not in self.plan.tolerated]
        splices = tuple(lines.splices(placed.edits))
        first = now.body is None
        return replace(now, body=spliced(body, splices), splices=splices if first else None)


def _placed(body: bytes, hunk: Hunk) -> tuple[FileLines, Placed | list[Misplaced]]:
    lines = FileLines(body)
    placed = place(lines, hunk.chunks)
    if isinstance(placed, Placed) or b"\r" not in body.replace(b"\r\n", b""):
        return lines, placed
    split = FileLines(body, lone_cr=True)
    again = place(split, hunk.chunks)
    if isinstance(again, Placed):
        return split, replace(again, tolerated=(*again.tolerated, "a CR alone as a line end"))
    return lines, placed


# --- why a chunk has no place ---


def _error(body: bytes, one: Misplaced) -> ToolError:
    if len(one.lines) > 1:
        named = ", ".join(map(str, one.lines[:_PLACES])) + (", ..." if len(one.lines) > _PLACES else "")
        what = "its lines fit" if one.chunk.old else "its `@@` header fits"
        return NotUnique(
            f"{what} {len(one.lines)} places, at lines {named}; add lines around them, or an `@@` header such as the "
            "function they are in",
            details={"lines": list(one.lines[:1000])},
        )
    if one.above is not None:
        what = f"the `@@` header `{escaped(one.missing[0][:_WIDTH])}` is" if one.is_header else "its lines are"
        return NoMatch(f"{what} at line {one.above}, above the chunk before it; chunks go from top to bottom")
    if not one.missing:
        return NoMatch("it overlaps the chunk before or after it; make them one")
    return _missing(body, one)


def _missing(body: bytes, one: Misplaced) -> NoMatch:
    what = f"the `@@` header `{escaped(one.missing[0][:_WIDTH])}` is" if one.is_header else "its lines are"
    where = "at the end of the file" if one.chunk.at_end and not one.is_header else "in the file"
    lines = SplitLines(body)
    near = nearest(lines, "\n".join(one.missing).encode())
    if near is None:
        return NoMatch(f"{what} not {where}, nor is anything like {'it' if one.is_header else 'them'}; read it again")
    shown = _excerpt(lines.raw[near.first : near.last + 1], near.first + 1)
    return NoMatch(
        f"{what} not {where}. The nearest is at line {near.first + 1}:\n{shown}",
        details={"first_line": near.first + 1, "last_line": near.last + 1},
    )


def _excerpt(lines: Sequence[bytes], first: int) -> str:
    rows = [line.decode("utf-8", "replace").removesuffix("\r")[:_WIDTH] for line in lines[:_NEAREST]]
    shown = [f"{number:6d}|{visible(row)}" for number, row in enumerate(rows, first)]
    more = len(lines) - _NEAREST
    return "\n".join([*shown, *([f"      |[... {more} more lines]"] if more > 0 else [])])
