"""The console without a browser: who gets in, what it shows, what it does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.edges.console.asking import CHANGE, HOST, shown

from console_link import console_link
from gripfast.builtin.session import open_session
from gripfast.call.run import Session
from gripfast.edges.approvals import console_url
from gripfast.edges.console.access import ConsoleAccess
from gripfast.edges.console.data import ConsoleData
from gripfast.host.files.scope import Scope
from gripfast.host.questions.page import page_at
from gripfast.host.questions.queue import Asking, QuestionQueue
from gripfast.host.record.calls import RecordedCall
from gripfast.host.record.shelf import make_session_directory

pytestmark = pytest.mark.anyio


# ---- who gets in ----


async def test_a_link_opens_the_console_once(stranger: httpx2.AsyncClient, access: ConsoleAccess) -> None:
    link = access.link()
    first = await stranger.get(link)
    assert first.headers["refresh"].startswith("0; url=/console#!")
    cookie = first.headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/console"} <= {part.strip() for part in cookie.split(";")}
    assert (await stranger.get("/console")).status_code == 200
    stranger.cookies.clear()
    assert (await stranger.get(link)).status_code == 403
    assert (await stranger.get("/console")).status_code == 403


async def test_a_link_at_another_host_opens_nothing_and_is_not_used_up(
    stranger: httpx2.AsyncClient, access: ConsoleAccess
) -> None:
    link = access.link()
    refused = await stranger.get(link, headers={"host": "evil.example"})
    assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
    assert (await stranger.get(link)).status_code == 200


COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
PLACES = [
    "/console",
    "/console/static/console.js",
    "/console/events",
    "/console/api/sessions",
    "/console/api/questions",
    "/console/api/quota",
    "/console/api/running",
    "/console/api/output?id=0123456789abcdef-bash_1",
    "/console/api/todos?place=a/b",
    "/console/api/calls?place=a/b",
    "/console/api/call?place=a/b&number=1",
]


@pytest.mark.parametrize("place", PLACES)
async def test_nobody_gets_in_without_the_cookie(stranger: httpx2.AsyncClient, place: str) -> None:
    assert (await stranger.get(place)).status_code == 403
    stranger.cookies.set("gripfast_console", "guessed")
    assert (await stranger.get(place)).status_code == 403
    assert (await stranger.get("/console?key=guessed")).status_code == 403


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"}])
async def test_another_host_or_site_gets_nothing(
    page: httpx2.AsyncClient, place: str, headers: dict[str, str]
) -> None:
    assert (await page.get(place, headers=headers)).status_code == 403


@pytest.mark.parametrize("place", ["/console/api/answer", "/console/api/undo", "/console/api/end"])
@pytest.mark.parametrize("headers", [{}, {"origin": f"http://{HOST}", "x-gripfast-console": "1"}])
async def test_a_change_needs_the_page(page: httpx2.AsyncClient, place: str, headers: dict[str, str]) -> None:
    body = {"id": "Q1", "verdict": "yes", "place": "a/b", "calls": [1]}
    assert (await page.post(place, json=body, headers=headers)).status_code == 403
    assert (await page.get(place)).status_code == 405


@pytest.mark.parametrize("place", [place for place in PLACES if "api" in place or "events" in place])
async def test_the_cookie_alone_gets_no_data(page: httpx2.AsyncClient, place: str) -> None:
    """A server on another port of this machine can receive it: cookies know no ports."""
    for secret in ("", "1", "guessed"):
        assert (await page.get(place, headers={"x-gripfast-console": secret})).status_code == 403


ALLOWED = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
"""What the page may load, in the words of the browser, not of our code."""


async def test_every_answer_forbids_scripts_from_elsewhere(page: httpx2.AsyncClient, access: ConsoleAccess) -> None:
    places = ["/console", "/console/static/console.js", "/console/api/sessions", "/console/static/none"]
    for place in (*places, access.link(), "/console?key=guessed"):
        headers = (await page.get(place)).headers
        policy = headers["content-security-policy"]
        assert dict(part.strip().split(" ", 1) for part in policy.split(";")) == ALLOWED, place
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
    text = (await page.get("/console")).text
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=|https?://", text)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


async def test_every_text_is_readable_on_every_ground_in_both_schemes(page: httpx2.AsyncClient) -> None:
    """By the contrast that WCAG 2 asks for, 4.5 to 1."""
    style = (await page.get("/console/static/console.css")).text
    light, dark = [
        dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in re.findall(r":root \{([^}]*)", style)
    ]
    for scheme in (light, dark):
        inks = {"ink", "soft", "bad", *set(scheme) & {"keyword", "string", "comment", "digit"}, *COLOURS}
        pairs = {(ink, ground) for ink in inks for ground in ("ground", "panel", "added", "removed", "chosen")}
        pairs |= {("accent-ink", "accent"), ("added-ink", "added"), ("removed-ink", "removed"), ("ink", "ask")}
        for ink, ground in pairs:
            darker, lighter = sorted((luminance(scheme[ink]), luminance(scheme[ground])))
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (ink, ground)


@given(key=st.text(max_size=60))
def test_no_other_key_opens_it(key: str) -> None:
    access = ConsoleAccess((HOST,))
    right = access.link().partition("key=")[2]
    assert (access.redeem(key) is None) or key == right
    assert access.refusal("GET", {"host": HOST}, key) is not None


# ---- what it shows ----


async def place_of(page: httpx2.AsyncClient) -> str:
    (found,) = await shown(page, "sessions")
    return found["place"]


async def test_calls_are_shown_with_arguments_answer_and_diff(page: httpx2.AsyncClient, session: Session) -> None:
    await session.call("Write", {"file_path": "a.txt", "content": "one\n"})
    await session.call("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    place = await place_of(page)
    rows = await shown(page, "calls", place=place)
    assert [(row["tool"], row["subject"], row["changes"]) for row in rows["calls"]] == [
        ("Write", "a.txt", 1),
        ("Edit", "a.txt", 1),
    ]
    call = await shown(page, "call", place=place, number=2)
    assert "-one" in call["diff"]
    assert "+two" in call["diff"]
    assert json.loads(call["arguments"])["old_string"] == "one"
    assert call["answer"].startswith("edited `a.txt`")


async def test_arguments_of_several_lines_are_shown_as_lines(page: httpx2.AsyncClient, session: Session) -> None:
    await session.call("Bash", {"command": "cat <<'E'\n\u202e <b>\nE\n", "timeout": 5000})
    await session.call("Bash", {"command": "echo one\n"})
    place = await place_of(page)
    several = await shown(page, "call", place=place, number=1)
    assert several["fields"] == [["command", "cat <<'E'\n\\u202e <b>\nE\n"], ["timeout", "5000"]]
    one = await shown(page, "call", place=place, number=2)
    assert (one["fields"], json.loads(one["arguments"])) == ([], {"command": "echo one\n"})


async def test_an_answer_keeps_the_colours_of_what_was_printed(page: httpx2.AsyncClient, session: Session) -> None:
    await session.call("Bash", {"command": "printf '\\033[1;31mred\\033[0m <b>\\342\\200\\256\\n'; exit 3"})
    await session.call("Bash", {"command": "echo plain"})
    place = await place_of(page)
    call = await shown(page, "call", place=place, number=1)
    assert call["answer"] == "red <b>\n[exit code 3]"
    assert call["answer_runs"] == [["red", "bold red"], [" <b>\\u202e", ""], ["\n[exit code 3]", ""]]
    assert (await shown(page, "call", place=place, number=2))["answer_runs"] is None


async def test_colours_show_nothing_that_the_answer_hides(page: httpx2.AsyncClient, project: Path) -> None:
    (project / ".env").write_text("API_TOKEN=s3cr3t-and-long-enough-1234\n")
    options: dict[str, Any] = {"record": True, "sandbox": "off", "hide_secrets": True}
    async with open_session(Scope.workspace(project), **options) as session:
        for command in ("s3cr3t-and-\\033[31mlong-enough-1234", "\\033[31ms3cr3t-and-long-enough-1234"):
            await session.call("Bash", {"command": f"printf '{command}\\033[0m\\n'"})
        place = await place_of(page)
        cut_in_two, whole = [await shown(page, "call", place=place, number=number) for number in (1, 2)]
    assert cut_in_two["answer"].startswith("«API_TOKEN»")
    assert cut_in_two["answer_runs"][0] == ["«API_TOKEN»", ""]
    assert whole["answer_runs"][0] == ["«API_TOKEN»", "red"]


async def test_only_what_is_new_is_read_again(page: httpx2.AsyncClient, session: Session) -> None:
    for number in range(5):
        await session.call("Write", {"file_path": f"{number}.txt", "content": "x"})
    place = await place_of(page)
    last = await shown(page, "calls", place=place, most=2)
    assert [row["number"] for row in last["calls"]] == [4, 5]
    assert last["left_out"] == 3
    await session.call("Glob", {"pattern": "*"})
    more = await shown(page, "calls", place=place, since=last["look"])
    assert [row["number"] for row in more["calls"]] == [6]
    assert (await shown(page, "calls", place=place, since=more["look"]))["calls"] == []


async def test_hostile_text_is_written_out_and_bounded(page: httpx2.AsyncClient, session: Session) -> None:
    name = "a\u202eb\u200b\U000e0041.txt"
    await session.call("Write", {"file_path": name, "content": "\x1b[31m" + "x" * 300_000})
    place = await place_of(page)
    call = await shown(page, "call", place=place, number=1)
    assert call["changes"][0]["path"] == r"a\u202eb\u200b\U000e0041.txt"
    assert len(json.dumps(call)) < 100_000
    del call["changes"][0]["raw"]  # names the path for an undo, and is not shown
    text = json.dumps(call, ensure_ascii=False)
    assert not set("\u202e\u200b\U000e0041\x1b") & set(text)
    assert call["arguments"].endswith("bytes in total]")


HIDING = "\u202e\u200b\u2066\U000e0041\x1b\x9b\x07\ufeff"


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, with the names of its fields."""
    if isinstance(value, dict):
        yield from strings(list(cast("dict[str, Any]", value).items()))
    elif isinstance(value, list | tuple):
        for one in cast("list[Any]", value):
            yield from strings(one)
    elif isinstance(value, str):
        yield value


