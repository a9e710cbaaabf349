"""Two servers, one store: a session goes on at either of them, in both generations of the protocol."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from cache_stores import RedisServer, running_redis
from fleet_servers import HANG, TOKENS, Answer, Person, Server, servers
from gripfast.call.cache.sink import FAILURES
from gripfast.edges.mcp.sharing import Sharing
from gripfast.host.stores.redis_sessions import RedisSessions
from gripfast.host.stores.redis_store import RedisStore

LINES = "".join(f"line {number}\n" for number in range(30_000))


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    yield from running_redis(keeps=True, password="of the store")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fleet") / "project"
    made.mkdir()
    (made / "sub").mkdir()
    return made


RULES = """
[permissions]
default_action = "allow"

[[permissions.rule]]
tool = "Bash"
pattern = "./deploy *"
action = "ask"
"""


@pytest.fixture(scope="module", params=["embedded", "redis"])
def two(request: pytest.FixtureRequest, root: Path) -> Iterator[list[Server]]:
    store = request.getfixturevalue("redis").url if request.param == "redis" else None
    rules = root.parent / "rules.toml"
    rules.write_text(RULES, encoding="utf-8")
    with servers(root, root.parent, store, 2, "--config", str(rules)) as made:
        yield made


@pytest.fixture(params=["older", "newer"])
def person(request: pytest.FixtureRequest, two: list[Server]) -> Person:
    return Person(generation=request.param, name=f"window {time.monotonic_ns()}").begin(two[0].port)


def file_in(root: Path, text: str = "one\n") -> Path:
    path = root / f"{time.monotonic_ns()}.txt"
    path.write_text(text, encoding="utf-8")
    return path


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until(said: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG
    while not said():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_was_read_on_one_server_may_be_edited_on_the_other(
    two: list[Server], root: Path, person: Person
) -> None:
    path = file_in(root)
    assert "one" in person.call(two[0].port, "Read", file_path=path.name).text
    edited = person.call(two[1].port, "Edit", file_path=path.name, old_string="one", new_string="two")
    assert not edited.is_error, edited
    again = person.call(two[0].port, "Edit", file_path=path.name, old_string="two", new_string="three")
    assert not again.is_error, again
    assert path.read_text(encoding="utf-8") == "three\n"


def test_a_change_by_others_is_still_noticed_on_the_other_server(
    two: list[Server], root: Path, person: Person
) -> None:
    path = file_in(root)
    person.call(two[0].port, "Read", file_path=path.name)
    path.write_text("changed\n", encoding="utf-8")
    refused = person.call(two[1].port, "Write", file_path=path.name, content="lost")
    assert "CONFLICT" in refused.text
    unread = person.call(two[1].port, "Write", file_path=file_in(root).name, content="lost")
    assert "NOT_READ" in unread.text


def test_todos_the_working_directory_and_outputs_go_along(two: list[Server], root: Path, person: Person) -> None:
    one, other = (server.port for server in two)
    person.call(one, "write_todos", todos=[{"id": "first", "content": "Do it", "status": "in_progress"}])
    person.call(one, "Bash", command="cd sub")
    path = file_in(root, LINES)
    cut = person.call(one, "Bash", command=f"cat ../{path.name}").text
    assert "Do it" in person.call(other, "write_todos", mode="merge", todos=[{"id": "first", "priority": 1}]).text
    assert person.call(other, "Bash", command="pwd").text.splitlines()[0] == str(root / "sub")
    ref = cut.split('ref_id="')[1].split('"')[0]
    found = person.call(other, "tool_output_cache_grep", ref_id=ref, pattern="line 15000")
    assert "line 15000" in found.text


def test_a_shell_in_the_background_is_told_of_on_the_other_server(two: list[Server], person: Person) -> None:
    one, other = (server.port for server in two)
    assert "bash_1" in person.call(one, "Bash", command="sleep 600", run_in_background=True).text
    away = person.call(other, "BashOutput", bash_id="bash_1")
    assert away.is_error
    assert f":{one}" in away.text
    assert "shells can't move" in away.text
    assert "bash_2" in person.call(other, "Bash", command="sleep 600", run_in_background=True).text
    assert "running" in person.call(one, "BashOutput", bash_id="bash_1").text
    for port, name in ((one, "bash_1"), (other, "bash_2")):
        assert not person.call(port, "KillBash", bash_id=name).is_error


def test_another_persons_token_has_no_part_in_a_session(two: list[Server], root: Path, person: Person) -> None:
    path = file_in(root)
    person.call(two[0].port, "Read", file_path=path.name)
    bob = Person(TOKENS["bob"], person.generation, person.name, person.session)
    for server in two:
        answer = bob.call(server.port, "Write", file_path=path.name, content="bob")
        if person.generation == "older":
            assert answer.status == 404
        else:
            assert "NOT_READ" in answer.text
    assert path.read_text(encoding="utf-8") == "one\n"


def test_a_session_that_was_ended_on_one_server_is_gone_on_both(two: list[Server]) -> None:
    person = Person().begin(two[0].port)
    assert person.call(two[1].port, "Glob", pattern="*").status == 200
    assert person.delete(two[0].port) == 200
    until(lambda: person.call(two[1].port, "Glob", pattern="*").status == 404)
    assert person.call(two[0].port, "Glob", pattern="*").status == 404


def test_calls_of_one_session_on_two_servers_take_turns(two: list[Server], root: Path, person: Person) -> None:
    """The second call is sent while the first one runs, and sees what it left."""
    flag = root / f"{time.monotonic_ns()}.flag"
    with ThreadPoolExecutor(2) as pool:
        line = f"touch {flag}; while test -e {flag}; do sleep 0.05; done; cd sub"
        first = pool.submit(person.call, two[0].port, "Bash", command=line)
        until(flag.exists)
        beside = Person(person.token, person.generation, person.name, person.session, _number=1000)
        second = pool.submit(beside.call, two[1].port, "Bash", command="pwd")
        time.sleep(0.3)
        assert not second.done()
        flag.unlink()
        assert not first.result(HANG).is_error
        assert second.result(HANG).text.splitlines()[0].endswith("/sub")


def test_a_session_nobody_named_lasts_as_long_as_its_connection_and_behind_a_proxy_as_the_call(
    two: list[Server], root: Path
) -> None:
    path = file_in(root)
    window = Person(generation="newer")
    first = window.call(two[0].port, "Read", file_path=path.name)
    assert "Gripfast-Session" in first.text
    assert "NOT_READ" in window.call(two[0].port, "Write", file_path=path.name, content="x").text
    behind = Person(generation="newer", headers={"X-Forwarded-For": "192.0.2.1"})
    answers = [behind.call(two[1].port, "Read", file_path=path.name).text for _ in range(2)]
    assert ["as long as this call" in text for text in answers] == [True, False]
    named = Person(generation="newer", headers={"Gripfast-Session": f"own {time.monotonic_ns()}"})
    assert "Gripfast-Session" not in named.call(two[0].port, "Read", file_path=path.name).text
    assert not named.call(two[1].port, "Write", file_path=path.name, content="x").is_error


def ask_at(
    server: Server, person: Person, pool: ThreadPoolExecutor, other: Server, line: str
) -> tuple[Future[Answer], dict[str, Any]]:
    """A call at one server, and its question as the other one lists it."""
    running = pool.submit(person.call, server.port, "Bash", command=line)
    queue = other.questions()

    def is_asked() -> bool:
        assert not running.done(), running.result()
        return any(line in question.shown for question in queue.waiting())

    until(is_asked)
    queue.close()
    listed = other.command("approvals", "--json")
    assert listed.exit_code == 0, listed
    (found,) = [question for question in json.loads(listed.stdout) if line in question["shown"]]
    return running, found


@pytest.fixture
def deploy(root: Path) -> Path:
    """A program that the rules ask about. It writes a line into the file when it runs."""
    ran = root / f"{time.monotonic_ns()}.ran"
    (root / "deploy").write_text('#!/bin/sh\necho "ran $1" | tee -a "$1"\n', encoding="utf-8")
    (root / "deploy").chmod(0o755)
    return ran


def test_a_question_of_one_server_is_answered_at_the_other_and_the_call_runs_once(
    two: list[Server], deploy: Path
) -> None:
    one, other = two
    person = Person(generation="newer", name=f"window {time.monotonic_ns()}")
    with ThreadPoolExecutor(1) as pool:
        running, question = ask_at(one, person, pool, other, f"./deploy {deploy.name}")
        assert (question["who"], question["client"]) == ("ann", "fleet")
        assert "asked by ann with fleet\n" in other.command("approvals").stdout
        assert other.command("approve", question["id"]).exit_code == 0
        assert f"ran {deploy.name}" in running.result(HANG).text
        assert other.command("deny", question["id"]).exit_code == 3
        running, question = ask_at(one, person, pool, other, f"./deploy {deploy.name} again")
        assert other.command("deny", question["id"], "--because", "not today").exit_code == 0
        assert "not today" in running.result(HANG).text
    assert deploy.read_text(encoding="utf-8") == f"ran {deploy.name}\n"


def test_the_same_call_at_another_server_attaches_to_the_question_that_waits(two: list[Server], deploy: Path) -> None:
    """It was asked at one server, is answered on the other's page, and runs there, once."""
    one, other = two
    line = f"./deploy {deploy.name}"
    person = Person().begin(one.port)
    with ThreadPoolExecutor(2) as pool:
        lost, question = ask_at(one, person, pool, other, line)
        cancel = {"requestId": person.number, "reason": "the client gave up"}
        assert person.send(one.port, "notifications/cancelled", cancel).status == 202
        assert "cancelled" in str(lost.exception(HANG) or lost.result()).lower()
        again = pool.submit(person.call, other.port, "Bash", command=line)
        page = console_of(other)
        assert {found["asker"] for found in page("questions") if line in found["shown"]} == {"ann with fleet"}
        assert [found["id"] for found in page("questions") if line in found["shown"]] == [question["id"]]
        page("answer", {"id": question["id"], "verdict": "yes"})
        assert f"ran {deploy.name}" in again.result(HANG).text
    assert deploy.read_text(encoding="utf-8") == f"ran {deploy.name}\n"


