"""Edit: replaces text in a file that was read, and shows the diff."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from gripfast.builtin.diffs import DIFF_WIDTH, diff_below
from gripfast.builtin.keys import CACHE, FS, OFFERED, READS
from gripfast.builtin.write import display_path
from gripfast.call.cache import OutputCache
from gripfast.errors import Conflict, InvalidArgument, NoMatch, NotUnique
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.diff import unified, whole_diff, whole_splice
from gripfast.host.files.encodings import Text, TextForm, text_of
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog, digest_of
from gripfast.host.files.paths import WorkPath
from gripfast.lisp.dialects import dialect_of
from gripfast.lisp.scanner import scan
from gripfast.messages import TextResult
from gripfast.records import dataclass
from gripfast.text.escape import visible
from gripfast.text.line_ends import rewritten
from gripfast.text.match import (
    LineMatch,
    Splice,
    SplitLines,
    UnknownIndentError,
    anchored_matches,
    exact_spans,
    is_in_place,
    line_splice,
    nearest,
    similarity,
    spliced,
    splices,
    trimmed_matches,
)
from gripfast.text.plural import plural
from gripfast.text.unseen import replaced

MatchMode = Literal["auto", "exact", "line_trimmed", "block_anchor"]
_HASH = re.compile("[0-9a-fA-F]{8,64}")
_PLACES_NAMED = 20
_NEAREST_LINES = 20
_LARGEST_BALANCED = 4 * 1024 * 1024  # bytes of a Lisp file whose brackets are checked
_READY = 0.9  # so much of old_string must be in the nearest text for that to be offered instead
_READY_LINES, _READY_BYTES = 60, 6_000
_OPEN, _CLOSE = "<old_string>", "</old_string>"


@dataclass(frozen=True, slots=True)
class Plan:
    """What an edit does to a file's text."""

    text: Text
    splices: list[Splice]
    mode: str
    created: bool = False
    applied_at: int | None = None  # the line where new_string is already; 0 if old_string was only removed

    def bytes_of(self, shown: str) -> bytes:
        return self.text.form.bytes_of(spliced(self.text.body, self.splices), shown)


def _preview(call: Any, *, fs: Annotated[ScopedFs, Depends(FS)]) -> str:
    shown = fs.show(call.file_path)
    old, new = call.old_string.encode(), call.new_string.encode()
    request = EditRequest(old, new, call.replace_all, call.match_mode, call.expected_replacements)

    def compute(before: bytes | None) -> bytes:
        if before is None and old:
            raise fs.not_found(call.file_path)
        return plan_edit(before, request, fs.encoding, shown).bytes_of(shown)

    change = fs.change(call.file_path, compute, commit=False)
    return whole_diff(change.before, change.after, shown)


