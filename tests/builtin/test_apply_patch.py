"""apply_patch, line by line of its contract."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from builtin.conftest import Bench
from gripfast.builtin import patching
from gripfast.builtin.session import open_session
from gripfast.call.hooks import Question
from gripfast.call.rules import PermissionRule, Permissions
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from gripfast.host.record.shelf import workspace_directory
from gripfast.messages import ToolMessage

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def private_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def framed(*hunks: str) -> str:
    return "\n".join(["*** Begin Patch", *hunks, "*** End Patch"])


def update(name: str, old: str, new: str) -> str:
    return f"*** Update File: {name}\n@@\n-{old}\n+{new}"


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


async def opened(bench: Bench, **files: str | bytes) -> None:
    for name, content in files.items():
        bench.put(name, content)
        await bench.ok("Read", file_path=name)


async def test_every_kind_of_hunk_is_applied_and_told_in_a_line(bench: Bench) -> None:
    await opened(bench, a="one\ntwo\n", b="x\n", c="gone\nall\n")
    answer = await bench.ok(
        "apply_patch",
        patch=framed(
            update("a", "two", "2"),
            "*** Update File: b\n*** Move to: new/dir/b\n@@\n-x\n+y",
            "*** Delete File: c",
            "*** Add File: new/d\n+hello",
        ),
    )
    assert answer.split("\n")[:4] == ["M a +1 -1", "R b -> new/dir/b +1 -1", "D c +0 -2", "A new/d +1 -0"]
    assert "--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n+2" in answer
    assert tree(bench.root) == {"a": b"one\n2\n", "new/dir/b": b"y\n", "new/d": b"hello\n"}


async def test_a_part_that_fails_leaves_the_tree_as_it_was_and_all_are_told(bench: Bench) -> None:
    await opened(bench, a="one\n", b="first = 1\nsecond = 2\n")
    before = tree(bench.root)
    message = await bench.fails(
        "NO_MATCH",
        "apply_patch",
        patch=framed(
            "*** Add File: n\n+x",
            update("a", "one", "1"),
            update("b", "first = one", "y"),
            "*** Delete File: missing",
            "*** Update File: ../out\n@@\n-x\n+y",
            "*** Add File: .git/hooks/pre-commit\n+x",
        ),
    )
    assert tree(bench.root) == before
    assert message.startswith("4 parts of the patch can't be applied, so nothing was written:\n- hunk 3")
    assert "The nearest is at line 1:\n     1|first = 1" in message
    assert "hunk 4 (Delete File: missing), line 12 of the patch: `missing` does not exist" in message
    assert "outside the workspace" in message and "protected against writing" in message


async def test_what_was_not_read_is_refused_for_every_kind(bench: Bench) -> None:
    for name in "abcde":
        bench.put(name, "x\n")
    await bench.ok("Read", file_path="e")
    message = await bench.fails(
        "NOT_READ",
        "apply_patch",
        patch=framed(
            update("a", "x", "y"), "*** Delete File: b", "*** Add File: c\n+new", "*** Update File: e\n*** Move to: d"
        ),
    )
    assert [f"`{name}` exists but was not read" in message for name in "abcd"] == [True] * 4
    assert set(tree(bench.root).values()) == {b"x\n"}


async def test_add_and_move_over_files_that_were_read_replace_them_in_their_ways(bench: Bench) -> None:
    await opened(bench, a="x\r\n", b="from\n", c="to\n")
    await bench.ok("apply_patch", patch=framed("*** Add File: a\n+y\n+z", "*** Update File: b\n*** Move to: c"))
    assert tree(bench.root) == {"a": b"y\r\nz\r\n", "c": b"from\n"}


async def test_a_file_changed_since_it_was_read_is_a_conflict(bench: Bench) -> None:
    await opened(bench, a="x\n", b="x\n")
    bench.put("b", "x\ntheirs\n")
    await bench.fails("CONFLICT", "apply_patch", patch=framed(update("a", "x", "y"), update("b", "x", "y")))
    assert tree(bench.root) == {"a": b"x\n", "b": b"x\ntheirs\n"}


async def test_a_file_that_changes_between_plan_and_commit_names_its_hunk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened(bench, a="x\n", b="x\n")
    real = patching.change_together

    def late(*arguments: object, **options: object) -> None:
        bench.put("b", "theirs\n")
        real(*arguments, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(patching, "change_together", late)
    message = await bench.fails("CONFLICT", "apply_patch", patch=framed(update("a", "x", "y"), update("b", "x", "y")))
    assert "hunk 2 (Update File: b): `b` was changed by somebody else" in message and "nothing was written" in message
    assert tree(bench.root) == {"a": b"x\n", "b": b"theirs\n"}


async def test_a_dry_run_shows_the_diff_and_writes_nothing(bench: Bench) -> None:
    await opened(bench, a="x\n")
    answer = await bench.ok("apply_patch", patch=framed(update("a", "x", "y"), "*** Add File: n\n+z"), dry_run=True)
    assert answer.startswith("dry run, nothing was written:\nM a +1 -1\nA n +1 -0\n--- a") and "+y" in answer
    assert tree(bench.root) == {"a": b"x\n"}


async def test_what_was_written_counts_as_read(bench: Bench) -> None:
    await opened(bench, a="x\n")
    await bench.ok("apply_patch", patch=framed(update("a", "x", "y"), "*** Add File: n\n+z"))
    await bench.ok("apply_patch", patch=framed(update("a", "y", "z"), update("n", "z", "q")))
    await bench.ok("Edit", file_path="n", old_string="q", new_string="r")
    assert tree(bench.root) == {"a": b"z\n", "n": b"r\n"}


async def test_mode_encoding_and_byte_order_mark_stay(bench: Bench) -> None:
    path = bench.put("a", b"\xff\xfe" + "é\r\nb\r\n".encode("utf-16-le"))
    path.chmod(0o750)
    await bench.ok("Read", file_path="a")
    await bench.ok("apply_patch", patch=framed("*** Update File: a\n*** Move to: b\n@@\n é\n-b\n+ü"))
    assert bench.bytes_of("b") == b"\xff\xfe" + "é\r\nü\r\n".encode("utf-16-le")
    assert (bench.root / "b").stat().st_mode & 0o777 == 0o750


async def test_a_binary_file_is_moved_and_deleted_but_not_updated(bench: Bench) -> None:
    for name in "abc":
        bench.put(name, b"\0\1\2")
    async with open_session(Scope.workspace(bench.root), require_read=False) as session:
        moves = framed("*** Update File: a\n*** Move to: d", "*** Delete File: b")
        assert not (await session.call("apply_patch", {"patch": moves})).is_error
        refused = await session.call("apply_patch", {"patch": framed(update("c", "x", "y"))})
    assert refused.error is not None and refused.error.code == "BINARY_NOT_SUPPORTED"
    assert "hunk 1" in refused.error.message
    assert tree(bench.root) == {"c": b"\0\1\2", "d": b"\0\1\2"}


async def test_a_text_that_the_files_encoding_lacks_is_refused_and_names_the_hunk(bench: Bench) -> None:
    bench.put("a", "é x\n".encode("latin-1"))
    fs = ScopedFs(Scope.workspace(bench.root), encoding="latin-1")
    async with open_session(fs, require_read=False) as session:
        message = await session.call("apply_patch", {"patch": framed(update("a", "é x", "→"))})
    assert message.error is not None and message.error.code == "ENCODING" and "hunk 1" in message.error.message


async def test_a_link_is_followed_by_an_update_and_neither_moved_nor_deleted(bench: Bench) -> None:
    await opened(bench, a="x\n")
    (bench.root / "link").symlink_to("a")
    await bench.ok("apply_patch", patch=framed(update("link", "x", "y")))
    assert bench.bytes_of("a") == b"y\n" and (bench.root / "link").is_symlink()
    message = await bench.fails("SANDBOX_VIOLATION", "apply_patch", patch=framed("*** Delete File: link"))
    assert "symbolic link" in message and bench.bytes_of("a") == b"y\n"


async def test_two_names_of_one_file_are_one_file(bench: Bench) -> None:
    await opened(bench, a="x\n")
    (bench.root / "link").symlink_to("a")
    await bench.ok("apply_patch", patch=framed(update("link", "x", "y"), update("./a", "y", "z")))
    assert bench.bytes_of("a") == b"z\n"


async def test_what_was_forgiven_is_said(bench: Bench) -> None:
    await opened(bench, a="  x \n")
    answer = await bench.ok("apply_patch", patch=f"```\n{framed(update('a', 'x', 'y'))}\n```")
    assert "[forgiven: a code fence around it, indentation]" in answer
    assert bench.bytes_of("a") == b"  y\n"


@pytest.mark.parametrize(
    "patch", ["", "no patch", "*** Begin Patch\n*** Add File: a\n+x", framed(), framed("*** Add File: \0\n+x")]
)
async def test_what_is_no_patch_is_an_invalid_argument(bench: Bench, patch: str) -> None:
    await bench.fails("INVALID_ARGUMENT", "apply_patch", patch=patch)
    assert tree(bench.root) == {}


async def test_a_hundred_megabytes_are_refused(bench: Bench) -> None:
    message = await bench.fails("INVALID_ARGUMENT", "apply_patch", patch="x" * 100_000_000)
    assert len(message) < 2_000


async def test_a_read_only_file_is_left_alone(bench: Bench) -> None:
    await opened(bench, a="x\n", b="x\n")
    (bench.root / "b").chmod(0o444)
    await bench.fails("SANDBOX_VIOLATION", "apply_patch", patch=framed(update("a", "x", "y"), update("b", "x", "y")))
    assert bench.bytes_of("a") == b"x\n"


async def test_nothing_stays_in_the_private_directory(bench: Bench, private_state: Path) -> None:
    await opened(bench, a="x\n")
    await bench.ok("apply_patch", patch=framed(update("a", "x", "y")))
    left = [path for path in private_state.rglob("*") if path.is_file()]
    assert left == []
    assert all(path.stat().st_mode & 0o077 == 0 for path in private_state.rglob("*") if path.is_dir())


async def test_without_a_private_directory_nothing_is_written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await opened(bench, a="x\n")
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    await bench.fails("UNAVAILABLE", "apply_patch", patch=framed(update("a", "x", "y")))
    assert bench.bytes_of("a") == b"x\n"


# --- rules ---


async def judged(
    root: Path, rules: list[PermissionRule], patch: str, *, yes: bool = False
) -> tuple[ToolMessage, list[Question]]:
    """The answer to a patch under rules, and the questions it led to."""
    questions: list[Question] = []

    async def ask(question: Question) -> bool:
        questions.append(question)
        return yes

    permissions = Permissions("ask", rules)
    async with open_session(Scope.workspace(root), permissions=permissions, ask=ask, require_read=False) as session:
        return await session.call("apply_patch", {"patch": patch}), questions


async def test_one_question_for_the_whole_patch_shows_all_of_it(bench: Bench) -> None:
    bench.put("a", "x\n")
    patch = framed(update("a", "x", "y"), "*** Add File: b\n+" + "long " * 2000 + "\n+\x1b[2Jend")
    message, questions = await judged(bench.root, [], patch, yes=True)
    assert not message.is_error
    (question,) = questions
    shown = question.shown()
    assert "apply_patch a: no rule matches it" in shown and "apply_patch b: no rule matches it" in shown
    assert "| *** Update File: a\n| @@\n| -x\n| +y\n" in shown and "long " * 2000 in shown and "\\x1b[2Jend" in shown
    assert "apply_patch on a, b, whatever else it is given" in shown


async def test_every_path_is_judged_and_the_strictest_rule_decides(bench: Bench) -> None:
    bench.put("a", "x\n")
    rules = [PermissionRule("apply_patch", "secret/**", "deny"), PermissionRule("apply_patch", "*", "allow")]
    for hunk in ("*** Add File: secret/b\n+x", "*** Update File: a\n*** Move to: secret/a"):
        message, questions = await judged(bench.root, rules, framed("*** Add File: n\n+x", hunk))
        assert message.error is not None and message.error.code == "POLICY_DENIED" and not questions
        assert "secret/" in message.error.message
    assert tree(bench.root) == {"a": b"x\n"}


@pytest.mark.parametrize("tool", ["Write", "Edit", "effect:write", "*"])
async def test_rules_that_deny_or_ask_about_write_and_edit_hold_for_patches(bench: Bench, tool: str) -> None:
    deny = [PermissionRule(tool, "locked", "deny"), PermissionRule("apply_patch", "*", "allow")]
    message, _ = await judged(bench.root, deny, framed("*** Add File: locked\n+x"))
    assert message.error is not None and message.error.code == "POLICY_DENIED"
    asks = [PermissionRule(tool, "locked", "ask"), PermissionRule("apply_patch", "*", "allow")]
    message, questions = await judged(bench.root, asks, framed("*** Add File: locked\n+x"), yes=True)
    assert len(questions) == 1 and not message.is_error


async def test_a_rule_that_allows_edit_does_not_allow_patches(bench: Bench) -> None:
    rules = [PermissionRule("Edit", "*", "allow"), PermissionRule("Write", "*", "allow")]
    message, questions = await judged(bench.root, rules, framed("*** Add File: a\n+x"))
    assert len(questions) == 1 and message.is_error


async def test_places_that_no_rule_can_open_are_told_before_anybody_is_asked(bench: Bench) -> None:
    hunks = ["*** Add File: ../one\n+x", "*** Add File: /etc/two\n+x", "*** Add File: ok\n+x"]
    message, questions = await judged(bench.root, [], framed(*hunks))
    assert not questions and message.error is not None and message.error.code == "SANDBOX_VIOLATION"
    assert "../one" in message.error.message and "/etc/two" in message.error.message


PROTECTED = framed("*** Add File: .github/workflows/ci.yml\n+on: push", "*** Update File: .envrc\n@@\n-x\n+y")
ALLOWED = [PermissionRule("apply_patch", "*", "allow")]


async def test_protected_names_are_asked_about_even_where_the_rules_allow_and_written_after_a_yes(
    bench: Bench,
) -> None:
    bench.put(".envrc", "x\n")
    message, (question,) = await judged(bench.root, ALLOWED, PROTECTED, yes=True)
    assert not message.is_error, message.text
    shown = question.shown()
    assert "`.github/workflows/ci.yml` is protected" in shown and "`.envrc` is protected" in shown
    assert not question.may_remember
    assert tree(bench.root) == {".github/workflows/ci.yml": b"on: push\n", ".envrc": b"y\n"}


async def test_a_no_about_a_protected_name_leaves_every_file_of_the_patch_as_it_was(bench: Bench) -> None:
    bench.put(".envrc", "x\n")
    message, questions = await judged(bench.root, ALLOWED, PROTECTED)
    assert len(questions) == 1 and message.error is not None and message.error.code == "POLICY_DENIED"
    assert tree(bench.root) == {".envrc": b"x\n"}


async def test_a_patch_that_would_make_a_repository_is_taken_back_whole(bench: Bench) -> None:
    """Half-way its directory begins to look like a repository and is protected; what was written is taken back."""
    bench.put("src/main.py", "orig\n")
    await bench.ok("Read", file_path="src/main.py")
    names = ("evil.py", "HEAD", "objects/x", "refs/x")
    hunks = ["*** Update File: src/main.py\n@@\n-orig\n+changed", *(f"*** Add File: src/{one}\n+x" for one in names)]
    patch = "*** Begin Patch\n" + "\n".join(hunks) + "\n*** End Patch\n"
    assert "the inside of a git repository" in await bench.fails("SANDBOX_VIOLATION", "apply_patch", patch=patch)
    assert bench.bytes_of("src/main.py") == b"orig\n"
    assert [path.name for path in (bench.root / "src").iterdir()] == ["main.py"]


async def test_what_configures_git_is_never_a_question(bench: Bench) -> None:
    hunks = ("*** Add File: ok\n+x", "*** Add File: .git/hooks/pre-commit\n+x")
    message, questions = await judged(bench.root, ALLOWED, framed(*hunks), yes=True)
    assert not questions and message.error is not None and message.error.code == "SANDBOX_VIOLATION"
    assert tree(bench.root) == {}


@pytest.mark.parametrize("marks", [("HEAD", "objects/x", "refs/x"), ("HEAD", "commondir")])
async def test_files_that_make_a_repository_together_are_refused_as_a_whole(
    marks: tuple[str, ...], bench: Bench
) -> None:
    bench.put("src/a", "old\n")
    hunks = (update("src/a", "old", "new"), *(f"*** Add File: src/{name}\n+x" for name in marks))
    message, _ = await judged(bench.root, ALLOWED, framed(*hunks), yes=True)
    assert message.error is not None and message.error.code == "SANDBOX_VIOLATION"
    assert tree(bench.root) == {"src/a": b"old\n"}


async def test_where_nobody_can_be_asked_a_protected_name_is_refused(bench: Bench) -> None:
    bench.put(".envrc", "x\n")
    rules = Permissions("deny", ALLOWED)
    async with open_session(Scope.workspace(bench.root), permissions=rules, require_read=False) as session:
        message = await session.call("apply_patch", {"patch": PROTECTED})
    assert message.error is not None and message.error.code == "SANDBOX_VIOLATION"
    assert ".envrc" in message.error.message and ".github/workflows/ci.yml" in message.error.message
    assert tree(bench.root) == {".envrc": b"x\n"}


# --- the record ---


async def test_a_patch_is_one_line_of_the_record_and_is_undone_whole(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    for name in "abc":
        (root / name).write_text(f"{name}\n")
    (root / "b").chmod(0o600)
    before = tree(root)
    async with open_session(Scope.workspace(root), record=True, require_read=False) as session:
        patch = framed(
            update("a", "a", "A"),
            "*** Update File: b\n*** Move to: new/b",
            "*** Delete File: c",
            "*** Add File: d/e/f\n+x",
        )
        assert not (await session.call("apply_patch", {"patch": patch})).is_error
        assert tree(root) != before
        (call,) = session.record.calls()
        assert call.tool == "apply_patch" and call.error is None
        assert sorted(os.path.relpath(change.path, root) for change in call.changes) == [
            "a", "b", "c", "d", "d/e", "d/e/f", "new", "new/b",
        ]  # fmt: skip
        result = await session.undo()
        assert not result.refused
    assert tree(root) == before and (root / "b").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in root.iterdir()) == ["a", "b", "c"]


async def test_a_patch_that_fails_changes_nothing_in_the_record(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    async with open_session(Scope.workspace(root), record=True) as session:
        await session.call("apply_patch", {"patch": framed("*** Add File: a\n+x", "*** Delete File: missing")})
        (call,) = session.record.calls()
    assert call.error == "NOT_FOUND" and call.changes == ()


# --- killed ---

KILLED = textwrap.dedent("""
    import os, signal, sys
    import anyio
    from gripfast import OutputCache, Scope, open_session

    root, patch, nth = sys.argv[1], sys.argv[2], int(sys.argv[3])
    count = 0

    def step(event, _):
        global count
        if event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link"):
            count += 1
            if count == nth:
                os.kill(os.getpid(), signal.SIGKILL)

    async def main():
        async with open_session(Scope.workspace(root), require_read=False, cache=OutputCache()) as session:
            sys.addaudithook(step)
            await session.call("apply_patch", {"patch": patch})

    anyio.run(main)
