"""One run of `rg` over a place.

It is started in the root's own descriptor, reads beneath it and nowhere else (see host/kernel/confine.py), and
follows no link. No name or pattern can become an option of it.
"""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

from gripfast.errors import Cancelled
from gripfast.host.kernel.confine import Child, start_confined
from gripfast.host.program.repository import git_files
from gripfast.host.search.ignore_files import release_readers, rules_above
from gripfast.host.search.ripgrep import find_rg
from gripfast.host.search.search_types import SearchPlace
from gripfast.host.search.stop import Stop
from gripfast.records import dataclass

_PIPE_BYTES = 1 << 20
_QUIET_SECONDS = 0.5  # without output, before something is suspected to hold the search up
_READ_BYTES = 1 << 18
_COMPLAINT_BYTES = 64 * 1024
# What trickles in for long is left to gather: being woken for every file takes a processor from rg.
_SCRAP_BYTES, _FEW_SCRAPS, _PAUSE_SECONDS = 4096, 20, 0.002


@dataclass(frozen=True, slots=True)
class RipgrepRun:
    """How a run of rg ended, and what it complained about."""

    code: int
    complaints: bytes
    complaint_count: int
    timed_out: bool
    confined: bool


def run_rg(
    place: SearchPlace, arguments: list[str], take: Callable[[bytes], None], *, stop: Stop, deadline: float
) -> RipgrepRun:
    """Run rg over a place, handing its output to `take` as it comes."""
    rg = find_rg((place.root_path, *place.roots))
    with ExitStack() as stack:
        stdin = place.file
        if stdin is None:
            stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, stdin)
        else:
            os.lseek(stdin, 0, os.SEEK_SET)

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [rg, *arguments],
                cwd=_directory(place),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={},
            )

        if place.confined:
            child = start_confined(start, rg, [place.root, *rules_above(place.root_path)])
        else:
            child = Child(start(), confined=False)
        stack.callback(_put_away, child.process)
        stop.watch(child.process)
        complaints, count, timed_out = _drain(child.process, take, deadline, partial(_unstick, place))
        if timed_out:
            child.process.kill()
        code = child.process.wait()
    if stop.stopped:
        raise Cancelled("the search was stopped before it ended")
    return RipgrepRun(code, complaints, count, timed_out, child.confined)


def _unstick(place: SearchPlace) -> None:
    release_readers(_directory(place), git_files(place.root_path))


def _directory(place: SearchPlace) -> str:
    """The root as a working directory: by its descriptor where that has a name, so that no swap can move it."""
    through = f"/proc/self/fd/{place.root}"
    return through if os.path.isdir(through) else place.root_path


def _put_away(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _drain(
    process: subprocess.Popen[bytes], take: Callable[[bytes], None], deadline: float, unstick: Callable[[], None]
) -> tuple[bytes, int, bool]:
    """Read both pipes to their end or to the deadline: (first complaints, how many, whether time ran out). `unstick`
    is called when nothing has come for a while."""
    assert process.stdout is not None and process.stderr is not None
    output, errors = process.stdout.fileno(), process.stderr.fileno()
    _widen(output)
    poll = select.poll()
    poll.register(output, select.POLLIN)
    poll.register(errors, select.POLLIN)
    complaints, count, open_pipes, scraps = b"", 0, 2, 0
    while open_pipes:
        left = deadline - time.monotonic()
        if left <= 0:
            return complaints, count, True
        ready = poll.poll(min(left, _QUIET_SECONDS) * 1000)
        if not ready:
            unstick()
        for pipe, _ in ready:
            data = os.read(pipe, _READ_BYTES)
            if not data:
                poll.unregister(pipe)
                open_pipes -= 1
            elif pipe == output:
                scraps += len(data) < _SCRAP_BYTES
                take(data)
            else:
                count += data.count(b"(os error ")
                complaints += data[: _COMPLAINT_BYTES - len(complaints)]
        if scraps > _FEW_SCRAPS:
            time.sleep(_PAUSE_SECONDS)
            scraps -= 1
    return complaints, count, False


def _widen(pipe: int) -> None:
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
