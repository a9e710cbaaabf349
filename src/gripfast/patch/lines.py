"""A file's text as lines that keep their own line ends, and edits of whole lines as splices of its bytes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from gripfast.records import dataclass
from gripfast.text.match import Splice

_ENDS = re.compile(r"\r?\n")
_ENDS_WITH_CR = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Lines `start` to `stop` (from 0, the last not included) become `new`."""

    start: int
    stop: int
    new: tuple[str, ...]


class FileLines:
    """The lines of a text. With `lone_cr`, a CR alone ends a line as well."""

    def __init__(self, body: bytes, *, lone_cr: bool = False) -> None:
        text = body.decode("utf-8")
        pattern = _ENDS_WITH_CR if lone_cr else _ENDS
        self.ends: list[str] = pattern.findall(text)
        self.texts: list[str] = pattern.split(text)
        if self.texts[-1] == "":
            self.texts.pop()
        else:
            self.ends.append("")
        self._is_ascii = text.isascii()

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def usual_end(self) -> str:
        """The end that most lines have; of two, that which comes first."""
        counted = Counter(end for end in self.ends if end)
        return max(counted, key=lambda end: counted[end]) if counted else "\n"

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins, in bytes; then where the last one ends."""
        sizes = map(len, self.texts) if self._is_ascii else (len(text.encode()) for text in self.texts)
        both = (size + len(end) for size, end in zip(sizes, self.ends, strict=True))
        return list(accumulate(both, initial=0))

    def splices(self, edits: Sequence[LineEdit]) -> list[Splice]:
        """Edits in order, as splices. New lines end as most lines do; the last line ends as the last one did."""
        return [self._splice(edit) for edit in _joined(edits)]

    def _splice(self, edit: LineEdit) -> Splice:
        start, end = self._starts[edit.start], self._starts[edit.stop]
        new = "".join(line + self.usual_end for line in edit.new)
        if edit.stop == len(self) > 0 and self.ends[-1] == "":
            new = new.removesuffix(self.usual_end)
            if edit.start == len(self):
                new = self.usual_end + new
            elif not edit.new and edit.start > 0:
                start -= len(self.ends[edit.start - 1])
        return Splice(start, end, new.encode())


def _joined(edits: Sequence[LineEdit]) -> list[LineEdit]:
    """Edits that touch each other are one."""
    joined: list[LineEdit] = []
    for edit in edits:
        if joined and joined[-1].stop == edit.start:
            before = joined.pop()
            edit = LineEdit(before.start, edit.stop, before.new + edit.new)
        joined.append(edit)
    return joined