async def undo(page: httpx2.AsyncClient, place: str, *calls: int) -> dict[str, Any]:
    """What an undo would do."""
    answer = await page.post("/console/api/undo", json={"place": place, "calls": calls}, headers=CHANGE)
    return answer.json()


async def test_no_field_that_is_shown_hides_or_turns_text(page: httpx2.AsyncClient, tmp_path: Path) -> None:
    """Names of directories, tools, sessions and clients, and whatever is in files, are as hostile as outputs."""
    project = tmp_path / f"shop{HIDING}"
    project.mkdir()
    async with open_session(Scope.workspace(project), record=True, sandbox="off", id=f"one{HIDING}") as session:
        await session.call("Write", {"file_path": f"a{HIDING}.txt", "content": f"one{HIDING}\n"})
        await session.call("Bash", {"command": f"printf '%s\\n' 'two{HIDING}' | tee 'a{HIDING}.txt'; exit 3"})
        await session.call("write_todos", {"todos": [{"content": f"do{HIDING}"}]})
        await session.call("Bash", {"command": f"echo 'three{HIDING}'; sleep 600", "run_in_background": True})
        entry = session.record.begin("5", f"Tool{HIDING}", "{}")
        entry.decided(f"denied: because{HIDING}")
        entry.command_printed("\x1b[31mred\x1b[0m\n")
        entry.end(answer=f"red\n[a note{HIDING}]")
        await session.call("Bash", {"command": f"mkdir 'd{HIDING}'; echo 1 > 'd{HIDING}/in{HIDING}'"})
        place = await place_of(page)
        diff, widths = f"+x{HIDING}", {"always": f"this{HIDING}"}
        asking = Asking(f"one{HIDING}", str(project), f"Bash{HIDING}", f"why{HIDING}", f"what\n{diff}")
        QuestionQueue().ask(replace(asking, diff=diff, client=f"client{HIDING}", who=f"ann{HIDING}", widths=widths))
        (shell,) = await shown(page, "running")
        seen: list[Any] = [await shown(page, what) for what in ("sessions", "questions", "running")]
        seen += [await shown(page, what, place=place) for what in ("calls", "todos")]
        seen += [await shown(page, "call", place=place, number=number) for number in (1, 2, 3, 4, 5, 6)]
        with anyio.fail_after(60):
            while not (output := await shown(page, "output", id=shell["id"]))["runs"]:
                await anyio.sleep(0.02)
        seen.append(output)
        (project / f"d{HIDING}" / f"other{HIDING}").touch()  # by somebody else
        undone = await undo(page, place, 1, 2, 6)
        (project / f"a{HIDING}.txt").write_text("by somebody else")
        left = await undo(page, place, 1, 2)
        assert undone["restored"] and undone["kept"] and left["refused"]
        refused = await page.post("/console/api/answer", json={"id": HIDING, "verdict": "yes"}, headers=CHANGE)
    seen += [undone, left, refused.json()]
    for change in (change for one in seen if "diff" in one for change in one["changes"]):
        del change["raw"]  # names the path for an undo, and is not shown
    for text in strings(seen):
        assert not set(HIDING) & set(text), repr(text)