@tool(
    later=True,
    name="Edit",
    title="Edit a file",
    effect="write",
    subject="file_path",
    destructive=True,
    hides_minima=True,
    profiles=("agent", "lisp"),
    preview=_preview,
)
def edit(
    file_path: Annotated[WorkPath, Field(description="Absolute or workspace-relative.")],
    old_string: Annotated[
        str, Field(description="Text to replace, unique in the file; empty: the whole file, or a new one.")
    ],
    new_string: Annotated[str, Field(description="Literal replacement.")],
    replace_all: Annotated[bool, Field(description="Replace every occurrence.")] = False,
    match_mode: Annotated[
        MatchMode,
        Field(
            description="auto: exact, else line_trimmed (whole lines, but for space around; re-indents new_string). "
            "block_anchor: first and last line equal, the rest similar."
        ),
    ] = "auto",
    expected_replacements: Annotated[
        int | None, Field(description="Replace all if there are exactly this many.", ge=1)
    ] = None,
    dry_run: Annotated[bool, Field(description="Only show the diff.")] = False,
    expected_hash: Annotated[
        str | None,
        Field(description="SHA-256 it must have, in hex."),
    ] = None,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    cache: Annotated[OutputCache, Depends(CACHE)],
    offered: Annotated[frozenset[str], Depends(OFFERED)],
    ctx: ToolContext,
) -> str | Awaitable[TextResult]:
    """Replaces text in a file that was read, and shows the diff. LF matches any line ending."""
    shown = fs.show(file_path)
    request = EditRequest(old_string.encode(), new_string.encode(), replace_all, match_mode, expected_replacements)
    was_made = reads.was_edited(file_path.judged or fs.real(file_path), request.digest)
    request = replace(request, was_made=was_made)
    plan: Plan | None = None

    def compute(before: bytes | None) -> bytes:
        nonlocal plan
        if before is None and request.old:
            raise fs.not_found(file_path)
        _check_hash(before, expected_hash, shown)
        plan = plan_edit(before, request, fs.encoding, shown)
        return plan.bytes_of(shown)

    try:
        change = fs.change(file_path, compute, reads=reads, commit=not dry_run, last_word=ctx.check_cancelled)
    except NoMatch as error:
        raise _in_notebook(error, shown, offered) from None
    assert plan is not None, "change calls compute"
    if plan.splices and not dry_run:
        reads.edited(change.real, request.digest)
    summary = "\n".join([_summary(plan, display_path(fs, file_path, change.real), dry_run), *unbalanced(plan, shown)])
    return with_diff(summary, plan, shown, cache)


@dataclass(frozen=True, slots=True)
class EditRequest:
    """The arguments of an edit. `was_made`: this session has made it before."""

    old: bytes
    new: bytes
    every: bool
    mode: MatchMode
    expected: int | None
    was_made: bool = False

    @property
    def digest(self) -> str:
        """A short name for what is replaced by what."""
        return digest_of(b"%d %b%b" % (len(self.old), self.old, self.new))[:16]


def _check_hash(before: bytes | None, expected: str | None, shown: str) -> None:
    if expected is None:
        return
    if not _HASH.fullmatch(expected):
        raise InvalidArgument(f"`expected_hash` is {expected!r}; give 8 to 64 hex digits of the file's SHA-256")
    real = digest_of(before or b"")
    if not real.startswith(expected.lower()):
        raise Conflict(
            f"`{shown}` is not what you expect: its SHA-256 is {real}; read it again",
            details={"sha256": real},
        )


# --- what to replace ---


def plan_edit(before: bytes | None, request: EditRequest, encoding: str | None, shown: str) -> Plan:
    """What an edit does to a file's bytes (None if there is no file). Raises the error that says why it can't."""
    if before is None:
        return Plan(
            Text(TextForm(encoding or "utf-8"), b""),
            _unless_empty(Splice(0, 0, request.new)),
            "whole file",
            created=True,
        )
    text = text_of(before, encoding, shown)
    if not request.old:
        new = rewritten(text.body, request.new)
        return Plan(text, _unless_empty(whole_splice(text.body, new)), "whole file")
    if request.old == request.new:
        return Plan(text, [], "exact")
    if request.mode in ("auto", "exact"):
        spans = exact_spans(text.body, request.old)
        if spans:
            _check_count(_line_numbers(text.body, [start for start, _ in spans]), request, shown)
            return Plan(text, splices(text.body, spans, request.new), "exact")
    return _plan_by_lines(text, request, shown)


def _unless_empty(one: Splice) -> list[Splice]:
    return [one] if one.new or one.end > one.start else []


