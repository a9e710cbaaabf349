"""smolagents with a scripted model: its two agents, names, errors, and no way to approve."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from smolagents import CodeAgent, Model, ToolCallingAgent
from smolagents.agent_types import AgentImage
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from gripfast import Ask, Scope, Session, open_session, tool
from gripfast.adapters.loops import in_loop
from gripfast.adapters.smolagents import ToolCallFailedError, tools


class Scripted(Model):
    """Plays tool calls (or code), one a step."""

    def __init__(self, *steps: Any) -> None:
        super().__init__(model_id="scripted")
        self.steps = list(steps)
        self.seen: list[str] = []

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        self.seen.append(str(messages[-1]))
        step = self.steps.pop(0)
        if isinstance(step, str):
            return ChatMessage(role=MessageRole.ASSISTANT, content=step)
        function = ChatMessageToolCallFunction(name=step[0], arguments=step[1])
        call = ChatMessageToolCall(id="c", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


@pytest.fixture
def opened(project: Path) -> Any:
    made = open_session(Scope.workspace(project))
    yield made
    in_loop(made.close())


def test_an_agent_that_calls_tools_reads_and_learns_what_was_wrong(opened: Session) -> None:
    model = Scripted(
        ("Read", {"file_path": "a.txt"}),
        ("Read", {"nope": 1}),
        ("Read", {"file_path": "missing.txt"}),
        ("final_answer", {"answer": "done"}),
    )
    agent = ToolCallingAgent(tools=tools(opened), model=model, verbosity_level=0)
    assert agent.run("go") == "done"
    told = "\n".join(model.seen)
    assert "1\\tone" in told and "nope" in told and "NOT_FOUND" in told


def test_an_agent_that_writes_code_calls_tools_under_names_that_are_identifiers(opened: Session) -> None:
    code = "Thought\n<code>\nfinal_answer(Grep(pattern='two', output_mode='content', n=False))\n</code>"
    model = Scripted(code)
    agent = CodeAgent(tools=tools(opened), model=model, verbosity_level=0)
    assert "a.txt:two" in str(agent.run("go"))
    assert "lisp_read_file" in [one.name for one in tools(opened)]


def test_two_names_that_become_one_are_refused(project: Path) -> None:
    @tool(name="a-b")
    def first() -> str:
        """One."""
        return ""

    @tool(name="a_b")
    def second() -> str:
        """Two."""
        return ""

    with pytest.raises(ValueError, match="`a_b` and `a-b` would both be `a_b`"):
        tools(Session([first, second]))


def test_a_picture_is_a_picture(opened: Session) -> None:
    (read,) = tools(opened, only=["Read"])
    assert isinstance(read(file_path="dot.png"), AgentImage)


def test_a_call_that_needs_approval_goes_to_the_sessions_own_ask_or_is_refused(project: Path) -> None:
    def asks(call: Any, tool: Any, arguments: Any) -> Ask:
        return Ask("everything needs a yes")

    async def yes(question: Any) -> bool:
        return True

    for ask, expected in ((None, "nobody to ask"), (yes, None)):
        made = open_session(Scope.workspace(project), before=[asks], ask=ask)
        (write,) = tools(made, only=["Write"])
        if expected:
            with pytest.raises(ToolCallFailedError, match=expected):
                write(file_path="new.txt", content="x")
        else:
            write(file_path="new.txt", content="x")
        assert (project / "new.txt").exists() is (expected is None)
        in_loop(made.close())


def test_two_agents_at_once_on_one_session(opened: Session) -> None:
    answers: list[str] = []

    def run() -> None:
        model = Scripted(("Read", {"file_path": "a.txt"}), ("final_answer", {"answer": "done"}))
        answers.append(ToolCallingAgent(tools=tools(opened), model=model, verbosity_level=0).run("go"))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == ["done", "done"]


def test_an_interrupt_ends_the_process(opened: Session, is_running: Callable[[str], bool]) -> None:
    (bash,) = tools(opened, only=["Bash"])

    def interrupt() -> None:
        while not is_running("273.25"):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        bash(command="sleep 273.25")
    assert not is_running("273.25")


def test_a_session_closed_underneath_is_an_error_the_agent_reads(opened: Session) -> None:
    (read,) = tools(opened, only=["Read"])
    in_loop(opened.close())
    with pytest.raises(ToolCallFailedError, match="the session is closed"):
        read(file_path="a.txt")
