"""Measures two or more sides in turns and records the results as rows."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CACHE = Path(os.environ.get("GRIPFAST_BENCH_CACHE") or ROOT / ".cache" / "bench")


@dataclass(frozen=True)
class Row:
    """One row of RESULTS.md. `met` is None if the row has no target or was not run."""

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
    """The settings of a run, and the rows it has collected."""

    quick: bool = False
    rows: list[Row] = field(default_factory=list[Row])

    @property
    def rounds(self) -> int:
        return 5 if self.quick else 11

    def add(self, row: Row) -> None:
        self.rows.append(row)
        print(f"  {row.name}: {row.measured} {row.spread} {row.verdict} {row.note}".rstrip(), flush=True)

    def step(self, group: str, what: str, work: Callable[[], Any]) -> None:
        """Runs one part of a group. If it raises, that becomes a row, so that a failure can't be overlooked."""
        try:
            work()
        except Exception as fault:  # noqa: BLE001 - the rest must still be measured
            self.not_run(group, what, "–", f"{type(fault).__name__}: {fault}")

    def not_run(self, group: str, name: str, figure: str, why: str) -> None:
        self.add(Row(group, name, figure, "not run", note=without_paths(why)))


def without_paths(text: str) -> str:
    """A one-line message without paths of this machine."""
    line = " ".join(text.split())
    return re.sub(r"(?<![\w.])/(?:[\w.@+-]+/)+", "…/", line)[:200]


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_seconds(work: Callable[[], Any]) -> float:
    """Processor time, for work of this process alone, so that other load doesn't count."""
    start = time.process_time()
    work()
    return time.process_time() - start


@dataclass(frozen=True)
class Turns:
    """The measurements of each side, and why the missing sides are missing."""

    values: dict[str, list[float]]
    faults: dict[str, str]


def in_turns(sides: Mapping[str, Callable[[], float]], rounds: int, warm: int = 0) -> Turns:
    """What each side measures, taken in turns, so that noise falls on all of them alike. The first side is ours and
    must work; another that breaks is out from then on, and costs nobody else a row."""
    turns = Turns({name: [] for name in sides}, {})
    for number in range(-warm, rounds):
        for name in list(turns.values) if number % 2 == 0 else list(turns.values)[::-1]:
            try:
                value = sides[name]()
            except Exception as fault:
                if name == next(iter(sides)):
                    raise
                turns.faults[name] = f"{type(fault).__name__}: {fault}"
                del turns.values[name]
            else:
                turns.values[name] += [value] if number >= 0 else []
    return turns


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
) -> None:
    """Measures the time of each side in turns; the first side is ours."""
    turns = in_turns({side: partial(seconds, work) for side, work in sides.items()}, rounds or run.rounds, warm)
    tell(run, group, name, turns, at_most or {}, note=note)


def tell(
    run: Run,
    group: str,
    name: str,
    turns: Turns,
    limits: Mapping[str, float],
    *,
    note: str = "",
    notes: Mapping[str, str] | None = None,
) -> None:
    """Adds a row for each side but the first (ours): the ratio of our time to theirs, and the verdict."""
    ours, *others = turns.values
    for other in [*others, *turns.faults]:
        limit = limits.get(other)
        row, figure = f"{name}, against {other}", "–" if limit is None else f"≤ {limit:.3g}×"
        if other in turns.faults:
            run.not_run(group, row, figure, turns.faults[other])
            continue
        each = ratios(turns.values[ours], turns.values[other])
        low, middle, high = quartiles(each)
        met = None if limit is None else middle <= limit
        said = (notes or {}).get(other, note)
        spread = f"{_short(low)}–{_short(high)}" if len(each) > 1 else ""
        run.add(Row(group, row, figure, f"{_short(middle)}×", spread, met, said, middle))


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.1g}"


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
    """Adds a row for a number with its own limit: memory, milliseconds over a floor, a count."""
    sign = "≥" if at_least else "≤"
    met = value >= limit if at_least else value <= limit
    shown = f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"
    run.add(Row(group, name, f"{sign} {limit:,g} {unit}", f"{shown} {unit}", spread, met, note, value))
