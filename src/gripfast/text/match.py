"""Finding the text an edit means: exactly, by trimmed lines, or by its first and last line."""

from __future__ import annotations

import bisect
import difflib
import heapq
import re
from collections.abc import Iterable, Sequence

from gripfast.errors import SizeLimitExceeded
from gripfast.records import dataclass
from gripfast.text.line_ends import line_ends, usual_end, with_ends

SIMILAR = 0.8
MOST_SPANS = 500_000  # replacements in one edit: each is held, with its place in the diff
_PAIRS = 200  # pairs of first and last line that are looked at
_CLOSELY = 60  # pairs of lines in two blocks that are compared character by character
_WIDTH = 200  # characters of a line that are compared
_WORDS = 100  # words of a text by which its place is looked for
_ALIKE = 5_000  # lines among which alike ones are looked for
_HIGH = 60  # lines of a text that count for where it is nearest
_CANDIDATES = 20  # places compared closely when nothing matches

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Splice:
    """Bytes `start` to `end` of a text become `new`."""

    start: int
    end: int
    new: bytes


def spliced(body: bytes, splices: Sequence[Splice]) -> bytes:
    """A text with its splices done; they are in order and don't overlap."""
    parts: list[bytes] = []
    at = 0
    for one in splices:
        parts += (body[at : one.start], one.new)
        at = one.end
    parts.append(body[at:])
    return b"".join(parts)


def splices(body: bytes, spans: Sequence[Span], new: bytes) -> list[Splice]:
    """Splices whose new lines end as the old ones did, and past them as their neighbours do."""
    if b"\n" not in new or b"\r\n" not in body:
        return [Splice(start, end, new) for start, end in spans]
    ends = [found.start() for found in re.finditer(rb"\n", body)]
    return [
        Splice(start, end, with_ends(new, line_ends(body[start:end]), _end_nearby(body, ends, start, end)))
        for start, end in spans
    ]


def _end_nearby(body: bytes, ends: Sequence[int], start: int, end: int) -> bytes:
    """`ends` are the places of all newlines: with many splices they are not looked for again and again."""
    after = bisect.bisect_left(ends, end)
    before = bisect.bisect_left(ends, start) - 1
    if after == len(ends) and before < 0:
        return usual_end(body)
    nearest = ends[after] if after < len(ends) else ends[before]
    return b"\r\n" if body[nearest - 1 : nearest] == b"\r" else b"\n"


# --- exact ---


def exact_spans(body: bytes, old: bytes) -> list[Span]:
    """Every occurrence, without overlap. A newline in `old` stands for the file's own, LF or CRLF."""
    if b"\n" not in old or (b"\r\n" not in body and b"\r\n" not in old):
        return _raw_spans(body, old)
    if b"\r\n" in old and (found := _raw_spans(body, old)):
        return found
    plain = body.replace(b"\r\n", b"\n")
    found = _raw_spans(plain, old.replace(b"\r\n", b"\n"))
    if found and len(plain) != len(body):
        ends = _crlf_positions(body)
        return [
            (start + bisect.bisect_left(ends, start), end + bisect.bisect_left(ends, end)) for start, end in found
        ]
    return found


def _raw_spans(body: bytes, old: bytes) -> list[Span]:
    count = body.count(old)
    if count > MOST_SPANS:
        raise SizeLimitExceeded(
            f"the text to replace occurs {count} times; at most {MOST_SPANS} are replaced at once; use a command"
        )
    spans: list[Span] = []
    at = body.find(old)
    while at >= 0:
        spans.append((at, at + len(old)))
        at = body.find(old, at + len(old))
    return spans


def _crlf_positions(body: bytes) -> list[int]:
    """Where the newlines of CRLF pairs are once all pairs have become LF."""
    return [match.start() - before for before, match in enumerate(re.finditer(rb"\r\n", body))]


# --- by lines ---


