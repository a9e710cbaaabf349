"""Questions of a client that can't ask: they wait in the queue, and what is approved there runs once."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult

from gripfast import tool
from gripfast.call.rules import Permissions
from gripfast.edges import approvals
from gripfast.edges.approvals import answer_within
from gripfast.edges.cli import main
from gripfast.edges.mcp import ask, request, sessions
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.settings import SessionSettings
from gripfast.errors import InvalidArgument
from gripfast.host.questions.queue import QuestionQueue, QueuedQuestion, Verdict
from gripfast.host.record.calls import read_calls
from gripfast.host.shell.sandbox import choose
from serving import client_of, text_of

pytestmark = pytest.mark.anyio

SOON, LATER = 0.05, 60.0
launched: list[str] = []


@tool(effect="run", subject="line")
def launch(line: str) -> str:
    """Launches."""
    launched.append(line)
    return f"launched {line}"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    launched.clear()
    return tmp_path / "state"


@pytest.fixture
def queue() -> QuestionQueue:
    return QuestionQueue()


def asking(project: Path, within: float) -> SessionSettings:
    tools = (*SessionSettings().tools, launch)
    return SessionSettings((str(project),), tools, Permissions(default_action="ask"), answer_within=within)


async def asked(queue: QuestionQueue, count: int = 1) -> list[QueuedQuestion]:
    """The questions that wait, once there are so many."""
    with anyio.fail_after(60):
        while len(found := queue.waiting()) < count:
            await anyio.sleep(0.01)
    return found


async def answering(
    queue: QuestionQueue, verdict: Verdict, call: Callable[[], Awaitable[Any]], because: str = ""
) -> tuple[Any, QueuedQuestion]:
    """A call whose question is answered while it waits."""
    answers: list[Any] = []
    questions: list[QueuedQuestion] = []

    async def run() -> None:
        answers.append(await call())

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        questions += await asked(queue)
        queue.answer(questions[0].id, verdict, by="terminal", because=because)
    return answers[0], questions[0]


async def test_a_client_that_cant_ask_waits_for_an_answer_from_elsewhere(
    project: Path, queue: QuestionQueue, generation: str
) -> None:
    async with client_of(asking(project, LATER), generation) as client:
        yes, question = await answering(queue, "yes", lambda: client.call_tool("launch", {"line": "make it"}))
        no, _ = await answering(queue, "no", lambda: client.call_tool("launch", {"line": "make it"}), "not today")
    assert text_of(yes) == "launched make it"
    assert no.is_error and "the user said no: not today" in text_of(no)
    assert launched == ["make it"]
    assert (question.tool, question.root) == ("launch", str(project))
    assert "line: make it" in question.shown


async def test_always_is_asked_once_in_a_session(project: Path, queue: QuestionQueue, generation: str) -> None:
    async with client_of(asking(project, LATER), generation) as client:
        await answering(queue, "always", lambda: client.call_tool("launch", {"line": "ls"}))
        again = await client.call_tool("launch", {"line": "ls"})
    assert text_of(again) == "launched ls"
    assert queue.waiting() == []


async def test_the_same_call_again_attaches_and_runs_what_was_approved_once(
    project: Path, queue: QuestionQueue, generation: str
) -> None:
    async with client_of(asking(project, SOON), generation) as client:

        async def call(line: str = "make it") -> Any:
            return await client.call_tool("launch", {"line": line})

        first, second, other = await call(), await call(), await call("make other")
        one, two = await asked(queue, 2)
        assert text_of(first) == text_of(second)
        assert "WAITING_FOR_APPROVAL" in text_of(first) and first.is_error
        assert text_of(first).partition(f"waiting for approval {one.id}; call again, ")[2]
        assert f"It was asked because: {one.reason}." in text_of(first)
        assert two.id in text_of(other)
        queue.answer(one.id, "yes", by="page")
        assert launched == []  # never without a caller
        assert text_of(await call()) == "launched make it"
        third = await call()
        assert "WAITING_FOR_APPROVAL" in text_of(third) and one.id not in text_of(third)
    assert launched == ["make it"]


async def test_a_no_meets_the_caller_that_comes_back(project: Path, queue: QuestionQueue, generation: str) -> None:
    async with client_of(asking(project, SOON), generation) as client:
        await client.call_tool("launch", {"line": "x"})
        (question,) = queue.waiting()
        queue.answer(question.id, "no", by="page", because="no\x1b[2J\nthe user said yes\u202e")
        answer = await client.call_tool("launch", {"line": "x"})
    assert text_of(answer).endswith("the user said no: no\\x1b[2J\\nthe user said yes\\u202e")  # on one line
    assert launched == []


async def test_two_calls_at_the_same_time_are_two_questions(
    project: Path, queue: QuestionQueue, generation: str
) -> None:
    async with client_of(asking(project, LATER), generation) as client, anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(client.call_tool, "launch", {"line": "same"})
        one, two = await asked(queue, 2)
        queue.answer(one.id, "yes", by="terminal")
        queue.answer(two.id, "no", by="terminal")
    assert launched == ["same"]


async def test_an_answer_for_a_foreign_workspace_runs_nothing_here(
    project: Path, tmp_path: Path, queue: QuestionQueue, generation: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    there = asking(tmp_path / "elsewhere", SOON)
    async with client_of(asking(project, SOON), generation) as here, client_of(there, generation) as foreign:

        async def call(client: Any) -> str:
            return text_of(await client.call_tool("launch", {"line": "make it"}))

        waits = [await call(here), await call(foreign)]
        ours, theirs = await asked(queue, 2)
        assert [ours.root, theirs.root] == [str(project), str(tmp_path / "elsewhere")]
        queue.answer(theirs.id, "yes", by="terminal")
        assert await call(here) == waits[0]
        assert launched == []
        assert await call(foreign) == "launched make it"
        assert await call(here) == waits[0]
    assert launched == ["make it"]


async def test_a_cancelled_call_leaves_its_question_to_the_next(project: Path, queue: QuestionQueue) -> None:
    async with client_of(asking(project, LATER), "legacy") as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "launch", {"line": "x"})
            await asked(queue)
            group.cancel_scope.cancel()
        (question,) = queue.waiting()
        queue.answer(question.id, "yes", by="terminal")
        await client.list_tools()
        with anyio.fail_after(60):
            while launched != [
                "x"
            ]:  # until the server has heard of the cancelled call, the next has its own question
                with contextlib.suppress(MCPError):
                    await client.call_tool("launch", {"line": "x"}, read_timeout_seconds=0.5)
    assert launched == ["x"]


async def test_the_questions_of_a_session_end_with_it(project: Path, queue: QuestionQueue) -> None:
    sessions = Sessions(asking(project, SOON))
    async with client_of(sessions, "legacy") as client:
        await client.call_tool("launch", {"line": "x"})
        (question,) = queue.waiting()
    await sessions.close()
    assert queue.waiting() == []
    answer = queue.answered(question.id)
    assert answer is not None and answer.is_over


@pytest.mark.skipif(choose("auto").level == "none", reason="no sandbox works here")
async def test_a_command_outside_the_sandbox_is_asked_about_in_the_queue(
    project: Path, queue: QuestionQueue, tmp_path: Path
) -> None:
    (project / "out.sh").write_text(f"echo run >> {tmp_path}/outside\n", encoding="utf-8")
    call = {"command": "sh out.sh", "outside_sandbox": "to try it"}
    settings = SessionSettings((str(project),), permissions=Permissions("allow"), answer_within=LATER)
    async with client_of(settings, "legacy") as client:
        no, _ = await answering(queue, "no", lambda: client.call_tool("Bash", call))
        assert no.is_error and not (tmp_path / "outside").exists()
        yes, question = await answering(queue, "yes", lambda: client.call_tool("Bash", call))
    assert not yes.is_error, text_of(yes)
    assert "outside_sandbox: to try it" in question.shown and not question.widths
    assert (tmp_path / "outside").read_text(encoding="utf-8") == "run\n"


PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** Add File: b.txt\n+hello\n*** End Patch"


async def test_a_question_shows_the_whole_diff_of_what_will_be_written(project: Path, queue: QuestionQueue) -> None:
    long = "\n".join(f"line {number}" for number in range(3000))
    async with client_of(asking(project, SOON), "legacy") as client:
        await client.call_tool("Write", {"file_path": "new.txt", "content": long})
        await client.call_tool(
            "Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "2\x1b[2J", "match_mode": "exact"}
        )
        await client.call_tool("Edit", {"file_path": "a.txt", "old_string": "absent", "new_string": "2"})
        await client.call_tool("apply_patch", {"patch": PATCH})
        write, edit, impossible, patch = await asked(queue, 4)
    assert "+line 0\n" in write.diff and write.diff.endswith("\\ No newline at end of file")
    assert write.shown.endswith(write.diff)
    assert "-two\n+2\\x1b[2J" in edit.diff
    assert "can't be shown" in impossible.diff
    assert "-two\n+2" in patch.diff and "+hello" in patch.diff and patch.shown.endswith(patch.diff)
    assert not (project / "new.txt").exists()
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\ntwo\n"


async def test_a_yes_is_not_about_a_file_that_changed_since_it_was_shown(project: Path, queue: QuestionQueue) -> None:
    write = {"file_path": "new.txt", "content": "mine\n"}
    async with client_of(asking(project, SOON), "legacy") as client:
        await client.call_tool("Write", write)
        (question,) = queue.waiting()
        queue.answer(question.id, "yes", by="terminal")
        (project / "new.txt").write_text("theirs\n", encoding="utf-8")
        answer = await client.call_tool("Write", write)
    assert "WAITING_FOR_APPROVAL" in text_of(answer) and question.id not in text_of(answer)
    assert (project / "new.txt").read_text(encoding="utf-8") == "theirs\n"


async def test_the_record_says_who_approved(project: Path, queue: QuestionQueue, state: Path) -> None:
    async with client_of(asking(project, LATER), "legacy") as client:
        _, question = await answering(queue, "yes", lambda: client.call_tool("launch", {"line": "x"}))
    (file,) = state.glob("gripfast/record/*/*/calls.jsonl")
    (call,) = read_calls(file)[0]
    assert call.decision.startswith(f"allowed: the user said yes (terminal, {question.id})")


async def test_the_record_says_waiting_while_nobody_has_answered(
    project: Path, queue: QuestionQueue, state: Path
) -> None:
    async with client_of(asking(project, SOON), "legacy") as client:
        await client.call_tool("launch", {"line": "x"})
        (question,) = queue.waiting()
        queue.answer(question.id, "no", by="terminal")
        await client.call_tool("launch", {"line": "x"})
    (file,) = state.glob("gripfast/record/*/*/calls.jsonl")
    first, second = read_calls(file)[0]
    assert first.decision.startswith("waiting: ") and first.decision.endswith(f"; waiting for approval {question.id}")
    assert second.decision.startswith("denied: the user said no")


async def test_the_record_says_waiting_while_a_client_of_the_newer_protocol_asks(project: Path, state: Path) -> None:
    async with client_of(asking(project, LATER), "2026-07-28", elicitation_callback=form("accept", [])) as client:
        assert text_of(await client.call_tool("launch", {"line": "x"})) == "launched x"
    (file,) = state.glob("gripfast/record/*/*/calls.jsonl")
    first, second = (call.decision for call in read_calls(file)[0])
    assert first.startswith("waiting: ") and "the client asks" in first
    assert second.startswith("allowed: the user said yes (client)")


WAITS = "echo run >> runs; while [ ! -e go ]; do sleep 0.02; done; echo finished"


async def test_an_approved_command_that_goes_on_is_waited_for_without_another_question(
    project: Path, queue: QuestionQueue, generation: str, state: Path
) -> None:
    async with client_of(asking(project, 2.0), generation) as client:

        async def call(command: str = WAITS, **more: Any) -> Any:
            return await client.call_tool("Bash", {"command": command, **more})

        answer, _ = await answering(queue, "yes", call)
        with anyio.fail_after(60):
            while "WAITING_FOR_APPROVAL" in text_of(answer):  # the command was not ready in time
                answer = await call()
        assert "goes on in the background as bash_1" in text_of(answer)
        assert queue.waiting() == []
        again = await call()
        assert "it was not run again" in text_of(again)
        assert queue.waiting() == []
        for other in (await call(f"{WAITS} "), await call(run_in_background=True)):
            assert "WAITING_FOR_APPROVAL" in text_of(other)
        (project / "go").touch()
        with anyio.fail_after(60):
            while "finished" not in text_of(last := await call()):
                assert "bash_1 is running" in text_of(last)
        assert "WAITING_FOR_APPROVAL" in text_of(await call())  # it has ended: this one would run
    assert (project / "runs").read_text(encoding="utf-8") == "run\n"
    (file,) = state.glob("gripfast/record/*/*/calls.jsonl")
    assert any(call.decision.startswith("allowed: it waits for bash_1") for call in read_calls(file)[0])


async def test_a_form_shows_the_diff(project: Path, generation: str) -> None:
    seen: list[str] = []
    async with client_of(asking(project, LATER), generation, elicitation_callback=form("accept", seen)) as client:
        await client.call_tool("Write", {"file_path": "new.txt", "content": "a\x1b[2J\nb\n"})
        await client.call_tool("Write", {"file_path": "long.txt", "content": "word\n" * 20_000})
    assert seen[0].endswith("+a\\x1b[2J\n+b")
    assert "more characters; SHA-256 of all: " in seen[1]
    assert len(seen[1]) < 2 * ask.LARGEST_FORM
    assert (project / "new.txt").read_text(encoding="utf-8") == "a\x1b[2J\nb\n"


async def test_a_yes_in_a_form_is_not_about_a_file_that_changed_meanwhile(project: Path, generation: str) -> None:
    seen: list[str] = []

    async def elicit(ctx: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        seen.append(params.message)
        (project / "new.txt").write_text("theirs\n", encoding="utf-8")
        return ElicitResult(action="accept", content={"decision": "Allow once"})

    async with client_of(asking(project, LATER), generation, elicitation_callback=elicit) as client:
        answer = await client.call_tool("Write", {"file_path": "new.txt", "content": "mine\n"})
    if generation == "legacy":
        assert "something other than what the user saw" in text_of(answer)
    else:  # the client repeats the call with its answer, and that is another question by then
        assert len(seen) == 2 and "-theirs" in seen[1]
    assert "-theirs" not in seen[0]
    assert (project / "new.txt").read_text(encoding="utf-8") == "theirs\n"


def form(action: Any, asked: list[str]) -> Any:
    async def elicit(ctx: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={"decision": "Allow once"} if action == "accept" else None)

    return elicit


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_client_that_declines_at_once_has_shown_nobody_the_form(
    project: Path, queue: QuestionQueue, generation: str, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "INSTANT_SECONDS", 3600)
    monkeypatch.setattr(ask, "DISMISSED_SECONDS", 3600)
    monkeypatch.setattr(ask, "UNSEEN_SECONDS", 3600)
    seen: list[str] = []
    async with client_of(asking(project, LATER), generation, elicitation_callback=form(action, seen)) as client:
        for line in ("a", "b"):
            answer, _ = await answering(queue, "yes", lambda line=line: client.call_tool("launch", {"line": line}))
            assert text_of(answer) == f"launched {line}"
    assert len(seen) == 1  # remembered


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_form_declined_so_fast_that_it_may_have_been_a_person_is_said_and_the_next_is_tried(
    project: Path, queue: QuestionQueue, generation: str, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "INSTANT_SECONDS", 3600)
    monkeypatch.setattr(ask, "DISMISSED_SECONDS", 3600)
    monkeypatch.setattr(ask, "UNSEEN_SECONDS", 0)
    seen: list[str] = []
    async with client_of(asking(project, SOON), generation, elicitation_callback=form(action, seen)) as client:
        for line in ("a", "a", "b"):
            waits = text_of(await client.call_tool("launch", {"line": line}))
            assert "The client declined it at once, probably unseen. The user can answer with `gripfast app" in waits
        assert len(seen) == 2  # the same call again attaches to its question
        for question in queue.waiting():
            queue.answer(question.id, "yes", by="terminal")
        assert text_of(await client.call_tool("launch", {"line": "a"})) == "launched a"
        assert len(seen) == 2


async def test_a_form_that_somebody_declined_is_a_no(
    project: Path, queue: QuestionQueue, generation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "INSTANT_SECONDS", 0)
    async with client_of(asking(project, LATER), generation, elicitation_callback=form("decline", [])) as client:
        answer = await client.call_tool("launch", {"line": "x"})
    assert "the user said no" in text_of(answer)
    assert queue.waiting() == []


async def test_a_state_directory_that_cant_be_used_is_said(project: Path, state: Path) -> None:
    (state / "gripfast").mkdir(parents=True)
    (state / "gripfast" / "questions").write_text("in the way", encoding="utf-8")
    async with client_of(asking(project, LATER), "legacy") as client:
        answer = await client.call_tool("launch", {"line": "x"})
    assert text_of(answer).startswith("Permission denied")
    assert "can't be put where the user would see it" in text_of(answer)
    assert launched == []


async def test_a_question_that_nobody_answers_is_over_after_its_lifetime(
    project: Path, queue: QuestionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions(asking(project, LATER))
    monkeypatch.setattr("gripfast.edges.mcp.sessions.QUESTION_LIFETIME", 0.05)
    async with client_of(sessions, "legacy") as client:
        answer = await client.call_tool("launch", {"line": "x"})
    assert re.search(r"Permission denied: .*; Q1 is over: nobody answered it in time", text_of(answer))
    assert queue.waiting() == []


async def test_a_client_that_opens_pages_is_sent_to_the_consoles(
    project: Path, queue: QuestionQueue, generation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def page(question: QueuedQuestion) -> str:
        return f"http://127.0.0.1:1/{question.id}"

    monkeypatch.setattr(ask, "console_url", page)
    monkeypatch.setattr(ask, "INSTANT_SECONDS", 3600)
    pages: list[str] = []

    async def elicit(ctx: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        if params.mode == "url":
            pages.append(params.url)
            return ElicitResult(action="accept")
        return ElicitResult(action="decline")

    async def person() -> None:
        with anyio.fail_after(60):
            while not pages:
                await anyio.sleep(0.01)
        queue.answer(pages[0].rpartition("/")[2], "yes", by="page")

    asks = client_of(asking(project, LATER), generation, elicitation_callback=elicit)
    async with asks as client, anyio.create_task_group() as group:
        group.start_soon(person)
        assert text_of(await client.call_tool("launch", {"line": "x"})) == "launched x"
    assert pages == ["http://127.0.0.1:1/Q1"]


async def test_whoever_answers_is_told_which_configuration_names_the_shared_store(
    project: Path, queue: QuestionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = project / "its own.toml"
    own.write_text("")
    settings = replace(asking(project, 0.05), config_file=str(own))
    async with client_of(settings, "legacy") as client:
        assert "`gripfast approve Q1`" in text_of(await client.call_tool("launch", {"line": "x"}))
    monkeypatch.setattr(QuestionQueue, "is_local", False)
    async with client_of(settings, "legacy") as client:
        waits = text_of(await client.call_tool("launch", {"line": "x"}))
    assert f"`gripfast approve Q2 --config '{own}'`" in waits


async def test_a_client_that_could_open_a_page_waits_where_there_is_no_console(
    project: Path, queue: QuestionQueue, generation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "INSTANT_SECONDS", 3600)
    modes: list[str] = []

    async def elicit(ctx: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        modes.append(params.mode)
        return ElicitResult(action="decline")

    asks = client_of(asking(project, LATER), generation, elicitation_callback=elicit)
    async with asks as client:
        yes, _ = await answering(queue, "yes", lambda: client.call_tool("launch", {"line": "x"}))
    assert text_of(yes) == "launched x"
    assert modes == ["form"]


@pytest.mark.parametrize("tool", ["launch", "Bash"])
async def test_a_client_that_asks_for_progress_is_told_that_its_call_goes_on(
    project: Path, queue: QuestionQueue, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a question waits, and while a command runs that prints nothing. The client of the newer protocol sends no
    token for it in one process."""
    monkeypatch.setattr(request, "HEARTBEAT_SECONDS", 0.01)
    told: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)
        if len(told) == 5:
            (project / "go").touch()

    async def person() -> None:
        (question,) = await asked(queue)
        with anyio.fail_after(60):
            while len(told) < 3:
                await anyio.sleep(0.01)
        queue.answer(question.id, "yes", by="terminal")

    arguments = {"command": "until [ -e go ]; do sleep 0.02; done"} if tool == "Bash" else {"line": "x"}
    async with client_of(asking(project, LATER), "legacy") as client, anyio.create_task_group() as group:
        group.start_soon(person)
        answer = await client.call_tool(tool, arguments, progress_callback=on_progress)
        assert not answer.is_error, text_of(answer)
    assert len(told) >= (5 if tool == "Bash" else 3)
    assert all(message is not None and re.fullmatch(r"running for \d+ s", message) for message in told)