def _plan_by_lines(text: Text, request: EditRequest, shown: str) -> Plan:
    lines = SplitLines(text.body)
    matches: list[LineMatch] = []
    mode = "line_trimmed" if request.mode == "auto" else request.mode
    if mode == "line_trimmed":
        matches = trimmed_matches(lines, request.old)
    elif mode == "block_anchor":
        matches = trimmed_matches(lines, request.old) or anchored_matches(lines, request.old)
    if not matches:
        at = _already_applied(lines, request)
        if at is not None:
            return Plan(text, [], mode, applied_at=at)
        raise _no_match(lines, request, shown)
    matches = _apart(matches)
    _check_count([match.first + 1 for match in matches], request, shown, f" (by {mode})")
    try:
        return Plan(text, [line_splice(lines, match, request.old, request.new) for match in matches], mode)
    except UnknownIndentError:
        if exact_spans(text.body, request.old):
            raise NoMatch(
                f"old_string is in `{shown}`, but elsewhere with another indentation, which new_string can't be "
                "given; send it with match_mode exact"
            ) from None
        raise _no_match(lines, request, shown, "; indent new_string like it") from None


def _already_applied(lines: SplitLines, request: EditRequest) -> int | None:
    """The line of new_string, if this edit was made before: by this session; or by somebody else, if new_string is
    there once and the lines that it shares with old_string show that it is in the right place."""
    places = _places_of_new(lines, request)
    if request.was_made:
        return places[0] if places else None if request.new.strip() else 0
    if len(places) != 1 or request.expected is not None:
        return None
    return places[0] if is_in_place(lines, request.old, request.new) else None


def _places_of_new(lines: SplitLines, request: EditRequest) -> list[int]:
    """The lines where new_string occurs, exactly or, where this session put it, with the file's indentation."""
    if not request.new.strip():
        return []
    spans = exact_spans(lines.body, request.new)
    if not spans and request.was_made:
        return [match.first + 1 for match in trimmed_matches(lines, request.new)]
    return _line_numbers(lines.body, [start for start, _ in spans])


def _apart(matches: Sequence[LineMatch]) -> list[LineMatch]:
    """The matches, first to last, without those that overlap one before them."""
    apart: list[LineMatch] = []
    for match in matches:
        if not apart or match.first > apart[-1].last:
            apart.append(match)
    return apart


def _check_count(numbers: Sequence[int], request: EditRequest, shown: str, how: str = "") -> None:
    count = len(numbers)
    if request.expected is not None and count != request.expected:
        advice = f"expected_replacements is {request.expected}: set it to {count} to replace them all"
        raise _not_unique(numbers, shown, how, f"{advice}, or add surrounding lines")
    if count > 1 and not request.every and request.expected is None:
        advice = "add surrounding lines until it is unique, or use replace_all or expected_replacements"
        raise _not_unique(numbers, shown, how, advice)


def _line_numbers(body: bytes, starts: Sequence[int]) -> list[int]:
    numbers: list[int] = []
    line, at = 1, 0
    for start in starts:
        line += body.count(b"\n", at, start)
        at = start
        numbers.append(line)
    return numbers


def _not_unique(numbers: Sequence[int], shown: str, how: str, advice: str) -> NotUnique:
    named_lines = ", ".join(map(str, numbers[:_PLACES_NAMED])) + (", ..." if len(numbers) > _PLACES_NAMED else "")
    s = "s" if len(numbers) > 1 else ""
    return NotUnique(
        f"old_string occurs {len(numbers)} time{s} in `{shown}`{how}, at line{s} {named_lines}; {advice}",
        details={"count": len(numbers), "lines": list(numbers[:1000])},
    )


# --- Lisp ---


def unbalanced(plan: Plan, shown: str) -> list[str]:
    """A note about the first form of a Lisp file that an edit leaves broken, if it was whole before."""
    dialect = dialect_of(shown)
    if dialect is None or not plan.splices or len(plan.text.body) > _LARGEST_BALANCED:
        return []
    after = spliced(plan.text.body, plan.splices).decode("utf-8", "replace")
    faults = [unit.fault for unit in scan(after, dialect) if unit.fault]
    before = plan.text.body.decode("utf-8", "replace")
    if not faults or len(faults) <= sum(1 for unit in scan(before, dialect) if unit.fault):
        return []
    line = after.count("\n", 0, faults[0].at) + 1
    return [f"[warning: the edit unbalances the brackets at line {line}: {faults[0].message}]"]