_pages: dict[int, Callable[..., Any]] = {}


def console_of(server: Server) -> Callable[..., Any]:
    """The console of a server; its link works once."""
    if server.port not in _pages:
        _pages[server.port] = server.console()
    return _pages[server.port]


def test_the_calls_of_a_session_that_moved_are_in_the_log_and_on_the_page_of_both_servers(
    two: list[Server], root: Path, request: pytest.FixtureRequest
) -> None:
    path, person = file_in(root), Person().begin(two[0].port)
    person.call(two[0].port, "Read", file_path=path.name)
    person.call(two[0].port, "Edit", file_path=path.name, old_string="one", new_string="two")
    person.call(two[1].port, "Edit", file_path=path.name, old_string="two", new_string="three")
    person.call(two[0].port, "Write", file_path=path.name, content="four\n")
    wanted = ["Read", "Edit", "Edit", "Write"]
    for server, elsewhere in ((two[0], [2]), (two[1], [0, 1, 3])):
        log = server.command("log", "--root", str(root), "--json")
        assert log.exit_code == 0, log
        calls = [json.loads(line) for line in log.stdout.splitlines()]
        assert [call["tool"] for call in calls] == wanted
        assert [len(call["changes"]) for call in calls] == [0, 1, 1, 1]
        is_redis = "redis" in request.node.name
        told = {at: f":{(two[1] if server is two[0] else two[0]).port}" for at in elsewhere if is_redis}
        assert {at: call["server"][-len(told[at]) :] for at, call in enumerate(calls) if "server" in call} == told
        assert f"~ {path.name}" in server.command("log", "--root", str(root)).stdout
        page = console_of(server)
        place = page("sessions")[0]["place"]
        rows = page("calls", place=place)["calls"]
        assert sorted(row["tool"] for row in rows) == sorted(wanted)
        assert len({row["key"] for row in rows}) == len(wanted)
        for row in rows:
            shown = page("call", place=place, number=str(row["number"]), server=row["server"])
            assert path.name in shown["arguments"]
            assert (shown["answer"] is None) == bool(row["server"])


