"""`gripfast log`, `diff` and `undo` on what `gripfast call` recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cache_stores import running_redis
from gripfast.builtin.undo import undo
from gripfast.edges.cli.main import main
from gripfast.edges.profiles import price_of
from gripfast.host.record.shelf import sessions_of

CONFIG = 'sandbox = "off"\n[permissions]\ndefault_action = "allow"\n'


class Bench:
    """A workspace, and the command line in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *arguments: str, code: int = 0) -> Result:
        done = CliRunner().invoke(main, [*arguments, "--root", str(self.root)], catch_exceptions=False)
        assert done.exit_code == code, done.output
        return done

    def write(self, name: str, content: str) -> None:
        self.run("call", "Write", json.dumps({"file_path": name, "content": content}), "--session", "s")

    def bash(self, command: str) -> None:
        self.run("call", "Bash", json.dumps({"command": command}), "--session", "s")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    config = tmp_path / "XDG_CONFIG_HOME" / "gripfast"
    config.mkdir(parents=True)
    (config / "gripfast.toml").write_text(CONFIG)
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a").write_text("one\n")
    return Bench(root)


def test_the_log_shows_each_call_and_what_it_changed(bench: Bench) -> None:
    bench.write("new", "n\n")
    bench.bash("echo two >> a; rm new")
    lines = bench.run("log").output.splitlines()
    assert [line.strip().split(" ", 1)[0] for line in lines] == ["1", "+", "2", "~", "-"]
    calls = [json.loads(line) for line in bench.run("log", "--json").output.splitlines()]
    assert [call["tool"] for call in calls] == ["Write", "Bash"]
    assert set(calls[0]) == {
        *("call", "time", "tool", "arguments", "decision", "milliseconds", "answer_bytes", "answer_tokens"),
        *("answer_sha256", "printed_sha256"),
        *("output_ref", "error", "changes", "uncovered", "undoes", "ended"),
    }


def test_without_the_store_the_log_has_the_calls_of_this_machine_and_says_so(bench: Bench, tmp_path: Path) -> None:
    bench.write("new", "n\n")
    done = bench.run("log", "--json", "--store", f"unix://{tmp_path}/nobody-listens")
    assert [json.loads(line)["tool"] for line in done.stdout.splitlines()] == ["Write"]
    assert "Redis can't be reached; only what was recorded on this machine is shown" in done.stderr


def test_what_is_not_a_record_in_the_store_leaves_the_log_of_this_machine(bench: Bench) -> None:
    bench.write("new", "n\n")
    (session,) = sessions_of(str(bench.root))
    for redis in running_redis():
        redis.command("set", f"gripfast:1:lines:{session}", "not ours")
        done = bench.run("log", "--json", "--store", redis.url)
        assert [json.loads(line)["tool"] for line in done.stdout.splitlines()] == ["Write"]
        assert "a value that gripfast did not write; only what was recorded on this machine is shown" in done.stderr


def test_the_diff_of_a_call_and_what_was_changed_since(bench: Bench) -> None:
    bench.bash("echo two >> a")
    text = bench.run("diff", "1").output
    assert "+two" in text and "call 1" in text
    (bench.root / "a").write_text("one\ntwo\nmine\n")
    assert "+mine" in bench.run("diff", "1", "--path", "a").output


def test_undo_names_every_path_first_and_can_itself_be_undone(bench: Bench) -> None:
    bench.bash("echo two >> a; echo x > new")
    assert bench.run("undo", "--dry-run").output.startswith("would take back call 1: a (restored), new (removed)\n")
    assert (bench.root / "new").exists()
    assert bench.run("undo").output.startswith("took back call 1: a (restored), new (removed)\n")
    assert (bench.root / "a").read_text() == "one\n"
    bench.run("undo", "2")
    assert (bench.root / "a").read_text() == "one\ntwo\n"


def test_undo_says_every_path_once(bench: Bench) -> None:
    bench.bash("echo x > b; echo x > c; echo x > d; echo x > e")
    lines = bench.run("undo").output.splitlines()
    assert lines[:5] == ["took back call 1: 4 paths", *(f"  {name} (removed)" for name in "bcde")]


def test_what_was_changed_since_is_refused_with_code_3_unless_it_is_saved_first(bench: Bench, tmp_path: Path) -> None:
    bench.bash("echo two >> a; echo x > new")
    (bench.root / "a").write_text("mine\n")
    result = json.loads(bench.run("undo", "--json", code=3).stdout)
    assert [refused["path"] for refused in result["refused"]] == ["a"]
    assert (bench.root / "a").read_text() == "mine\n"
    mine = ["undo", "1", "--save-mine", str(tmp_path / "mine")]
    assert json.loads(bench.run(*mine, "--dry-run", "--json").stdout)["saved"] == ["a"]
    assert not (tmp_path / "mine").exists()
    assert f"a: somebody else's version is saved in {tmp_path / 'mine'}" in bench.run(*mine).output
    assert (bench.root / "a").read_text() == "one\n"
    assert (tmp_path / "mine" / "a").read_text() == "mine\n"


