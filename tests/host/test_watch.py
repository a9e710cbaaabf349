"""Watch: what changed since a mark, by inotify and by walking."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gripfast.host.files import watch as watching
from gripfast.host.files.watch import ChangesSince, Watch
from gripfast.host.kernel.features import may_use
from gripfast.host.kernel.inotify import IN_Q_OVERFLOW, Event, Inotify
from searching import powerless


class Overflowing(Inotify):
    """Loses everything, and says so."""

    def read(self) -> list[Event]:
        return [Event(-1, IN_Q_OVERFLOW, "")] if super().read() else []


class Limited(Inotify):
    """A user who may watch three directories."""

    count = 0

    def add(self, directory: str) -> int:
        self.count += 1
        if self.count > 3:
            raise OSError(errno.ENOSPC, "limit")
        return super().add(directory)


def nothing() -> Inotify:
    raise OSError(errno.EMFILE, "no instances left")


WAYS: dict[str, Callable[[], Inotify]] = {
    "inotify": Inotify,
    "after an overflow": Overflowing,
    "past the limit of watches": Limited,
    "without inotify": nothing,
}


@pytest.fixture(params=WAYS)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Watch]]:
    for name in ("a", "b", "deep/er/c", "deep/d", "other/e"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    watch = Watch([str(tmp_path)], notify=WAYS[request.param])
    yield tmp_path, watch
    watch.close()


def shown(root: Path, found: ChangesSince) -> dict[str, str]:
    """`+` for new, `-` for gone, `~` for changed, `.` for something inside a directory that is not looked into."""
    assert found.whole
    signs: dict[str, str] = {}
    for change in found.paths:
        sign = "." if change.is_inside else "~" if change.before and change.after else "+" if change.after else "-"
        signs[os.path.relpath(change.path, root)] = sign
    return signs


COMMANDS: dict[str, tuple[str, dict[str, str]]] = {
    "a new file": ("echo x > new", {"new": "+"}),
    "a longer file": ("echo x >> a", {"a": "~"}),
    "a file that is gone": ("rm a", {"a": "-"}),
    "a rename": ("mv a z", {"a": "-", "z": "+"}),
    "a rename over another": ("mv a b", {"a": "-", "b": "~"}),
    "a mode": ("chmod 600 a", {"a": "~"}),
    "nothing": ("cat a > /dev/null", {}),
    "made and removed again": ("touch x; rm x", {}),
    "a tree made at once": ("mkdir -p n/m/o; echo x > n/m/o/f", {"n": "+", "n/m": "+", "n/m/o": "+", "n/m/o/f": "+"}),
    "a directory moved": (
        "mv deep far; echo x > far/er/new",
        {
            **dict.fromkeys(("deep", "deep/d", "deep/er", "deep/er/c"), "-"),
            **dict.fromkeys(("far", "far/d", "far/er", "far/er/c", "far/er/new"), "+"),
        },
    ),
    "a directory made again": ("rm -r other; mkdir other; echo x > other/f", {"other/e": "-", "other/f": "+"}),
    "a file that becomes a directory": ("rm a; mkdir a; touch a/b", {"a": "~", "a/b": "+"}),
    "a directory that becomes a file": ("rm -r other; echo x > other", {"other/e": "-", "other": "~"}),
    "a link": ("ln -s nowhere l", {"l": "+"}),
    "a name that is no text": ("touch $'\\xff'", {"\udcff": "+"}),
    "a repository": ("git init -q .; git add a", {".git": "."}),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_did_is_found(name: str, tree: tuple[Path, Watch]) -> None:
    root, watch = tree
    command, expected = COMMANDS[name]
    mark = watch.mark()
    subprocess.run(["bash", "-c", command], cwd=root, check=True)
    found = shown(root, watch.since(mark))
    found.pop(".git", None)  # one that is new is a new name; whether it is also changed inside is a matter of time
    expected = {path: sign for path, sign in expected.items() if path != ".git"}
    if name.startswith("a directory made") and "other" in found:
        assert found.pop("other") == "~"  # a directory of the same name and another inode
    assert found == expected


@pytest.mark.parametrize("mode", [0o311, 0o000])
def test_what_a_closed_directory_holds_is_not_taken_for_gone(mode: int, tree: tuple[Path, Watch]) -> None:
    root, watch = tree
    mark = watch.mark()
    (root / "deep").chmod(mode)
    with powerless():
        found = shown(root, watch.since(mark))
    (root / "deep").chmod(0o755)
    assert found == {"deep": "~"}


def test_what_happens_in_a_skipped_directory_names_the_directory_alone(tmp_path: Path) -> None:
    (tmp_path / "node_modules").mkdir()
    watch = Watch([str(tmp_path)])
    mark = watch.mark()
    (tmp_path / "node_modules" / "x").write_text("x")
    assert shown(tmp_path, watch.since(mark)) == {"node_modules": "."}
    watch.close()


def test_each_mark_has_its_own_changes(tree: tuple[Path, Watch]) -> None:
    root, watch = tree
    (root / "before").write_text("x")
    first = watch.mark()
    (root / "one").write_text("x")
    second = watch.mark()
    (root / "two").write_text("x")
    assert shown(root, watch.since(second)) == {"two": "+"}
    assert shown(root, watch.since(first)) == {"one": "+", "two": "+"}
    (root / "one").unlink()
    assert shown(root, watch.since(second)) == {"two": "+", "one": "-"}
    assert shown(root, watch.since(first)) == {"two": "+"}


def test_a_root_that_was_replaced_is_looked_at_again(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / "old").write_text("x")
    watch = Watch([str(root)])
    mark = watch.mark()
    shutil.rmtree(root)
    root.mkdir()
    (root / "new").write_text("x")
    assert shown(root, watch.since(mark)) == {"old": "-", "new": "+"}
    (root / "newer").write_text("x")
    assert shown(root, watch.since(mark)) == {"old": "-", "new": "+", "newer": "+"}
    watch.close()


def test_a_command_that_makes_more_than_the_queue_holds_loses_no_name(tmp_path: Path) -> None:
    watch = Watch([str(tmp_path)])
    mark = watch.mark()
    subprocess.run(["bash", "-c", "mkdir many; cd many; seq 12000 | xargs touch"], cwd=tmp_path, check=True)
    assert len(watch.since(mark).paths) == 12001
    watch.close()


@pytest.mark.skipif(not may_use("inotify"), reason="the limit of watches is inotify's")
def test_why_nothing_is_watched_is_said_once_where_it_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        (tmp_path / name).mkdir()
    watch = Watch([str(tmp_path)], notify=Limited)
    watch.mark()
    assert watch.take_note() is None
    monkeypatch.setattr(watching, "SLOW_WALK", 0.0)
    assert "max_user_watches" in (watch.take_note() or "")
    assert watch.take_note() is None
    watch.close()


NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/e", "d/e/a", "f"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, NAMES),
        st.tuples(st.just("remove"), NAMES, NAMES),
        st.tuples(st.just("mkdir"), NAMES, NAMES),
        st.tuples(st.just("move"), NAMES, NAMES),
        st.tuples(st.just("link"), NAMES, NAMES),
        st.tuples(st.just("look"), NAMES, NAMES),
    ),
    max_size=25,
)


def do(root: Path, step: tuple[str, str, str]) -> None:
    kind, one, two = step
    path, target = root / one, root / two
    try:
        if kind == "write":
            path.write_text(two)
        elif kind == "mkdir":
            path.mkdir()
        elif kind == "move":
            path.rename(target)
        elif kind == "link":
            path.symlink_to(two)
        elif kind == "remove":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except OSError:
        pass


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happens_the_index_is_what_a_walk_finds(
    steps: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("ws")
    watch = Watch([str(root)])
    mark = watch.mark()
    for step in steps:
        if step[0] == "look":
            watch.since(mark)
        do(root, step)
    watch.since(mark)
    fresh = Watch([str(root)])
    found = dict(watch.entries())
    real = dict(fresh.entries())
    assert found.keys() == real.keys()
    assert all(found[path].same(real[path]) for path in real)
    watch.close()
    fresh.close()
