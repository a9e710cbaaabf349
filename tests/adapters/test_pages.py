"""The agent of every page in docs/adapters, run word for word but for the line that names your model."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.test_frameworks import FRAMEWORKS, INSIDE, ROOT, run_inside

MODELS = INSIDE / "models"
SCRIPTED = Path(
    os.environ.get("GRIPFAST_SCRIPTED_ANTHROPIC") or ROOT.parent / "shared" / "tools" / "scripted_anthropic.py"
)
RECIPES = {"crewai", "llama-index", "strands", "agno"}


def agent_on(page: str) -> str:
    text = (ROOT / "docs" / "adapters" / f"{page}.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return code


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_agent_of_a_page_is_complete_in_under_thirty_lines(framework: str) -> None:
    lines = [line for line in agent_on(framework).splitlines() if line.strip()]
    assert len(lines) < 30
    assert max(map(len, agent_on(framework).splitlines())) <= 120


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    (place / "a.txt").write_text("one\n", encoding="utf-8")
    return place


def run_page(framework: str, project: Path, answer: str = "y", **env: str) -> str:
    code = re.sub(r"^model = .*# your model$", "from example_model import model", agent_on(framework), flags=re.M)
    if "OpenAIChatClient" in code:
        code = code.replace("from agent_framework.openai import OpenAIChatClient\n", "")
    (project.parent / "agent.py").write_text(code, encoding="utf-8")
    if (MODELS / f"{framework}.py").exists():
        shutil.copy(MODELS / f"{framework}.py", project.parent / "example_model.py")
    done = run_inside(
        framework, str(project.parent / "agent.py"), cwd=project, home=project.parent, input=f"{answer}\n" * 5, **env
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-6000:]
    return done.stdout


WITH_QUESTIONS = [
    "pydantic-ai",
    "langchain",
    "deepagents",
    "openai-agents",
    "google-adk",
    "agent-framework",
    "smolagents",
]


@pytest.mark.parametrize("answer", ["y", "n"])
@pytest.mark.parametrize("framework", WITH_QUESTIONS)
def test_the_agent_asks_before_it_writes(framework: str, answer: str, project: Path) -> None:
    said = run_page(framework, project, answer)
    assert "run it?" in said and "FINISHED" in said
    assert (project / "new.txt").exists() is (answer == "y")


def test_the_evaluation_of_inspects_page_runs_in_its_sandbox(project: Path) -> None:
    assert "success 1" in run_page("inspect", project)


@pytest.mark.parametrize("framework", sorted(RECIPES))
def test_the_recipe_of_a_page_works(framework: str, project: Path) -> None:
    said = run_page(framework, project)
    assert "1\tone" in said
    assert "NOT_FOUND" in said


@contextmanager
def scripted_claude(place: Path) -> Generator[str]:
    script = [
        {"name": "mcp__gripfast__Read", "input": {"file_path": "a.txt"}},
        {"name": "mcp__gripfast__Write", "input": {"file_path": "new.txt", "content": "one\n"}},
    ]
    (place / "script.json").write_text(json.dumps(script), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, str(SCRIPTED), str(port), str(place / "script.json"), str(place / "log.jsonl")]
    process = subprocess.Popen(words)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_claudes_agent_asks_before_it_writes(answer: str, project: Path) -> None:
    if not SCRIPTED.exists():
        pytest.skip("no scripted model: name it in GRIPFAST_SCRIPTED_ANTHROPIC")
    with scripted_claude(project.parent) as url:
        said = run_page("claude-agent", project, answer, ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="scripted")
    assert "run it?" in said and "FINISHED" in said
    assert (project / "new.txt").exists() is (answer == "y")
