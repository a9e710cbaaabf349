"""MCP clients that others wrote find the server, list its tools and call one, over both transports."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from peers.around import GRIPFAST, PEERS, node, package

CLIENTS = ["fastmcp", "pydantic-ai", "langchain", "openai-agents"]


def met(client: str, project: Path, *words: str) -> None:
    python = PEERS / ("venv-older" if client == "langchain" else "venv") / "bin" / "python"
    if not python.exists():
        pytest.skip("scripts/peers has made no virtual environment")
    done = subprocess.run(
        [str(python), str(Path(__file__).parent / "clients.py"), client, *words],
        cwd=project, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"Read", "Edit", "Grep"} <= set(found["names"])
    assert found["answer"].startswith("     1\tone\n     2\ttwo")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_over_stdio(client: str, project: Path) -> None:
    met(client, project, "stdio", *GRIPFAST, "serve", "--root", str(project))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_over_http(client: str, project: Path, http_server: tuple[str, str]) -> None:
    met(client, project, "http", *http_server)


def inspected(project: Path, *words: str) -> dict[str, object]:
    inspector = package("@modelcontextprotocol/inspector")
    entry = json.loads((inspector / "package.json").read_text(encoding="utf-8"))["bin"]
    script = entry if isinstance(entry, str) else entry["mcp-inspector"]
    done = subprocess.run(
        [node(), str(inspector / script), "--cli", *words],
        cwd=project, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_inspector_lists_and_calls_over_stdio(project: Path) -> None:
    serve = [*GRIPFAST, "serve", "--root", str(project)]
    assert "Read" in json.dumps(inspected(project, *serve, "--method", "tools/list"))
    call = ["--method", "tools/call", "--tool-name", "Read", "--tool-arg", "file_path=a.txt", "--tool-arg", "limit=2"]
    assert "1\\tone" in json.dumps(inspected(project, *serve, *call))


def test_the_inspector_lists_over_http(project: Path, http_server: tuple[str, str]) -> None:
    url, token = http_server
    words = ["--transport", "http", "--header", f"Authorization: Bearer {token}", "--method", "tools/list"]
    assert "Read" in json.dumps(inspected(project, url, *words))
