"""Edit: replaces a text in a file that was read, and shows the difference."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from holdfast.builtin.keys import CACHE, FS, READS
from holdfast.builtin.write import named
from holdfast.call.cache import OutputCache
from holdfast.errors import Conflict, NoMatch, NotUnique
from holdfast.host.diff import unified, whole_splice
from holdfast.host.fs import ScopedFs
from holdfast.host.guard import ReadLog, digest_of
from holdfast.host.match import (
    LineMatch,
    Lines,
    Splice,
    anchored_matches,
    exact_spans,
    line_splice,
    nearest,
    spliced,
    splices,
    trimmed_matches,
)
from holdfast.host.paths import WorkPath
from holdfast.host.text import Form, Text, rewritten, text_of
from holdfast.messages import TextResult
from holdfast.tool.context import ToolContext
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends

Mode = Literal["auto", "exact", "line_trimmed", "block_anchor"]
DIFF_LINES = 120
DIFF_WIDTH = 500
_PLACES_NAMED = 20
_NEAREST_LINES = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What an edit does to a file's text."""

    text: Text
    splices: list[Splice]
    mode: str
    created: bool = False

    def bytes_of(self, shown: str) -> bytes:
        return self.text.form.bytes_of(spliced(self.text.body, self.splices), shown)


