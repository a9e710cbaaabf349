"""Runs the trials and writes their part of benchmarks/RELIABILITY.md. Use scripts/torture."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from torture import page
from torture.trial import Outcome, Torment

PAGE = page.ROOT / "benchmarks" / "RELIABILITY.md"
GROUPS = ["files", "undo", "patch", "approvals", "fleet", "shells", "walls", "day", "garbage", "guards", "soak"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run each trial briefly: about two minutes in total")
    parser.add_argument("--scale", type=_share, default=1.0, help="multiply the counts of a full run by this")
    parser.add_argument("--seed", type=int, default=20_260, help="repeat a run (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=GROUPS, help="run only this group; repeatable")
    parser.add_argument("--no-write", action="store_true", help="print, but leave RELIABILITY.md as it is")
    options = parser.parse_args()
    sys.path[:0] = [str(page.ROOT / "tests")]
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gripfast-torture-") as scratch:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = f"{scratch}/user"  # not the user's own cache
        torment = Torment(Path(scratch), options.seed, options.quick, options.scale, say=partial(print, flush=True))
        for name in options.only or GROUPS:
            print(f"{name}:", flush=True)
            began, before = time.monotonic(), len(torment.outcomes)
            attempt(torment, name)
            minutes = (time.monotonic() - began) / 60
            print(f"  {name} took {minutes:.1f} minutes", flush=True)
            if not options.no_write:  # now, so that a run that is cut off keeps what it has
                write(name, page.part(name, torment.outcomes[before:], torment, minutes))
    broken = [outcome for outcome in torment.outcomes if outcome.failed]
    total = (time.monotonic() - start) / 60
    print(f"{len(torment.outcomes)} trials in {total:.1f} minutes, {len(broken)} broken")
    sys.exit(1 if broken else 0)


def write(group: str, part: str, file: Path = PAGE) -> None:
    """Replaces a group's part of the page."""
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    file.write_text(page.whole(page.parts_of(old, GROUPS) | {group: part}, GROUPS), encoding="utf-8")
    print(f"  wrote its part of {file.name}", flush=True)


def attempt(torment: Torment, name: str) -> None:
    """Runs one group. A group that raises is reported as broken, and the others still run."""
    try:
        importlib.import_module(f"torture.{name}").run(torment)
    except Exception as fault:  # noqa: BLE001 - any exception is reported on the page
        said = " ".join(f"{type(fault).__name__}: {fault}".split()).replace(f"{torment.scratch}/", "")[:200]
        torment.tell(Outcome(f"the group {name}", "runs to its end", 1, 1, said))


def _share(text: str) -> float:
    scale = float(text)
    if not 0 < scale <= 100:
        raise argparse.ArgumentTypeError("must be a number above 0 and at most 100")
    return scale


if __name__ == "__main__":
    main()
