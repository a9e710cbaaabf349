"""The OpenAI Agents SDK with a scripted model: tools, patches, shell, approvals, cancellation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, ApplyPatchTool, Model, ModelResponse, Runner, RunState, ShellTool, Usage
from agents.editor import ApplyPatchOperation
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from gripfast import Session
from gripfast.adapters.openai_agents import editor, executor, tools

pytestmark = pytest.mark.anyio


class Scripted(Model):
    """Plays calls, one a turn, then ends; keeps what it was sent last."""

    def __init__(self, *calls: tuple[str, Any]) -> None:
        self.calls = list(calls)
        self.turn = 0
        self.seen: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.seen = input if isinstance(input, list) else []
        self.turn += 1
        if self.turn > len(self.calls):
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            item: Any = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
        else:
            name, arguments = self.calls[self.turn - 1]
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            item = ResponseFunctionToolCall(
                arguments=text, call_id=f"c{self.turn}", name=name, type="function_call", id=f"f{self.turn}"
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    def outputs(self) -> list[Any]:
        return [item["output"] for item in self.seen if item.get("type") == "function_call_output"]


def agent_of(session: Session, model: Scripted) -> Agent[Any]:
    return Agent("tester", model=model, tools=tools(session))


async def test_a_run_reads_and_learns_what_was_wrong(session: Session) -> None:
    model = Scripted(
        ("Read", {"file_path": "a.txt"}),
        ("Read", {"nope": 1}),
        ("Read", {"file_path": "dot.png"}),
    )
    result = await Runner.run(agent_of(session, model), "go")
    assert result.final_output == "done"
    text, unknown, picture = model.outputs()
    assert text == "     1\tone\n     2\ttwo"
    assert "`nope`: no such argument" in unknown
    assert picture[1]["type"] == "input_image" and picture[1]["image_url"].startswith("data:image/png;base64,")


async def test_arguments_that_are_no_json_are_an_answer_once_the_sdk_lets_them_through(session: Session) -> None:
    model = Scripted(("Read", "{not json"))
    agent = agent_of(session, model)
    state = (await Runner.run(agent, "go")).to_state()  # the SDK itself asks about what it can't parse
    state.approve(state.get_interruptions()[0])
    await Runner.run(agent, state)
    assert "INVALID_ARGUMENT: the arguments are not valid JSON" in model.outputs()[0]


async def interrupted(session: Session, model: Scripted) -> Any:
    result = await Runner.run(agent_of(session, model), "go")
    assert [one.name for one in result.interruptions] == ["Write"]
    return result.to_state()


WRITE = ("Write", {"file_path": "new.txt", "content": "x\n"})


@pytest.mark.parametrize("name", ["new.txt", ".envrc"])  # what only a rule asks about, and a protected name
async def test_a_write_waits_and_runs_when_it_is_approved(session: Session, project: Path, name: str) -> None:
    model = Scripted(("Write", {"file_path": name, "content": "x\n"}))
    agent = agent_of(session, model)
    result = await Runner.run(agent, "go")
    assert not (project / name).exists()
    state = result.to_state()
    state.approve(state.get_interruptions()[0])
    await Runner.run(agent, state)
    assert (project / name).read_text() == "x\n"


async def test_a_write_that_is_rejected_leaves_nothing(session: Session, project: Path) -> None:
    model = Scripted(WRITE)
    state = await interrupted(session, model)
    state.reject(state.get_interruptions()[0])
    result = await Runner.run(agent_of(session, model), state)
    assert result.final_output == "done" and not (project / "new.txt").exists()


async def test_an_approval_given_in_another_process_counts(session: Session, project: Path) -> None:
    model = Scripted(WRITE)
    text = (await interrupted(session, model)).to_string()
    agent = agent_of(session, model)  # new tools: nothing is remembered
    state = await RunState.from_string(agent, text)
    state.approve(state.get_interruptions()[0])
    await Runner.run(agent, state)
    assert (project / "new.txt").exists()


async def test_a_tool_called_without_the_question_is_refused(session: Session, project: Path) -> None:
    (write,) = tools(session, only=["Write"])

    class Context:
        tool_call_id = "c"

        def is_tool_approved(self, name: str, call_id: str) -> None:
            return None

    answer = await write.on_invoke_tool(Context(), json.dumps(WRITE[1]))
    assert "nobody was asked" in answer and not (project / "new.txt").exists()


async def test_two_runs_at_once_on_one_session_have_answers_of_their_own(session: Session, project: Path) -> None:
    models = [Scripted(("Write", {"file_path": f"{name}.txt", "content": "x\n"})) for name in ("one", "two")]
    agents = [agent_of(session, model) for model in models]
    results = await asyncio.gather(*(Runner.run(agent, "go") for agent in agents))
    one, two = (result.to_state() for result in results)
    one.approve(results[0].interruptions[0])
    two.reject(results[1].interruptions[0])
    await asyncio.gather(Runner.run(agents[1], two), Runner.run(agents[0], one))
    assert (project / "one.txt").exists() and not (project / "two.txt").exists()


async def test_cancelling_a_run_ends_the_process(session: Session, is_running: Callable[[str], bool]) -> None:
    model = Scripted(("Bash", {"command": "sleep 271.25"}))
    run = asyncio.ensure_future(Runner.run(agent_of(session, model), "go"))
    while not is_running("271.25"):
        await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not is_running("271.25")


async def test_a_session_closed_underneath_is_an_answer(session: Session) -> None:
    model = Scripted(("Read", {"file_path": "a.txt"}))
    agent = agent_of(session, model)
    await session.close()
    await Runner.run(agent, "go")
    assert "the session is closed" in model.outputs()[0]


class Action:
    def __init__(self, *commands: str) -> None:
        self.commands, self.timeout_ms, self.max_output_length = list(commands), None, None


class Request:
    def __init__(self, *commands: str) -> None:
        self.data = type("Data", (), {"call_id": "c", "action": Action(*commands)})()


async def test_the_shell_runs_in_the_session_and_gives_exit_codes(session: Session, project: Path) -> None:
    run = executor(session)
    assert ShellTool(executor=run, needs_approval=run.needs_approval).executor is run
    assert not await run.needs_approval(None, Action("echo hi"), "c")
    result = await run(Request("echo hi", "cd /; exit 3", "pwd"))
    assert [(one.stdout, one.exit_code) for one in result.output] == [("hi\n", 0), ("", 3), ("/\n", 0)]


async def test_the_editor_applies_a_patch_only_after_the_question(session: Session, project: Path) -> None:
    edits = editor(session)
    assert ApplyPatchTool(editor=edits, needs_approval=edits.needs_approval).editor is edits
    update = ApplyPatchOperation(type="update_file", path="a.txt", diff="@@\n one\n-two\n+TWO\n")
    assert "nobody was asked" in ((await edits.update_file(update)).output or "")
    assert await edits.needs_approval(None, update, "c")
    assert (await edits.update_file(update)).status == "completed"
    assert (project / "a.txt").read_text() == "one\nTWO\n"


class Patching(Scripted):
    """Makes one call of the SDK's own apply_patch, then ends."""

    async def get_response(self, *given: Any, **options: Any) -> ModelResponse:
        if self.turn:
            return await super().get_response(*given, **options)
        self.turn += 1
        operation = {"type": "delete_file", "path": "a.txt"}
        call: Any = ResponseApplyPatchToolCall.model_validate(
            {"type": "apply_patch_call", "id": "p1", "call_id": "c1", "status": "completed", "operation": operation}
        )
        return ModelResponse(output=[call], usage=Usage(), response_id=None)


