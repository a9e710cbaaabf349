"""The rules in the walk of a call: a denial is an answer, a question is asked once or always, nobody there is no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from gripfast.call.hooks import Answer, Ask, Deny, Question
from gripfast.call.rules import PermissionRule, Permissions, rules_hook
from gripfast.call.run import Session
from gripfast.framework.definition import Tool, tool
from gripfast.messages import ToolCall, ToolMessage

pytestmark = pytest.mark.anyio

RAN: list[tuple[str, str]] = []


@tool(name="Shell", effect="run", subject="command")
def shell(
    command: Annotated[str, Field(description="A line.")], note: Annotated[str, Field(description="x")] = ""
) -> str:
    """Runs a line."""
    RAN.append((command, note))
    return f"ran {command}"


class Person:
    """Answers as told, and keeps what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answers.pop(0)


RULES = [
    PermissionRule("Shell", "ls *", "allow"),
    PermissionRule("Shell", "rm *", "deny", source="test"),
]


def spell(subject: object) -> Sequence[str]:
    raise AssertionError(f"{subject!r} is no path")


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def session(person: Person | None = None, *before: Any) -> Session:
    hook = rules_hook(Permissions("ask", RULES), spell)
    return Session([shell], before=[hook, *before], ask=person)


async def run(opened: Session, line: str) -> ToolMessage:
    return await opened.call("Shell", {"command": line})


async def test_a_denial_is_an_answer_and_the_session_goes_on() -> None:
    async with session() as opened:
        denied = await run(opened, "ls; rm x")
        assert (denied.is_error, RAN) == (True, [])
        assert denied.text == (
            "Permission denied: `rm x`: denied by the rule Shell `rm *` (test); "
            "if it is needed, ask the user to do it or to change the rule"
        )
        assert denied.error is not None
        assert denied.error.code == "POLICY_DENIED"
        assert (await run(opened, "ls")).text == "ran ls"


async def test_one_denied_call_of_a_turn_does_not_stop_the_others() -> None:
    async with session() as opened:
        calls = [ToolCall(str(at), "Shell", {"command": line}) for at, line in enumerate(("ls", "rm x", "ls -l"))]
        assert [answer.is_error for answer in await opened.call_all(calls)] == [False, True, False]


async def test_with_nobody_to_ask_the_answer_is_no_and_says_how_to_allow_it() -> None:
    async with session() as opened:
        answer = await run(opened, "mytool")
        assert answer.is_error
        assert "nobody to ask: allow it with a rule in gripfast.toml" in answer.text
        assert "nobody to ask: give it as plain commands" in (await run(opened, "ls ${!x}")).text
        assert RAN == []


@pytest.mark.parametrize(
    ("said", "runs"), [(True, True), ("always", True), (False, False), (None, False), (1, False), ("yes", False)]
)
async def test_only_a_clear_yes_runs_the_call(said: Any, runs: bool) -> None:
    async with session(Person(said)) as opened:
        assert (await run(opened, "mytool")).is_error is not runs
        assert bool(RAN) is runs


async def test_yes_is_for_once_and_always_for_exactly_what_was_shown() -> None:
    person = Person(True, "always", False, False, False, False)
    async with session(person) as opened:
        assert not (await run(opened, "mytool a")).is_error
        assert not (await run(opened, "mytool a")).is_error
        assert not (await run(opened, "mytool a")).is_error
        assert len(person.asked) == 2
        for other in ("mytool", "mytool b", "mytool a; mytool b", "mytool a > out"):
            assert (await run(opened, other)).is_error
        assert len(person.asked) == 6


async def test_always_never_outlives_the_session_nor_overrules_a_deny() -> None:
    async with session(Person("always")) as opened:
        await run(opened, "mytool")
        assert (await run(opened, "mytool; rm x")).is_error
    person = Person(False)
    async with session(person) as opened:
        assert (await run(opened, "mytool")).is_error
        assert len(person.asked) == 1


async def test_what_was_asked_is_what_runs() -> None:
    """The question holds the very arguments that run, not another reading of the same text."""
    person = Person(True)
    async with session(person) as opened:
        await opened.call("Shell", '{"command": "mytool", "command": "mytool \\u0061"}')
    [question] = person.asked
    assert [(question.arguments.command, "")] == RAN  # type: ignore[attr-defined]


