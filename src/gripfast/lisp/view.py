"""The collapsed view of a Lisp file: one numbered line for each form, and the requested forms in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gripfast.lisp.dialects import COMMON_LISP, Dialect
from gripfast.lisp.forms import Form, understand
from gripfast.lisp.scanner import Unit, scan

MAX_CHARACTERS = 262_144  # of one view, however long its lines are
MAX_COMMENT_LINES = 12  # directly before a form; a longer comment is not about that form alone
MAX_HEADER_LINES = 3  # the same at the top of a file; a longer comment is usually a licence
COMMENT_WIDTH = 200
MAX_PROBLEMS = 50
MAX_UNSEEN = 20
CHECKED_EVERY = 64  # forms

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
    """A requested form that the limit cut off."""

    line: int
    name: str


@dataclass(frozen=True, slots=True)
class View:
    """The shown part of a file, and facts about the rest."""

    content: str
    total_forms: int
    expanded_forms: int
    truncated: bool
    problems: tuple[Problem, ...]
    unseen: tuple[Unseen, ...]
    matched_context: bool = False
    """Whether a form that is always shown, such as in-package, was requested too."""
    at_size_limit: bool = False
    """Whether it was cut for its size: a larger limit would not help."""


def collapse(
    text: str,
    dialect: Dialect = COMMON_LISP,
    *,
    wanted: Wanted | None = None,
    limit: int = 2000,
    only_matches: bool = False,
    check: Callable[[], None] = lambda: None,
) -> View:
    """The collapsed view of a text. `wanted(form, source)` decides which forms are shown in full; with
    `only_matches` the others are left out, except for the in-package in force before each match. `check` is called
    now and then, and raises what ends the work."""
    return _Collapsing(text, dialect, wanted, Page(limit), only_matches).view(check)


class Page:
    """Numbered lines, as many as fit. `cut` is true once a line did not fit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.cut = False
        self.characters = 0  # not counting line numbers
        self._lines: list[str] = []

    @property
    def full(self) -> bool:
        return len(self._lines) >= self.limit or self.characters >= MAX_CHARACTERS

    @property
    def lines(self) -> int:
        return len(self._lines)

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
    """One pass over a text, unit by unit."""

    def __init__(self, text: str, dialect: Dialect, wanted: Wanted | None, page: Page, only: bool) -> None:
        self.text, self.dialect, self.wanted, self.page = text, dialect, wanted, page
        self.only = only and wanted is not None
        self.matched_context = False
        self.total = self.expanded = 0
        self.problems: list[Problem] = []
        self.unseen: list[Unseen] = []
        self._counted, self._line = 0, 1
        self._context: list[tuple[int, str]] = []  # with `only`: the form in force, shown before the next match

    def view(self, check: Callable[[], None]) -> View:
        end = 0
        for unit in scan(self.text, self.dialect):
            if self.total % CHECKED_EVERY == 0:
                check()
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
            matched_context=self.matched_context,
            at_size_limit=self.page.characters >= MAX_CHARACTERS,
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
        if self.only:
            plan = [entry for entry in plan if entry.whole]
            if not asked_for and not any(self._is_wanted(entry.form) for entry in plan):
                self._context = [row for entry in plan for row in self._lines(entry)] or self._context
                return
            comment = comment if asked_for else []
        if self.page.full:
            self.page.cut = True
            self._note_unseen(first, asked_for)
            return
        self.expanded += bool(asked_for)
        context, self._context = self._context, []
        self.page.write(context)
        self.page.write(enumerate(comment, first - len(comment)))
        for entry in plan:
            self.page.write(self._lines(entry))

    def _plan(self, form: Form, depth: int) -> Iterator[_ViewEntry]:
        """What to show of a form: the whole form, or its line followed by the forms inside it."""
        if form.kind == "context" and self._is_wanted(form):
            self.matched_context = True
        inside = [entry for inner in form.inside for entry in self._plan(inner, depth + 1)]
        whole = form.kind == "context" or (not any(entry.whole for entry in inside) and self._is_wanted(form))
        yield _ViewEntry(form, depth, whole)
        if not whole:
            yield from inside

    def _is_wanted(self, form: Form) -> bool:
        return self.wanted is not None and self.wanted(form, self.text[form.unit.start : form.unit.end])

    def _lines(self, entry: _ViewEntry) -> Numbered:
        unit = entry.form.unit
        first = self._line_of(unit.start)
        if entry.whole:
            return enumerate(self._source(unit), first)
        broken = f" ; broken: {unit.fault.message}" if unit.fault else ""  # a Lisp comment
        return [(first, "  " * entry.depth + entry.form.line + broken)]

    def _source(self, unit: Unit) -> Iterator[str]:
        """The lines of a unit as they are in the file, including the indentation of the first."""
        start = self.text.rfind("\n", max(0, unit.start - COMMENT_WIDTH), unit.start) + 1
        if self.text[start : unit.start].strip(" \t"):
            start = unit.start
        return _split(self.text, start, unit.end)

    def _comment(self, end: int, unit: Unit) -> list[str]:
        """The comment lines directly before a unit, with no empty line in between."""
        gap = self.text[end : unit.start].split("\n")
        if gap.pop().strip(" \t"):
            return []
        comment: list[str] = []
        floor = 1 if end else 0  # a comment on the last line of the previous form belongs to that form
        while len(gap) > floor and gap[-1].lstrip(" \t").startswith(";"):
            comment.append(gap.pop().rstrip()[:COMMENT_WIDTH])
        is_header = not gap and not end
        return comment[::-1] if len(comment) <= (MAX_HEADER_LINES if is_header else MAX_COMMENT_LINES) else []

    def _note_unseen(self, line: int, forms: list[Form]) -> None:
        self.unseen += [Unseen(line, form.name) for form in forms[: MAX_UNSEEN - len(self.unseen)]]

    def _is_no_shorter(self) -> bool:
        """Whether collapsing saves nothing, so that the file itself is the better view."""
        untouched = not self.wanted and not self.problems and not self.page.cut
        return untouched and (not self.total or self.page.characters >= len(self.text.strip()))

    def _show_whole(self) -> None:
        self.page = Page(self.page.limit)
        self.page.write(enumerate(_split(self.text, 0, len(self.text)), 1))

    def _line_of(self, at: int) -> int:
        """The line of a position. Positions only increase from call to call, so each newline is counted once."""
        if at > self._counted:
            self._line += self.text.count("\n", self._counted, at)
            self._counted = at
        return self._line


@dataclass(frozen=True, slots=True)
class _ViewEntry:
    """One form of a view: indented by its depth, in full or as one line."""

    form: Form
    depth: int
    whole: bool


def _split(text: str, start: int, end: int) -> Iterator[str]:
    """The lines of `text[start:end]`, one at a time; nothing after a final newline counts as a line."""
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        yield text[start:stop].removesuffix("\r")
        start = stop + 1