@pytest.mark.parametrize("yes", [True, False])
async def test_the_sdks_own_patches_wait_for_their_approval(session: Session, project: Path, yes: bool) -> None:
    edits = editor(session)
    patches = ApplyPatchTool(editor=edits, needs_approval=edits.needs_approval)
    agent = Agent("tester", model=Patching(), tools=[patches])
    result = await Runner.run(agent, "go")
    state = result.to_state()
    (call,) = result.interruptions
    assert "a.txt" in str(call.arguments or call.raw_item)
    state.approve(call) if yes else state.reject(call)
    await Runner.run(agent, state)
    assert (project / "a.txt").exists() is not yes
    if not yes:  # nor by another agent that has the same editor and doesn't ask
        await Runner.run(Agent("other", model=Patching(), tools=[ApplyPatchTool(editor=edits)]), "go")
        assert (project / "a.txt").exists()


class Rejecting:
    """A run in which the call was rejected."""

    def is_tool_approved(self, name: str, call_id: str) -> bool | None:
        return False if (name, call_id) == ("apply_patch", "c") else None


async def test_a_patch_that_was_rejected_is_not_applied_later(session: Session, project: Path) -> None:
    edits = editor(session)
    delete = ApplyPatchOperation(type="delete_file", path="a.txt", ctx_wrapper=Rejecting())
    assert await edits.needs_approval(None, delete, "c")
    assert "nobody was asked" in ((await edits.delete_file(delete)).output or "")
    assert (project / "a.txt").exists()


async def test_the_editor_stays_inside_the_scope(session: Session, project: Path) -> None:
    edits = editor(session)
    escape = ApplyPatchOperation(type="create_file", path="../out.txt", diff="+x\n")
    await edits.needs_approval(None, escape, "c")
    result = await edits.create_file(escape)
    assert result.status == "failed" and "SANDBOX_VIOLATION" in (result.output or "")
    assert not (project.parent / "out.txt").exists()


async def test_the_editor_creates_moves_and_deletes(session: Session, project: Path) -> None:
    edits = editor(session)
    for operation in (
        ApplyPatchOperation(type="create_file", path="b.txt", diff="+hello\n"),
        ApplyPatchOperation(type="update_file", path="b.txt", diff="@@\n-hello\n+bye\n", move_to="c.txt"),
        ApplyPatchOperation(type="delete_file", path="a.txt"),
    ):
        assert await edits.needs_approval(None, operation, "c")
        result = await getattr(edits, operation.type)(operation)
        assert result.status == "completed", result.output
    assert sorted(path.name for path in project.iterdir()) == ["c.txt", "dot.png"]
    assert (project / "c.txt").read_text().strip() == "bye"


async def test_a_patch_that_does_not_fit_changes_nothing(session: Session, project: Path) -> None:
    edits = editor(session)
    operation = ApplyPatchOperation(type="update_file", path="a.txt", diff="@@\n nothing like it\n-x\n+y\n")
    await edits.needs_approval(None, operation, "c")
    result = await edits.update_file(operation)
    assert result.status == "failed" and "NO_MATCH" in (result.output or "")
    assert (project / "a.txt").read_text() == "one\ntwo\n"


async def test_a_patch_that_fits_twice_or_holds_other_files_changes_nothing(session: Session, project: Path) -> None:
    edits = editor(session)
    (project / "a.txt").write_text("one\none\n")
    for diff, why in (("@@\n-one\n+1\n", "NOT_UNIQUE"), ("@@\n-one\n+1\n*** Delete File: dot.png\n", "other files")):
        operation = ApplyPatchOperation(type="update_file", path="a.txt", diff=diff)
        await edits.needs_approval(None, operation, "c")
        result = await edits.update_file(operation)
        assert result.status == "failed" and why in (result.output or "")
    assert (project / "a.txt").read_text() == "one\none\n"
