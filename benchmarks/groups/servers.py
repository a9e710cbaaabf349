"""Servers over stdio, one client for all: start, latency, throughput, memory, and the same work done by each."""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import data, peers
from benchmarks.client import StdioClient
from benchmarks.harness import CACHE, ROOT, Row, Run, bound, compare, tell
from benchmarks.inside import peak_mb

GROUP = "Servers over stdio"
NODE = "@modelcontextprotocol/server-filesystem"
COMMANDER = "@wonderwhy-er/desktop-commander"


@dataclass(frozen=True)
class Server:
    name: str
    command: list[str]
    tool: str
    arguments: Callable[[Path], dict[str, Any]]
    env: dict[str, str] = field(default_factory=dict[str, str])

    def start(self, place: Path) -> StdioClient:
        return StdioClient(self.command, place, self.env)


def measure(run: Run) -> None:
    place = _scratch()
    servers = _servers(run, place)
    _starts(run, place, servers)
    with ExitStack() as stack:
        clients = {one.name: stack.enter_context(one.start(place)) for one in servers}
        _latency(run, place, servers, clients)
        _throughput(run, place, servers, clients)
        _memory(run, clients)
        _same_work(run, place, clients)


def _scratch() -> Path:
    place = CACHE / "scratch"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    lines = data.text(1_000_000).read_bytes().splitlines(keepends=True)
    (place / "small.txt").write_bytes(b"".join(lines[:200]))
    (place / "big.txt").write_bytes(b"".join(lines))
    return place


def _servers(run: Run, place: Path) -> list[Server]:
    python, here = sys.executable, ROOT / "benchmarks"

    def by_file_path(_: Path) -> dict[str, Any]:
        return {"file_path": "small.txt"}

    def by_path(root: Path) -> dict[str, Any]:
        return {"path": str(root / "small.txt")}

    found = [
        Server("holdfast", [python, "-m", "holdfast", "serve", "--root", str(place)], "Read", by_file_path),
        Server("minimal, same SDK", [python, str(here / "minimal_server.py"), str(place)], "Read", by_file_path),
        Server("bare loop", [python, str(here / "bare_server.py"), str(place)], "Read", by_file_path),
    ]
    if importlib.util.find_spec("fastmcp"):
        command = [python, str(here / "fastmcp_server.py"), str(place)]
        found.append(Server("minimal fastmcp", command, "Read", by_file_path))
    else:
        run.not_run(GROUP, "against minimal fastmcp", "–", "fastmcp is not installed")
    for package, name, tool in (
        (NODE, "server-filesystem (Node)", "read_text_file"),
        (COMMANDER, "Desktop Commander", "read_file"),
    ):
        command = peers.node_server(package)
        if command is None:
            run.not_run(GROUP, f"against {name}", "–", "not installed (npm or the registry)")
        else:
            arguments = [str(place)] if package == NODE else []
            found.append(Server(name, [*command, *arguments], tool, by_path, _home_of_its_own()))
    return found


def _home_of_its_own() -> dict[str, str]:
    """Desktop Commander keeps a log in the home directory and reports what is called: off, as ours is."""
    config = CACHE / "home" / ".claude-server-commander" / "config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('{"telemetryEnabled": false}', encoding="utf-8")
    return {"HOME": str(CACHE / "home")}


def _starts(run: Run, place: Path, servers: list[Server]) -> None:
    times: dict[str, list[float]] = {one.name: [] for one in servers}
    for _ in range(3 if run.quick else 7):
        for one in servers:
            with one.start(place) as client:
                times[one.name].append(client.ready_after)
    limits = {"minimal, same SDK": 1.15}
    why = "most of our start is importing the MCP SDK: a transport of our own without it would be needed"
    tell(run, GROUP, "start to tools/list", times, limits, notes={"server-filesystem (Node)": why})


def _latency(run: Run, place: Path, servers: list[Server], clients: dict[str, StdioClient]) -> None:
    """The median of single calls, one in flight, in turns."""
    count = 60 if run.quick else 300
    rounds: dict[str, list[float]] = {one.name: [] for one in servers}
    for _ in range(run.rounds):
        for one in servers:
            client, arguments = clients[one.name], one.arguments(place)
            first = _timed(client, one.tool, arguments)
            calls = count // 5 if first < 0.05 else 5
            rounds[one.name].append(statistics.median(_timed(client, one.tool, arguments) for _ in range(calls)))
    limits = {
        "minimal, same SDK": 1.1,
        "minimal fastmcp": 1.0,
        "server-filesystem (Node)": 1.0,
        "Desktop Commander": 1.0,
    }
    tell(run, GROUP, "latency of reading 200 lines", rounds, limits)