@pytest.mark.parametrize("place", ["", "..", "../..", "a/b", "a/../b", "/etc", "a\0/b", "x" * 5000])
async def test_a_place_that_is_none_is_said(page: httpx2.AsyncClient, place: str) -> None:
    answer = await page.get("/console/api/calls", params={"place": place})
    assert answer.status_code == 422
    assert "no such session" in answer.json()["error"]


async def test_bad_numbers_are_said(page: httpx2.AsyncClient, session: Session) -> None:
    await session.call("Glob", {"pattern": "*"})
    place = await place_of(page)
    assert (await page.get("/console/api/call", params={"place": place, "number": "x"})).status_code == 400
    assert (await page.get("/console/api/call", params={"place": place, "number": "99"})).status_code == 422
    assert (await page.get("/console/api/call")).status_code == 400


async def test_events_tell_of_a_call_and_of_a_question(access: ConsoleAccess, session: Session) -> None:
    data = ConsoleData()
    before = data.stamps()
    await session.call("Glob", {"pattern": "*"})
    after = data.stamps()
    assert after != before
    QuestionQueue().ask(Asking("one", "/w", "Bash", "why", "what"))
    assert data.stamps() != after


# ---- what it does ----


async def test_an_undo_is_first_said_then_done(page: httpx2.AsyncClient, session: Session, project: Path) -> None:
    await session.call("Write", {"file_path": "a.txt", "content": "one\n"})
    body: dict[str, Any] = {"place": await place_of(page), "calls": [1]}
    dry = await page.post("/console/api/undo", json=body, headers=CHANGE)
    assert dry.json()["restored"] == [{"path": "a.txt", "what": "removed"}]
    assert (project / "a.txt").exists()
    done = await page.post("/console/api/undo", json={**body, "dry_run": False}, headers=CHANGE)
    assert done.json()["dry_run"] is False
    assert not (project / "a.txt").exists()
    again = {**body, "calls": [done.json()["call"]], "dry_run": False}
    assert (await page.post("/console/api/undo", json=again, headers=CHANGE)).status_code == 200
    assert (project / "a.txt").read_text() == "one\n"


