"""Servers over stdio, measured with one client: start, latency, throughput, memory, and some common work."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import data, peers
from benchmarks.client import StdioClient
from benchmarks.harness import CACHE, ROOT, Run, bound, compare, in_turns, seconds, tell
from benchmarks.inside import peak_mb

GROUP = "Servers over stdio"
MINIMAL, BARE, FASTMCP = "minimal, same SDK", "bare loop", "minimal fastmcp"
NODE, COMMANDER = "server-filesystem (Node)", "Desktop Commander"


@dataclass(frozen=True)
class Server:
    """How to start a server and have it read the small file. Starting one that is not installed says why."""

    name: str
    command: list[str]
    tool: str
    arguments: dict[str, Any]
    env: dict[str, str] = field(default_factory=dict[str, str])
    missing: str = ""

    def start(self, place: Path) -> StdioClient:
        if self.missing:
            raise RuntimeError(self.missing)
        return StdioClient(self.command, place, self.env)


class Running:
    """One client for each server, started on first use; a server that fails to start is not tried again."""

    def __init__(self, place: Path) -> None:
        self._place, self._stack = place, ExitStack()
        self._clients: dict[str, StdioClient | RuntimeError] = {}

    def client(self, one: Server) -> StdioClient:
        if one.name not in self._clients:
            self._clients[one.name] = self._start(one)
        client = self._clients[one.name]
        if isinstance(client, RuntimeError):
            raise client
        return client

    def _start(self, one: Server) -> StdioClient | RuntimeError:
        try:
            return self._stack.enter_context(one.start(self._place))
        except Exception as fault:  # noqa: BLE001 - reported in each row of this server
            return RuntimeError(f"it did not start: {fault}")

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def measure(run: Run) -> None:
    place = _scratch()
    servers = _servers(place)
    with Running(place) as running:
        reading(run, place, servers, running)
        _same_work(run, place, servers, running)
    _trees(run, servers)


def reading(run: Run, place: Path, servers: list[Server], running: Running) -> None:
    """What every server can do. Each is in every comparison; one that fails loses only its own rows."""
    run.step(GROUP, "start to tools/list", lambda: _starts(run, place, servers))
    for what, work in (
        ("latency of reading 200 lines", _latency),
        ("reads in flight at once", _throughput),
        ("1,000 concurrent calls answered", _concurrent),
        ("resident memory", _memory),
    ):
        run.step(GROUP, what, partial(work, run, servers, running))


def _scratch() -> Path:
    place = CACHE / "scratch"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    lines = data.text(1_000_000).read_bytes().splitlines(keepends=True)
    (place / "small.txt").write_bytes(b"".join(lines[:200]))
    (place / "big.txt").write_bytes(b"".join(lines))
    return place


def _servers(place: Path) -> list[Server]:
    """Our server first, then the others; one that can't be measured still has a row that says why."""
    here = ROOT / "benchmarks"
    by_name: dict[str, Any] = {"file_path": "small.txt"}
    by_path: dict[str, Any] = {"path": str(place / "small.txt")}
    no_fastmcp = "" if importlib.util.find_spec("fastmcp") else "fastmcp is not installed"

    def python(name: str, *command: str, missing: str = "") -> Server:
        return Server(name, [sys.executable, *command, str(place)], "Read", by_name, missing=missing)

    def node(name: str, package: str, tool: str, *arguments: str, **env: str) -> Server:
        command, missing = peers.node_server(package)
        return Server(name, [*command, *arguments], tool, by_path, env, missing)

    return [
        python("gripfast", "-m", "gripfast", "serve", "--root"),
        python(MINIMAL, str(here / "minimal_server.py")),
        python(BARE, str(here / "bare_server.py")),
        python(FASTMCP, str(here / "fastmcp_server.py"), missing=no_fastmcp),
        node(NODE, peers.FILESYSTEM, "read_text_file", str(place)),
        node(COMMANDER, peers.COMMANDER, "read_file", HOME=_home_of_its_own(), PATH=_quick_python()),
    ]


