"""Hooks before and after a call: a no is an answer, a doubt is asked, a broken hook never lets anything through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from gripfast.call.hooks import Ask, Deny, Question
from gripfast.call.run import Session
from gripfast.errors import Conflict
from gripfast.framework.definition import Tool, tool
from gripfast.messages import ToolCall, ToolMessage

pytestmark = pytest.mark.anyio

RAN: list[int] = []


@tool
async def act(n: int = 1) -> str:
    """Acts."""
    RAN.append(n)
    return f"acted {n}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def before(*hooks: Any, **words: Any) -> Session:
    return Session([act], before=hooks, **words)


def say(word: Any) -> Any:
    """A hook that always answers the same."""

    def hook(*_: Any) -> Any:
        return word

    return hook


def after(*hooks: Any) -> Session:
    return Session([act], after=hooks)


async def test_a_hook_sees_the_call_the_tool_and_validated_arguments() -> None:
    seen: list[Any] = []

    def look(call: ToolCall, tool: Tool, arguments: BaseModel) -> None:
        seen.append((call.name, tool, arguments.model_dump()))

    async def look_later(call: ToolCall, tool: Tool, arguments: BaseModel) -> None:
        look(call, tool, arguments)

    assert (await before(look, look_later).call("act", {"n": "2"})).content == "acted 2"
    assert seen == [("act", act, {"n": 2})] * 2


async def test_hooks_are_not_asked_about_calls_that_can_not_run() -> None:
    def never(*_: Any) -> None:
        raise AssertionError

    assert (await before(never).call("act", {"x": 1})).text.startswith("Error executing tool: INVALID_ARGUMENT")
    assert (await before(never).call("atc")).text.startswith("Error executing tool: TOOL_NOT_FOUND")


async def test_a_denied_call_does_not_run_and_later_hooks_are_not_asked() -> None:
    def never(*_: Any) -> None:
        raise AssertionError

    message = await before(say(Deny("not on Sundays")), never).call("act")
    assert (message.content, message.is_error) == ("Permission denied: not on Sundays", True)
    assert message.error is not None
    assert message.error.code == "POLICY_DENIED"
    assert RAN == []


async def test_an_asked_call_runs_on_a_yes_only() -> None:
    asked: list[Question] = []
    answers: list[Any] = [True, False, None, "yes", 0, "always"]

    async def person(question: Question) -> Any:
        asked.append(question)
        return answers.pop(0)

    here = before(say(Ask("sure?")), ask=person)
    contents = [(await here.call("act", {"n": n})).content for n in range(6)]
    assert contents == ["acted 0", *["Permission denied: sure?; the user said no"] * 4, "acted 5"]
    assert RAN == [0, 5]
    assert asked[0].arguments.model_dump() == {"n": 0}
    assert (asked[0].reason, asked[0].may_remember) == ("sure?", False)


async def test_always_is_remembered_for_exactly_that_token_in_this_session() -> None:
    asked: list[str] = []

    async def person(question: Question) -> Any:
        asked.append(question.reason)
        return "always"

    def hook(_: ToolCall, __: Tool, arguments: Any) -> Ask:
        return Ask(f"n={arguments.n}", token=str(arguments.n))

    here = before(hook, ask=person)
    for n in (1, 1, 2, 1, 2):
        await here.call("act", {"n": n})
    assert asked == ["n=1", "n=2"]
    await before(hook, ask=person).call("act", {"n": 1})
    assert asked == ["n=1", "n=2", "n=1"]


async def test_a_question_with_nobody_to_ask_is_a_no() -> None:
    message = await before(say(Ask("sure?"))).call("act")
    assert message.text.startswith("Permission denied: sure?; it needs approval and there is nobody to ask")
    assert RAN == []


@pytest.mark.parametrize("odd", [True, False, "allow", 0, "", object()], ids=lambda one: type(one).__name__)
async def test_a_hook_that_answers_anything_else_lets_nothing_through(odd: Any) -> None:
    message = await before(say(odd)).call("act")
    assert message.text.startswith("Permission denied: a hook must return None, Deny or Ask")
    assert RAN == []


async def test_a_hook_that_breaks_lets_nothing_through_and_says_that_the_call_did_not_run() -> None:
    def breaks(*_: Any) -> None:
        raise KeyError("/secret")

    async def breaks_later(*_: Any) -> None:
        await anyio.sleep(0)
        raise SystemExit

    async def broken_person(_: Question) -> bool:
        raise OSError("/secret")

    for here in (before(breaks), before(breaks_later), before(say(Ask("?")), ask=broken_person)):
        message = await here.call("act")
        assert message.error is not None
        assert message.error.code == "INTERNAL"
        assert message.text.startswith("Error executing tool: INTERNAL: a hook before `act` failed with ")
        assert message.text.endswith(", so the call did not run; the log has the traceback")
        assert "secret" not in message.text
    assert RAN == []


async def test_a_hook_may_refuse_with_an_error_of_its_own() -> None:
    def refuses(*_: Any) -> None:
        raise Conflict("somebody else is at it")

    assert (await before(refuses).call("act")).content == ("Error executing tool: CONFLICT: somebody else is at it")


async def test_a_hook_after_a_call_sees_the_message_and_may_replace_it() -> None:
    seen: list[Any] = []

    def look(call: ToolCall, tool: Tool | None, message: ToolMessage) -> None:
        seen.append((call.name, tool, message.content))

    async def redact(_: ToolCall, __: Tool | None, message: ToolMessage) -> ToolMessage:
        return replace(message, content="redacted")

    here = after(look, redact, look)
    assert (await here.call("act")).content == "redacted"
    assert seen == [("act", act, "acted 1"), ("act", act, "redacted")]


async def test_a_hook_after_a_call_sees_failures_and_unknown_tools_too() -> None:
    seen: list[Any] = []

    def look(_: ToolCall, tool: Tool | None, message: ToolMessage) -> None:
        assert message.error is not None
        seen.append((tool, message.error.code))

    here = after(look)
    await here.call("act", {"n": "x"})
    await here.call("atc")
    assert seen == [(act, "INVALID_ARGUMENT"), (None, "TOOL_NOT_FOUND")]


async def test_a_hook_after_a_call_that_breaks_holds_the_answer_back_and_says_that_the_call_ran() -> None:
    def breaks(*_: Any) -> None:
        raise KeyError("/secret")

    def gives_nonsense(*_: Any) -> str:
        return "not a message"

    for hook in (breaks, gives_nonsense):
        message = await after(hook).call("act")
        assert message.is_error
        assert message.text.startswith("Error executing tool: INTERNAL: `act` ran, but a hook after it failed with ")
        assert message.text.endswith(", so its result is withheld; the log has the traceback")
        assert "acted" not in message.text
        assert "secret" not in message.text
    assert RAN == [1, 1]
