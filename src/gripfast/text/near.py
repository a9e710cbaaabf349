"""Names that were probably meant, and the words that offer them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from gripfast.text.escape import escaped

_WIDTH = 80


def near(name: str, known: Iterable[str], most: int = 3, *, likeness: float = 0.55) -> list[str]:
    """The known names most like this one, whatever the case; of two that are equally like it, first the one with the
    same beginning."""
    wanted = name[:_WIDTH].casefold()
    from difflib import SequenceMatcher  # noqa: PLC0415 - few calls name something that does not exist

    matcher = SequenceMatcher(None, "", wanted)
    found: list[tuple[float, bool, str]] = []
    for one in known:
        low = one[:_WIDTH].casefold()
        matcher.set_seq1(low)
        if matcher.real_quick_ratio() >= likeness and matcher.quick_ratio() >= likeness:
            found.append((-matcher.ratio(), low[:1] != wanted[:1], one))
    return [one for unlike, _, one in heapq.nsmallest(most, found) if -unlike >= likeness]


def did_you_mean(name: str, known: Iterable[str], most: int = 1, *, none: str = "there is none") -> str:
    """Ends an error about an unknown name: what was probably meant, else all there are, else `none`."""
    names = list(known)
    meant = near(name, names, most)
    if meant:
        return "did you mean " + " or ".join(f"`{escaped(one)}`" for one in meant) + "?"
    return f"use one of {', '.join(map(escaped, names))}" if names else none
