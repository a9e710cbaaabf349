"""deepagents' backend: inside the scope in both forms, under rules, and nothing left when a command is cancelled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from gripfast import PermissionRule, Permissions, Question, Scope
from gripfast.adapters.deepagents import ScopeBackend, backend


class Played(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


@pytest.fixture
def place(project: Path) -> Iterator[ScopeBackend]:
    opened = backend(Scope.workspace(project))
    yield opened
    opened.close()


def test_what_is_outside_is_refused_for_files_and_commands(place: ScopeBackend, project: Path) -> None:
    target = "/etc/gripfast-was-here"
    assert "SANDBOX_VIOLATION" in (place.write(target, "x").error or "")
    assert place.read("/etc/hostname").error
    assert place.download_files(["/etc/hostname"])[0].error == "permission_denied"
    assert place.execute(f"echo x > {target}").exit_code != 0
    assert not os.path.exists(target)


def test_git_is_protected_from_files_and_deletion(place: ScopeBackend, project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("x")
    assert place.write(str(project / ".git" / "hooks" / "pre-commit"), "x").error
    assert place.delete(str(project / ".git")).error
    assert (project / ".git" / "config").exists()


async def test_cancelling_a_command_ends_it(place: ScopeBackend, is_running: Callable[[str], bool]) -> None:
    run = asyncio.ensure_future(place.aexecute("sleep 279.25"))
    while not is_running("279.25"):
        await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not is_running("279.25")


async def test_both_forms_work_at_once(place: ScopeBackend, project: Path) -> None:
    path = str(project / "a.txt")
    read, listed, ran = await asyncio.gather(
        place.aread(path), asyncio.to_thread(place.ls, str(project)), place.aexecute("pwd")
    )
    assert read.file_data["content"] == "one\ntwo" and len(listed.entries) == 2 and ran.output == f"{project}\n"


def test_what_deepagents_makes_of_a_relative_path_is_in_the_workspace(place: ScopeBackend, project: Path) -> None:
    assert place.read("/a.txt").file_data["content"] == "one\ntwo"
    assert place.write("/new dir/b.txt", "x").path == str(project / "new dir" / "b.txt")
    assert place.edit("/new dir/b.txt", "x", "y").occurrences == 1
    assert [one["path"] for one in place.ls("/new dir").entries] == [str(project / "new dir" / "b.txt")]
    assert place.download_files(["/new dir/b.txt"])[0].content == b"y"
    assert "SANDBOX_VIOLATION" in (place.write("/usr/b.txt", "x").error or "")
    assert place.delete("/new dir").error is None and not (project / "new dir").exists()


def test_a_large_output_is_kept_outside_of_the_project_and_can_be_read(place: ScopeBackend, project: Path) -> None:
    calls = iter([("execute", {"command": "seq 1 100000"}), ("read_file", {"file_path": "/large_tool_results/c0"})])
    said = [
        AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"c{number}"}])
        for number, (name, arguments) in enumerate(calls)
    ]
    agent = create_deep_agent(model=Played(messages=iter([*said, AIMessage("done")])), backend=place)
    result = agent.invoke({"messages": [("user", "go")]})
    large, read = [message for message in result["messages"] if isinstance(message, ToolMessage)]
    assert "/large_tool_results/c0" in large.content and len(large.content) < 50_000
    assert "1" in read.content and "rror" not in read.content
    assert sorted(path.name for path in project.iterdir()) == ["a.txt", "dot.png"]
    assert place.write("/conversation_history/s.md", "x").error is None


def test_a_question_shows_the_text_to_be_written(project: Path) -> None:
    shown: list[str] = []

    async def ask(question: Question) -> bool:
        shown.append(question.shown())
        return True

    rules = Permissions("allow", [PermissionRule("Write", "*", "ask")])
    place = backend(Scope.workspace(project), permissions=rules, ask=ask)
    try:
        assert place.write(str(project / "new.txt"), "what is\nwritten").error is None
    finally:
        place.close()
    assert "text: what is\\nwritten" in shown[0]


def test_rules_hold_and_the_rest_goes_on(project: Path) -> None:
    rules = Permissions("allow", [PermissionRule("Bash", "rm *", "deny"), PermissionRule("Edit", "*", "ask")])
    place = backend(Scope.workspace(project), permissions=rules)
    try:
        assert "POLICY_DENIED" in place.execute("rm a.txt").output
        assert "POLICY_DENIED" in (place.edit(str(project / "a.txt"), "one", "1").error or "")
        assert place.edit(str(project / "a.txt"), "", "1").error
        assert place.read(str(project / "a.txt"), offset=1).next_offset is None
    finally:
        place.close()
    assert (project / "a.txt").read_text() == "one\ntwo\n"


def test_a_command_past_its_time_says_so(place: ScopeBackend) -> None:
    ran = place.execute("echo begun; sleep 280.25", timeout=1)
    assert ran.exit_code == 124 and "begun" in ran.output and "ended after 1 s" in ran.output
