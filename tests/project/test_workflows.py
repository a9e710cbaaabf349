"""What continuous integration, releases and pre-commit run is here, and they may do no more than they need."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
# The usual words of a shell, and what every runner has.
ANYWHERE = {"sudo"}


def loaded(path: Path) -> dict[str, Any]:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # as text: `on` is no boolean here


def jobs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from loaded(path)["jobs"].items()


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for _, job in jobs(path) for step in job["steps"]]


def test_there_is_a_workflow_for_each_occasion() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "docs", "release", "weekly"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_scripts_that_exist(path: Path) -> None:
    commands = [line for step in steps(path) for line in step.get("run", "").splitlines()]
    programs = {line.split()[0] for line in commands} - ANYWHERE
    assert commands
    for program in programs - {".venv/bin/python"}:
        assert os.access(ROOT / program, os.X_OK), f"{path.name} runs {program}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_unless_a_job_says_so_and_every_job_ends(path: Path) -> None:
    assert loaded(path)["permissions"] == {"contents": "read"}
    for name, job in jobs(path):
        assert int(job["timeout-minutes"]) <= 45, name
        assert set(job.get("permissions", {})) <= {"id-token", "pages"}, name
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_an_action_is_named_with_its_version_and_no_input_of_others_reaches_a_shell(path: Path) -> None:
    for step in steps(path):
        if "uses" in step:
            assert re.fullmatch(r"(actions|pypa)/[\w-]+@(v\d+|release/v\d+)", step["uses"])
        assert "${{" not in step.get("run", ""), "an expression in `run` is pasted into the shell's text"


def test_every_supported_python_is_tried() -> None:
    matrix = dict(jobs(ROOT / ".github/workflows/ci.yml"))["linux"]["strategy"]["matrix"]["python"]
    classified = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert matrix == classified


def test_only_the_job_that_publishes_may_speak_for_the_project_and_it_runs_no_code_of_ours() -> None:
    found = dict(jobs(ROOT / ".github/workflows/release.yml"))
    assert [name for name, job in found.items() if "id-token" in job.get("permissions", {})] == ["publish"]
    assert found["publish"]["needs"] == "build"
    assert [step for step in found["publish"]["steps"] if "run" in step] == []


@pytest.mark.parametrize(
    ("tag", "fault"),
    [("v9.9.9", "the tag is v9.9.9, but gripfast.__version__ is "), ("", "usage: scripts/release check TAG")],
)
def test_a_release_with_another_version_than_its_tag_is_refused(tag: str, fault: str) -> None:
    done = subprocess.run(["scripts/release", "check", tag], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert fault in done.stderr


@pytest.mark.parametrize("script", ["peers", "release", "docs", "setup", "lisp-corpus"])
def test_a_script_refuses_what_it_does_not_know(script: str) -> None:
    done = subprocess.run([f"scripts/{script}", "--nonsense"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"usage: scripts/{script}")


def test_pre_commit_runs_the_tools_of_this_environment() -> None:
    (repository,) = loaded(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    entries = [hook["entry"].split() for hook in repository["hooks"]]
    assert [entry[:2] for entry in entries] == [[".venv/bin/ruff", "check"], [".venv/bin/ruff", "format"]]


def test_dependabot_looks_where_there_is_something() -> None:
    for update in loaded(ROOT / ".github" / "dependabot.yml")["updates"]:
        assert (ROOT / update["directory"].lstrip("/")).is_dir()


@pytest.mark.parametrize("path", [form for form in FORMS if form.stem != "config"], ids=lambda path: path.stem)
def test_an_issue_form_has_what_github_asks_for(path: Path) -> None:
    form = loaded(path)
    assert form["name"] and form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 0
    assert all(field["attributes"]["label"] for field in fields)


def project_files() -> list[Path]:
    tops = ["*.md", "*.toml", "*.txt", "*.yml", ".pre-commit-config.yaml", ".ci/*", "scripts/*"]
    below = [".github", "deploy", "docs", "src", "examples"]
    found = [path for top in tops for path in ROOT.glob(top)] + [
        path for top in below for path in (ROOT / top).rglob("*")
    ]
    return [path for path in found if path.is_file() and path.suffix not in (".pyc", ".svg")]


def test_no_file_names_the_host_of_a_package_registry() -> None:
    """People behind a mirror of their own get everything by name, from where their tools are told to look."""
    host = re.compile(r"(pypi|npmjs|pythonhosted|debian|docker)\.(org|com|io)")
    assert [path for path in project_files() if host.search(path.read_text(encoding="utf-8", errors="replace"))] == []
