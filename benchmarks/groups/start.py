"""How soon a command of the command line has printed, and the first call of a server has its answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.client import StdioClient
from benchmarks.harness import Run, in_turns, seconds, tell

GROUP = "start"
PYTHON = "`python -c pass`"
LIBRARIES = "import click, asyncio, anyio"
COMMANDS = (
    ("gripfast --help", 3.0, ("--help",)),
    ("gripfast tools", 6.0, ("tools",)),
    ("gripfast call Read", 8.0, ("call", "Read", "small.txt")),
)


def measure(run: Run) -> None:
    with tempfile.TemporaryDirectory(prefix="gripfast-start-") as place:
        (Path(place) / "small.txt").write_text("one\n" * 200, encoding="utf-8")
        for name, limit, arguments in COMMANDS:
            run.step(GROUP, name, partial(_command, run, Path(place), name, limit, arguments))
        run.step(GROUP, "libraries", partial(_libraries, run))
        run.step(GROUP, "first call", partial(_first_call, run, Path(place)))


def _command(run: Run, place: Path, name: str, limit: float, arguments: tuple[str, ...]) -> None:
    program = Path(sys.executable).parent / "gripfast"
    environment = {**os.environ, "XDG_STATE_HOME": str(place / "state")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled; the first run does that here

    def ran(*command: str) -> float:
        work = partial(subprocess.run, command, cwd=place, env=environment, stdout=subprocess.DEVNULL, check=True)
        return seconds(work)

    both = {"ours": partial(ran, str(program), *arguments), PYTHON: partial(ran, sys.executable, "-c", "pass")}
    tell(run, GROUP, name, in_turns(both, 5 if run.quick else 21, warm=1), {PYTHON: limit})


def _libraries(run: Run) -> None:
    """What `call` can't be quicker than while it has these."""
    both = {
        "theirs": partial(seconds, partial(subprocess.run, [sys.executable, "-c", LIBRARIES], check=True)),
        PYTHON: partial(seconds, partial(subprocess.run, [sys.executable, "-c", "pass"], check=True)),
    }
    tell(run, GROUP, f"`python -c '{LIBRARIES}'`", in_turns(both, 5 if run.quick else 21, warm=1), {})


def _first_call(run: Run, place: Path) -> None:
    """From the start of the process to the answer of the first call: early answers must not make it later."""
    state = place / "server-state"

    def called(*, early: bool) -> float:
        if not early:
            shutil.rmtree(state, ignore_errors=True)
        command = [sys.executable, "-m", "gripfast", "serve", "--root", str(place)]
        client = StdioClient(command, place, {"XDG_STATE_HOME": str(state)})
        try:
            return client.ready_after + seconds(lambda: client.call("Read", {"file_path": "small.txt"}))
        finally:
            client.close()

    called(early=False)
    ways = {"early": partial(called, early=True), "without early answers": partial(called, early=False)}
    tell(
        run,
        GROUP,
        "start to the first call's answer",
        in_turns(ways, 3 if run.quick else 9),
        {"without early answers": 1.05},
    )