class SplitLines:
    """A text as lines, with where each one begins."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.raw = body.split(b"\n")
        if self.raw[-1] == b"":
            self.raw.pop()
        self.trimmed = [_trimmed(line) for line in self.raw]
        self.starts: list[int] = []
        at = 0
        for line in self.raw:
            self.starts.append(at)
            at += len(line) + 1

    def span(self, first: int, last: int, *, with_end: bool) -> Span:
        """From the beginning of one line to the end of another, with or without its line end."""
        end = self.starts[last] + len(self.raw[last])
        if with_end:
            return self.starts[first], min(end + 1, len(self.body))
        return self.starts[first], end - (1 if self.raw[last].endswith(b"\r") else 0)


def _trimmed(line: bytes) -> bytes:
    if line.isascii():
        return line.strip()
    return line.decode("utf-8", "surrogateescape").strip().encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class LineMatch:
    """Lines `first` to `last` of the file (from 0) stand for the lines of the text that was looked for."""

    first: int
    last: int


def trimmed_matches(lines: SplitLines, old: bytes) -> list[LineMatch]:
    """Places where every line is the same except for the space around it."""
    wanted = SplitLines(old).trimmed
    if not any(wanted):
        return []
    last = len(lines.trimmed) - len(wanted)
    return [
        LineMatch(at, at + len(wanted) - 1)
        for at, line in enumerate(lines.trimmed[: last + 1])
        if line == wanted[0] and lines.trimmed[at : at + len(wanted)] == wanted
    ]


def anchored_matches(lines: SplitLines, old: bytes) -> list[LineMatch]:
    """Places that begin and end with the same line and are similar between; the best end for each beginning."""
    wanted = SplitLines(old).trimmed
    if len(wanted) < 3 or not wanted[0] or not wanted[-1]:
        return []
    ends = [at for at, line in enumerate(lines.trimmed) if line == wanted[-1]]
    matches: list[LineMatch] = []
    pairs = 0
    for first, line in enumerate(lines.trimmed):
        if line != wanted[0]:
            continue
        near = ends[bisect.bisect_left(ends, first + 2) : bisect.bisect_right(ends, first + 2 * len(wanted) + 10)]
        pairs += len(near)
        if pairs > _PAIRS:
            break
        scored = [(similarity(wanted[1:-1], lines.trimmed[first + 1 : last]), -last) for last in near]
        best = max(scored, default=(0.0, 0))
        if best[0] >= SIMILAR:
            matches.append(LineMatch(first, -best[1]))
    return matches


def similarity(wanted: Sequence[bytes], found: Sequence[bytes]) -> float:
    """How alike two blocks of lines are, 0 to 1: lines that are the same, and lines that are nearly so."""
    if wanted == found:
        return 1.0
    whole = sum(len(line) + 1 for line in (*wanted, *found))
    matcher = difflib.SequenceMatcher(None, wanted, found, autojunk=False)
    same, compared = 0.0, 0
    for what, first, last, start, end in matcher.get_opcodes():
        if what == "equal":
            same += 2 * sum(len(line) + 1 for line in wanted[first:last])
        elif what == "replace":
            for one, other in zip(wanted[first:last], found[start:end], strict=False):
                compared += 1
                same += _line_similarity(one, other, closely=compared <= _CLOSELY) * (len(one) + len(other) + 2)
    return same / whole if whole else 1.0


def _line_similarity(one: bytes, other: bytes, *, closely: bool) -> float:
    matcher = difflib.SequenceMatcher(None, _short(one), _short(other), autojunk=False)
    return matcher.ratio() if closely else matcher.quick_ratio()


def _short(line: bytes) -> str:
    return line.decode("utf-8", "replace")[:_WIDTH]


def line_splice(lines: SplitLines, match: LineMatch, old: bytes, new: bytes) -> Splice:
    """The splice for a match by lines: the new text takes over the file's indentation."""
    matched = lines.raw[match.first : match.last + 1]
    indented = reindented(old.replace(b"\r\n", b"\n"), new, matched)
    whole = old.endswith(b"\n")
    start, end = lines.span(match.first, match.last, with_end=whole)
    if whole and indented and not indented.endswith(b"\n") and lines.body[end - 1 : end] == b"\n":
        end -= 2 if lines.body[end - 2 : end] == b"\r\n" else 1
    return splices(lines.body, [(start, end)], indented)[0]


class UnknownIndentError(Exception):
    """Lines of the old text have the same indentation where the file's lines differ, so that nobody can tell how a
    new line must be indented."""


def reindented(old: bytes, new: bytes, matched: Sequence[bytes]) -> bytes:
    """A new text with the indentation of the file's lines, which match those of `old` except for the space around."""
    wanted = old.split(b"\n")
    both = [(one, other) for one, other in zip(wanted, matched, strict=False) if one.strip()]
    pairs = [(_indent(one), _indent(other)) for one, other in both]
    if not pairs or all(one == other for one, other in pairs):
        return new
    known = dict(reversed(pairs))
    loose = {one for one, other in pairs if known[one] != other}
    texts = {one.strip(): _indent(other) for one, other in reversed(both)} if loose else {}

    by_position = _by_position(old, new, matched) if loose else None
    if by_position is not None:
        return by_position

    def shifted(line: bytes) -> bytes:
        if not loose or _indent(line) not in loose or not line.strip():
            return _shifted(line, known, *pairs[0])
        if line.strip() not in texts:
            raise UnknownIndentError
        return texts[line.strip()] + line.lstrip(b" \t")

    return b"\n".join(map(shifted, new.split(b"\n")))


def _by_position(old: bytes, new: bytes, matched: Sequence[bytes]) -> bytes | None:
    """The new lines, each with the indentation of the file's line that it replaces; None unless both texts have as
    many lines, indented alike, and no line has moved."""
    wanted, lines = old.removesuffix(b"\n").split(b"\n"), new.removesuffix(b"\n").split(b"\n")
    if len(lines) != len(wanted):
        return None
    texts = {line.strip() for line in wanted}
    for at, (one, other) in enumerate(zip(wanted, lines, strict=True)):
        has_moved = other.strip() != one.strip() and other.strip() in texts
        if other.strip() and (not one.strip() or _indent(one) != _indent(other) or has_moved):
            return None
        if other.strip():
            lines[at] = _indent(matched[at]) + other.lstrip(b" \t")
    return b"\n".join(lines) + new[len(new.removesuffix(b"\n")) :]


