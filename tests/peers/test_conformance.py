"""The official conformance suite, against tools of ours served by our own edge."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.around import node, package

SCENARIOS = """
server-initialize ping logging-set-level tools-list tools-call-simple-text tools-call-image
tools-call-embedded-resource
tools-call-mixed-content tools-call-with-logging tools-call-error tools-call-with-progress tools-call-elicitation
json-schema-2020-12 elicitation-sep1034-defaults elicitation-sep1330-enums resources-list resources-read-text
dns-rebinding-protection server-sse-multiple-streams
""".split()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    script = Path(__file__).parent / "conformance_server.py"
    process = subprocess.Popen(
        [sys.executable, str(script), "0"], cwd=tmp_path_factory.mktemp("c"), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://{process.stdout.readline().strip()}/mcp"
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def test_the_suite_has_no_checks_of_signing_in_that_apply_to_servers() -> None:
    """Its `auth/` scenarios play the server to a client, or ask an authorization server. Ours is a protected
    resource: tests/edges/mcp/test_oauth_sign_in.py signs in to it with the SDK's client. If a newer suite has some,
    they belong into SCENARIOS."""
    suite = package("@modelcontextprotocol/conformance") / "dist" / "index.js"
    done = subprocess.run([node(), str(suite), "list"], capture_output=True, text=True, timeout=120, check=True)
    for_servers = done.stdout.partition("Server scenarios")[2].partition("Client scenarios")[0]
    assert set(SCENARIOS) <= set(for_servers.split())
    assert [word for word in for_servers.split() if word.startswith(("auth", "oauth"))] == []


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_conformance_suite_finds_nothing_wrong(url: str, scenario: str, tmp_path: Path) -> None:
    suite = package("@modelcontextprotocol/conformance") / "dist" / "index.js"
    done = subprocess.run(
        [node(), str(suite), "server", "--url", url, "--scenario", scenario],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
