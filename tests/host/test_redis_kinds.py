"""Sentinels and a cluster: the stores work over both, and go on after a failover."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleet_servers import free_port
from gripfast.edges.cli.main import main
from gripfast.errors import Internal, InvalidArgument, ToolError
from gripfast.host.questions.question import Asking
from gripfast.host.questions.redis_questions import RedisQuestions
from gripfast.host.stores.redis_link import check_address
from gripfast.host.stores.redis_sessions import RedisSessions
from gripfast.host.stores.redis_store import RedisStore
from gripfast.host.stores.sessions import Leased, stored_name

HANG = 60.0
PASSWORD = "a-password"
ASKING = Asking("s1", "/work", "Bash", "why", "command: ls", call="c1")
needs_redis = pytest.mark.skipif(
    shutil.which("redis-server") is None or shutil.which("redis-cli") is None, reason="redis-server is not installed"
)


class Node:
    """A redis-server on a port of its own."""

    def __init__(self, place: Path, *options: str, file: str | None = None) -> None:
        self.port = free_port()
        (place / f"{self.port}").mkdir()
        path = place / f"{self.port}.conf"
        path.write_text(file or "", encoding="utf-8")
        words = ["redis-server", str(path), "--port", f"{self.port}", "--dir", str(place / f"{self.port}"), *options]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        until(lambda: self.command("ping") == "PONG")

    def command(self, *words: str) -> str:
        line = ["redis-cli", "-p", f"{self.port}", "--no-auth-warning", "-a", PASSWORD, *words]
        return subprocess.run(line, capture_output=True, text=True).stdout.strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def until(said: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG
    while not said():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def nodes() -> Generator[tuple[Path, list[Node]]]:
    made: list[Node] = []
    with tempfile.TemporaryDirectory(prefix="hf-redis-") as place:
        try:
            yield Path(place), made
        finally:
            for node in made:
                node.kill()


ALONE = ("--save", "", "--requirepass", PASSWORD, "--masterauth", PASSWORD, "--bind", "127.0.0.1")


def use_everything(url: str) -> None:
    """Sessions, outputs and questions, each by every kind of access they have."""
    sessions, outputs, questions = RedisSessions(url), RedisStore(url), RedisQuestions(url, "one 12")
    try:
        sessions.ping()
        assert sessions.epoch() == sessions.epoch()
        sessions.begin("s", "ann", b"hello", most=1)
        sessions.begin("t", "ann", b"hello", most=1)
        assert sessions.find("s") is None
        found = sessions.lease("t", "ann", "one 12", "Read")
        assert isinstance(found, Leased)
        sessions.send("t", b"message")
        assert sessions.renew(found.lease) == [b"message"]
        assert sessions.save(found.lease, {"a": b"1"}, [b"line"], root="/r", release=True)
        assert [one.session for one in sessions.recorded()] == [stored_name("t")]
        assert sessions.lines(stored_name("t")) == [b"line"]
        sessions.put("once", b"x", 60)
        assert (sessions.take("once") or (b"", 0))[0] == b"x"
        sessions.announce("one 12")
        assert sessions.is_up("one 12")
        writer = outputs.writer("t")
        writer.write(b"line\n" * 100_000)
        ref = writer.commit(b"card")
        assert outputs.read(outputs.find("t", ref), 0, 5) == b"line\n"
        outputs.collect()
        asked = questions.ask(ASKING)
        assert questions.waiting() == questions.pending("s1", "c1") == [asked]
        questions.answer(asked.id, "yes", by="terminal")
        assert questions.take(asked.id)
    finally:
        sessions.close()
        outputs.close()
        questions.close()


@needs_redis
def test_sentinels_name_the_master_also_after_a_failover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gripfast.host.stores.redis_link._PAUSE", 0.0)
    with nodes() as (place, made):
        made.append(master := Node(place, *ALONE))
        made.append(replica := Node(place, *ALONE, "--replicaof", f"127.0.0.1 {master.port}"))
        watch = (
            f"sentinel monitor main 127.0.0.1 {master.port} 1\nsentinel auth-pass main {PASSWORD}\n"
            "sentinel down-after-milliseconds main 300\nsentinel failover-timeout main 3000\n"
        )
        made.append(sentinel := Node(place, "--sentinel", "--bind", "127.0.0.1", file=watch))
        url = f"redis+sentinel://:{PASSWORD}@127.0.0.1:1,127.0.0.1:{sentinel.port}/main/0"
        until(lambda: "slave0" in master.command("info", "replication"))
        until(lambda: f"{replica.port}" in sentinel.command("sentinel", "replicas", "main"))
        use_everything(url)
        store = RedisSessions(url)
        found = store.lease("kept", "ann", "one 12", "Read", new=True)
        assert isinstance(found, Leased)
        assert store.save(found.lease, {"a": b"1"})
        master.command("wait", "1", "5000")
        master.kill()

        def is_served() -> bool:
            try:
                return store.save(found.lease, {"b": b"2"}, release=True)
            except Internal as fault:
                assert "Redis" in fault.message
                return False

        until(is_served)
        again = store.lease("kept", "ann", "two 34", "Read")
        assert isinstance(again, Leased) and again.fields == {"a": b"1", "b": b"2"}
        store.close()


@needs_redis
def test_a_cluster_has_everything_in_one_slot() -> None:
    with nodes() as (place, made):
        for _ in range(3):
            more = ("--cluster-enabled", "yes", "--cluster-port", f"{free_port()}")
            made.append(Node(place, *ALONE, *more))
        at = [f"127.0.0.1:{node.port}" for node in made]
        line = ["redis-cli", "--no-auth-warning", "-a", PASSWORD, "--cluster", "create", *at, "--cluster-yes"]
        ready = subprocess.run(line, capture_output=True, text=True, timeout=HANG)
        assert ready.returncode == 0, ready
        until(lambda: all("cluster_state:ok" in node.command("cluster", "info") for node in made))
        use_everything(f"redis+cluster://:{PASSWORD}@{at[0]}")
        assert sum(node.command("dbsize") != "0" for node in made) == 1


GOOD = ["redis://h", "rediss://u:p@h:1/0", "unix:///x", "redis+cluster://h:1", "rediss+sentinel://:p@a:1,b/main/2"]
BAD = [
    "http://u:secret@host:1",
    "secret",
    "",
    "redis:secret",
    "redis+other://:secret@host:1/0",
    "unix+cluster:///secret",
    "redis+sentinel://:secret@host:1",
    "redis+sentinel://:secret@/main/0",
    "redis+sentinel://:secret@host:x/main/0",
    "redis+sentinel://:secret@host:1/main/x",
]


@pytest.mark.parametrize("url", BAD)
def test_an_address_of_another_kind_is_refused_in_words_that_do_not_repeat_it(url: str) -> None:
    with pytest.raises(InvalidArgument, match="address of the store") as refused:
        check_address(url)
    assert "secret" not in refused.value.message
    store = RedisSessions(url)
    with pytest.raises(ToolError, match=r"not a Redis URL|does not currently support Unix"):
        store.ping()
    store.close()


@pytest.mark.parametrize("url", GOOD)
def test_the_addresses_of_the_guide_are_accepted(url: str) -> None:
    check_address(url)


def test_a_server_does_not_start_with_an_address_that_is_none(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main, ["serve", "--root", str(tmp_path), "--http", "127.0.0.1:0", "--store", "mongodb://:secret@host/0"]
    )
    assert done.exit_code == 2
    assert "address of the store" in done.output and "secret" not in done.output


@needs_redis
def test_the_access_that_the_guide_names_is_enough() -> None:
    guides = Path(__file__).parents[2] / "docs" / "guides"
    text = (guides / "several-servers.md").read_text(encoding="utf-8")
    rights = text.split("For an ACL:")[1].split("`")[1].split()
    assert "~gripfast:1:*" in rights
    with nodes() as (place, made):
        made.append(node := Node(place, *ALONE))
        assert node.command("acl", "setuser", "fleet", "on", f">{PASSWORD}", *rights) == "OK"
        use_everything(f"redis://fleet:{PASSWORD}@127.0.0.1:{node.port}/0")
