"""A trial: something that is tried many times, and how often it failed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """`tried` and `failed` are counts; `why` says why it was not run."""

    name: str
    promise: str
    tried: int = 0
    failed: int = 0
    note: str = ""
    why: str = ""

    @property
    def verdict(self) -> str:
        if self.why:
            return "not run"
        return "held" if self.failed == 0 and self.tried else "**broken**"


@dataclass
class Torment:
    """The settings of a run: how much to try, with which seed, and where to work."""

    scratch: Path
    seed: int
    quick: bool = False
    scale: float = 1.0  # multiplies the counts of a full run
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    say: Callable[[str], None] = print

    def times(self, full: int, quick: int) -> int:
        return quick if self.quick else max(1, round(full * self.scale))

    def dice(self, name: str) -> random.Random:
        return random.Random(f"{self.seed}:{name}")

    def room(self, name: str) -> Path:
        place = self.scratch / name
        place.mkdir(parents=True)
        return place

    def tell(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        counts = f"{outcome.tried:,} tried, {outcome.failed:,} failed" if not outcome.why else outcome.why
        self.say(f"  {outcome.name}: {counts} {outcome.verdict} {outcome.note}".rstrip())
