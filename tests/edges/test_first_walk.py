"""One tool from door to door: the command line and an MCP client, both as real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent

GRIPFAST = [sys.executable, "-m", "gripfast"]


def run(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GRIPFAST, *arguments], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    return tmp_path


def test_call_prints_the_content_and_exits_0(project: Path) -> None:
    done = run("call", "Read", '{"file_path": "a.txt"}', cwd=project)
    assert (done.returncode, done.stdout) == (0, "     1\tone\n     2\ttwo\n")


def test_a_failed_call_tells_stderr_and_exits_1(project: Path) -> None:
    done = run("call", "Read", '{"file_path": "b.txt"}', cwd=project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "NOT_FOUND" in done.stderr
    assert "a.txt" in done.stderr


def test_a_dash_reads_the_arguments_from_standard_input_and_json_prints_the_message(project: Path) -> None:
    done = run("call", "Read", "-", "--json", cwd=project, stdin='{"file_path": "a.txt", "limit": 1}')
    message = json.loads(done.stdout)
    assert set(message) == {"tool_call_id", "name", "content", "is_error", "output_ref", "error"}
    assert message["content"].startswith("     1\tone")


def test_bad_usage_exits_2(project: Path) -> None:
    assert run("call", cwd=project).returncode == 2
    assert run("call", "Read", "{}", "--root", "missing", cwd=project).returncode == 2


@pytest.mark.anyio
async def test_an_mcp_client_lists_and_calls_a_tool_over_stdio(project: Path) -> None:
    server = StdioServerParameters(command=GRIPFAST[0], args=[*GRIPFAST[1:], "serve", "--root", str(project)])
    async with Client(stdio_client(server)) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("Read", {"file_path": "a.txt", "offset": 1})
    assert "Read" in names
    assert isinstance(answer.content[0], TextContent)
    assert answer.content[0].text.startswith("     2\ttwo")


MINE = """
from gripfast import tool

@tool
def shout(text: str) -> str:
    "Shouts."
    return text.upper()
"""


def test_a_tool_of_ones_own_joins_by_file(project: Path) -> None:
    (project / "mine.py").write_text(MINE, encoding="utf-8")
    assert "shout" in run("tools", "--with", "mine.py", cwd=project).stdout
    assert run("call", "shout", '{"text": "hi"}', "--with", "mine.py", cwd=project).stdout == "HI\n"
