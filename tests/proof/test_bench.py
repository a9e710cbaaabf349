"""The machinery of scripts/bench: rows, the page and the charts say what was measured, also when it is bad news."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks import charts, report
from benchmarks.groups import servers
from benchmarks.groups.servers import Running, Server
from benchmarks.harness import Row, Run, Turns, bound, compare, in_turns, tell, without_paths
from benchmarks.run import measure

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(quick=True)


def test_a_ratio_is_the_median_of_the_rounds_with_the_middle_half_as_its_spread(run: Run) -> None:
    turns = Turns({"ours": [2.0, 2.0, 30.0], "theirs": [1.0, 2.0, 10.0]}, {})
    tell(run, "g", "work", turns, {"theirs": 1.5})
    (row,) = run.rows
    assert (row.name, row.figure, row.measured, row.spread) == (
        "work, against theirs",
        "≤ 1.5×",
        "2.00×",
        "1.50–2.50",
    )
    assert row.verdict == "**missed**"


def test_sides_take_turns_and_change_who_is_first() -> None:
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return float(len(order))

    turns = in_turns({name: partial(side, name) for name in "ab"}, rounds=2, warm=1)
    assert order == ["b", "a", "a", "b", "b", "a"]
    assert turns.values == {"a": [3.0, 6.0], "b": [4.0, 5.0]}


def test_a_side_that_breaks_costs_its_own_row_and_no_other(run: Run) -> None:
    left = iter([1.0])

    compare(
        run,
        "g",
        "work",
        {"ours": lambda: None, "tires": lambda: next(left), "refuses": lambda: 1 / 0, "works": lambda: None},
        at_most={"tires": 2.0, "works": 1e9},
    )
    assert [(row.name, row.figure, row.verdict) for row in run.rows] == [
        ("work, against works", "≤ 1e+09×", "met"),
        ("work, against refuses", "–", "not run"),
        ("work, against tires", "≤ 2×", "not run"),
    ]
    assert [row.note for row in run.rows[1:]] == ["ZeroDivisionError: division by zero", "StopIteration:"]


def test_our_own_side_that_breaks_is_not_passed_over() -> None:
    with pytest.raises(ZeroDivisionError):
        in_turns({"ours": lambda: 1 / 0, "theirs": lambda: 1.0}, rounds=1)


REFUSES = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        refusal = {"isError": True, "content": [{"type": "text", "text": "Path not allowed"}]}
        result = {"tools/list": {"tools": []}, "tools/call": refusal}.get(asked["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_a_server_that_fails_costs_its_own_rows_and_the_others_are_all_measured(run: Run, tmp_path: Path) -> None:
    (tmp_path / "small.txt").write_text("a line\n")
    bare = [sys.executable, str(ROOT / "benchmarks" / "bare_server.py"), str(tmp_path)]
    commands = {"gripfast": bare, "refuses": [sys.executable, "-c", REFUSES], "dies": ["false"], "works": bare}
    field = [Server(name, command, "Read", {"file_path": "small.txt"}) for name, command in commands.items()]
    field.append(Server("absent", [], "Read", {}, missing="no npm on this machine"))
    with Running(tmp_path) as running:
        servers.reading(run, tmp_path, field, running)
    told = {row.name: row for row in run.rows}
    for what in ("start to tools/list", "latency of reading 200 lines", "100 reads in flight at once"):
        assert told[f"{what}, against works"].value
        assert "the server ended" in told[f"{what}, against dies"].note
        assert "no npm on this machine" in told[f"{what}, against absent"].note
    assert told["start to tools/list, against refuses"].value
    assert told["latency of reading 200 lines, against refuses"].verdict == "not run"
    assert "Path not allowed" in told["latency of reading 200 lines, against refuses"].note
    assert told["1,000 concurrent calls answered"].verdict == "met"


def test_a_bound_is_met_or_missed_in_its_own_direction(run: Run) -> None:
    bound(run, "g", "memory", 65, 64, "MB")
    bound(run, "g", "speed", 65, 64, "MB/s", at_least=True)
    assert [row.verdict for row in run.rows] == ["**missed**", "met"]


def test_the_page_counts_and_shows_what_was_met_missed_and_not_run(run: Run) -> None:
    bound(run, "Speed", "memory", 1, 2, "MB")
    bound(run, "Speed", "more memory", 3, 2, "MB")
    run.not_run("Peers", "against node", "–", "ENOENT: no such file /home/somebody/bin/node")
    text = report.page(run, minutes=1.0, load=0.0)
    assert "1 figures met, 1 missed, 1 not run" in text
    assert "| more memory | ≤ 2 MB | 3 MB |  | **missed** |" in text
    assert "| against node | – | not run |  | not run | ENOENT: no such file …/node |" in text


def test_a_group_that_breaks_is_a_row_and_not_the_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_: Run) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/opt/tools/bin/rg")

    monkeypatch.setattr("benchmarks.groups.rules.measure", breaks)
    measure(run, "rules")
    (row,) = run.rows
    assert row.verdict == "not run"
    assert "FileNotFoundError" in row.note
    assert "/opt/" not in row.note


def test_a_chart_is_a_picture_with_a_bar_for_each_side_and_says_what_was_not_run() -> None:
    rows = [
        Row("g", "a trivial async tool, against one & two", "", "0.50×", value=0.5),
        Row("g", "a trivial async tool, against absent", "", "not run"),
        Row("g", "something else, against one", "", "2×", value=2.0),
    ]
    made = charts.of(rows)
    assert list(made) == ["calls"]
    picture = ElementTree.fromstring(made["calls"])
    space = "{http://www.w3.org/2000/svg}"
    page, *bars = picture.iter(f"{space}rect")
    assert page.attrib["class"] == "page", "it has a ground of its own: whose page it stands on is not known"
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.01)
    assert widths[2] == 0
    texts = [text.text for text in picture.iter(f"{space}text")]
    assert "one & two" in texts
    assert "not run" in texts
    assert "prefers-color-scheme: dark" in made["calls"]


def test_a_bar_far_longer_than_ours_is_cut_and_says_its_length() -> None:
    picture = ElementTree.fromstring(charts.chart("t", "s", [("slow", 1 / 176), ("near", 0.5)]))
    space = "{http://www.w3.org/2000/svg}"
    widths = [float(bar.attrib["width"]) for bar in list(picture.iter(f"{space}rect"))[1:]]
    assert widths[1] == pytest.approx(charts.LONGEST * widths[0], rel=0.01)
    assert widths[2] == pytest.approx(2 * widths[0], rel=0.01)
    assert len(list(picture.iter(f"{space}polygon"))) == 1
    assert "176×" in [text.text for text in picture.iter(f"{space}text")]


def test_without_paths_leaves_words_and_web_addresses() -> None:
    assert without_paths("can't open /a/b/c.txt\nor   rows/sec 3/4") == "can't open …/c.txt or rows/sec 3/4"


@pytest.mark.parametrize("name", ["RESULTS.md", "RELIABILITY.md"])
def test_the_pages_say_nothing_of_the_machine_they_were_made_on(name: str) -> None:
    text = (ROOT / "benchmarks" / name).read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.…])/(?:home|root|tmp|work|Users|opt|usr|var)/\S*", text) == []


def test_what_the_readme_shows_is_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\((benchmarks/[^)#]+)\)|src=\"(benchmarks/[^\"]+)\"", text)
    files = {one or other for one, other in linked}
    assert {"benchmarks/RESULTS.md", "benchmarks/RELIABILITY.md"} <= files
    assert [file for file in files if not (ROOT / file).is_file()] == []
