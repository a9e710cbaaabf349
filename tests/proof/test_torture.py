"""The machinery of scripts/torture: the list of guards is true, a trial counts, the page says what happened."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest
from torture import garbage, guards, page
from torture.cuts import (
    Cut,
    Guard,
    LostPlace,
    always,
    call,
    condition,
    drop,
    handler,
    loop,
    never,
    part,
    skip,
    statement,
    text,
    value,
)
from torture.guards import GUARDS
from torture.run import attempt, write
from torture.trial import Outcome, Torment

from attacks.shell import fresh_mark, gone, survivors

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "gripfast"
needs_subreaper = pytest.mark.skipif(sys.platform != "linux", reason="orphans can be adopted on Linux only")


def said_nowhere(_: str) -> None:
    return None


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_is_in_one_place_and_leaves_a_program_when_it_is_taken_away(guard: Guard) -> None:
    whole = (SOURCE / guard.file).read_text(encoding="utf-8")
    without = guard.taken_from(SOURCE)
    compile(without, guard.file, "exec")
    assert ast.dump(ast.parse(without)) != ast.dump(ast.parse(whole))
    files = [word for word in guard.tests.split() if word.endswith(".py")]
    assert files
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_no_two_guards_have_one_name() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)


def test_a_guard_that_is_missed_makes_tests_red_and_one_that_is_not_leaves_them_green(tmp_path: Path) -> None:
    torment = Torment(tmp_path, seed=1, say=said_nowhere)
    copies = guards._Copies(torment, at_once=1)  # pyright: ignore[reportPrivateUsage] - the machinery itself
    needed = next(guard for guard in GUARDS if guard.name == "NUL in a path")
    needless = Guard("the same", needed.place, condition("\0", by="$it and True"), needed.tests)
    for guard, expected in ((needed, "red"), (needless, "green")):
        assert guards._taken_away(copies, torment, guard) == (guard.name, expected)  # pyright: ignore[reportPrivateUsage]


PROGRAM = """
FLAGS = READ | NO_FOLLOW | NO_WAIT

class Door:
    def open(self, key, *, wide=False):
        if key is None or key in self.lost:
            raise Closed(key)
        if not wide and self.fits(key.strip()):
            log(key)
        try:
            self.turn(key, slowly=True)
        except (OSError, Stuck) as fault:
            return clean(fault) if fault else None
        for way in [self.front, self.back]:
            db.run("select a from t where b = ?", way)
        return [self, "-e", key]
"""


def taken(*cuts: Cut, source: str = PROGRAM, place: str = "door.py::Door.open") -> list[str]:
    """The lines that differ without a guard."""
    old = ast.unparse(ast.parse(source)).splitlines()
    return [
        line.strip() for line in Guard("a guard", place, cuts, "").without(source).splitlines() if line not in old
    ]


@pytest.mark.parametrize(
    ("cut", "line"),
    [
        (never("lost"), "if False:"),
        (always("fits"), "if True:"),
        (never("clean"), "return clean(fault) if False else None"),
        (condition("lost", by="$it and key"), "if (key is None or key in self.lost) and key:"),
        (skip("log"), "pass"),
        (statement("Closed", by="return"), "return"),
        (drop("lost"), "if key is None:"),
        (drop("fits"), "if not wide:"),
        (drop("-e"), "return [self, key]"),
        (drop("slowly"), "self.turn(key)"),
        (part("fits", by="True"), "if not wide and True:"),
        (call("clean", by="$0"), "return fault if fault else None"),
        (call("strip", by="$on"), "if not wide and self.fits(key):"),
        (value("slowly", by="not $it"), "self.turn(key, slowly=not True)"),
        (loop("back", by="$it[:1]"), "for way in [self.front, self.back][:1]:"),
        (handler("Stuck", by="OSError"), "except OSError as fault:"),
        (text("b = ?", by="b > ?"), "db.run('select a from t where b > ?', way)"),
    ],
    ids=str,
)
def test_a_guard_is_taken_away_by_its_shape_and_what_it_mentions(cut: Cut, line: str) -> None:
    assert taken(cut) == [line]


def test_a_flag_is_left_out_of_a_variable() -> None:
    assert taken(drop("NO_FOLLOW"), place="door.py::FLAGS") == ["FLAGS = READ | 0 | NO_WAIT"]


def test_a_guard_is_found_when_it_is_reworded_moved_and_laid_out_anew() -> None:
    moved = """
class Door:
    # a comment
    def open(self, key):
        prepare()
        with self.lock:
            if (
                self.lost  # what is lost
                and key in self.lost.all()
            ): raise Gone("other words")
"""
    assert taken(never("lost"), source=moved) == ["if False:"]


@pytest.mark.parametrize(
    ("place", "cut", "said"),
    [
        ("door.py::Door.open", never("gone"), "door.py::Door.open has no condition with 'gone'"),
        ("door.py::Door.shut", never("lost"), "door.py has no `Door.shut`; it may be in door.py::Door"),
        ("gate.py::open", never("lost"), "there is no gate.py; it may be in door.py::Door"),
        ("door.py::Door.open", never("key"), "has more than one condition with 'key' (lines 6, 8)"),
    ],
)
def test_a_guard_that_is_lost_says_which_and_where_it_may_be(place: str, cut: Cut, said: str, tmp_path: Path) -> None:
    (tmp_path / "door.py").write_text(PROGRAM, encoding="utf-8")
    with pytest.raises(LostPlace) as lost:
        Guard("keys that are lost", place, cut, "").taken_from(tmp_path)
    assert str(lost.value).startswith("the guard 'keys that are lost' is lost: ")
    assert said in str(lost.value)


LEAVES = """
import subprocess, time