@tool(name="Edit", title="Edit a file", effect="write", subject="file_path", destructive=True)
def edit(
    file_path: Annotated[WorkPath, Field(description="Absolute, or relative to the workspace.")],
    old_string: Annotated[str, Field(description="The text to replace, unique in the file. Empty: the whole file.")],
    new_string: Annotated[str, Field(description="The text to put there, literally.")],
    replace_all: Annotated[bool, Field(description="Replace every occurrence.")] = False,
    match_mode: Annotated[
        Mode,
        Field(
            description="auto: exact, else line_trimmed (space around lines may differ; new_string is re-indented). "
            "block_anchor: first and last line equal, the rest similar."
        ),
    ] = "auto",
    expected_replacements: Annotated[
        int | None, Field(description="Replace every occurrence if there are exactly so many.", ge=1)
    ] = None,
    dry_run: Annotated[bool, Field(description="Show the difference, write nothing.")] = False,
    expected_hash: Annotated[
        str | None,
        Field(description="SHA-256 of the file as it should be now, in hex.", pattern="^[0-9a-fA-F]{8,64}$"),
    ] = None,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    cache: Annotated[OutputCache, Depends(CACHE)],
    ctx: ToolContext,
) -> str | Awaitable[TextResult]:
    """Replaces a text in a file that was read in this session, and shows the difference. LF in the arguments stands
    for the file's own line ends."""
    shown = fs.show(file_path)
    wanted = Wanted(old_string.encode(), new_string.encode(), replace_all, match_mode, expected_replacements)
    plan: Plan | None = None

    def compute(before: bytes | None) -> bytes:
        nonlocal plan
        if before is None and wanted.old:
            raise fs.not_found(file_path)
        _check_hash(before, expected_hash, shown)
        plan = planned(before, wanted, fs.encoding, shown)
        return plan.bytes_of(shown)

    change = fs.change(file_path, compute, reads=reads, commit=not dry_run, last_word=ctx.check_cancelled)
    assert plan is not None, "change calls compute"
    words = _words(plan, named(fs, file_path, change.real), dry_run)
    rows = unified(plan.text.body, plan.splices, shown, created=plan.created)
    if len(rows) <= DIFF_LINES and all(len(row) <= DIFF_WIDTH for row in rows):
        return "\n".join([words, *rows])
    return _cut(words, rows, cache)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the caller asked for."""

    old: bytes
    new: bytes
    every: bool
    mode: Mode
    expected: int | None


def _check_hash(before: bytes | None, expected: str | None, shown: str) -> None:
    if expected is None:
        return
    real = digest_of(before or b"")
    if not real.startswith(expected.lower()):
        raise Conflict(
            f"`{shown}` has another content than expected: its SHA-256 is {real}; Read it again",
            details={"sha256": real},
        )


# --- what to replace ---


def planned(before: bytes | None, wanted: Wanted, encoding: str | None, shown: str) -> Plan:
    """What an edit does to a file's bytes (None: there is no file), or the error that says why it can't."""
    if before is None:
        return Plan(
            Text(Form(encoding or "utf-8"), b""), _if_any(Splice(0, 0, wanted.new)), "whole file", created=True
        )
    text = text_of(before, encoding, shown)
    if not wanted.old:
        new = rewritten(text.body, wanted.new)
        return Plan(text, _if_any(whole_splice(text.body, new)), "whole file")
    if wanted.old == wanted.new:
        return Plan(text, [], "exact")
    if wanted.mode in ("auto", "exact"):
        spans = exact_spans(text.body, wanted.old)
        if spans:
            _check_count(text.body, [start for start, _ in spans], wanted, shown)
            return Plan(text, splices(text.body, spans, wanted.new), "exact")
    return _plan_by_lines(text, wanted, shown)


def _if_any(one: Splice) -> list[Splice]:
    return [one] if one.new or one.end > one.start else []


def _plan_by_lines(text: Text, wanted: Wanted, shown: str) -> Plan:
    lines = Lines(text.body)
    matches: list[LineMatch] = []
    mode = "line_trimmed" if wanted.mode == "auto" else wanted.mode
    if mode == "line_trimmed":
        matches = trimmed_matches(lines, wanted.old)
    elif mode == "block_anchor":
        matches = anchored_matches(lines, wanted.old)
    if not matches:
        raise _no_match(lines, wanted.old, shown)
    if len(matches) > 1:
        raise _not_unique([match.first + 1 for match in matches], shown, f" (by {mode})")
    if wanted.expected not in (None, 1):
        raise _not_unique([matches[0].first + 1], shown, f", {wanted.expected} times were expected")
    return Plan(text, [line_splice(lines, matches[0], wanted.old, wanted.new)], mode)


def _check_count(body: bytes, starts: Sequence[int], wanted: Wanted, shown: str) -> None:
    count = len(starts)
    if wanted.expected is not None and count != wanted.expected:
        raise _not_unique(_line_numbers(body, starts), shown, f", {wanted.expected} times were expected")
    if count > 1 and not wanted.every and wanted.expected is None:
        raise _not_unique(_line_numbers(body, starts), shown, "")


def _line_numbers(body: bytes, starts: Sequence[int]) -> list[int]:
    numbers: list[int] = []
    line, at = 1, 0
    for start in starts:
        line += body.count(b"\n", at, start)
        at = start
        numbers.append(line)
    return numbers


def _not_unique(numbers: Sequence[int], shown: str, why: str) -> NotUnique:
    named_lines = ", ".join(map(str, numbers[:_PLACES_NAMED])) + (", ..." if len(numbers) > _PLACES_NAMED else "")
    times = f"{len(numbers)} time{'s' if len(numbers) > 1 else ''}"
    return NotUnique(
        f"old_string occurs {times} in `{shown}`{why}, at line{'s' if len(numbers) > 1 else ''} {named_lines}; "
        "add lines around it until it is unique, or say replace_all or expected_replacements",
        details={"count": len(numbers), "lines": list(numbers[:1000])},
    )


# --- nothing matched ---

_ODD = re.compile("[\t\r\u00a0\u00ad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]")
_MARKS = {"\t": "→", "\r": "␍"}


def _no_match(lines: Lines, old: bytes, shown: str) -> NoMatch:
    near = nearest(lines, old)
    if near is None:
        return NoMatch(f"old_string is not in `{shown}`, nor anything like it; Read the file again")
    first, last = near.first + 1, near.last + 1
    rows = [_visible(line.decode("utf-8", "replace")) for line in lines.raw[near.first : near.last + 1]]
    rows = [f"{number:6d}|{row[:DIFF_WIDTH]}" for number, row in enumerate(rows[:_NEAREST_LINES], first)]
    if last - first >= _NEAREST_LINES:
        rows.append(f"      |[... {last - first + 1 - _NEAREST_LINES} more lines]")
    told = "\n".join(rows)
    marks = " (→ is a tab, ␍ a CR, <U+...> an odd character)" if re.search("[→␍]|<U\\+", told) else ""
    return NoMatch(
        f"old_string is not in `{shown}`. The nearest place is line {first} to {last}{marks}:\n{told}",
        details={"first_line": first, "last_line": last},
    )


def _visible(line: str) -> str:
    return _ODD.sub(lambda match: _MARKS.get(match[0]) or f"<U+{ord(match[0]):04X}>", line)


# --- the answer ---


def _words(plan: Plan, shown: str, dry_run: bool) -> str:
    count = len(plan.splices)
    if not count and not plan.created:
        return f"{shown} is unchanged: old_string and new_string are the same"
    if plan.mode == "whole file":
        done = f"created {shown}" if plan.created else f"replaced the whole of {shown}"
    else:
        done = f"edited {shown}: {count} replacement{'s' if count > 1 else ''} ({plan.mode})"
    return f"dry run, nothing was written: {done}" if dry_run else done


async def _cut(words: str, rows: list[str], cache: OutputCache) -> TextResult:
    """The beginning of a long diff; the whole of it stays in the cache."""
    sink = cache.sink(room=0)
    await sink.feed("\n".join([*rows, ""]).encode("utf-8", "replace"))
    ref = (await sink.finish()).ref
    whole = f'the whole: tool_output_cache(ref_id="{ref.id}")' if ref else "the rest was not kept"
    shown = [row if len(row) <= DIFF_WIDTH else f"{row[:DIFF_WIDTH]} [...]" for row in rows[: DIFF_LINES - 1]]
    note = f"[diff cut: {len(shown)} of {len(rows)} lines shown; {whole}]"
    return TextResult("\n".join([words, *shown, note]), ref)
