"""Google's ADK with a scripted model: results, confirmations, errors, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import Field

from gripfast import Session
from gripfast.adapters.google_adk import toolset

pytestmark = pytest.mark.anyio
CONFIRMATION = "adk_request_confirmation"


class Scripted(BaseLlm):
    """Plays calls, one a turn, then ends."""

    model: str = "scripted"
    calls: list[Any] = Field(default_factory=list)
    turn: int = 0
    declared: list[str] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.declared = sorted(llm_request.tools_dict)
        self.turn += 1
        if self.turn > len(self.calls):
            part = types.Part.from_text(text="done")
        else:
            name, arguments = self.calls[self.turn - 1]
            part = types.Part(function_call=types.FunctionCall(id=f"c{self.turn}", name=name, args=arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class Conversation:
    def __init__(self, session: Session, *calls: Any) -> None:
        self.model = Scripted(calls=list(calls))
        agent = LlmAgent(name="tester", model=self.model, tools=[toolset(session)])
        self.runner = InMemoryRunner(agent=agent, app_name="tests")
        self.id = ""

    async def say(self, *parts: types.Part) -> list[types.Part]:
        if not self.id:
            made = await self.runner.session_service.create_session(app_name="tests", user_id="u")
            self.id = made.id
        message = types.Content(role="user", parts=list(parts) or [types.Part.from_text(text="go")])
        stream = self.runner.run_async(user_id="u", session_id=self.id, new_message=message)
        return [part async for event in stream for part in (event.content.parts if event.content else [])]


def responses(parts: list[types.Part]) -> list[types.FunctionResponse]:
    return [part.function_response for part in parts if part.function_response]


def asked(parts: list[types.Part]) -> types.FunctionCall:
    (call,) = [one.function_call for one in parts if one.function_call and one.function_call.name == CONFIRMATION]
    return call


def confirmed(call: types.FunctionCall, yes: bool, payload: Any = None) -> types.Part:
    response = types.FunctionResponse(id=call.id, name=CONFIRMATION, response={"confirmed": yes, "payload": payload})
    return types.Part(function_response=response)


async def test_a_run_reads_sees_pictures_and_learns_what_was_wrong(session: Session) -> None:
    talk = Conversation(
        session,
        ("Read", {"file_path": "a.txt"}),
        ("Read", {"nope": 1}),
        ("Read", {"file_path": "dot.png"}),
        ("Nope", {}),
    )
    parts = await talk.say()
    text, unknown, picture, missing = responses(parts)
    assert text.response == {"result": "     1\tone\n     2\ttwo"}
    assert "`nope`: no such argument" in unknown.response["error"]
    assert picture.parts[0].inline_data.mime_type == "image/png"
    assert "Nope" in str(missing.response)
    assert parts[-1].text == "done" and "lisp-read-file" in talk.model.declared


WRITE = ("Write", {"file_path": "new.txt", "content": "x\n"})


async def test_a_write_waits_and_runs_when_it_is_confirmed(session: Session, project: Path) -> None:
    talk = Conversation(session, WRITE)
    call = asked(await talk.say())
    assert "Write wants to run. writing needs a yes" in call.args["toolConfirmation"]["hint"]
    assert not (project / "new.txt").exists()
    parts = await talk.say(confirmed(call, True))
    assert "created" in str(responses(parts)[0].response)
    assert (project / "new.txt").read_text() == "x\n"


async def test_a_write_that_is_not_confirmed_leaves_nothing(session: Session, project: Path) -> None:
    talk = Conversation(session, WRITE)
    call = asked(await talk.say())
    parts = await talk.say(confirmed(call, False))
    assert "the user said no" in responses(parts)[0].response["error"]
    assert not (project / "new.txt").exists()


async def test_always_is_not_asked_again(session: Session, project: Path) -> None:
    talk = Conversation(session, WRITE, ("Write", {"file_path": "more.txt", "content": ""}))
    await talk.say(confirmed(asked(await talk.say()), True, "always"))
    assert (project / "more.txt").exists()


async def test_two_runs_at_once_on_one_session_have_answers_of_their_own(session: Session, project: Path) -> None:
    writes = [("Write", {"file_path": f"{name}.txt", "content": "x\n"}) for name in ("one", "two")]
    one, two = (Conversation(session, write) for write in writes)
    first, second = await asyncio.gather(one.say(), two.say())
    await asyncio.gather(two.say(confirmed(asked(second), False)), one.say(confirmed(asked(first), True)))
    assert (project / "one.txt").exists() and not (project / "two.txt").exists()


async def test_cancelling_a_run_ends_the_process(session: Session, is_running: Callable[[str], bool]) -> None:
    talk = Conversation(session, ("Bash", {"command": "sleep 272.25"}))
    run = asyncio.ensure_future(talk.say())
    while not is_running("272.25"):
        await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not is_running("272.25")


async def test_a_session_closed_underneath_is_an_answer(session: Session) -> None:
    talk = Conversation(session, ("Read", {"file_path": "a.txt"}))
    await session.close()
    assert "the session is closed" in responses(await talk.say())[0].response["error"]