def test_all_since_and_path_choose(bench: Bench) -> None:
    bench.bash("echo two >> a")
    bench.bash("echo x > new; mkdir d; echo y > d/f")
    bench.run("undo", "--since", "1h", "--path", "d")
    assert not (bench.root / "d").exists() and (bench.root / "new").exists()
    assert bench.run("undo", "--all").output.startswith("took back calls 1, 2, 3: ")
    assert sorted(path.name for path in bench.root.iterdir()) == ["a"]
    assert (bench.root / "a").read_text() == "one\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["undo", "77"], "there is no call 77"),
        (["diff", "77"], "there is no call 77"),
        (["undo", "1", "--all"], "name calls, or give --all, or --since"),
        (["undo", "--since", "yesterday"], "is not a time"),
        (["log", "--session", "other"], "no session 'other' is recorded here"),
    ],
)
def test_bad_input_is_a_usage_error(arguments: list[str], message: str, bench: Bench) -> None:
    bench.bash("echo two >> a")
    assert message in bench.run(*arguments, code=2).output


def test_a_workspace_that_was_moved_or_never_recorded_is_said(bench: Bench, tmp_path: Path) -> None:
    bench.bash("echo two >> a")
    moved = Bench(tmp_path / "moved")
    bench.root.rename(moved.root)
    assert "nothing is recorded for" in moved.run("undo", code=2).output


def test_the_record_can_be_switched_off_by_the_user_and_not_by_the_workspace(bench: Bench, tmp_path: Path) -> None:
    (bench.root / ".gripfast.toml").write_text("[record]\non = false\n")
    bench.bash("echo two >> a")
    assert "Bash" in bench.run("log").output
    config = tmp_path / "XDG_CONFIG_HOME" / "gripfast" / "gripfast.toml"
    config.write_text(f'{CONFIG}[record]\non = false\nquota = "1 GiB"\n')
    bench.bash("echo three >> a")
    assert len(bench.run("log", "--json").output.splitlines()) == 1


def test_undo_is_a_tool_where_it_is_named_and_costs_little(bench: Bench) -> None:

    assert price_of(undo) <= 90
    assert "Undo" not in bench.run("tools").output
    bench.bash("echo two >> a")
    done = bench.run("call", "Undo", "{}", "--session", "s", "--tools", "Undo")
    assert done.output.startswith("took back call 1: a (restored)")
    assert (bench.root / "a").read_text() == "one\n"


def test_nothing_to_undo_and_nothing_to_show_is_said(bench: Bench) -> None:
    bench.bash("true")
    assert bench.run("undo").output == "nothing to undo\n"
    assert bench.run("undo", "--all").output == "nothing to undo\n"
    assert json.loads(bench.run("undo", "--json").output)["calls"] == []
    assert bench.run("diff").output == "no call changed anything\n"
    bench.write("new", "n\n")
    bench.run("undo")
    assert bench.run("undo").output == "nothing to undo\n"
    assert bench.run("diff", "--path", "a").output == "these calls changed nothing there\n"


KILLED = """
import os, signal, sys, anyio
from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope

async def main(root):
    async with open_session(Scope.workspace(root), record=True, sandbox="off") as session:
        await session.call("Bash", {"command": "sleep 600", "run_in_background": True})
        os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main, sys.argv[1])
"""


def test_a_session_whose_server_was_killed_says_that_its_record_is_not_whole(bench: Bench) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(bench.root)], check=False, capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    cut = "the server was killed while commands ran: what they changed at the end is not recorded"
    assert cut in bench.run("log").output
    for _ in range(2):
        assert cut in bench.run("undo", "--all", code=3).output
    assert cut in bench.run("diff").output


def test_an_undo_goes_on_where_the_last_call_changed_what_may_not_be_written_any_more(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    bench.write("new", "n\n")
    late = json.dumps({"file_path": str(tmp_path / "data/x"), "content": "x\n"})
    bench.run("call", "Write", late, "--session", "s", "--writable", str(tmp_path / "data"))
    assert "new (removed)" in bench.run("undo").output
    assert not (bench.root / "new").exists() and (tmp_path / "data/x").exists()
    assert "refused" in bench.run("undo", code=3).output


def test_a_directory_that_holds_what_others_made_stays_and_that_is_no_refusal(bench: Bench) -> None:
    bench.bash("mkdir made; echo x > made/mine")
    (bench.root / "made" / "theirs").write_text("y", encoding="utf-8")
    result = json.loads(bench.run("undo", "--dry-run", "--json").stdout)
    why = "it holds `theirs`, which these calls did not make"
    assert (result["refused"], result["kept"]) == ([], [{"path": "made", "reason": why}])
    assert f"made: stays: {why}" in bench.run("undo", "1").output
    assert [path.name for path in (bench.root / "made").iterdir()] == ["theirs"]
