"""/metrics, read by a real parser: what is counted, who may see it, and that nobody can make up labels."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from http_server import HANG, Server, token_file

ANN = {"Authorization": f"Bearer {'a' * 24}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("metrics")
    (home / "project").mkdir()
    (home / "project" / "a.txt").write_text("one\n", encoding="utf-8")
    tokens = token_file(home, f"ann {'a' * 24}\nbob {'b' * 24}\n")
    options = ["--token-file", str(tokens), "--rules", "trusted", "--metrics", "127.0.0.1:0"]
    with Server(home / "project", home, *options) as server:
        yield server


def samples(server: Server) -> dict[str, float]:
    """Every sample by its name and labels, as a parser of Prometheus' own reads them."""
    status, text = server.request("GET", path="/metrics", Authorization=ANN["Authorization"])
    assert status == 200
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        assert family.name.startswith("gripfast_") and family.documentation and family.type != "unknown"
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
            key = f"{sample.name}{{{labels}}}" if labels else sample.name
            assert key not in found
            found[key] = sample.value
    return found


@pytest.mark.anyio
async def test_calls_are_counted_by_tool_and_outcome_with_their_time(server: Server) -> None:
    before = samples(server)
    async with server.client("legacy", **ANN) as client:
        await client.call_tool("Read", {"file_path": "a.txt"})
        await client.call_tool("Read", {"file_path": "a.txt"})
        await client.call_tool("Read", {"file_path": "none.txt"})
        await client.call_tool("Bash", {"command": "seq 100000"})
        await client.call_tool("Bash", {"command": "sleep 600", "run_in_background": True})
        during = samples(server)
    grown = {key: value - before.get(key, 0) for key, value in during.items()}
    assert grown["gripfast_calls_total{outcome=ok,tool=Read}"] == 2
    assert grown["gripfast_calls_total{outcome=NOT_FOUND,tool=Read}"] == 1
    assert grown["gripfast_call_duration_seconds_count{tool=Read}"] == 3
    assert grown["gripfast_call_duration_seconds_bucket{le=+Inf,tool=Read}"] == 3
    buckets = [value for key, value in during.items() if "_bucket" in key and "tool=Read" in key]
    assert buckets == sorted(buckets)
    assert grown["gripfast_cached_outputs_total"] == 1 and grown["gripfast_cached_bytes_total"] > 500_000
    assert grown["gripfast_sent_bytes_total"] > grown["gripfast_received_bytes_total"] > 0
    assert (grown["gripfast_sessions"], grown["gripfast_shells"], during["gripfast_people"]) == (1, 1, 2)
    assert during["gripfast_store_errors_total"] == 0 == during["gripfast_calls_running"]


@pytest.mark.anyio
async def test_names_that_a_client_makes_up_are_no_labels(server: Server) -> None:
    async with server.client("2026-07-28", **ANN) as client:
        for number in range(20):
            await client.call_tool(f'made up "{number}"\n', {})
    found = samples(server)
    assert found["gripfast_calls_total{outcome=TOOL_NOT_FOUND,tool=other}"] == 20
    assert not any("made up" in key for key in found)


def test_a_token_is_needed_beside_the_tools_and_none_on_another_port(server: Server) -> None:
    port = int(server.screen.split("counts http://127.0.0.1:")[1].split("/")[0])
    assert server.request("GET", path="/metrics")[0] == 401
    assert samples(server)["gripfast_http_responses_total{code=401}"] >= 1

    def get(path: str, host: str = f"127.0.0.1:{port}") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG)
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    status, text = get("/metrics")
    assert status == 200 and "gripfast_calls_total" in text
    assert get("/mcp")[0] == 404
    assert get("/metrics", "evil.example")[0] == 421