def _quick_python() -> str:
    """Desktop Commander runs `python3 --version` at every call; this avoids a version manager's slow shim."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def _home_of_its_own() -> str:
    """Desktop Commander logs to the home directory and sends telemetry; both are off, as in ours. It may read
    everything, because by default it reads only its home directory."""
    home = CACHE / "home"
    config = home / ".claude-server-commander" / "config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"telemetryEnabled": False, "allowedDirectories": []}), encoding="utf-8")
    return str(home)


def _starts(run: Run, place: Path, servers: list[Server]) -> None:
    def start(one: Server) -> float:
        with one.start(place) as client:
            return client.ready_after

    turns = in_turns({one.name: partial(start, one) for one in servers}, 3 if run.quick else 11)
    tell(run, GROUP, "start to tools/list", turns, {MINIMAL: 1.15, NODE: 0.8, BARE: 4.0})


_MORE = "ours is judged by rules, searched for secrets and recorded, with line numbers; theirs is the bare text"


def _latency(run: Run, servers: list[Server], running: Running) -> None:
    """The median time of single calls, one at a time, in turns."""
    count = 12 if run.quick else 60

    def median(one: Server) -> float:
        call = partial(running.client(one).call, one.tool, one.arguments)
        return statistics.median(seconds(call) for _ in range(count if seconds(call) < 0.05 else 5))

    turns = in_turns({one.name: partial(median, one) for one in servers}, 2 * run.rounds)
    limits = {MINIMAL: 1.1, FASTMCP: 1.0, NODE: 1.0, COMMANDER: 1.0}
    notes = {COMMANDER: "it runs `python3 --version` at every call", NODE: _MORE}
    tell(run, GROUP, "latency of reading 200 lines", turns, limits, notes=notes)


def _throughput(run: Run, servers: list[Server], running: Running) -> None:
    """The time for each read with many in flight; fewer of them if one takes long."""
    count, slow = (100, 5) if run.quick else (500, 20)
    fewer: dict[str, str] = {}

    def many(one: Server) -> float:
        client = running.client(one)
        calls = count if seconds(lambda: client.call(one.tool, one.arguments)) < 0.05 else slow
        if calls == slow:
            fewer[one.name] = f"{slow} of theirs in flight: each takes long"
        start = time.perf_counter()
        if (answered := client.call_many(one.tool, one.arguments, calls)) != calls:
            raise RuntimeError(f"{answered} good answers to {calls} calls")
        return (time.perf_counter() - start) / calls

    turns = in_turns({one.name: partial(many, one) for one in servers}, run.rounds, warm=1)
    tell(run, GROUP, f"{count} reads in flight at once", turns, {NODE: 0.9}, notes={NODE: _MORE, **fewer})


def _concurrent(run: Run, servers: list[Server], running: Running) -> None:
    ours = servers[0]
    good = running.client(ours).call_many(ours.tool, ours.arguments, 1000)
    bound(run, GROUP, "1,000 concurrent calls answered", good, 1000, "answers", at_least=True)


def _memory(run: Run, servers: list[Server], running: Running) -> None:
    turns = in_turns({one.name: partial(_resident, running, one) for one in servers}, 1)
    tell(run, GROUP, "resident memory", turns, {}, note="after the calls above")


def _resident(running: Running, one: Server) -> float:
    return running.client(one).memory_mb()


def _same_work(run: Run, place: Path, servers: list[Server], running: Running) -> None:
    """Whole calls, from writing the request to reading the answer."""
    ours, node = (partial(running.client, one) for one in servers if one.name in ("gripfast", NODE))
    big = str(place / "big.txt")
    run.step(
        GROUP,
        "Read of 200 lines of a 1 MB file",
        lambda: compare(
            run,
            GROUP,
            "Read of 200 lines of a 1 MB file",
            {
                "gripfast": lambda: ours().call("Read", {"file_path": "big.txt", "limit": 200}),
                NODE: lambda: node().call("read_text_file", {"path": big, "head": 200}),
            },
            at_most={NODE: 1.0},
            rounds=3 * run.rounds,
            note="whole call over stdio; the file was read before",
        ),
    )
    firsts = _copies(place / "big.txt", run.rounds + 1)
    run.step(
        GROUP,
        "the first Read of such a file",
        lambda: compare(
            run,
            GROUP,
            "the first Read of such a file",
            {
                "gripfast": lambda: ours().call("Read", {"file_path": next(firsts), "limit": 200}),
                NODE: lambda: node().call("read_text_file", {"path": big, "head": 200}),
            },
            at_most={NODE: 1.0},
            note="its lines are counted, and it is hashed for the guard beside the answer; theirs does neither",
        ),
    )
    edits = Edits(place)
    run.step(
        GROUP,
        "Edit of one line in a 1 MB file",
        lambda: compare(
            run,
            GROUP,
            "Edit of one line in a 1 MB file",
            {"gripfast": lambda: edits.ours(ours()), NODE: lambda: edits.node(node())},
            at_most={NODE: 1.0},
            note="whole call over stdio; ours is atomic and synced",
        ),
    )


def _copies(file: Path, count: int) -> Iterator[str]:
    """The names of `count` files with the same content, each to be used once."""
    names = [f"first-{number}.txt" for number in range(count)]
    for name in names:
        shutil.copyfile(file, file.with_name(name))
    return iter(names)


class Edits:
    """Edits the same line of two copies of the big file, with new text each time."""

    def __init__(self, place: Path) -> None:
        self._place = place
        lines = (place / "big.txt").read_text(encoding="utf-8").splitlines(keepends=True)
        lines[8000] = "edit 0 of this line\n"
        for name in ("ours.txt", "theirs.txt"):
            (place / name).write_text("".join(lines), encoding="utf-8")
        self._made = {"ours": 0, "theirs": 0}

    def _next(self, side: str) -> tuple[str, str]:
        self._made[side] += 1
        return f"edit {self._made[side] - 1} of this line", f"edit {self._made[side]} of this line"

    def ours(self, client: StdioClient) -> None:
        if not self._made["ours"]:
            client.call("Read", {"file_path": "ours.txt", "limit": 1})
        old, new = self._next("ours")
        client.call("Edit", {"file_path": "ours.txt", "old_string": old, "new_string": new})

    def node(self, client: StdioClient) -> None:
        old, new = self._next("theirs")
        path = str(self._place / "theirs.txt")
        client.call("edit_file", {"path": path, "edits": [{"oldText": old, "newText": new}]})


def _trees(run: Run, servers: list[Server]) -> None:
    entries, files = (20_000, 8_000) if run.quick else (100_000, 80_000)
    node = next(one for one in servers if one.name == NODE)
    for name, root in (
        (f"tree of {entries:,} entries in one directory", data.flat(entries)),
        (f"tree of {files:,} files, max_entries=1000", data.tree(files)),
    ):
        run.step(GROUP, name, partial(_tree, run, name, root, node))
    walk: dict[str, Any] = {"path": ".", "entry_kind": "all", "max_entries": 1000}
    few, many = (peak_mb(data.flat(count), [("tree", walk)]) for count in (200, entries))
    bound(run, GROUP, f"memory of tree on {entries:,} entries in one directory, over 200", many - few, 32, "MB")


def _tree(run: Run, name: str, root: Path, node: Server) -> None:
    walk: dict[str, Any] = {"path": ".", "entry_kind": "all", "max_entries": 1000, "max_depth": 12}
    us = Server("gripfast", [sys.executable, "-m", "gripfast", "serve", "--root", str(root)], "tree", walk)
    them = Server(NODE, [*node.command[:-1], str(root)], "directory_tree", {"path": str(root)}, missing=node.missing)
    with Running(root) as running:
        compare(
            run,
            GROUP,
            name,
            {one.name: lambda one=one: running.client(one).call(one.tool, one.arguments) for one in (us, them)},
            at_most={NODE: 1.0},
            rounds=3 if run.quick else 5,
            note="against directory_tree; ours stops at 1,000 entries, theirs has no such limit",
        )