def _timed(client: StdioClient, tool: str, arguments: dict[str, Any]) -> float:
    start = time.perf_counter()
    client.call(tool, arguments)
    return time.perf_counter() - start


def _throughput(run: Run, place: Path, servers: list[Server], clients: dict[str, StdioClient]) -> None:
    count = 100 if run.quick else 500
    sides = {
        one.name: partial(clients[one.name].call_many, one.tool, one.arguments(place), count)
        for one in servers
        if one.name != "Desktop Commander"
    }
    compare(run, GROUP, f"{count} reads in flight at once", sides)
    one = servers[0]
    good = clients[one.name].call_many(one.tool, one.arguments(place), 1000)
    bound(run, GROUP, "1,000 concurrent calls answered", good, 1000, "answers", at_least=True)


def _memory(run: Run, clients: dict[str, StdioClient]) -> None:
    ours = clients["holdfast"].memory_mb()
    for name in list(clients)[1:]:
        theirs = clients[name].memory_mb()
        run.add(Row(GROUP, f"resident memory, against {name}", "–", f"{ours / theirs:.2f}×", value=ours / theirs))


def _same_work(run: Run, place: Path, clients: dict[str, StdioClient]) -> None:
    ours, node = clients["holdfast"], clients.get("server-filesystem (Node)")
    if node is None:
        run.not_run(GROUP, "Read, Edit and tree, against server-filesystem (Node)", "≤ 1×", "not installed")
        return
    big = str(place / "big.txt")
    compare(
        run,
        GROUP,
        "200 lines of a 1 MB file",
        {
            "holdfast": lambda: ours.call("Read", {"file_path": "big.txt", "limit": 200}),
            "server-filesystem (Node)": lambda: node.call("read_text_file", {"path": big, "head": 200}),
        },
        at_most={"server-filesystem (Node)": 1.0},
    )
    compare(
        run,
        GROUP,
        "edit one line of a 1 MB file",
        {"holdfast": _our_edit(ours), "server-filesystem (Node)": _node_edit(node, str(place / "big2.txt"), place)},
        at_most={"server-filesystem (Node)": 1.0},
        note="ours is atomic and synced",
    )
    _trees(run)


def _our_edit(client: StdioClient) -> Callable[[], Any]:
    client.call("Read", {"file_path": "big.txt", "limit": 1})
    state = {"n": 0}
    first = client.call("Read", {"file_path": "big.txt", "offset": 8000, "limit": 1})["content"][0]["text"]
    state["line"] = first.split("\n")[0].split("\t", 1)[1]

    def edit() -> None:
        state["n"] += 1
        new = f"edited line number {state['n']}"
        client.call("Edit", {"file_path": "big.txt", "old_string": state["line"], "new_string": new})
        state["line"] = new

    return edit


def _node_edit(client: StdioClient, path: str, place: Path) -> Callable[[], Any]:
    shutil.copyfile(place / "big.txt", path)
    state: dict[str, Any] = {"n": 0, "line": (place / "big2.txt").read_text(encoding="utf-8").splitlines()[8000]}

    def edit() -> None:
        state["n"] += 1
        new = f"edited line number {state['n']}"
        client.call("edit_file", {"path": path, "edits": [{"oldText": state["line"], "newText": new}]})
        state["line"] = new

    return edit


def _trees(run: Run) -> None:
    entries, files = (20_000, 8_000) if run.quick else (100_000, 80_000)
    trees = {
        f"tree of {entries:,} entries in one directory": data.flat(entries),
        f"tree of {files:,} files": data.tree(files),
    }
    node = peers.node_server(NODE)
    assert node is not None
    for name, root in trees.items():
        ours = [sys.executable, "-m", "holdfast", "serve", "--root", str(root)]
        with StdioClient(ours, root) as us, StdioClient([*node, str(root)], root) as them:
            arguments = {"path": ".", "entry_kind": "all", "max_entries": 1000, "max_depth": 12}
            compare(
                run,
                GROUP,
                name,
                {
                    "holdfast": lambda us=us, arguments=arguments: us.call("tree", arguments),
                    "directory_tree (Node)": lambda them=them, root=root: them.call(
                        "directory_tree", {"path": str(root)}
                    ),
                },
                at_most={"directory_tree (Node)": 1.0},
                rounds=3 if run.quick else 5,
                note="ours stops at 1,000 entries; theirs has no such limit",
            )
    walk: dict[str, Any] = {"path": ".", "entry_kind": "all", "max_entries": 1000}
    few, many = (peak_mb(data.flat(count), [("tree", walk)]) for count in (200, entries))
    bound(run, GROUP, f"memory of tree on {entries:,} entries in one directory, over 200", many - few, 32, "MB")
