"""Microsoft's Agent Framework with a scripted chat client: results, approvals call by call, errors, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

from gripfast import Session
from gripfast.adapters.agent_framework import middleware, tools

pytestmark = pytest.mark.anyio


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """Plays calls, one a turn, then ends; keeps the results it was sent."""

    def __init__(self, *calls: tuple[str, Any]) -> None:
        super().__init__()
        self.calls = list(calls)
        self.turn = 0
        self.seen: list[Content] = []

    async def _respond(self, messages: Any) -> ChatResponse:
        self.seen = [one for message in messages for one in message.contents if one.type == "function_result"]
        self.turn += 1
        if self.turn > len(self.calls):
            content = Content.from_text("done")
        else:
            name, arguments = self.calls[self.turn - 1]
            content = Content.from_function_call(call_id=f"c{self.turn}", name=name, arguments=arguments)
        return ChatResponse(messages=[Message(role="assistant", contents=[content])])

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        return self._respond(messages)


def agent_of(session: Session, client: Scripted, *, asks: bool = True) -> Agent:
    return Agent(client, tools=tools(session), middleware=[middleware(session)] if asks else [])


def text_of(result: Content) -> str:
    return str(result.result) + "".join(str(one.text or "") for one in result.items or [])


async def test_a_run_reads_sees_pictures_and_learns_what_was_wrong(session: Session) -> None:
    client = Scripted(
        ("Read", {"file_path": "a.txt"}),
        ("Read", {"file_path": "missing.txt"}),
        ("Read", {"file_path": "dot.png"}),
        ("Grep", {"pattern": "two", "-n": False, "output_mode": "content"}),
    )
    answer = await agent_of(session, client).run("go")
    assert answer.text == "done"
    text, missing, picture, found = client.seen
    assert "1\tone" in text_of(text) and "NOT_FOUND" in text_of(missing) and "a.txt:two" in text_of(found)
    assert any(one.type == "data" and one.media_type == "image/png" for one in picture.items or [])


async def test_arguments_the_framework_refuses_are_its_own_error(session: Session) -> None:
    client = Scripted(("Read", {"nope": 1}), ("Read", "{not json"))
    answer = await agent_of(session, client).run("go")
    assert answer.text == "done" and all(result.exception or "rror" in text_of(result) for result in client.seen)


WRITE = ("Write", {"file_path": "new.txt", "content": "x\n"})


async def paused(agent: Agent, talk: Any) -> Content:
    answer = await agent.run("go", session=talk)
    (request,) = answer.user_input_requests
    assert "Write wants to run. writing needs a yes" in request.additional_properties["shown"]
    return request


@pytest.mark.parametrize("approved", [True, False])
async def test_a_write_waits_for_approval_and_a_read_does_not(
    session: Session, project: Path, approved: bool
) -> None:
    client = Scripted(("Read", {"file_path": "a.txt"}), WRITE)
    agent = agent_of(session, client)
    talk = agent.create_session()
    request = await paused(agent, talk)
    assert not (project / "new.txt").exists()
    answer = await agent.run(
        Message(role="user", contents=[request.to_function_approval_response(approved)]), session=talk
    )
    assert answer.text == "done"
    assert (project / "new.txt").exists() is approved


class Keeping(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A server that keeps the conversation: it is sent only what is new. Makes all calls in one turn."""

    def __init__(self, *calls: tuple[str, Any]) -> None:
        super().__init__()
        self.calls = calls
        self.sent: list[list[str]] = []

    async def _respond(self, messages: Any) -> ChatResponse:
        results = [one for message in messages for one in message.contents if one.type == "function_result"]
        self.sent.append(sorted(f"{one.call_id} {text_of(one)}" for one in results))
        contents = [Content.from_text("done")]
        if len(self.sent) == 1:
            contents = [
                Content.from_function_call(call_id=f"c{number}", name=name, arguments=arguments)
                for number, (name, arguments) in enumerate(self.calls)
            ]
        return ChatResponse(
            messages=[Message(role="assistant", contents=contents)], conversation_id=f"resp_{len(self.sent)}"
        )

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        return self._respond(messages)


@pytest.mark.parametrize("approved", [True, False])
async def test_a_server_that_keeps_the_conversation_gets_the_results_of_all_calls_of_a_turn(
    session: Session, approved: bool
) -> None:
    client = Keeping(("Read", {"file_path": "a.txt"}), WRITE, ("Read", {"file_path": "missing.txt"}))
    agent = agent_of(session, client)
    talk = agent.create_session()
    request = await paused(agent, talk)
    said = Message(role="user", contents=[request.to_function_approval_response(approved)])
    answer = await agent.run(said, session=talk)
    assert answer.text == "done"
    first, write, missing = client.sent[-1]
    assert first.startswith("c0") and "1\tone" in first
    assert write.startswith("c1") and missing.startswith("c2") and "NOT_FOUND" in missing


async def test_without_the_middleware_an_asked_call_is_refused_with_the_remedy(
    session: Session, project: Path
) -> None:
    client = Scripted(WRITE)
    await agent_of(session, client, asks=False).run("go")
    assert "middleware(session)" in text_of(client.seen[0]) and not (project / "new.txt").exists()


async def test_two_runs_at_once_on_one_session_have_answers_of_their_own(session: Session, project: Path) -> None:
    writes = [("Write", {"file_path": f"{name}.txt", "content": "x\n"}) for name in ("one", "two")]
    agents = [agent_of(session, Scripted(write)) for write in writes]
    talks = [agent.create_session() for agent in agents]
    asked = await asyncio.gather(*(agent.run("go", session=talk) for agent, talk in zip(agents, talks, strict=True)))
    answers = [
        Message(role="user", contents=[one.user_input_requests[0].to_function_approval_response(yes)])
        for one, yes in zip(asked, (True, False), strict=True)
    ]
    await asyncio.gather(
        *(agent.run(said, session=talk) for agent, said, talk in zip(agents, answers, talks, strict=True))
    )
    assert (project / "one.txt").exists() and not (project / "two.txt").exists()


async def test_cancelling_a_run_ends_the_process(session: Session, is_running: Callable[[str], bool]) -> None:
    client = Scripted(("Bash", {"command": "sleep 274.25"}))
    run = asyncio.ensure_future(agent_of(session, client).run("go"))
    while not is_running("274.25"):
        await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not is_running("274.25")


async def test_a_session_closed_underneath_is_an_answer(session: Session) -> None:
    client = Scripted(("Read", {"file_path": "a.txt"}))
    agent = agent_of(session, client)
    await session.close()
    await agent.run("go")
    assert "the session is closed" in text_of(client.seen[0])
