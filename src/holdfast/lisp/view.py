"""The collapsed view of a Lisp file: one numbered line a form, and in full the forms that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.lisp.dialects import COMMON_LISP, Dialect
from holdfast.lisp.forms import Form, understand
from holdfast.lisp.scanner import Unit, scan

MAX_CHARACTERS = 262_144  # of one view, however long its lines are
MAX_COMMENT_LINES = 12  # right before a form; what is longer is a chapter, not a remark
MAX_HEADER_LINES = 3  # the same at the head of a file; what is longer is a licence
COMMENT_WIDTH = 200
MAX_PROBLEMS = 50
MAX_UNSEEN = 20

Wanted: TypeAlias = Callable[[Form, str], bool]
Numbered: TypeAlias = Iterable[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Problem:
    """Where the source is broken. Lines and columns count from 1."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """A form that was asked for and lies past the cut."""

    line: int
    name: str


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of a file, and what is known of the rest."""

    content: str
    total_forms: int
    expanded_forms: int
    truncated: bool
    problems: tuple[Problem, ...]
    unseen: tuple[Unseen, ...]


def collapse(text: str, dialect: Dialect = COMMON_LISP, *, wanted: Wanted | None = None, limit: int = 2000) -> View:
    """The view of a text. `wanted(form, source)` says which forms are shown in full."""
    return _Collapsing(text, dialect, wanted, Page(limit)).view()


class Page:
    """Numbered lines, as many as fit. `cut` is true once something did not."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.cut = False
        self.characters = 0  # without the numbers
        self._lines: list[str] = []

    @property
    def full(self) -> bool:
        return len(self._lines) >= self.limit or self.characters >= MAX_CHARACTERS

    def write(self, numbered: Numbered) -> None:
        for number, line in numbered:
            if self.full:
                self.cut = True
                return
            self._add(f"{number:6d}\t", line)

    def write_plain(self, line: str) -> None:
        if self.full:
            self.cut = True
        else:
            self._add("", line)

    def _add(self, label: str, line: str) -> None:
        room = MAX_CHARACTERS - self.characters
        self.cut = self.cut or len(line) > room
        self._lines.append(label + line[:room])
        self.characters += len(line) + 1

    def text(self) -> str:
        return "\n".join(self._lines)


class _Collapsing:
    """One walk over a text, unit by unit, front to back."""

    def __init__(self, text: str, dialect: Dialect, wanted: Wanted | None, page: Page) -> None:
        self.text, self.dialect, self.wanted, self.page = text, dialect, wanted, page
        self.total = self.expanded = 0
        self.problems: list[Problem] = []
        self.unseen: list[Unseen] = []
        self._counted, self._line = 0, 1

    def view(self) -> View:
        end = 0
        for unit in scan(self.text, self.dialect):
            self.total += 1
            self._note_fault(unit)
            if self.page.full and not self.wanted:
                self.page.cut = True
            else:
                self._show(unit, self._comment(end, unit))
            end = unit.end
        if self._is_no_shorter():
            self._show_whole()
        return View(
            content=self.page.text(),
            total_forms=self.total,
            expanded_forms=self.expanded,
            truncated=self.page.cut,
            problems=tuple(self.problems),
            unseen=tuple(self.unseen),
        )

    def _note_fault(self, unit: Unit) -> None:
        if unit.fault and len(self.problems) < MAX_PROBLEMS:
            at = unit.fault.at
            line = self._line_of(unit.start) + self.text.count("\n", unit.start, at)
            self.problems.append(Problem(line, at - self.text.rfind("\n", 0, at), unit.fault.message))

    def _show(self, unit: Unit, comment: list[str]) -> None:
        plan = list(self._plan(understand(self.text, unit, self.dialect), 0))
        asked_for = [entry.form for entry in plan if entry.whole and entry.form.kind != "context"]
        first = self._line_of(unit.start)
        if self.page.full:
            self.page.cut = True
            self._note_unseen(first, asked_for)
            return
        self.expanded += bool(asked_for)
        self.page.write(enumerate(comment, first - len(comment)))
        for entry in plan:
            self.page.write(self._lines(entry))

    def _plan(self, form: Form, depth: int) -> Iterator[_Entry]:
        """What to show of a form: whole, or its line and under it what is inside."""
        inside = [entry for inner in form.inside for entry in self._plan(inner, depth + 1)]
        whole = form.kind == "context" or (not any(entry.whole for entry in inside) and self._is_wanted(form))
        yield _Entry(form, depth, whole)
        if not whole:
            yield from inside

    def _is_wanted(self, form: Form) -> bool:
        return self.wanted is not None and self.wanted(form, self.text[form.unit.start : form.unit.end])

    def _lines(self, entry: _Entry) -> Numbered:
        unit = entry.form.unit
        first = self._line_of(unit.start)
        if entry.whole:
            return enumerate(self._source(unit), first)
        broken = f" ; broken: {unit.fault.message}" if unit.fault else ""
        return [(first, "  " * entry.depth + entry.form.line + broken)]

    def _source(self, unit: Unit) -> Iterator[str]:
        """The unit as it stands in the file, with the indentation of its first line."""
        start = self.text.rfind("\n", max(0, unit.start - COMMENT_WIDTH), unit.start) + 1
        if self.text[start : unit.start].strip(" \t"):
            start = unit.start
        return _split(self.text, start, unit.end)

    def _comment(self, end: int, unit: Unit) -> list[str]:
        """The comment lines right before a unit, with no empty line between."""
        gap = self.text[end : unit.start].split("\n")
        if gap.pop().strip(" \t"):
            return []
        kept: list[str] = []
        floor = 1 if end else 0  # what follows the form before on its own line is that form's
        while len(gap) > floor and gap[-1].lstrip(" \t").startswith(";"):
            kept.append(gap.pop().rstrip()[:COMMENT_WIDTH])
        is_header = not gap and not end
        return kept[::-1] if len(kept) <= (MAX_HEADER_LINES if is_header else MAX_COMMENT_LINES) else []

    def _note_unseen(self, line: int, forms: list[Form]) -> None:
        self.unseen += [Unseen(line, form.name) for form in forms[: MAX_UNSEEN - len(self.unseen)]]

    def _is_no_shorter(self) -> bool:
        """Whether the view would save nothing: then the file itself is the better view."""
        untouched = not self.wanted and not self.problems and not self.page.cut
        return untouched and (not self.total or self.page.characters >= len(self.text.strip()))

    def _show_whole(self) -> None:
        self.page = Page(self.page.limit)
        self.page.write(enumerate(_split(self.text, 0, len(self.text)), 1))

    def _line_of(self, at: int) -> int:
        """The line of a place. Places are asked for from front to back, so each newline is counted once."""
        if at > self._counted:
            self._line += self.text.count("\n", self._counted, at)
            self._counted = at
        return self._line


@dataclass(frozen=True, slots=True)
class _Entry:
    """One form of a view: indented by its depth, in full or as a line."""

    form: Form
    depth: int
    whole: bool


def _split(text: str, start: int, end: int) -> Iterator[str]:
    """The lines of `text[start:end]`, one at a time; a final newline starts no further line."""
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        yield text[start:stop].removesuffix("\r")
        start = stop + 1
