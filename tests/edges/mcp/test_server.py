"""The server seen by the SDK's own client, in both protocol generations."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    LoggingMessageNotificationParams,
    Root,
    TextResourceContents,
)
from pydantic import BaseModel, FileUrl

from gripfast import Depends, DocumentPart, ImagePart, TextPart, ToolContext, tool
from gripfast.builtin.keys import PERSON
from gripfast.builtin.person import Person
from gripfast.builtin.tools import TOOLS
from gripfast.call.rules import Permissions
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.mcp.sharing import Sharing
from gripfast.edges.settings import SessionSettings
from gripfast.host.stores.embedded_sessions import EmbeddedSessions
from gripfast.host.stores.store import EmbeddedStore
from serving import client_of, text_of

pytestmark = pytest.mark.anyio


class Sum(BaseModel):
    total: int


@tool(effect="read", title="Add", output_schema=True)
def add(a: int, b: int) -> Sum:
    """Adds."""
    return Sum(total=a + b)


@tool
def count_up(ctx: ToolContext) -> str:
    """Reports from the worker thread it runs in."""
    for step in range(1, 4):
        ctx.report_progress(step, 3, f"step {step}")
    return "done"


@tool
def speak(ctx: ToolContext) -> str:
    """Logs."""
    ctx.logger.info("hello from the tool")
    ctx.logger.debug("not this")
    return "spoken"


@tool(effect="run", subject="line")
def launch(line: str) -> str:
    """Launches."""
    return f"launched {line}"


@tool
async def wonder(person: Annotated[Person, Depends(PERSON)]) -> str:
    """Asks the person twice."""
    schema: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
    first = await person.fill_in("Your name?", schema)
    second = await person.fill_in("Your name?", schema) if first else None
    return f"{first} {second}"


@tool
async def sign(what: str, person: Annotated[Person, Depends(PERSON)]) -> str:
    """Asks the same question whatever is to be signed."""
    answer = await person.fill_in("Sign it?", {"type": "object", "properties": {"yes": {"type": "boolean"}}})
    return f"signed {what}: {answer}"


@tool
def gallery() -> list[Any]:
    """Shows one of each part."""
    return [TextPart("t"), ImagePart(b"\x89PNG", "image/png"), DocumentPart(b"d", "text/plain", "d.txt")]


@tool
def long_text() -> str:
    """Says more than a message holds."""
    return "\n".join(f"line {number}" for number in range(1, 20_001))


MINE = (add, count_up, speak, launch, wonder, sign, gallery, long_text)


@pytest.fixture
def settings(project: Path) -> SessionSettings:
    return SessionSettings((str(project),), (*SessionSettings().tools, *MINE))


async def test_a_tool_is_listed_with_its_title_annotations_and_schemas(
    settings: SessionSettings, generation: str
) -> None:
    async with client_of(settings, generation) as client:
        listed = {one.name: one for one in (await client.list_tools()).tools}
    assert listed["add"].title == "Add"
    assert listed["add"].annotations is not None
    assert listed["add"].annotations.read_only_hint is True
    assert listed["add"].output_schema is not None
    assert listed["Read"].output_schema is None


async def test_a_json_tool_answers_with_structure_and_text_that_say_the_same(
    settings: SessionSettings, generation: str
) -> None:
    async with client_of(settings, generation) as client:
        answer = await client.call_tool("add", {"a": 1, "b": 2})
    assert answer.structured_content == {"total": 3}
    assert text_of(answer) == '{"total":3}'


async def test_a_failed_call_is_a_result_and_not_a_protocol_error(settings: SessionSettings, generation: str) -> None:
    async with client_of(settings, generation) as client:
        missing = await client.call_tool("Read", {"file_path": "b.txt"})
        unknown = await client.call_tool("Raed", {})
        wrong = await client.call_tool("add", {"a": "x", "c": 1})
        fine = await client.call_tool("Read", {"file_path": "a.txt"})
    assert missing.is_error and "NOT_FOUND" in text_of(missing)
    assert unknown.is_error and "did you mean `Read`" in text_of(unknown)
    assert wrong.is_error and "3 problems" in text_of(wrong)
    assert not fine.is_error


async def test_an_unknown_method_is_a_protocol_error(settings: SessionSettings, generation: str) -> None:
    async with client_of(settings, generation) as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt("x")
    assert refused.value.error.code == -32601


async def test_text_images_and_documents_each_arrive_as_their_own_block(
    settings: SessionSettings, generation: str
) -> None:
    async with client_of(settings, generation) as client:
        answer = await client.call_tool("gallery", {})
    assert [block.type for block in answer.content] == ["text", "image", "resource"]


async def test_progress_from_a_worker_thread_arrives_in_order_before_the_answer(
    settings: SessionSettings, generation: str
) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with client_of(settings, generation) as client:
        await client.call_tool("count_up", {}, progress_callback=on_progress)
        await anyio.wait_all_tasks_blocked()
    assert told == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_what_a_tool_logs_reaches_an_older_client(settings: SessionSettings) -> None:
    heard: list[Any] = []

    async def on_log(params: LoggingMessageNotificationParams) -> None:
        heard.append((params.level, params.data))

    async with client_of(settings, "legacy", logging_callback=on_log) as client:
        await client.call_tool("speak", {})
        await anyio.wait_all_tasks_blocked()
    assert heard == [("info", "hello from the tool")]


async def test_cancelling_a_call_stops_its_work_and_leaves_the_session_usable(project: Path) -> None:
    stopped = threading.Event()
    started = threading.Event()

    @tool
    async def wait() -> str:
        """Waits for ever."""
        started.set()
        try:
            await anyio.sleep(3600)
        finally:
            stopped.set()
        return "slept"

    served = SessionSettings((str(project),), (*SessionSettings().tools, wait))
    async with client_of(served, "legacy") as client:

        async def call_wait() -> None:
            await client.call_tool("wait", {})

        async with anyio.create_task_group() as group:
            group.start_soon(call_wait)
            while not started.is_set():
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        with anyio.fail_after(10):
            while not stopped.is_set():
                await anyio.sleep(0.01)
        assert not (await client.call_tool("Read", {"file_path": "a.txt"})).is_error


def asking(settings: SessionSettings) -> SessionSettings:
    """Everything is asked about, and no question waits for somebody elsewhere."""
    return SessionSettings(settings.roots, settings.tools, Permissions(default_action="ask"), answer_within=0)


def answering(decision: str | None, seen: list[str]) -> Any:
    async def elicit(ctx: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        seen.append(params.message)
        if decision is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"decision": decision})

    return elicit


async def test_a_call_that_must_be_asked_for_runs_once_the_person_says_yes(
    settings: SessionSettings, generation: str
) -> None:
    seen: list[str] = []
    async with client_of(asking(settings), generation, elicitation_callback=answering("Allow once", seen)) as client:
        answer = await client.call_tool("launch", {"line": "ls -l"})
        again = await client.call_tool("launch", {"line": "ls -l"})
    assert text_of(answer) == text_of(again) == "launched ls -l"
    assert len(seen) == 2
    assert "line: ls -l" in seen[0]


async def test_always_is_remembered_for_the_session(settings: SessionSettings, generation: str) -> None:
    seen: list[str] = []
    async with client_of(
        asking(settings), generation, elicitation_callback=answering("Allow always", seen)
    ) as client:
        await client.call_tool("launch", {"line": "ls -l"})
        again = await client.call_tool("launch", {"line": "ls -l"})
    assert text_of(again) == "launched ls -l"
    assert len(seen) == 1


@pytest.mark.parametrize("decision", ["Deny", None, "something else"])
async def test_any_answer_but_yes_is_no(settings: SessionSettings, generation: str, decision: str | None) -> None:
    async with client_of(asking(settings), generation, elicitation_callback=answering(decision, [])) as client:
        answer = await client.call_tool("launch", {"line": "ls -l"})
    assert answer.is_error and text_of(answer).startswith("Permission denied")


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_form_that_was_not_accepted_is_no_whatever_stands_in_it(
    settings: SessionSettings, generation: str, action: Any
) -> None:
    async def elicit(ctx: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action=action, content={"decision": "Allow once"})

    async with client_of(asking(settings), generation, elicitation_callback=elicit) as client:
        answer = await client.call_tool("launch", {"line": "ls -l"})
    assert answer.is_error and text_of(answer).startswith("Permission denied")


async def test_a_client_that_cant_show_a_form_is_told_how_to_allow_it(
    settings: SessionSettings, generation: str
) -> None:
    async with client_of(asking(settings), generation) as client:
        answer = await client.call_tool("launch", {"line": "ls -l"})
        unproved = await client.call_tool("launch", {"line": "ls ${!x}"})
    assert answer.is_error and "allow it with a rule" in text_of(answer)
    assert unproved.is_error and "give it as plain commands" in text_of(unproved)


async def test_an_answer_is_good_on_every_server_that_shares_sessions_and_only_once(
    settings: SessionSettings, tmp_path: Path
) -> None:
    yes = ElicitResult(action="accept", content={"decision": "Allow once"})
    stores = [EmbeddedSessions(tmp_path / "store") for _ in range(2)]
    sharings = [
        Sharing(store, EmbeddedStore(tmp_path / "out"), name, most=9)
        for store, name in zip(stores, "ab", strict=True)
    ]
    servers = [Sessions(asking(settings), sharing=sharing) for sharing in sharings]
    options = {"elicitation_callback": answering("Allow once", [])}
    async with (
        client_of(servers[0], "2026-07-28", **options) as a,
        client_of(servers[1], "2026-07-28", **options) as b,
    ):

        async def launched(client: Client, **answer: Any) -> Any:
            return await client.session.call_tool("launch", {"line": "ls -l"}, allow_input_required=True, **answer)

        question = await launched(a)
        answers = dict.fromkeys(question.input_requests, yes)
        good = await launched(b, input_responses=answers, request_state=question.request_state)
        used = await launched(a, input_responses=answers, request_state=question.request_state)
    for sharing in sharings:
        await sharing.close()
    assert text_of(good) == "launched ls -l"
    assert used.result_type == "input_required"


async def test_an_answer_is_good_for_the_call_it_was_asked_for_and_only_once(settings: SessionSettings) -> None:
    async with client_of(asking(settings), "2026-07-28", elicitation_callback=answering("Allow once", [])) as client:

        async def launched(line: str, **answer: Any) -> Any:
            return await client.session.call_tool("launch", {"line": line}, allow_input_required=True, **answer)

        async def asked() -> dict[str, Any]:
            question = await launched("ls -l")
            yes = ElicitResult(action="accept", content={"decision": "Allow once"})
            return {
                "input_responses": dict.fromkeys(question.input_requests, yes),
                "request_state": question.request_state,
            }

        answer = await asked()
        good = await launched("ls -l", **answer)
        used = await launched("ls -l", **answer)
        other = await launched("ls /etc", **(await asked()))
    assert text_of(good) == "launched ls -l"
    assert used.result_type == other.result_type == "input_required"


async def test_an_answer_to_the_same_question_of_another_call_counts_for_nothing(settings: SessionSettings) -> None:
    async with client_of(settings, "2026-07-28", elicitation_callback=answering("", [])) as client:

        async def signed(what: str, **answer: Any) -> Any:
            return await client.session.call_tool("sign", {"what": what}, allow_input_required=True, **answer)

        question = await signed("a letter")
        yes = dict.fromkeys(question.input_requests, ElicitResult(action="accept", content={"yes": True}))
        other = await signed("a cheque", input_responses=yes, request_state=question.request_state)
    assert other.result_type == "input_required"


async def test_a_tool_may_ask_the_person_itself_as_often_as_it_likes(
    settings: SessionSettings, generation: str
) -> None:
    names = iter(["Ada", "Grace", "Mary", "Jean"])

    async def elicit(ctx: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": next(names)})

    async with client_of(settings, generation, elicitation_callback=elicit) as client:
        answer = await client.call_tool("wonder", {})
    assert text_of(answer) == "{'name': 'Ada'} {'name': 'Grace'}"


async def test_without_a_root_of_its_own_the_server_takes_the_clients(project: Path, generation: str) -> None:
    async def roots(ctx: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(f"file://{project}"))])

    sessions = Sessions(SessionSettings(), ask_for_roots=True)
    async with client_of(sessions, generation, list_roots_callback=roots) as client:
        answer = await client.call_tool("Read", {"file_path": "a.txt"})
    assert text_of(answer).startswith("     1\tone")


async def test_a_client_may_not_hand_over_the_home_directory(
    project: Path, generation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))

    async def roots(ctx: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(f"file://{project}"))])

    async with client_of(
        Sessions(SessionSettings(), ask_for_roots=True), generation, list_roots_callback=roots
    ) as client:
        answer = await client.call_tool("Read", {"file_path": "a.txt"})
    assert answer.is_error and "home directory" in text_of(answer)


async def test_named_roots_are_not_widened_by_the_clients(project: Path, tmp_path: Path, generation: str) -> None:
    async def roots(ctx: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(f"file://{tmp_path}"))])

    (tmp_path / "secret").write_text("s", encoding="utf-8")
    sessions = Sessions(SessionSettings((str(project),)), ask_for_roots=True)
    async with client_of(sessions, generation, list_roots_callback=roots) as client:
        answer = await client.call_tool("Read", {"file_path": str(tmp_path / "secret")})
    assert answer.is_error and "SANDBOX_VIOLATION" in text_of(answer)


async def test_a_long_output_is_a_resource_whole_and_by_lines(settings: SessionSettings, generation: str) -> None:
    async with client_of(settings, generation) as client:
        answer = await client.call_tool("long_text", {})
        ref: Any = (answer.meta or {})["gripfast/output_ref"]
        listed = (await client.list_resources()).resources
        whole = await client.read_resource(listed[0].uri)
        window = await client.read_resource(f"{listed[0].uri}?offset=10&limit=2")
    assert listed[0].uri == f"gripfast://output/{ref['id']}"
    assert isinstance(whole.contents[0], TextResourceContents)
    assert whole.contents[0].text.endswith("line 20000")
    assert isinstance(window.contents[0], TextResourceContents)
    assert window.contents[0].text.startswith("line 11\nline 12\n[lines 11 to 12 of 20000")


@pytest.mark.parametrize("uri", ["gripfast://output/nope", "file:///etc/passwd", "gripfast://output/x?offset=y"])
async def test_a_resource_that_is_not_there_is_a_protocol_error(
    settings: SessionSettings, generation: str, uri: str
) -> None:
    async with client_of(settings, generation) as client:
        with pytest.raises(MCPError):
            await client.read_resource(uri)


async def test_calls_run_beside_each_other_and_all_are_answered(project: Path, generation: str) -> None:
    started, release = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Waits until it is released."""
        started.set()
        return "released" if release.wait(30) else "waited in vain"

    @tool
    def free() -> str:
        """Releases it."""
        release.set()
        return "freed"

    async with client_of(SessionSettings((str(project),), (slow, free)), generation) as client:
        answers: list[str] = []

        async def call(name: str) -> None:
            answers.append(text_of(await client.call_tool(name, {})))

        async with anyio.create_task_group() as group:
            group.start_soon(call, "slow")
            while not started.is_set():
                await anyio.sleep(0.01)
            group.start_soon(call, "free")
    assert sorted(answers) == ["freed", "released"]


async def test_a_session_that_can_not_be_opened_is_an_error_with_its_code(tmp_path: Path, generation: str) -> None:
    async with client_of(SessionSettings((str(tmp_path / "nowhere"),)), generation) as client:
        answer = await client.call_tool("Read", {"file_path": "a.txt"})
    assert answer.is_error
    assert text_of(answer).startswith("Error executing tool: NOT_FOUND: ")


async def test_a_client_is_told_at_the_start_how_the_tools_work_together(project: Path) -> None:
    async with client_of(SessionSettings((str(project),)), "legacy") as client:
        told = client.instructions or ""
    assert len(told.splitlines()) == 5
    assert "Read a file before you Edit" in told
    read_only = SessionSettings((str(project),), tuple(tool for tool in TOOLS if tool.traits.effect == "read"))
    async with client_of(read_only, "legacy") as client:
        assert "Edit" not in (client.instructions or "")