def _indent(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip(b" \t"))]


def _shifted(line: bytes, known: dict[bytes, bytes], asked: bytes, real: bytes) -> bytes:
    """A line of the new text with the indentation the file has where the model wrote its own."""
    if not line.strip():
        return line
    indent = _indent(line)
    rest = line[len(indent) :]
    if indent in known:
        return known[indent] + rest
    if indent.startswith(asked):
        return real + indent[len(asked) :] + rest
    return real[: max(0, len(real) - (len(asked) - len(indent)))] + rest


# --- nothing matched ---


def is_in_place(lines: SplitLines, old: bytes, new: bytes) -> bool:
    """Whether a new text that occurs once stands where the old one must have been: the lines that both begin or end
    with are nowhere else. If only one side is fixed that way, no line of the old text may be left either."""
    wanted, there = SplitLines(old).trimmed, SplitLines(new).trimmed
    above = _shared(wanted, there)
    below = min(_shared(wanted[::-1], there[::-1]), min(len(wanted), len(there)) - above)
    head, tail = wanted[:above], wanted[len(wanted) - below :]
    if not any(_occurs_once(lines, side) for side in (head, tail)):
        return False
    if any(map(_has_word, head)) and any(map(_has_word, tail)):
        return True
    gone = {line for line in wanted[above : len(wanted) - below] if line} - set(there)
    return bool(gone) and gone.isdisjoint(lines.trimmed)


def _shared(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """How many lines two texts have in common at the beginning."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _occurs_once(lines: SplitLines, block: Sequence[bytes]) -> bool:
    return any(map(_has_word, block)) and len(trimmed_matches(lines, b"\n".join(block))) == 1


def _has_word(line: bytes) -> bool:
    return re.search(rb"\w\w", line) is not None


def nearest(lines: SplitLines, old: bytes) -> LineMatch | None:
    """The place in the file that is most like the text that was not found."""
    trimmed = SplitLines(old).trimmed
    wanted = [line for line in trimmed if line]
    if not wanted or not lines.raw:
        return None
    height = len(trimmed)
    scored = [
        (similarity(wanted[:_HIGH], [line for line in lines.trimmed[first : first + height] if line][:_HIGH]), -first)
        for first in _beginnings(lines, trimmed)
    ]
    best = max(scored, default=(0.0, 0))
    if best[0] < 0.4:
        return None
    first = -best[1]
    return LineMatch(first, min(first + height, len(lines.raw)) - 1)


def _beginnings(lines: SplitLines, wanted: Sequence[bytes]) -> Iterable[int]:
    """Where the text might begin: judged by lines that are the same, else by rare words, else by alike lines."""
    where: dict[bytes, list[int]] = {}
    for at, line in enumerate(lines.trimmed):
        where.setdefault(line, []).append(at)
    votes: dict[int, float] = {}
    for depth, line in enumerate(wanted):
        for at in where.get(line, ())[:_CANDIDATES] if line else ():
            _vote(votes, at - depth, len(line))
    if not votes:
        _vote_by_words(votes, lines, wanted)
    if not votes:
        longest = max(range(len(wanted)), key=lambda depth: len(wanted[depth]))
        for line in _alike(wanted[longest], list(where)):
            for at in where[line][:_CANDIDATES]:
                _vote(votes, at - longest, 1)
    return sorted(votes, key=lambda at: (-votes[at], at))[:_CANDIDATES]


def _vote(votes: dict[int, float], at: int, weight: float) -> None:
    votes[max(0, at)] = votes.get(max(0, at), 0) + weight


def _vote_by_words(votes: dict[int, float], lines: SplitLines, wanted: Sequence[bytes]) -> None:
    """Long words first: the rarer one is in the file, the more its places count."""
    words = {word: depth for depth, line in enumerate(wanted) for word in re.findall(rb"\w{4,}", line)}
    for word in sorted(words, key=len, reverse=True)[:_WORDS]:
        places = _places(lines.body, word)
        for place in places:
            _vote(votes, bisect.bisect_right(lines.starts, place) - 1 - words[word], 1 / len(places))


def _places(body: bytes, word: bytes) -> list[int]:
    """Where a word is; nowhere, when it is everywhere."""
    places: list[int] = []
    at = body.find(word)
    while at >= 0:
        places.append(at)
        if len(places) > _CANDIDATES:
            return []
        at = body.find(word, at + len(word))
    return places


def _alike(line: bytes, others: list[bytes]) -> list[bytes]:
    """The lines that have most of their characters in common with one."""
    matcher = difflib.SequenceMatcher(None, "", _short(line), autojunk=False)
    scored: list[tuple[float, int]] = []
    near = [other for other in others if abs(len(other) - len(line)) <= len(line) // 2 + 4][:_ALIKE]
    for at, other in enumerate(near):
        matcher.set_seq1(_short(other))
        if matcher.real_quick_ratio() > 0.5 and (score := matcher.quick_ratio()) > 0.5:
            scored.append((score, -at))
    return [near[-at] for _, at in heapq.nlargest(5, scored)]
