"""The 54 cases that opencode's snapshot tests name (packages/opencode/test/snapshot/snapshot.test.ts): which test
here is about the same thing, and where the record does something else on purpose."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from builtin.test_record import COMMANDS, bash, names, opened, root, session, state
from gripfast.builtin.session import WorkspaceSession
from gripfast.edges.cli.main import main
from gripfast.host.record.shelf import RecordOptions
from trees import tree_of

__all__ = ["root", "session", "state"]
pytestmark = pytest.mark.anyio

# Their name: our tests (`COMMANDS: name` is a row of test_record.py), or how ours differs and why.
TABLE = {
    "tracks deleted files correctly": "COMMANDS: a deleted file",
    "revert should remove new files": "COMMANDS: a new file",
    "revert in subdirectory": "COMMANDS: a tree made; differs: the directories that were made go, too",
    "multiple file operations": "COMMANDS: everything",
    "empty directory handling": "COMMANDS: an empty directory made; differs: it is a change and is taken back",
    "binary file handling": "COMMANDS: a binary file",
    "symlink handling": "COMMANDS: a link made",
    "file under size limit handling": "test_a_new_file_over_the_limit_goes",
    "large added files are skipped": "test_a_new_file_over_the_limit_goes; differs: it is not skipped",
    "nested directory revert": "COMMANDS: a tree made",
    "special characters in filenames": "COMMANDS: odd names",
    "revert with empty patches": (
        "test_each_undo_without_a_number_goes_one_call_further_back; differs: an error says so"
    ),
    "patch with invalid hash": "test_bad_input_is_a_usage_error",
    "revert non-existent file": "test_a_path_that_no_call_changed_is_no_harm",
    "unicode filenames": "COMMANDS: names in other scripts",
    "unicode filenames modification and restore": "COMMANDS: names in other scripts, changed",
    "unicode filenames in subdirectories": "COMMANDS: names in other scripts",
    "very long filenames": "COMMANDS: a long name",
    "hidden files": "COMMANDS: hidden names",
    "nested symlinks": "COMMANDS: links to directories",
    "file permissions and ownership changes": "COMMANDS: a mode; differs: modes are changes, owners are not",
    "circular symlinks": "COMMANDS: a link made, COMMANDS: a link deleted",
    "source project gitignore is respected - ignored files are not snapshotted": (
        "test_what_git_ignores_is_not_covered_and_named"
    ),
    "subdirectory snapshots include scoped changes only": (
        "test_below_the_top_of_a_repository_only_the_root_is_recorded"
    ),
    "gitignore changes": "test_what_a_command_makes_goes_even_if_it_is_ignored_now; differs: nothing stays",
    "files tracked in snapshot but now gitignored are filtered out": (
        "test_what_was_covered_stays_covered_when_it_becomes_ignored; differs: it is put back"
    ),
    "gitignore updated between track calls filters from diff": (
        "test_what_was_covered_stays_covered_when_it_becomes_ignored; differs: it is shown"
    ),
    "git info exclude changes": "test_git_s_list_of_the_repository_counts_and_the_user_s_does_not",
    "git info exclude keeps global excludes": (
        "test_git_s_list_of_the_repository_counts_and_the_user_s_does_not; differs: more is covered that way"
    ),
    "concurrent file operations during patch": "test_what_changes_between_plan_and_commit_is_not_lost",
    "snapshot state isolation between projects": "test_an_undo_in_one_workspace_leaves_another_alone",
    "patch detects changes in secondary worktree": "test_a_worktree_is_a_workspace_of_its_own",
    "revert only removes files in invoking worktree": "test_a_worktree_is_a_workspace_of_its_own",
    "diff reports worktree-only/shared edits and ignores primary-only": "test_a_worktree_is_a_workspace_of_its_own",
    "track with no changes returns same hash": "test_a_command_that_changes_nothing_has_nothing_to_undo",
    "diff function with various changes": "test_the_diff_shows_what_was_added_changed_and_removed",
    "restore function": "COMMANDS: everything; differs: what the calls made goes as well",
    "revert should not delete files that existed but were deleted in snapshot": (
        "test_a_file_deleted_by_one_call_and_made_anew_by_the_next"
    ),
    "revert preserves file that existed in snapshot when deleted then recreated": (
        "test_a_file_deleted_by_one_call_and_made_anew_by_the_next"
    ),
    "diffFull sets status based on git change type": "test_the_diff_shows_what_was_added_changed_and_removed",
    "diffFull with new file additions": "test_the_diff_shows_what_was_added_changed_and_removed",
    "diffFull with a large interleaved mixed diff": "test_a_large_mixed_diff_has_every_path_once_and_in_order",
    "diffFull preserves git diff order across batch boundaries": (
        "test_a_large_mixed_diff_has_every_path_once_and_in_order"
    ),
    "diffFull with file modifications": "test_the_diff_shows_what_was_added_changed_and_removed",
    "diffFull with file deletions": "test_the_diff_shows_what_was_added_changed_and_removed",
    "diffFull with multiple line additions": "test_the_diff_shows_what_was_added_changed_and_removed",
    "diffFull with addition and deletion": "test_the_diff_shows_what_was_added_changed_and_removed",
    "diffFull with multiple additions and deletions": "test_a_large_mixed_diff_has_every_path_once_and_in_order",
    "diffFull with no changes": "test_a_command_that_changes_nothing_has_nothing_to_undo",
    "diffFull with binary file changes": "test_the_diff_shows_what_was_added_changed_and_removed",
    "diffFull with whitespace changes": "test_the_diff_shows_what_was_added_changed_and_removed",
    "revert with overlapping files across patches uses first patch hash": (
        "test_many_commands_without_one_write_are_all_taken_back"
    ),
    "revert preserves patch order when the same hash appears again": (
        "test_many_commands_without_one_write_are_all_taken_back"
    ),
    "revert handles large mixed batches across chunk boundaries": (
        "test_thousands_of_changes_by_one_command_are_taken_back_and_put_back"
    ),
}


def test_every_case_is_about_a_test_that_exists() -> None:
    tests = Path(__file__).parents[1]
    files = [
        tests / "edges/cli/test_undo.py",
        tests / "host/record/test_transaction.py",
        *Path(__file__).parent.glob("test_record*.py"),
    ]
    known = {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8"))}
    assert len(TABLE) == 54
    for case, ours in TABLE.items():
        for one in ours.partition("; differs:")[0].split(", COMMANDS"):
            row = one.rpartition(": ")[2] if ": " in one else None
            assert (row in COMMANDS) if row else (one in known), f"{case}: {one}"


def git(directory: Path, script: str) -> None:
    identity = {
        "GIT_AUTHOR_NAME": "x",
        "GIT_AUTHOR_EMAIL": "x",
        "GIT_COMMITTER_NAME": "x",
        "GIT_COMMITTER_EMAIL": "x",
    }
    subprocess.run(["bash", "-ec", script], cwd=directory, check=True, env={**os.environ, **identity})


async def test_a_new_file_over_the_limit_goes(root: Path, state: Path) -> None:
    """Nothing has to be kept of a file that was not there; only the way back to it needs its content."""
    before = tree_of(root)
    async with opened(root, record=RecordOptions(largest_file=1000)) as session:
        await bash(session, "head -c 999 /dev/zero > under; head -c 2000 /dev/zero > over")
        done = await session.undo()
        assert (names(done), done.refused) == (["over", "under"], ())
        assert tree_of(root) == before


async def test_a_large_new_file_that_somebody_changed_is_refused(root: Path, state: Path) -> None:
    async with opened(root, record=RecordOptions(largest_file=1000)) as session:
        await bash(session, "head -c 2000 /dev/zero > over")
        (root / "over").write_bytes(b"theirs" * 400)
        assert [refused.path for refused in (await session.undo()).refused] == ["over"]
        assert (root / "over").read_bytes() == b"theirs" * 400


async def test_a_path_that_no_call_changed_is_no_harm(session: WorkspaceSession, root: Path) -> None:
    await bash(session, "echo x >> a")
    after = tree_of(root)
    done = await session.undo(paths=["nothing-here"])
    assert (done.restored, done.refused) == ((), ())
    assert tree_of(root) == after


async def test_below_the_top_of_a_repository_only_the_root_is_recorded(
    tmp_path: Path, root: Path, state: Path
) -> None:
    (tmp_path / "above").write_text("above\n")
    git(tmp_path, "git init -q . && git add above ws/a")
    async with opened(root) as session:
        await bash(session, "echo x >> a; echo x >> ../above")
        assert [os.path.relpath(change.path, root) for change in session.record.changes(1)] == ["a"]
        assert names(await session.undo()) == ["a"]
    assert (root / "a").read_text() == "one\n"


async def test_what_a_command_makes_goes_even_if_it_is_ignored_now(root: Path, state: Path) -> None:
    git(root, "git init -q .")
    before = tree_of(root)
    async with opened(root) as session:
        await bash(session, "echo '*.log' > .gitignore; echo x > new.log; echo x > plain")
        assert (await session.undo()).refused == ()
    assert tree_of(root) == before
    assert not (root / ".gitignore").exists()


async def test_what_was_covered_stays_covered_when_it_becomes_ignored(root: Path, state: Path) -> None:
    git(root, "git init -q . && git add a && git commit -qm x")
    before = tree_of(root)
    async with opened(root) as session:
        await bash(session, "printf 'a\\nrun\\n' > .gitignore")
        await bash(session, "echo x >> a; rm run")
        assert {os.path.basename(change.path) for change in session.record.changes(2)} == {"a", "run"}
        assert (await session.undo(calls=[1, 2])).refused == ()
    assert tree_of(root) == before


async def test_git_s_list_of_the_repository_counts_and_the_user_s_does_not(
    root: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(state / "global"))
    state.mkdir(exist_ok=True)
    (state / "global").write_text(f"[core]\n\texcludesFile = {state}/everywhere\n")
    (state / "everywhere").write_text("*.tmp\n")
    git(
        root,
        "git init -q . && mkdir -p .git/info && echo '*.local' >> .git/info/exclude; touch x.local x.tmp",
    )
    async with opened(root) as session:
        text = await bash(session, "rm x.local x.tmp; echo x >> a")
        assert "x.local (ignored by git)" in text
        assert names(await session.undo()) == ["a", "x.tmp"]


async def test_an_undo_in_one_workspace_leaves_another_alone(tmp_path: Path, root: Path, state: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with opened(root) as one, opened(other) as two:
        await bash(one, "echo x > made")
        await bash(two, "echo x > made")
        await one.undo()
        assert not (root / "made").exists()
        assert (other / "made").read_text() == "x\n"
        assert [call.number for call in two.record.calls()] == [1]


async def test_a_worktree_is_a_workspace_of_its_own(tmp_path: Path, root: Path, state: Path) -> None:
    tree = tmp_path / "second"
    git(root, f"git init -q . && git add a && git commit -qm x && git worktree add -q {tree} HEAD")
    before = tree_of(tree)
    async with opened(tree) as session:
        await bash(session, "echo x >> a; echo x > made")
        (root / "made").write_text("theirs\n")
        (root / "a").write_text("theirs\n")
        assert [os.path.relpath(change.path, tree) for change in session.record.changes(1)] == ["a", "made"]
        assert (await session.undo()).refused == ()
    assert tree_of(tree) == before
    assert (root / "made").read_text() == (root / "a").read_text() == "theirs\n"


async def test_a_command_that_changes_nothing_has_nothing_to_undo(session: WorkspaceSession, root: Path) -> None:
    before = tree_of(root)
    await bash(session, "cat a; touch a; echo x > t; rm t; chmod 755 run")
    assert session.record.changes(1) == ()
    with pytest.raises(Exception, match="no call of this session"):
        await session.undo()
    assert tree_of(root) == before


async def test_a_file_deleted_by_one_call_and_made_anew_by_the_next(session: WorkspaceSession, root: Path) -> None:
    await bash(session, "rm a")
    await bash(session, "echo anew > a")
    await session.undo()
    assert not (root / "a").exists()
    await session.undo()
    assert (root / "a").read_text() == "one\n"


def diff_of(root: Path, session: WorkspaceSession, *calls: int) -> str:
    given = ["diff", *map(str, calls), "--session", session.id, "--root", str(root)]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


async def test_the_diff_shows_what_was_added_changed_and_removed(session: WorkspaceSession, root: Path) -> None:
    await bash(
        session, "printf '1\\n2\\n3' > new; printf 'one\\n\\n' > a; rm deep/er/c; printf 'x\\0' > b; chmod 600 run"
    )
    text = diff_of(root, session, 1)
    assert "+1\n+2\n+3\n" in text
    assert "-deep\n" in text
    assert "--- a\n+++ a\n@@ -1 +1,2 @@\n one\n+\n" in text
    assert "b: a file of 9 bytes, mode 0644 -> a file of 2 bytes, mode 0644 (call 1)\n" in text
    assert "run: a file of 10 bytes, mode 0755 -> a file of 10 bytes, mode 0600 (call 1)\n" in text


async def test_a_large_mixed_diff_has_every_path_once_and_in_order(session: WorkspaceSession, root: Path) -> None:
    await bash(session, "mkdir m; cd m; for i in $(seq -w 300); do echo $i > $i; done")
    await bash(session, "cd m; rm 0*; sed -i s/^/x/ 1*; for i in $(seq 400 500); do echo $i > $i; done")
    shown = re.findall(r"^(?:---|\+\+\+) m/(\d+)$", diff_of(root, session, 2), re.MULTILINE)
    once = list(dict.fromkeys(shown))
    assert once == sorted(once)
    assert len(once) == 99 + 100 + 101
