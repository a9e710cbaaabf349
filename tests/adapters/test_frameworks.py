"""Each adapter against its real framework, in the environment `scripts/peers` made for it; skipped without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSIDE = Path(__file__).parent / "inside"
ENVIRONMENTS = ROOT / ".cache" / "peers" / "adapters"

FRAMEWORKS = [
    "pydantic-ai",
    "langchain",
    "deepagents",
    "openai-agents",
    "claude-agent",
    "google-adk",
    "agent-framework",
    "smolagents",
    "inspect",
    "crewai",
    "llama-index",
    "strands",
    "agno",
]
FILES = sorted(path.stem for path in INSIDE.glob("on_*.py"))


def framework_of(file: str) -> str:
    name = file.removeprefix("on_").replace("_", "-")
    return next(one for one in FRAMEWORKS if name.startswith(one))


def python_of(framework: str) -> str:
    python = ENVIRONMENTS / framework / "bin" / "python"
    if not python.exists():
        pytest.skip(f"scripts/peers has made no environment for {framework}")
    return str(python)


def run_inside(
    framework: str, *arguments: str, cwd: Path = ROOT, home: Path, input: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    names = ("PATH", "LANG", "GRIPFAST_SCRIPTED_ANTHROPIC")
    env = {name: os.environ[name] for name in names if name in os.environ}
    return subprocess.run(
        [python_of(framework), *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=570, check=False, input=input,
        env={**env, **more, "HOME": str(home), "PYTHONPATH": str(ROOT / "src"), "DO_NOT_TRACK": "1",
             "CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "AGNO_TELEMETRY": "false"},
    )  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_the_adapter_holds_what_it_promises_in_its_framework(file: str, tmp_path: Path) -> None:
    plugins = ["-p", "no:langsmith", "-o", "asyncio_mode=auto"] if framework_of(file) == "deepagents" else []
    pytest_here = ["-m", "pytest", "-c", str(INSIDE / "pytest.ini"), str(INSIDE / f"{file}.py"), "-q"]
    done = run_inside(framework_of(file), *pytest_here, *plugins, home=tmp_path)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    if not re.search(r"\d+ passed", done.stdout):
        pytest.skip(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_has_a_page_and_pinned_versions(framework: str) -> None:
    assert (ROOT / "docs" / "adapters" / f"{framework}.md").exists()
    assert re.search(rf'"{framework} [\w\[\]-]+==', (ROOT / "scripts" / "peers").read_text(encoding="utf-8"))


def test_no_adapter_is_imported_unless_it_is_asked_for() -> None:
    code = "import sys, gripfast; gripfast.open_session; print(*[n for n in sys.modules if 'fast.adapters' in n])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == ""
