"""What all adapters share: pauses and approvals, names, and the loop for frameworks without one."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from gripfast import Ask, Permissions, Scope, Session, Tool, ToolCall, define_tool, open_session, tool
from gripfast.adapters.calls import Caller, Paused, decided
from gripfast.adapters.loops import beside, in_loop
from gripfast.adapters.words import argument_model, identifiers, parameter_names
from gripfast.errors import SandboxViolation

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@tool(effect="write")
def touch(name: str) -> str:
    """Touches."""
    return f"touched {name}"


def asks(*reasons: str) -> list[Any]:
    def hook(reason: str) -> Any:
        def ask(call: ToolCall, tool: Tool, arguments: BaseModel) -> Ask:
            return Ask(reason)

        return ask

    return [hook(reason) for reason in reasons]


async def test_a_call_pauses_and_runs_with_the_decision() -> None:
    caller = Caller(Session([touch], before=asks("why")))
    with pytest.raises(Paused) as paused:
        await caller.call("touch", {"name": "x"}, "1")
    assert "touch wants to run. why" in paused.value.question.shown()
    assert (await caller.call("touch", '{"name": "x"}', "1", True)).content == "touched x"


async def test_an_approval_covers_only_what_was_shown() -> None:
    caller = Caller(Session([touch], before=asks("first", "second")))
    for reason in ("first", "second"):
        with pytest.raises(Paused) as paused:
            await caller.call("touch", {"name": "x"}, "1", None if reason == "first" else True)
        assert paused.value.question.reason == reason
    assert not (await caller.call("touch", {"name": "x"}, "1", True)).is_error


async def test_an_approval_is_for_one_call_and_its_arguments() -> None:
    caller = Caller(Session([touch], before=asks("why")))
    assert await caller.asks("touch", {"name": "x"}, "1")
    for id, name in (("2", "x"), ("1", "y")):
        refused = await caller.call_as_shown("touch", {"name": name}, id)
        assert "nobody was asked" in refused.text
    assert not (await caller.call_as_shown("touch", {"name": "x"}, "1")).is_error
    assert (await caller.call_as_shown("touch", {"name": "x"}, "1")).is_error  # it was good once


async def test_calls_that_no_id_tells_apart_need_a_yes_each() -> None:
    caller = Caller(Session([touch], before=asks("why")))
    for _ in range(3):
        assert await caller.asks("touch", {"name": "x"}, "")
    caller.forget("touch", {"name": "x"}, "")  # one no
    ran = [not (await caller.call_as_shown("touch", {"name": "x"}, "")).is_error for _ in range(3)]
    assert ran == [True, True, False]


async def test_a_session_with_somebody_to_ask_never_pauses() -> None:
    async def no(question: Any) -> bool:
        return False

    caller = Caller(Session([touch], before=asks("why"), ask=no))
    assert "the user said no" in (await caller.call("touch", {"name": "x"}, "1")).text
    assert not await caller.asks("touch", {"name": "x"}, "1")


async def test_a_call_that_is_refused_anyway_asks_nobody() -> None:
    caller = Caller(Session([touch], before=asks("why")))
    assert not await caller.asks("touch", {"nmae": "x"}, "1")
    assert not await caller.asks("tuoch", {}, "1")


async def test_what_is_shown_before_a_call_is_what_the_call_itself_would_ask(tmp_path: Path) -> None:
    rules = Permissions("ask")
    async with open_session(Scope.workspace(tmp_path), sandbox="off", permissions=rules) as session:
        caller = Caller(session)
        arguments = {"file_path": ".envrc", "content": "x\n"}
        (question,) = await caller.questions("Write", arguments, "1")
        assert "`.envrc` is protected" in question.reason
        assert not (await caller.call_as_shown("Write", arguments, "1")).is_error
    assert (tmp_path / ".envrc").read_text() == "x\n"


async def test_a_place_outside_the_scope_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    async with open_session(Scope.workspace(tmp_path), sandbox="off", permissions=Permissions("ask")) as session:
        with pytest.raises(SandboxViolation):
            await Caller(session).questions("Write", {"file_path": "/etc/x", "content": ""}, "1")


@pytest.mark.parametrize("value", [None, 0, 1, "yes", "True", {}, {"decision": "Approve"}, {"approve": True}, [True]])
def test_what_is_not_clearly_a_yes_is_a_no(value: object) -> None:
    assert decided(value)[0] is False


def test_names_become_identifiers_and_stay_apart() -> None:
    @tool(name="read-it")
    def first(x: int) -> str:
        """One."""
        return ""

    assert list(identifiers(Session([first]))) == ["read_it"]


def test_arguments_become_identifiers_and_are_found_again() -> None:
    class Input(BaseModel):
        number: int = Field(0, alias="-n")
        other: int = Field(0, alias="n")
        word: str = Field("", alias="class")

    def nothing(it: Input) -> str:
        return ""

    made = define_tool(name="t", description="d", input=Input, execute=nothing)
    assert parameter_names(made) == {"n": "-n", "n_": "n", "class_": "class"}


def test_a_model_of_the_arguments_shows_the_schema_and_takes_anything() -> None:
    model = argument_model(touch)
    assert model.model_json_schema() == touch.definition.parameters
    assert model.model_validate({"name": 1, "-n": 2}).model_dump() == {"name": 1, "-n": 2}


def test_work_runs_in_the_loop_from_any_thread_and_sees_its_failure() -> None:
    async def work(value: int) -> int:
        await asyncio.sleep(0)
        if value < 0:
            raise ValueError(value)
        return threading.get_ident()

    assert in_loop(work(1)) == in_loop(work(2)) != threading.get_ident()
    with pytest.raises(ValueError):
        in_loop(work(-1))


async def test_cancelled_work_has_ended_when_the_caller_goes_on() -> None:
    began, ended = threading.Event(), threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.1)
            ended.set()

    task = asyncio.ensure_future(beside(work()))
    await asyncio.to_thread(began.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


def test_work_that_a_thread_waits_for_ends_when_the_main_thread_is_interrupted() -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("tests don't run in the main thread here")
    began, ended = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    async def work() -> None:
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    def call() -> None:
        try:
            in_loop(work())
        except KeyboardInterrupt as error:
            raised.append(error)

    thread = threading.Thread(target=call, daemon=True)
    try:
        thread.start()
        assert began.wait(30)
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        thread.join(30)
    assert ended.is_set() and isinstance(raised[0], KeyboardInterrupt)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:  # work that begins here is not what was interrupted
        second = threading.Thread(target=lambda: raised.append(in_loop(asyncio.sleep(0.6, ValueError()))))
        second.start()
        second.join(30)
    assert isinstance(raised[1], ValueError)


def test_waiting_for_oneself_is_refused() -> None:
    async def nothing() -> None:
        return None

    async def inner() -> None:
        in_loop(nothing())

    with pytest.raises(RuntimeError, match="wait for itself"):
        in_loop(inner())


def test_a_forked_process_has_a_loop_of_its_own() -> None:
    async def one() -> int:
        return 1

    in_loop(one())
    child = os.fork()
    if child == 0:
        os._exit(0 if in_loop(one()) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
