"""Three servers behind nginx with one Redis: sessions go on while a server is killed and others restart."""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path

from cache_stores import RedisServer
from fleet_servers import Answer, Person, Proxy, Server, free_port, servers
from torture.trial import Outcome, Torment

_AT_ONCE = 24
_PATIENCE = 60.0  # seconds that a client tries again for
_TOOLS = "Read,Edit,Write,write_todos"


def run(torment: Torment) -> None:
    name = "sessions on three servers behind nginx, with a kill -9 and restarts"
    missing = [program for program in ("redis-server", "nginx") if shutil.which(program) is None]
    if missing:
        torment.tell(Outcome(name, "no answer is wrong", why=f"{missing[0]} is not installed"))
        return
    calls, sessions = torment.times(10_000, 600), torment.times(200, 30)
    found = attempt(torment.room("fleet"), calls, sessions, torment.dice("fleet"))
    told = f"{found.counts['in flight']} in flight on a server that ended, {found.counts['not kept']} told not kept"
    torment.tell(
        Outcome(name, "no answer is wrong", found.counts["calls"], len(found.wrong), "; ".join(found.wrong[:2]))
    )
    told = "; ".join([told, *found.lost[:2]])
    torment.tell(Outcome(name, "no call is lost but those in flight", found.counts["calls"], len(found.lost), told))


@dataclass
class Found:
    counts: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> int:
        with self.lock:
            self.counts[what] += 1
            return self.counts[what]


def attempt(scratch: Path, calls: int, sessions: int, dice: random.Random) -> Found:
    """Runs so many calls of so many sessions, and breaks things at their time."""
    root = scratch / "project"
    root.mkdir()
    found = Found()
    with _fleet(scratch, root) as (port, redis, three):
        clients = [_Client(root, number, port, dice.random() < 0.5, found) for number in range(sessions)]
        breaking = threading.Thread(target=_break, args=(redis, three, found, calls))
        breaking.start()
        with ThreadPoolExecutor(min(_AT_ONCE, sessions)) as pool:
            for result in [pool.submit(one.work, calls // sessions) for one in clients]:
                result.result()
        breaking.join()
    return found


@contextmanager
def _fleet(scratch: Path, root: Path) -> Generator[tuple[int, RedisServer, list[Server]]]:
    place = Path(f"/tmp/gripfast-fleet-{os.getpid()}")  # the path of a socket is short
    place.mkdir(mode=0o700)
    redis = RedisServer(shutil.which("redis-server") or "", place, keeps=True)
    port = free_port()
    options = ["--tools", _TOOLS, "--allow-host", f"127.0.0.1:{port}"]
    try:
        with (
            servers(root, scratch, redis.url, 3, *options) as three,
            Proxy(scratch, port, [one.port for one in three]),
        ):
            yield port, redis, three
    finally:
        redis.kill()
        shutil.rmtree(place)


def _break(redis: RedisServer, three: Sequence[Server], found: Found, calls: int) -> None:
    """Breaks things when so many calls were made."""
    for share, broken in (
        (0.25, three[0].kill),
        (0.4, three[0].start),
        (0.55, partial(_restart_redis, redis)),
        (0.75, three[1].end),
        (0.8, three[1].start),
    ):
        until = time.monotonic() + 600
        while found.counts["calls"] < share * calls and time.monotonic() < until:
            time.sleep(0.02)
        broken()


def _restart_redis(redis: RedisServer) -> None:
    redis.kill()
    time.sleep(1.0)
    redis.start()


class _Client:
    """One session: it counts in a file and in its todos, and knows what both must be."""

    def __init__(self, root: Path, number: int, port: int, is_older: bool, found: Found) -> None:
        self._file = root / f"{number}.txt"
        self._file.write_text("count 0\n", encoding="utf-8")
        self._person = Person(generation="older" if is_older else "newer", name=f"client {number}")
        self._port = port
        self._found = found
        self._count = self._todo = 0
        self._doubt_file, self._doubt_todo = True, True

    def work(self, calls: int) -> None:
        while self._tried(partial(self._person.hello, self._port), "begin") is None:
            self._person.session = ""  # it was in flight
        for number in range(calls):
            if number % 3 == 0:
                self._set_todo()
            elif number % 3 == 1:
                self._edit()
            else:
                self._look_at_todo()

    def _edit(self) -> None:
        """Edits what was read or written before, on whichever server that was."""
        if self._doubt_file:
            answer = self._call("Read", file_path=self._file.name)
            self._count = int(self._file.read_text(encoding="utf-8").split()[1])
            self._doubt_file = answer is None or _is_doubtful(answer)
            return
        old, new = f"count {self._count}\n", f"count {self._count + 1}\n"
        answer = self._call("Edit", file_path=self._file.name, old_string=old, new_string=new)
        if answer is None:
            self._doubt_file = True
            return
        if _is_doubtful(answer):
            self._doubt_file = True
            return
        if answer.is_error or self._file.read_text(encoding="utf-8") != new:
            self._found.wrong.append(f"Edit: {answer.text[:200]}")
            self._doubt_file = True
            return
        self._count += 1

    def _set_todo(self) -> None:
        self._todo += 1
        todos = [{"id": "it", "content": f"step {self._todo}.", "status": "pending"}]
        answer = self._call("write_todos", mode="replace", todos=todos)
        self._doubt_todo = answer is None or _is_doubtful(answer)
        if answer is not None and not self._doubt_todo and f"step {self._todo}." not in answer.text:
            self._found.wrong.append(f"write_todos: {answer.text[:200]}")

    def _look_at_todo(self) -> None:
        if self._doubt_todo:
            self._set_todo()
            return
        answer = self._call("write_todos", mode="merge", todos=[{"id": "it", "priority": 1}])
        self._doubt_todo = answer is None or _is_doubtful(answer)
        if answer is not None and not self._doubt_todo and f"step {self._todo}." not in answer.text:
            self._found.wrong.append(f"todos: step {self._todo} is not in {answer.text[:200]}")

    def _call(self, tool: str, **arguments: object) -> Answer | None:
        """One call; None if it was in flight on a server that ended."""
        answer = self._tried(lambda: self._person.call(self._port, tool, **arguments), tool)
        self._found.count("calls")
        if answer is not None and _is_doubtful(answer):
            self._found.count("not kept")
        return answer

    def _tried(self, send: Callable[[], Answer], what: str) -> Answer | None:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                answer = send()
            except (OSError, HTTPException, ValueError):
                self._found.count("in flight")
                return None
            if answer.status == 200 and (not _says_try_again(answer) or time.monotonic() > until):
                return answer
            if answer.status in (502, 504) or (answer.status == 503 and not answer.text):
                self._found.count("in flight")
                return None
            if answer.status not in (200, 503) or time.monotonic() > until:
                self._found.lost.append(f"{what}: {answer.status} {answer.text[:200]}")
                return None
            time.sleep(0.2)


def _says_try_again(answer: Answer) -> bool:
    """Whether nothing was run because the store could not be asked; a client sends such a call again."""
    return "can't know what this session did on others; nothing was run; try again" in answer.text


def _is_doubtful(answer: Answer) -> bool:
    """Whether the answer says that it was given without the store."""
    return "neither use nor update what the servers share" in answer.text
