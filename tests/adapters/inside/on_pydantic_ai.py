"""pydantic-ai with a scripted model: results, deferred approvals, errors, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.workspaces import WorkspaceRef

from gripfast import Ask, Scope, Session, open_session
from gripfast.adapters.pydantic_ai import attach, toolset, workspace

pytestmark = pytest.mark.anyio


def scripted(*calls: tuple[str, Any]) -> FunctionModel:
    def play(messages: Any, info: Any) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn >= len(calls):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(*calls[turn], tool_call_id=f"c{turn}")])

    return FunctionModel(play)


def agent_of(session: Session, *calls: tuple[str, Any]) -> Agent[Any, Any]:
    return Agent(scripted(*calls), toolsets=[toolset(session)], output_type=[str, DeferredToolRequests])


def returns(result: Any) -> list[ToolReturnPart]:
    parts = [part for message in result.all_messages() for part in message.parts]
    return [part for part in parts if isinstance(part, ToolReturnPart)]


async def test_a_run_reads_sees_pictures_and_learns_what_was_wrong(session: Session) -> None:
    calls = (
        ("Read", {"file_path": "a.txt"}),
        ("Read", {"file_path": "dot.png"}),
        ("Read", '{"file_path": '),
        ("Read", {"nope": 1}),
        ("Read", {"file_path": "missing.txt"}),
    )
    result = await agent_of(session, *calls).run("go")
    assert result.output == "done"
    text, picture, mangled, unknown, missing = returns(result)
    assert text.content == "     1\tone\n     2\ttwo" and text.metadata["is_error"] is False
    assert isinstance(picture.content[1], BinaryContent)
    assert (mangled.outcome, unknown.outcome, missing.outcome) == ("retried", "retried", "failed")
    assert "NOT_FOUND" in str(missing.content)


WRITE = ("Write", {"file_path": "new.txt", "content": "x\n"})


async def resumed(agent: Agent[Any, Any], result: Any, answer: Any) -> Any:
    assert result.output.metadata["c0"]["shown"].startswith("Write wants to run. writing needs a yes")
    decided = DeferredToolResults(approvals={"c0": answer})
    return await agent.run(message_history=result.all_messages(), deferred_tool_results=decided)


@pytest.mark.parametrize("answer", [True, ToolDenied("not today")])
async def test_a_write_waits_for_its_approval(session: Session, project: Path, answer: Any) -> None:
    agent = agent_of(session, WRITE)
    result = await agent.run("go")
    assert not (project / "new.txt").exists()
    assert (await resumed(agent, result, answer)).output == "done"
    assert (project / "new.txt").exists() is (answer is True)


async def test_an_approval_is_good_in_another_process(session: Session, project: Path) -> None:
    result = await agent_of(session, WRITE).run("go")
    again = agent_of(session, WRITE)  # another toolset: nothing is remembered
    await resumed(again, result, True)
    assert (project / "new.txt").exists()


async def test_a_second_question_is_put_as_well(project: Path) -> None:
    def first(call: Any, tool: Any, arguments: Any) -> Ask:
        return Ask("the first question")

    def second(call: Any, tool: Any, arguments: Any) -> Ask:
        return Ask("the second question")

    async with open_session(Scope.workspace(project), before=[first, second]) as session:
        agent = agent_of(session, WRITE)
        result = await agent.run("go")
        assert "the first question" in result.output.metadata["c0"]["shown"]
        decided = DeferredToolResults(approvals={"c0": True})
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decided)
        assert "the second question" in result.output.metadata["c0"]["shown"]
        assert not (project / "new.txt").exists()
        await agent.run(message_history=result.all_messages(), deferred_tool_results=decided)
    assert (project / "new.txt").exists()


async def test_no_question_offers_an_answer_that_cannot_be_given(project: Path) -> None:
    def asks(call: Any, tool: Any, arguments: Any) -> Ask:
        return Ask("why", token="t", covers="everything")

    async with open_session(Scope.workspace(project), before=[asks]) as session:
        result = await agent_of(session, WRITE).run("go")
    assert "Always" not in result.output.metadata["c0"]["shown"]


def test_what_is_no_session_or_scope_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="a session is needed"):
        toolset("x")
    with pytest.raises(TypeError, match="a Scope is needed"):
        workspace(".")


def test_a_ref_is_not_opened_without_a_word_about_rules() -> None:
    with pytest.raises(TypeError, match="permissions"):
        attach(WorkspaceRef(provider="gripfast", id="/"))


async def test_two_runs_at_once_on_one_session(session: Session) -> None:
    agent = agent_of(session, ("Read", {"file_path": "a.txt"}))
    results = await asyncio.gather(agent.run("go"), agent.run("go"))
    assert [result.output for result in results] == ["done", "done"]


async def test_cancelling_a_run_ends_the_process(session: Session, is_running: Callable[[str], bool]) -> None:
    run = asyncio.ensure_future(agent_of(session, ("Bash", {"command": "sleep 276.25"})).run("go"))
    while not is_running("276.25"):
        await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not is_running("276.25")


async def test_a_session_closed_underneath_is_a_failed_tool(session: Session) -> None:
    agent = agent_of(session, ("Read", {"file_path": "a.txt"}))
    await session.close()
    (failed,) = returns(await agent.run("go"))
    assert failed.outcome == "failed" and "the session is closed" in str(failed.content)


async def test_a_tool_that_does_not_exist_can_not_be_chosen(session: Session) -> None:
    with pytest.raises(Exception, match="no tool named `Raed`"):
        toolset(session, tools=["Raed"])