async def test_a_question_is_answered_once(page: httpx2.AsyncClient) -> None:
    queue = QuestionQueue()
    asked = queue.ask(Asking("one", "/w", "Bash", "why", "what", {"always": "this"}))
    (question,) = await shown(page, "questions")
    assert (question["id"], question["shown"]) == (asked.id, "what")
    body = {"id": asked.id, "verdict": "no", "because": "not today"}
    assert (await page.post("/console/api/answer", json=body, headers=CHANGE)).status_code == 200
    answer = queue.answered(asked.id)
    assert answer is not None
    assert (answer.verdict, answer.by, answer.because) == ("no", "page", "not today")
    assert (await page.post("/console/api/answer", json=body, headers=CHANGE)).status_code == 409
    unknown = {"id": "Q999", "verdict": "yes"}
    assert (await page.post("/console/api/answer", json=unknown, headers=CHANGE)).status_code == 404
    assert await shown(page, "questions") == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"{", b"[" * 10_000, b"x" * 100_000, b'{"id": 1, "verdict": "yes"}']
)
@pytest.mark.parametrize("what", ["answer", "undo", "end"])
async def test_a_body_that_is_none_is_said(page: httpx2.AsyncClient, what: str, body: bytes) -> None:
    assert (await page.post(f"/console/api/{what}", content=body, headers=CHANGE)).status_code == 400


async def test_an_unusable_state_directory_is_said(page: httpx2.AsyncClient, state: Path) -> None:
    state.mkdir(exist_ok=True)
    (state / "gripfast").mkdir()
    (state / "gripfast" / "questions").write_text("in the way")
    answer = await page.get("/console/api/questions")
    assert answer.status_code == 500
    assert "state directory" in answer.json()["error"]


async def test_an_answer_that_cant_count_is_told_why(page: httpx2.AsyncClient, tmp_path: Path) -> None:
    queue = QuestionQueue()
    over, asked = [queue.ask(Asking("one", "/w", "Bash", "why", "what")) for _ in range(2)]
    queue.withdraw(over.id, "its session has ended")
    theirs = QuestionQueue(tmp_path / "theirs")
    foreign = [theirs.ask(Asking("one", "/w", "Bash", "why", "what")) for _ in range(3)][-1]

    async def answer(**body: Any) -> tuple[int, str]:
        said = await page.post("/console/api/answer", json=body, headers=CHANGE)
        return said.status_code, said.json()["error"]

    assert await answer(id=over.id, verdict="yes") == (404, f"{over.id} is over: its session has ended")
    assert (await answer(id=foreign.id, verdict="yes"))[0] == 404
    assert (await answer(id=asked.id, verdict="always"))[0] == 400  # it does not offer that
    for body in ({"id": asked.id, "verdict": "perhaps"}, {"id": 1, "verdict": "yes"}, {"verdict": "yes"}):
        assert (await answer(**body))[0] == 400
    assert (await answer(id=asked.id, verdict="yes", because="x" * 70_000))[0] == 400
    assert queue.waiting() == [asked]
    no = {"id": asked.id, "verdict": "no", "because": "x" * 5000}
    assert (await page.post("/console/api/answer", json=no, headers=CHANGE)).status_code == 200
    given = queue.answered(asked.id)
    assert given is not None and len(given.because) == 1000