""")


@pytest.mark.parametrize("nth", [1, 9, 17, 23, 31])
async def test_a_process_killed_in_mid_commit_leaves_all_or_nothing_to_the_next(
    nth: int, tmp_path: Path, private_state: Path
) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    for number in range(5):
        (root / f"f{number}").write_text("x\n")
    before = tree(root)
    patch = framed(*(update(f"f{number}", "x", "y") for number in range(5)), "*** Add File: d/n\n+x")
    subprocess.run([sys.executable, "-c", KILLED, str(root), patch, str(nth)], env=dict(os.environ), check=False)
    async with open_session(Scope.workspace(root), require_read=False) as session:
        after = {**{f"f{number}": b"y\n" for number in range(5)}, "d/n": b"x\n"}
        assert tree(root) in (before, after)
        await session.call("apply_patch", {"patch": framed("*** Add File: last\n+x")})
    left = [path for path in workspace_directory(str(root)).rglob("*") if path.is_file()]
    assert [path for path in left if ".new" not in (path.suffix, path.parent.suffix)] == []  # those go after a minute
    assert (root / "last").exists()


async def test_a_patch_of_a_file_that_is_not_there_names_near_ones(bench: Bench) -> None:
    bench.put("native/hash.h", "x\n")
    for path in ("native/hahs.h", "a/native/hash.h"):
        patch = f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"
        message = await bench.fails("NOT_FOUND", "apply_patch", patch=patch)
        assert message.endswith(f"`{path}` does not exist; near: `native/hash.h`")
