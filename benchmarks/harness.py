"""Measures two or more sides in turns, and keeps what came out as rows."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "bench"


@dataclass(frozen=True)
class Row:
    """One line of RESULTS.md. `met` is None where a row has no figure to meet, or was not run."""

    group: str
    name: str
    figure: str
    measured: str
    spread: str = ""
    met: bool | None = None
    note: str = ""
    value: float | None = None

    @property
    def verdict(self) -> str:
        if self.met is None:
            return "not run" if self.measured == "not run" else ""
        return "met" if self.met else "**missed**"


@dataclass
class Run:
    """What a group needs to know: how thorough to be, and where its rows go."""

    quick: bool = False
    rows: list[Row] = field(default_factory=list[Row])

    @property
    def rounds(self) -> int:
        return 5 if self.quick else 11

    def add(self, row: Row) -> None:
        self.rows.append(row)
        print(f"  {row.name}: {row.measured} {row.spread} {row.verdict} {row.note}".rstrip(), flush=True)

    def step(self, group: str, what: str, work: Callable[[], Any]) -> None:
        """A part of a group. What breaks it is a row: what can't run must not pass for what did."""
        try:
            work()
        except Exception as fault:  # noqa: BLE001 - whatever it is, the rest is measured
            self.not_run(group, what, "–", f"{type(fault).__name__}: {fault}")

    def not_run(self, group: str, name: str, figure: str, why: str) -> None:
        self.add(Row(group, name, figure, "not run", note=without_paths(why)))


def without_paths(text: str) -> str:
    """One line that says nothing of where things are on this machine."""
    line = " ".join(text.split())
    return re.sub(r"(?<![\w.])/(?:[\w.@+-]+/)+", "…/", line)[:200]


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_seconds(work: Callable[[], Any]) -> float:
    """For work of this process alone: what others do on the machine doesn't count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def interleaved(sides: Mapping[str, Callable[[], Any]], rounds: int, warm: int = 1) -> dict[str, list[float]]:
    """Times of each side, taken in turns, so that noise falls on all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for _ in range(warm):
        for name in names:
            sides[name]()
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            times[name].append(seconds(sides[name]))
    return times


def ratios(ours: Iterable[float], theirs: Iterable[float]) -> list[float]:
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def quartiles(values: list[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def compare(
    run: Run,
    group: str,
    name: str,
    sides: Mapping[str, Callable[[], Any]],
    *,
    at_most: Mapping[str, float] | None = None,
    rounds: int | None = None,
    warm: int = 1,
    note: str = "",
) -> dict[str, list[float]]:
    """Measures the sides in turns; the first is ours."""
    times = interleaved(sides, rounds or run.rounds, warm)
    tell(run, group, name, times, at_most or {}, note=note)
    return times


def tell(
    run: Run,
    group: str,
    name: str,
    times: Mapping[str, list[float]],
    limits: Mapping[str, float],
    *,
    note: str = "",
    notes: Mapping[str, str] | None = None,
) -> None:
    """A row for each side but the first: how many times longer the first (ours) took, and whether that is met."""
    ours, *others = times
    for other in others:
        low, middle, high = quartiles(ratios(times[ours], times[other]))
        limit = limits.get(other)
        run.add(
            Row(
                group,
                f"{name}, against {other}",
                f"≤ {limit:.3g}×" if limit is not None else "–",
                f"{middle:.2f}×",
                f"{low:.2f}–{high:.2f}",
                None if limit is None else middle <= limit,
                (notes or {}).get(other, note),
                middle,
            )
        )


def bound(
    run: Run,
    group: str,
    name: str,
    value: float,
    limit: float,
    unit: str,
    *,
    at_least: bool = False,
    spread: str = "",
    note: str = "",
) -> None:
    """A row for a number that has a bound of its own: memory, milliseconds over a floor, a count."""
    sign = "≥" if at_least else "≤"
    met = value >= limit if at_least else value <= limit
    shown = f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"
    run.add(Row(group, name, f"{sign} {limit:,g} {unit}", f"{shown} {unit}", spread, met, note, value))