async def test_a_question_shows_the_command_whole_and_escaped() -> None:
    person = Person(False)
    line = "mytool '" + "a" * 6000 + "'\t> out \u202e\x1b[2K; rm-not x"
    async with session(person) as opened:
        await opened.call("Shell", {"command": line, "note": "n" * 5000})
    told = person.asked[0].shown()
    assert "a" * 6000 + "'\\t> out \\u202e\\x1b[2K; rm-not x" in told
    assert "(1000 more characters)" in told
    assert all(char.isprintable() or char == "\n" for char in told)
    assert len(told.splitlines()) == 4
    assert told.endswith('"Always" covers Shell with exactly this command.')


async def test_the_rules_speak_before_any_other_hook() -> None:
    heard: list[str] = []

    def other(call: ToolCall, tool: Tool, arguments: BaseModel) -> Deny | Ask | None:
        heard.append(call.name)
        return None

    async with session(None, other) as opened:
        await run(opened, "rm x")
        assert heard == []
        await run(opened, "ls")
        assert heard == ["Shell"]


async def test_another_hook_can_still_say_no_to_what_the_rules_allow() -> None:
    def other(call: ToolCall, tool: Tool, arguments: BaseModel) -> Deny:
        return Deny("not today")

    async with session(None, other) as opened:
        assert (await run(opened, "ls")).text == "Permission denied: not today"


@tool(name="Move", effect="write")
def move(place: str) -> str:
    """Moves, with no subject that rules could read."""
    RAN.append((place, ""))
    return "moved"


@tool(name="Keep", effect="write", subject="name")
def keep(content: str, name: str | None = None) -> str:
    """Keeps under a name, or without one."""
    RAN.append((content, name or ""))
    return "kept"


async def test_always_for_a_call_without_a_subject_covers_these_arguments_and_no_others() -> None:
    person = Person("always", False, "always", False)
    async with Session([move, keep], before=[rules_hook(Permissions("ask"), spell)], ask=person) as opened:
        for tool_name, argument in (("Move", "place"), ("Keep", "content")):
            for value in ("a", "a", "b"):
                await opened.call(tool_name, {argument: value})
    assert [place for place, _ in RAN] == ["a", "a", "a", "a"]
    assert person.asked[0].shown().endswith('"Always" covers Move with exactly these arguments.')


async def test_a_person_is_told_what_always_covers_beyond_this_call() -> None:
    person = Person(False)
    async with Session([keep], before=[rules_hook(Permissions("ask"), spell)], ask=person) as opened:
        await opened.call("Keep", {"content": "x", "name": "notes\n"})
    assert person.asked[0].shown().endswith('"Always" covers Keep on notes\\n, whatever else it is given.')


@tool(name="Rehearsed", effect="run", subject="command", rehearses="dry")
def rehearsed(
    command: Annotated[str, Field(description="A line.")], dry: Annotated[bool, Field(description="x")] = False
) -> str:
    """Runs a line, or shows what it would do."""
    RAN.append((command, "dry" if dry else "kept"))
    return f"ran {command}"


async def test_always_about_a_dry_run_covers_no_call_that_keeps_what_it_does() -> None:
    person = Person("always", False, "always")
    hook = rules_hook(Permissions("ask", []), spell)
    async with Session([rehearsed], before=[hook], ask=person) as opened:
        dry = {"command": "mytool x", "dry": True}
        assert not (await opened.call("Rehearsed", dry)).is_error
        assert not (await opened.call("Rehearsed", dry)).is_error
        assert (await opened.call("Rehearsed", {"command": "mytool x"})).is_error
        assert not (await opened.call("Rehearsed", {"command": "mytool x"})).is_error
        assert not (await opened.call("Rehearsed", {"command": "mytool x"})).is_error
    assert person.asked[0].widths() == {"always": "Rehearsed with exactly this command, as a dry run"}
    assert RAN == [("mytool x", "dry")] * 2 + [("mytool x", "kept")] * 2