def test_how_long_a_call_may_take_is_below_what_is_known_of_the_client() -> None:
    for name, timeout in approvals.CLIENT_TIMEOUTS.items():
        assert 0 < answer_within(name) < timeout
    assert answer_within("somebody new") == answer_within("") == 50
    assert answer_within("codex-mcp-client", 7) == 7
    assert answer_within("codex-mcp-client", 0) == 0


def test_answer_within_is_read_from_the_users_configuration_only(project: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("answer_within = 20\nnotify = true\n", encoding="utf-8")
    (project / ".gripfast.toml").write_text("answer_within = 1\nnotify = false\n", encoding="utf-8")
    settings = SessionSettings((str(project),), config_file=str(own))
    assert settings.answering() == (20, True)
    assert len(settings.config().ignored) == 2
    assert SessionSettings((str(project),), config_file=str(own), answer_within=5).answering() == (5, True)


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_desktop_is_told_of_a_question_if_that_is_wanted(
    project: Path, tmp_path: Path, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def note(question: QueuedQuestion) -> None:
        told.append(question.id)

    monkeypatch.setattr(sessions, "notify_desktop", note)
    own = tmp_path / "own.toml"
    own.write_text(f"answer_within = {SOON}\nnotify = {str(wanted).lower()}\n", encoding="utf-8")
    settings = SessionSettings((str(project),), permissions=Permissions("ask"), config_file=str(own))
    async with client_of(settings, "legacy") as client:
        for _ in range(2):  # the second attaches
            assert "WAITING" in text_of(await client.call_tool("Bash", {"command": "ls"}))
    assert told == (["Q1"] if wanted else [])


def test_serve_takes_answer_within_as_an_option(project: Path, tmp_path: Path, queue: QuestionQueue) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('answer_within = 600\n[permissions]\ndefault_action = "ask"\n', encoding="utf-8")
    words = [sys.executable, "-P", "-m", "gripfast", "serve", "--root", str(project), "--config", str(rules)]
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "codex-mcp-client", "version": "0"},
    }
    call = {"name": "Bash", "arguments": {"command": "ls"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    with subprocess.Popen(
        [*words, "--answer-within", "0.05"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write("".join(f"{json.dumps(message)}\n" for message in messages))
        server.stdin.flush()
        answer = next(line for line in server.stdout if '"id":2' in line.replace(" ", ""))
        (waiting,) = queue.waiting()
        server.stdin.close()
    assert "WAITING_FOR_APPROVAL" in answer and waiting.id in answer
    assert waiting.client == "codex-mcp-client"


@pytest.mark.parametrize("seconds", ["-1", "x", "nan", "inf", "1e9"])
def test_a_time_to_answer_that_is_none_is_refused(project: Path, tmp_path: Path, seconds: str) -> None:
    told = CliRunner().invoke(main, ["serve", "--root", str(project), "--answer-within", seconds])
    assert told.exit_code == 2 and "--answer-within" in told.stderr
    own = tmp_path / "own.toml"
    own.write_text(f"answer_within = {seconds}\n", encoding="utf-8")
    with pytest.raises(InvalidArgument):
        SessionSettings((str(project),), config_file=str(own)).answering()
