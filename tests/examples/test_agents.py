"""The example agents, whole, against a model that plays a script on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripted_model import Script, scripted_model

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
AGENTS = ["agent_openai.py", "agent_anthropic.py"]


def run(agent: str, project: Path, model: Script, typed: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / agent), "do", "it"],
        cwd=project, capture_output=True, text=True, timeout=120, check=False, input=typed,
        env={
            **os.environ, "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "scripted",
            "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "scripted",
            "XDG_CACHE_HOME": str(project.parent), "XDG_STATE_HOME": str(project.parent),
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(result: dict[str, Any]) -> str:
    return str(result["content"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    return root


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_reads_edits_and_ends_when_the_model_is_done(agent: str, project: Path) -> None:
    calls = (
        ("Read", {"file_path": "a.txt"}),
        ("Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}),
        ("Read", {"file_path": "missing.txt"}),
    )
    with scripted_model(*calls) as model:
        assert "FINISHED" in run(agent, project, model, "")
    assert shown(model.results[0]).startswith("     1\tone")
    assert "NOT_FOUND" in shown(model.results[2])
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\nTWO\n"


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("typed", ["y\n", "n\n"])
def test_an_agent_asks_before_it_writes(agent: str, typed: str, project: Path) -> None:
    with scripted_model(("Write", {"file_path": "new.txt", "content": "x\n"})) as model:
        said = run(agent, project, model, typed)
    assert "run it?" in said
    assert (project / "new.txt").exists() is (typed == "y\n")
    assert ("Permission denied" in shown(model.results[0])) is (typed == "n\n")


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_trims_old_outputs_when_its_history_is_long(agent: str, project: Path) -> None:
    lines = "".join(f"{number} {'word ' * 10}\n" for number in range(900))
    (project / "long.txt").write_text(lines, encoding="utf-8")
    reads = [("Read", {"file_path": "long.txt", "limit": 900})] * 6
    with scripted_model(*reads) as model:
        run(agent, project, model, "")
    assert "[tool output trimmed; ref=" in shown(model.results[0])
    assert "word word" in shown(model.results[-1])


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_is_less_than_sixty_lines(agent: str) -> None:
    text = (EXAMPLES / agent).read_text(encoding="utf-8")
    assert len([line for line in text.splitlines() if line.strip()]) < 60