def test_undo_is_where_the_call_was_made(two: list[Server], root: Path, request: pytest.FixtureRequest) -> None:
    path = file_in(root)
    person = Person().begin(two[0].port)
    person.call(two[0].port, "Read", file_path=path.name)
    person.call(two[0].port, "Edit", file_path=path.name, old_string="one", new_string="two")
    session = str(console_of(two[0])("sessions")[0]["session"])
    where = ("--root", str(root), "--session", session)
    away = two[1].command("undo", *where, shares=False)
    if "redis" in request.node.name:
        assert away.exit_code == 2
        assert "no session" in away.stderr
        assert path.read_text(encoding="utf-8") == "two\n"
        assert two[0].command("undo", *where, shares=False).exit_code == 0
    assert path.read_text(encoding="utf-8") == "one\n"


@pytest.fixture(scope="module")
def breakable(root: Path) -> Iterator[tuple[RedisServer, Server, Server]]:
    """A Redis of their own and two servers, which a test leaves running."""
    for redis in running_redis(keeps=True):
        with servers(root, root.parent, redis.url, 2) as (one, other):
            yield redis, one, other


def test_a_server_that_was_killed_is_followed_by_another_which_says_so(
    root: Path, breakable: tuple[RedisServer, Server, Server]
) -> None:
    _, one, other = breakable
    path, mark = file_in(root), root / f"{time.monotonic_ns()}.flag"
    person = Person().begin(one.port)
    person.call(one.port, "Read", file_path=path.name)
    person.call(one.port, "Bash", command="sleep 600", run_in_background=True)
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(person.call, one.port, "Bash", command=f"touch {mark}; sleep 600")
        until(mark.exists)
        one.kill()
        assert lost.exception(HANG) is not None
    answer = person.call(other.port, "Edit", file_path=path.name, old_string="one", new_string="two")
    assert not answer.is_error, answer
    assert "a call of Bash did not finish on server" in answer.text
    away = person.call(other.port, "BashOutput", bash_id="bash_1")
    assert "it ended with that server" in away.text
    one.start()
    assert not person.call(one.port, "Edit", file_path=path.name, old_string="two", new_string="x").is_error