# ---- as a program ----


@pytest.fixture
def program(project: Path) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-P", "-m", "gripfast", "console"]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.terminate()
        assert started.wait(30) == 0


async def test_the_command_prints_a_link_that_works(program: subprocess.Popen[str]) -> None:
    assert program.stderr is not None
    line = await anyio.to_thread.run_sync(program.stderr.readline)
    link = console_link(line)
    assert link.startswith("http://127.0.0.1:")
    await anyio.to_thread.run_sync(program.stderr.readline)
    await anyio.to_thread.run_sync(program.stderr.readline)
    async with httpx2.AsyncClient(timeout=60) as client:
        opened = await client.get(link)
        client.headers["x-gripfast-console"] = opened.headers["refresh"].partition("!")[2]
        assert "gripfast console" in (await client.get(str(httpx2.URL(link).join("/console")))).text
        async with client.stream("GET", str(httpx2.URL(link).join("/console/events"))) as events:
            async for event in events.aiter_lines():
                assert event == "event: changed"
                break


@pytest.fixture
def served(project: Path) -> Generator[str]:
    """What a server over HTTP prints before it is ready."""
    command = [sys.executable, "-P", "-m", "gripfast", "serve", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        lines = [started.stderr.readline()]
        try:
            while "Ctrl-C" not in lines[-1]:
                lines.append(started.stderr.readline())
                assert lines[-1], lines
            yield "".join(lines)
        finally:
            started.terminate()
        assert started.wait(60) == 0


async def test_a_server_over_http_has_the_page_beside_its_tools(served: str) -> None:
    link = console_link(served)
    async with httpx2.AsyncClient(timeout=60, base_url=link.partition("/console")[0]) as client:
        assert (await client.get("/console")).status_code == 403
        assert (await client.get("/console/api/sessions")).status_code == 403
        opened = await client.get(link)
        client.headers["x-gripfast-console"] = opened.headers["refresh"].partition("!")[2]
        assert "gripfast console" in (await client.get("/console")).text
        assert await shown(client, "questions") == []
        assert (await client.get("/console", headers={"host": "evil.example"})).status_code == 403
        assert (await client.post("/mcp", json={})).status_code == 401  # the cookie is no token


async def test_a_question_names_the_page_while_a_console_runs(state: Path) -> None:
    question = QuestionQueue().ask(Asking("one", "/w", "Bash", "why", "what"))
    assert console_url(question) is None
    with page_at(HOST):
        assert console_url(question) == f"http://{HOST}/console#Q1"
        with page_at("127.0.0.1:1"):
            assert console_url(question) == f"http://{HOST}/console#Q1"
    assert console_url(question) is None
    (state / "gripfast" / "console").write_text("127.0.0.1:9")  # left by one that was killed
    assert console_url(question) is None


async def test_pages_that_look_at_once_miss_nothing(project: Path) -> None:
    directory = make_session_directory(str(project), "many")
    file = directory / "calls.jsonl"

    def line(number: int) -> str:
        return json.dumps(RecordedCall(number, 1.0, "Read", "{}", "allowed").to_json()) + "\n"

    head = json.dumps({"record": 1, "session": "many", "roots": [str(project)]}) + "\n"
    file.write_text(head + "".join(map(line, range(1, 2001))), encoding="utf-8")
    data = ConsoleData()
    (session,) = data.sessions()
    looks: list[dict[str, Any]] = []

    def look() -> None:
        looks.append(data.calls(session["place"]))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(anyio.to_thread.run_sync, look)
    assert [len(look["calls"]) for look in looks] == [2000] * 8
    with file.open("a", encoding="utf-8") as opened:
        opened.write(line(2001))
    newest = data.calls(session["place"], since=max(look["look"] for look in looks))
    assert [call["number"] for call in newest["calls"]] == [2001]
