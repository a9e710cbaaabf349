"""Names that were probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names most like this one, whatever the case. Of two equally like, that with the same beginning."""
    wanted = name[:80].casefold()
    folded = {one.casefold(): one for one in known}
    alike = {one: difflib.SequenceMatcher(None, one, wanted).ratio() for one in folded}
    found = sorted((one for one in alike if alike[one] >= 0.5), key=lambda one: (-alike[one], one[:1] != wanted[:1]))
    return [folded[one] for one in found[:most]]