@pytest.mark.parametrize("generation", ["older", "newer"])
def test_a_call_that_a_restart_cuts_short_is_answered_so_and_named_by_the_next_server(
    root: Path, breakable: tuple[RedisServer, Server, Server], generation: str
) -> None:
    _, one, other = breakable
    mark = root / f"{time.monotonic_ns()}.flag"
    person = Person(generation=generation, name=f"cut {time.monotonic_ns()}").begin(one.port)
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(person.call, one.port, "Bash", command=f"touch {mark}; sleep 600")
        until(mark.exists)
        one.process.terminate()
        until(lambda: not is_open(one.port))
        assert one.process.poll() is None, "running calls have time to finish"
        one.process.terminate()  # the second signal does not wait for them
        cut = lost.result(HANG)
    assert cut.is_error and "was cut short and may be half done" in cut.text, cut
    assert one.process.wait(HANG) == 0
    answer = person.call(other.port, "Bash", command="echo on")
    assert "a call of Bash did not finish on server" in answer.text, answer
    assert "did not finish" not in person.call(other.port, "Bash", command="echo on").text
    one.start()


@pytest.mark.parametrize("generation", ["older", "newer"])
def test_a_call_that_ends_soon_is_answered_though_its_server_was_asked_to_end(
    root: Path, breakable: tuple[RedisServer, Server, Server], generation: str
) -> None:
    _, one, other = breakable
    mark, go = (root / f"{time.monotonic_ns()}.{kind}" for kind in ("flag", "go"))
    person = Person(generation=generation, name=f"soon {time.monotonic_ns()}").begin(one.port)
    wait = f"touch {mark}; until [ -e {go} ]; do sleep 0.05; done; echo done"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(person.call, one.port, "Bash", command=wait)
        until(mark.exists)
        one.process.terminate()
        until(lambda: not is_open(one.port))
        go.touch()
        answer = running.result(HANG)
    assert answer.text.startswith("done") and not answer.is_error, answer
    assert one.process.wait(HANG) == 0
    assert "did not finish" not in person.call(other.port, "Bash", command="echo on").text
    one.start()


