"""Runs the trials and writes benchmarks/RELIABILITY.md. Use scripts/torture."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from torture.trial import Outcome, Torment

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "benchmarks" / "RELIABILITY.md"
GROUPS = ["files", "shells", "garbage", "guards", "soak"]
INTRO = """# Reliability

Written by `scripts/torture`; nobody edits it by hand. Each row says what was promised, how often it was tried and how
often it failed. The seed repeats a run; where processes race, it repeats what was tried, not who was first. With
`--scale` the counts of a full run are multiplied: the table says what was really tried.
"""
NOT_PROMISED = """## What is not promised

- **Prompt injection.** A file may hold words that talk a model into something. The scope, the rules and the sandbox
  bound what it can then do; nothing here makes it not want to.
- **Another program of the same user, outside the sandbox.** It may write what and where it likes. An edit that it
  makes between our check and our rename, without taking the lock, can be overwritten.
- **Reading.** The sandbox of Bash bounds what a command can *write*. It can read what you can read, and reach the
  network.
- **A kernel or a file system that lies** about what it has synced, and disks that do.
- **Windows.** Untested. macOS has no openat2, subreaper or Landlock: `holdfast doctor` says what is left there.
- **Landlock without bubblewrap** does not protect `.git` inside a writable root.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each trial briefly, about two minutes")
    parser.add_argument("--scale", type=_share, default=1.0, help="the counts of a full run, times this")
    parser.add_argument("--seed", type=int, default=20_260, help="repeats a run (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=GROUPS, help="one group; may be given again")
    parser.add_argument("--no-write", action="store_true", help="print, but leave RELIABILITY.md as it is")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests")]
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="holdfast-torture-") as scratch:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = f"{scratch}/user"  # not the user's own
        torment = Torment(Path(scratch), options.seed, options.quick, options.scale, say=partial(print, flush=True))
        for name in options.only or GROUPS:
            print(f"{name}:", flush=True)
            began = time.monotonic()
            attempt(torment, name)
            print(f"  {name} took {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    minutes = (time.monotonic() - start) / 60
    broken = [outcome for outcome in torment.outcomes if outcome.failed]
    print(f"{len(torment.outcomes)} trials in {minutes:.1f} minutes, {len(broken)} broken")
    if not options.no_write and options.only is None:
        PAGE.write_text(page(torment, minutes), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    sys.exit(1 if broken else 0)


def attempt(torment: Torment, name: str) -> None:
    """A group that breaks off is told as broken, and the others are still tried."""
    try:
        importlib.import_module(f"torture.{name}").run(torment)
    except Exception as fault:  # noqa: BLE001 - whatever it is, it is on the page
        said = " ".join(f"{type(fault).__name__}: {fault}".split()).replace(f"{torment.scratch}/", "")[:200]
        torment.tell(Outcome(f"the group {name}", "runs to its end", 1, 1, said))


def _share(text: str) -> float:
    scale = float(text)
    if not 0 < scale <= 100:
        raise argparse.ArgumentTypeError("a number over 0, up to 100")
    return scale


def page(torment: Torment, minutes: float) -> str:
    how = "scripts/torture" + (" --quick" if torment.quick else "")
    how += f" --scale {torment.scale:g}" if torment.scale != 1 and not torment.quick else ""
    kernel = platform.release().split("-")[0]
    where = f"{platform.system()} {kernel}, {os.cpu_count()} cores, Python {platform.python_version()}"
    broken = sum(one.failed > 0 for one in torment.outcomes)
    count = f"{len(torment.outcomes)} trials, {broken or 'none'} broken"
    lines = [INTRO, f"**{count}.** `{how} --seed {torment.seed}`, {minutes:.0f} minutes, {where}.", ""]
    lines += ["| trial | promise | tried | failed | | |", "|---|---|---|---|---|---|"]
    for one in torment.outcomes:
        counts = f"{one.tried:,} | {one.failed:,}" if not one.why else "– | –"
        lines.append(f"| {one.name} | {one.promise} | {counts} | {one.verdict} | {one.note or one.why} |")
    return "\n".join([*lines, "", NOT_PROMISED])


if __name__ == "__main__":
    main()