def test_leaves_processes_in_sessions_of_their_own_without_an_environment():
    for _ in range(3):
        subprocess.run(["bash", "-c", "(setsid env -i sleep 987.MARK >/dev/null 2>&1 &) & disown -a"], check=True)
    subprocess.Popen(["bash", "-c", "trap '' TERM HUP; while :; do sleep 987.MARK; done"], start_new_session=True)
    THEN
"""


@needs_subreaper
@pytest.mark.parametrize(("then", "word"), [("pass", "green"), ("assert False", "red"), ("time.sleep(987)", "hangs")])
def test_tests_without_their_guard_leave_no_process(then: str, word: str, tmp_path: Path) -> None:
    mark = fresh_mark()
    (tmp_path / "test_it.py").write_text(LEAVES.replace("MARK", mark).replace("THEN", then), encoding="utf-8")
    ended = guards._ended(tmp_path, "test_it.py", patience=4 if word == "hangs" else 60)  # pyright: ignore[reportPrivateUsage]
    assert (ended[0], survivors(mark)) == (word, [])


@needs_subreaper
def test_what_runs_ends_when_the_one_who_asked_is_killed(tmp_path: Path) -> None:
    mark = fresh_mark()
    command = [sys.executable, "-m", "torture.keeper", str(tmp_path), "60", "/bin/bash", "-c"]
    asks = f"""
import subprocess, sys
keeper = subprocess.Popen([*{command!r}, "setsid sleep 987.{mark} & echo on; wait"], stdin=subprocess.PIPE)
keeper.wait()
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", asks], cwd=ROOT, env=environment, stdout=subprocess.PIPE, bufsize=0
    ) as asker:
        assert asker.stdout is not None
        assert asker.stdout.read(3) == b"on\n"
        assert survivors(mark)
        asker.kill()
    assert anyio.run(partial(gone, mark)) == []


def test_a_trial_counts_what_was_tried_and_what_failed(tmp_path: Path) -> None:
    torment = Torment(tmp_path, seed=1, scale=0.0005, say=said_nowhere)

    def breaks(text: str) -> object:
        raise ValueError(text)

    garbage.fuzz(torment, "lisp", len)
    garbage.fuzz(torment, "lisp", breaks)
    good, bad = torment.outcomes
    assert (good.tried, good.failed, good.verdict) == (50, 0, "held")
    assert (bad.tried, bad.failed, bad.verdict) == (50, 50, "**broken**")


def test_a_seed_repeats_a_run(tmp_path: Path) -> None:
    texts = [garbage.mutated(Torment(tmp_path, seed=seed).dice("x"), "(a b c)") for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_the_page_tells_what_held_what_broke_and_what_was_not_run(tmp_path: Path) -> None:
    torment = Torment(tmp_path, seed=7, scale=0.25, say=said_nowhere)
    torment.tell(Outcome("one", "holds", 10, 0))
    torment.tell(Outcome("two", "breaks", 10, 3, "a note"))
    torment.tell(Outcome("three", "is not there", why="no bash on this machine"))
    text = page.whole({"files": page.part("files", torment.outcomes, torment, 3.0)}, ["files", "undo"])
    assert "| one | holds | 10 | 0 | held |  |" in text
    assert "| two | breaks | 10 | 3 | **broken** | a note |" in text
    assert "| three | is not there | – | – | not run | no bash on this machine |" in text
    assert "3 trials, 1 broken; not run: undo." in text
    assert "`scripts/torture --only files --scale 0.25 --seed 7` at " in text
    assert "What is not promised" in text


def test_a_run_of_one_group_replaces_its_part_of_the_page_and_leaves_the_others(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    torment = Torment(tmp_path, seed=7, say=said_nowhere)

    def ran(group: str, outcome: Outcome) -> None:
        write(group, page.part(group, [outcome], torment, 1.0), file)

    ran("undo", Outcome("two", "breaks", 10, 3))
    ran("files", Outcome("one", "holds", 10, 0))
    before = page.parts_of(file.read_text(), ["files", "undo"])
    ran("undo", Outcome("two", "holds again", 20, 0))
    after = page.parts_of(file.read_text(), ["files", "undo"])
    assert after["files"] == before["files"]
    assert "| two | holds again | 20 | 0 | held |  |" in after["undo"]
    assert "breaks" not in file.read_text()
    assert "**2 trials, none broken; not run: patch, " in file.read_text()


def test_a_group_that_breaks_off_is_told_as_broken_and_the_next_one_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(_: Torment) -> None:
        raise FileNotFoundError(2, "No such file or directory", f"{tmp_path}/bash")

    monkeypatch.setattr(garbage, "run", breaks)
    torment = Torment(tmp_path, seed=1, say=said_nowhere)
    attempt(torment, "garbage")
    (told,) = torment.outcomes
    assert told.verdict == "**broken**"
    assert "No such file or directory: 'bash'" in told.note


def test_an_outcome_of_nothing_tried_has_not_held() -> None:
    assert Outcome("x", "y").verdict == "**broken**"