def test_without_the_store_calls_go_on_say_what_is_not_kept_and_it_is_kept_later(
    root: Path, breakable: tuple[RedisServer, Server, Server]
) -> None:
    redis, one, other = breakable
    first, second = file_in(root), file_in(root)
    person, stranger = Person().begin(one.port), Person().begin(other.port)
    window = Person(generation="newer", name=f"away {time.monotonic_ns()}")
    window.call(one.port, "Bash", command="cd sub")
    until(lambda: "the shared store answers" in one.screen.read_text(encoding="utf-8"))
    assert "not kept" not in person.call(one.port, "Read", file_path=first.name).text
    redis.kill()
    answer = person.call(one.port, "Read", file_path=second.name)
    assert (
        "[this call could neither use nor update what the servers share: the shared store failed: Redis"
        in answer.text
    )
    assert not person.call(one.port, "Edit", file_path=first.name, old_string="one", new_string="two").is_error
    assert stranger.call(one.port, "Read", file_path=first.name).status == 503
    unknown = window.call(other.port, "Bash", command="touch wrong-place")
    assert unknown.is_error and "can't know what this session did on others; nothing was run" in unknown.text, unknown
    assert not (root / "wrong-place").exists()
    assert window.call(one.port, "Bash", command="pwd").text.startswith(str(root / "sub"))
    assert "warning: the shared store failed: Redis can't be reached" in one.screen.read_text(encoding="utf-8")
    redis.start()
    until(lambda: "the shared store answers again" in one.screen.read_text(encoding="utf-8"))
    until(lambda: stranger.call(one.port, "Read", file_path=first.name).status == 200)
    until(lambda: person.call(other.port, "Glob", pattern="*.none").status == 200)
    wanted = {"file_path": second.name, "old_string": "one", "new_string": "two"}
    until(lambda: not person.call(other.port, "Edit", **wanted).is_error)


@pytest.mark.anyio
async def test_a_store_with_foreign_data_is_told_of_once_and_once_when_it_is_gone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gripfast.edges.mcp.sharing.LEASE_SECONDS", 0.04)
    caplog.set_level("INFO", "gripfast")
    for redis in running_redis():
        redis.command("rpush", "gripfast:1:epoch", "not ours")
        sharing = Sharing(RedisSessions(redis.url), RedisStore(redis.url), "one", most=9, is_remote=True)
        async with anyio.create_task_group() as group:
            group.start_soon(sharing.keep_up)
            looked = FAILURES.count + 4
            with anyio.fail_after(HANG):
                while FAILURES.count < looked:
                    await anyio.sleep(0.02)
                redis.command("del", "gripfast:1:epoch")
                while "answers again" not in caplog.text:
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        await sharing.close()
    told = [record.getMessage() for record in caplog.records if "shared store" in record.getMessage()]
    assert told == [
        "the shared store failed: Redis has a value that gripfast did not write; sessions are not shared with other "
        "servers",
        "the shared store answers again",
    ]


def test_an_answer_to_a_question_reaches_the_server_that_asked_its_client(two: list[Server], deploy: Path) -> None:
    """The answer is sent to the other server."""
    one, other = two
    person = Person(able={"elicitation": {}}).begin(one.port)
    assert person.call(other.port, "Glob", pattern="*.none").status == 200
    for decision in ("Deny", "Allow once"):
        with person.messages(one.port, "Bash", command=f"./deploy {deploy.name}") as messages:
            question = next(message for message in messages if message.get("method") == "elicitation/create")
            assert not deploy.exists()
            accepted = {"action": "accept", "content": {"decision": decision}}
            assert person.reply(other.port, question["id"], accepted) == 202
            answer = next(message for message in messages if message.get("id") == person.number)
            assert bool(answer["result"].get("isError")) == (decision == "Deny"), answer
    assert deploy.read_text(encoding="utf-8") == f"ran {deploy.name}\n"


def is_running(line: str) -> bool:
    """Whether a process with this command line exists."""
    words = line.replace(" ", "\0").encode() + b"\0"
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == words:
                return True
    return False


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
def test_a_cancellation_reaches_the_server_that_runs_the_call(two: list[Server], root: Path) -> None:
    """It is sent to the other server. The call ends as a cancelled one, and its command with it."""
    mark, long = root / f"{time.monotonic_ns()}.flag", f"600.{time.monotonic_ns()}"
    person = Person().begin(two[0].port)
    assert person.call(two[1].port, "Glob", pattern="*.none").status == 200
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(person.call, two[0].port, "Bash", command=f"touch {mark}; sleep {long}")
        until(lambda: is_running(f"sleep {long}"))
        assert mark.exists()
        cancel = {"requestId": person.number, "reason": "enough"}
        beside = Person(person.token, session=person.session)
        assert beside.send(two[1].port, "notifications/cancelled", cancel).status == 202
        assert "cancelled" in str(running.exception(HANG) or running.result()).lower()
        until(lambda: not is_running(f"sleep {long}"))
    assert not person.call(two[1].port, "Bash", command="true").is_error