# --- nothing matched ---

_MARKS = {"\t": "→", "\r": "␍"}


def _no_match(lines: SplitLines, request: EditRequest, shown: str, advice: str = "") -> NoMatch:
    old, near = request.old, nearest(lines, request.old)
    places = _places_of_new(lines, request)
    there = f" (new_string is at line {places[0]})" if len(places) == 1 else ""
    if near is None:
        return NoMatch(f"neither old_string nor anything like it is in `{shown}`{there}; read the file again")
    first, last = near.first + 1, near.last + 1
    details = {"first_line": first, "last_line": last}
    ready = _ready_to_send(lines.raw[near.first : near.last + 1], old)
    if ready is not None:
        return NoMatch(
            f"old_string is not in `{shown}`{there}, but lines {first} to {last} are nearly the same. Send the text "
            f"between these marks as old_string{advice}:\n{_OPEN}\n{ready}\n{_CLOSE}",
            details=details,
        )
    rows = [_visible(line.decode("utf-8", "replace")) for line in lines.raw[near.first : near.last + 1]]
    rows = [f"{number:6d}|{row[:DIFF_WIDTH]}" for number, row in enumerate(rows[:_NEAREST_LINES], first)]
    if last - first >= _NEAREST_LINES:
        rows.append(f"      |[... {last - first + 1 - _NEAREST_LINES} more lines]")
    excerpt = "\n".join(rows)
    marks = " (→ is a tab, ␍ a CR, <U+...> an unusual character)" if re.search("[→␍]|<U\\+", excerpt) else ""
    return NoMatch(
        f"old_string is not in `{shown}`{there}. "
        f"The closest text is in lines {first} to {last}{marks}{advice}:\n{excerpt}",
        details=details,
    )


def _in_notebook(error: NoMatch, shown: str, offered: frozenset[str]) -> NoMatch:
    """The error, for a notebook with what a model can't know that saw the cells in Read."""
    if not shown.endswith(".ipynb"):
        return error
    other = "; NotebookEdit changes cells" if "NotebookEdit" in offered else ""
    return NoMatch(
        f"{error.message}\n[Edit sees the notebook's JSON, not the cells as Read shows them{other}]",
        details=error.details,
    )


def _ready_to_send(found: Sequence[bytes], old: bytes) -> str | None:
    """The file's own text, if it is alike enough, short enough, and every character of it can be shown."""
    if len(found) > _READY_LINES or sum(map(len, found)) > _READY_BYTES:
        return None
    text = "\n".join(line.decode("utf-8").removesuffix("\r") for line in found)
    alike = similarity(SplitLines(old).trimmed, SplitLines(text.encode()).trimmed)
    return text if alike >= _READY and visible(text) == text and _CLOSE not in text else None


def _visible(line: str) -> str:
    return replaced(line, lambda char: _MARKS.get(char) or f"<U+{ord(char):04X}>")


# --- the answer ---


def _summary(plan: Plan, shown: str, dry_run: bool) -> str:
    count = len(plan.splices)
    if plan.applied_at == 0:
        return f"already applied to {shown}: this session has removed old_string; unchanged"
    if plan.applied_at is not None:
        return (
            f"already applied at line {plan.applied_at} of {shown}: new_string is there, old_string is not; unchanged"
        )
    if not count and not plan.created:
        return f"{shown} is unchanged: old_string and new_string are the same"
    if plan.mode == "whole file":
        done = f"created {shown}" if plan.created else f"replaced the whole of {shown}"
    else:
        done = f"edited {shown}: {plural(count, 'replacement')} ({plan.mode})"
    return f"dry run, nothing was written: {done}" if dry_run else done


def with_diff(summary: str, plan: Plan, shown: str, cache: OutputCache) -> str | Awaitable[TextResult]:
    """A summary and the diff below it; a long diff is cut and stored."""
    rows = unified(plan.text.body, plan.splices, shown, created=plan.created)
    return diff_below(summary, rows, cache)
