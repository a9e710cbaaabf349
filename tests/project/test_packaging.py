"""The package as others get it: what it declares, what is in the wheel, an sdist that tests itself."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import gripfast

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gripfast"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# The only places that may import what an extra brings. Anywhere else it would be missed by those without the extra.
EXTRA_OF = {
    "edges/mcp/": "mcp",
    "edges/console/": "mcp",
    "host/stores/redis_link.py": "redis",
    "host/files/pdf_child.py": "pdf",
    "adapters/pydantic_ai/": "pydantic-ai",
    "adapters/langchain.py": "langchain",
    "adapters/deepagents.py": "deepagents",
    "adapters/openai_agents/": "openai-agents",
    "adapters/claude_agent.py": "claude-agent",
    "adapters/google_adk.py": "google-adk",
    "adapters/agent_framework.py": "agent-framework",
    "adapters/smolagents.py": "smolagents",
    "adapters/inspect.py": "inspect",
}
# Frameworks are not installed here: which distribution a package of theirs comes from.
OF_FRAMEWORKS = {
    "pydantic_ai": "pydantic-ai-slim",
    "agents": "openai-agents",
    "agent_framework": "agent-framework-core",
}


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", requirement)[0].replace("_", "-").lower() for requirement in requirements}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def modules() -> list[str]:
    return sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("module", modules())
def test_every_package_a_module_imports_is_declared_in_the_core_or_in_its_extra(module: str) -> None:
    extra = next((name for place, name in EXTRA_OF.items() if module.startswith(place)), None)
    declared = named(PROJECT["dependencies"])
    if extra:
        declared |= named(PROJECT["optional-dependencies"][extra])
    homes = packages_distributions()
    for package in set(imported(SOURCE / module)) - sys.stdlib_module_names - {"gripfast"}:
        found = homes.get(package, [OF_FRAMEWORKS.get(package, package)])
        distributions = {name.replace("_", "-").lower() for name in found}
        if package == "opentelemetry":  # a namespace that several distributions share
            distributions = {"opentelemetry-api"}
        assert distributions & declared, f"{module} imports {package}, which pyproject.toml does not declare for it"


def test_the_versions_that_are_tested_with_cover_everything_declared() -> None:
    pinned = named((ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines())
    extras = PROJECT["optional-dependencies"]
    declared = named([*PROJECT["dependencies"], *extras["mcp"], *extras["redis"], *extras["pdf"]])
    assert declared - pinned == set()


def built(kind: str, into: Path) -> Path:
    """Without an environment of its own, so that no network is needed."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (file,) = into.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(built("wheel", tmp_path_factory.mktemp("wheel")))


def test_the_wheel_has_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"gripfast", f"gripfast-{gripfast.__version__}.dist-info"}
    inside = {name.removeprefix("gripfast/") for name in wheel.namelist() if name.startswith("gripfast/")}
    queries = {f"outline/queries/{path.name}" for path in (SOURCE / "outline" / "queries").glob("*.scm")}
    page = {f"edges/console/static/{path.name}" for path in (SOURCE / "edges" / "console" / "static").iterdir()}
    assert inside == set(modules()) | {"py.typed"} | queries | page


def test_the_wheel_says_the_version_the_package_says(wheel: zipfile.ZipFile) -> None:
    text = wheel.read(f"gripfast-{gripfast.__version__}.dist-info/METADATA").decode()
    assert Parser().parsestr(text)["Version"] == gripfast.__version__


def test_the_readme_of_a_package_index_has_no_link_that_only_works_in_the_repository(wheel: zipfile.ZipFile) -> None:
    text = wheel.read(f"gripfast-{gripfast.__version__}.dist-info/METADATA").decode()
    readme = str(Parser().parsestr(text).get_payload())
    links = re.findall(r'src="([^"]+)"|\]\(([^)]+)\)', readme)
    assert len(links) > 8
    assert [link for pair in links for link in pair if link and not link.startswith("https://")] == []


def test_the_readme_of_the_repository_names_files_that_are_there() -> None:
    links = re.findall(r'src="([^"]+)"|\]\(([^)]+)\)', (ROOT / "README.md").read_text(encoding="utf-8"))
    local = [link for pair in links for link in pair if link and not link.startswith("https://")]
    assert [link for link in local if not (ROOT / link.split("#")[0]).exists()] == []


def test_the_changelog_has_a_section_for_the_version_being_made() -> None:
    release = re.sub(r"\.dev\d+$", "", gripfast.__version__)
    assert f"\n## {release} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_source_distribution_tests_itself(tmp_path: Path) -> None:
    """All its tests are collected, and some are run, on its own code. `scripts/release try` runs all of it."""
    with tarfile.open(built("sdist", tmp_path / "dist")) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("gripfast-*")
    for name in ("scripts/test", "scripts/setup", ".ci/run"):
        assert os.access(unpacked / name, os.X_OK), f"{name} is missing or not executable"
    assert (unpacked / "requirements-dev.txt").is_file()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "test_errors or test_architecture",
    ]
    done = subprocess.run(command, cwd=unpacked, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:]


def test_no_page_tells_people_to_install_the_name_from_an_index() -> None:
    """Who owns that name there is not known before a release: the pages install from a clone, which always works."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").iterdir()]
    by_name = re.compile(r"\b(?:pipx?|uv|uvx) [^`\n]*(?<![\w/.-])gripfast(?=\[|[ '\"`]|$)", re.MULTILINE)
    told = {page.name: found for page in pages if (found := by_name.findall(page.read_text(encoding="utf-8")))}
    assert told == {}
    assert by_name.search("pip install 'gripfast[all]'") and by_name.search("`pip install gripfast agno`")
