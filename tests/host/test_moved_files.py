"""Tracked files that something on this machine runs: git moves the user's versions of them, and nothing else does."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.host.sandboxed import LEVELS, Session, git

from gripfast.host.files.scope import PROTECTED, Scope
from gripfast.host.shell.quarantine import Quarantined, release

pytestmark = pytest.mark.usefixtures("own_state")
WHO = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
NAMES = (".vscode/settings.json", ".npmrc", ".envrc", ".pre-commit-config.yaml", ".husky/pre-commit")
both_levels = pytest.mark.parametrize("sandbox", LEVELS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Branches that differ in such files: `other` changes all of them and has one more, `bare` has none."""
    root = tmp_path / "in"
    root.mkdir()
    every = " ".join(NAMES)
    git(
        root,
        f"""git init -qb main; git config commit.gpgsign false; mkdir .vscode .husky; echo code > code
        for f in {every}; do seq 20 > $f; done; git add -f .; git commit -qm one
        git switch -qc other; sed -i s/^2$/two/ {every}; echo {{}} > .vscode/tasks.json; echo x > .mise.toml
        echo other > zz; git add -f .; git commit -qm other
        git switch -qc bare; git rm -qr {every} .vscode .mise.toml; git commit -qm bare
        git switch -q main; git switch -qc code; echo more >> code; git commit -qam code
        git switch -q main; git switch -qc both; sed -i s/^19$/nineteen/ {every}; git commit -qam both
        git switch -q main""",
    )
    return root


class GitSession(Session):
    """A session whose commands run nothing but git, unless said otherwise, and may commit."""

    def __init__(self, root: Path, sandbox: str, *, git_alone: bool = True) -> None:
        super().__init__(Scope.workspace(root), sandbox, before=WHO, git_alone=git_alone)

    def taken_after(self, *steps: str | Callable[[], object], fails: bool = False) -> list[Quarantined]:
        self.run(*steps, must_succeed=not fails)
        return self.taken


def files(root: Path) -> dict[str, bytes]:
    places = (".vscode", ".npmrc", ".envrc", ".pre-commit-config.yaml", ".husky", ".mise.toml", "code", "zz")
    found = (path for name in places for path in [root / name, *(root / name).rglob("*")])
    return {str(path.relative_to(root)): path.read_bytes() for path in found if path.is_file()}


def is_clean(root: Path) -> bool:
    return git(root, "git status --porcelain") == ""


MOVES = (
    "git switch -q other",
    "git switch -q other; git switch -q main; git switch -q bare",
    "git merge -q other",
    "git merge -q --no-ff -m m other",
    "git merge -q code && git merge -q -m m other",
    "git switch -q code && git rebase -q other",
    "git switch -q code && git cherry-pick other",
    "git reset -q --hard other",
    "git checkout -q other -- . && git commit -qm taken",
    "git switch -q bare && git switch -q other",
    "git switch -q other && git revert --no-edit HEAD",
    "git checkout -q bare~1",
    "git stash -q; git switch -q other; git stash list",
)


@both_levels
def test_git_moves_the_users_versions_as_it_does_outside(sandbox: str, root: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-a", root, tmp_path / "kept"], check=True)
    outside = tmp_path / "outside"

    def again(command: str) -> None:
        git(tmp_path, "rm -rf outside; cp -a kept outside; cd in; git reset -q --hard main; git switch -qf main")
        git(tmp_path, "cd in; git for-each-ref --format='delete %(refname)' | git update-ref --stdin --no-deref")
        git(tmp_path, "cp -a kept/.git/refs in/.git/; cp -a kept/.git/HEAD in/.git; cd in; git reset -q --hard")
        git(outside, command)

    def compare(command: str) -> None:
        assert files(root) == files(outside), command
        assert is_clean(root) == is_clean(outside), command

    steps = [(partial(again, command), command, partial(compare, command)) for command in MOVES]
    assert GitSession(root, sandbox).taken_after(*itertools.chain(*steps)) == []


def evil(name: str) -> str:
    """Commands that put a version of a file into a commit, by git's plumbing, and leave the file as it is."""
    return (
        f"b=$(echo evil | git hash-object -w --stdin); export GIT_INDEX_FILE=$PWD/.git/i; git read-tree HEAD; "
        f"git update-index --add --cacheinfo 100644,$b,{name}; "
        f"git branch -f evil $(git commit-tree -p HEAD -m e $(git write-tree))"
    )


BROUGHT = (
    (".npmrc", ("git switch -q evil",)),
    (".vscode/tasks.json", ("git merge -q evil",)),
    (".mise.toml", ("git tag t evil; git branch -qD evil", "git checkout -q t")),
    (".npmrc", ("git pack-refs --all; git gc -q", "git checkout -q --detach evil")),
    (
        ".vscode/settings.json",
        ("git update-ref refs/notes/x evil; git branch -qD evil", "git reset -q --hard notes/x"),
    ),
)


@both_levels
@pytest.mark.parametrize(("name", "how"), BROUGHT)
@pytest.mark.parametrize("later", [False, True], ids=["same session", "later session"])
def test_what_a_command_committed_is_put_back(
    later: bool, how: tuple[str, ...], name: str, sandbox: str, root: Path
) -> None:
    before = files(root)
    session = GitSession(root, sandbox)
    session.taken_after(evil(name))
    if later:
        session = GitSession(root, sandbox)
    taken = session.taken_after(*how)
    assert b"evil\n" not in files(root).values()
    assert files(root).get(name) == before.get(name)
    assert [item.path for item in taken][:1] in ([f"{root}/{name}"], [f"{root}/.vscode"])
    assert "git checkout -- " in taken[0].reason
    git(root, f"git checkout -- {name}")
    assert (root / name).read_text() == "evil\n" and git(root, "git diff --name-only") == ""
    assert GitSession(root, sandbox).taken_after("git switch -qf main", "git checkout -q -") == []
    assert (root / name).read_text() == "evil\n", "the user has taken it"


@both_levels
def test_what_the_user_commits_on_top_of_a_command_does_not_vouch_for_it(sandbox: str, root: Path) -> None:
    GitSession(root, sandbox).taken_after(evil(".npmrc"))
    git(
        root,
        "git worktree add -q --no-checkout ../w evil; cd ../w; git read-tree HEAD; git commit -q --allow-empty -m u",
    )
    GitSession(root, sandbox).taken_after("git merge -q evil")
    assert "evil" not in (root / ".npmrc").read_text()


@both_levels
def test_a_forged_object_vouches_for_nothing(sandbox: str, root: Path) -> None:
    """The tree of a commit of the user, rewritten under its own name."""
    forge = """
import os, subprocess, zlib
def git(*words, given=None):
    return subprocess.run(["git", *words], input=given, capture_output=True, check=True).stdout
blob = git("hash-object", "-w", "--stdin", given=b"evil\\n").decode().strip()
old = git("rev-parse", "main:.npmrc").decode().strip()
tree = git("rev-parse", "main^{tree}").decode().strip()
data = git("cat-file", "tree", tree).replace(bytes.fromhex(old), bytes.fromhex(blob))
path = f".git/objects/{tree[:2]}/{tree[2:]}"
os.chmod(path, 0o644); os.unlink(path)
open(path, "wb").write(zlib.compress(b"tree %d\\0" % len(data) + data))
"""
    before = files(root)[".npmrc"]
    GitSession(root, sandbox).taken_after(
        f"python3 - <<'E'\n{forge}\nE", "rm -f .git/index; git reset -q --hard", fails=True
    )
    assert files(root)[".npmrc"] == before


@both_levels
def test_a_pull_is_finished_and_what_is_new_waits_for_the_user(sandbox: str, root: Path) -> None:
    git(root, "echo far >> .git/info/exclude; git clone -q . far; git remote add origin far; git fetch -q")
    git(root, "git branch -qu origin/main")
    git(root / "far", "echo new > .npmrc; echo n > .mise.toml; echo more > code; git add -f .; git commit -qam g")
    before = (root / ".npmrc").read_bytes()
    session = GitSession(root, sandbox)
    taken = session.taken_after("git pull -q --ff-only")
    assert git(root, "git rev-parse HEAD") == git(root / "far", "git rev-parse HEAD")
    assert (root / "code").read_text() == "more\n"
    assert (root / ".npmrc").read_bytes() == before and not (root / ".mise.toml").exists()
    assert {item.path for item in taken} == {f"{root}/.npmrc", f"{root}/.mise.toml"}
    for item in taken:
        release(item)
    assert is_clean(root)
    assert GitSession(root, sandbox).taken_after("git switch -q code", "git switch -q main") == []
    assert is_clean(root) and (root / ".npmrc").read_text() == "new\n"


@both_levels
def test_a_merge_of_both_sides_is_finished_and_waits_for_the_user(sandbox: str, root: Path) -> None:
    taken = GitSession(root, sandbox).taken_after("git merge -q --no-edit both; git merge -q -m m other")
    assert {item.path for item in taken} == {f"{root}/{name}" for name in NAMES}
    assert git(root, "git log -1 --format=%s") == "m\n"
    git(root, f"git checkout -- {' '.join(NAMES)}")
    assert is_clean(root)


WRITES = (
    *(f"echo evil > {name}" for name in NAMES),
    "rm .npmrc",
    "git show other:.npmrc > .npmrc; echo evil >> .npmrc; git add .npmrc",
    "mv .vscode v; ln -s v .vscode",
    "chmod +x .husky/pre-commit; echo evil > .husky/new",
    "echo evil > .npmrc; git commit -qam x",
)


@both_levels
def test_what_else_changes_them_while_git_may_is_put_back(sandbox: str, root: Path) -> None:
    before = files(root)
    modes = {name: (root / name).stat().st_mode for name in NAMES}

    def check() -> None:
        assert files(root) == before
        assert {name: (root / name).stat().st_mode for name in NAMES} == modes
        assert not (root / ".vscode").is_symlink()
        git(root, "rm -rf v; git reset -q --hard main")

    steps = [(f"git status -s; {command}", check) for command in WRITES]
    GitSession(root, sandbox).taken_after(*itertools.chain(*steps), fails=True)


def test_they_stay_closed_to_a_line_that_runs_more_than_git(root: Path) -> None:
    [text] = GitSession(root, "bwrap", git_alone=False).run("git status; echo evil > .npmrc; echo evil > .vscode/x")
    assert text.count("Read-only file system") + text.count("busy") == 2
    assert "evil" not in (root / ".npmrc").read_text()


@both_levels
def test_a_name_that_the_user_protects_stays_closed(sandbox: str, root: Path) -> None:
    session = GitSession(root, sandbox)
    session.scope = Scope.workspace(root, protect=(*PROTECTED, ".npmrc"))
    before = files(root)[".npmrc"]
    session.taken_after("git switch -q other", fails=True)
    assert files(root)[".npmrc"] == before


def test_nothing_that_such_a_line_started_outlives_it(root: Path) -> None:
    session = GitSession(root, "bwrap")
    session.taken_after("(sleep 1; echo evil > .npmrc) > /dev/null 2>&1 & git switch -q other", "sleep 2")
    assert "evil" not in (root / ".npmrc").read_text() and "two" in (root / ".npmrc").read_text()
    assert session.ended[0].left_running == 0


def test_a_version_of_a_command_is_put_back_while_git_still_runs(root: Path) -> None:
    seen = "until grep -qx 2 .npmrc; do sleep 0.05; done; echo back > said"
    GitSession(root, "bwrap").taken_after(
        evil(".npmrc"), f"git switch -q evil; timeout 20 sh -c '{seen}'", fails=True
    )
    assert (root / "said").read_text() == "back\n"
    assert "evil" not in (root / ".npmrc").read_text()


def test_only_system_programs_run_beside_git(root: Path) -> None:
    (root / "node_modules/.bin").mkdir(parents=True)
    (root / "node_modules/.bin/git").write_text("#!/bin/sh\necho evil\n")
    os.chmod(root / "node_modules/.bin/git", 0o755)
    assert "evil" not in GitSession(root, "bwrap").run("git --version")[0]
    assert "evil" in GitSession(root, "bwrap", git_alone=False).run("git --version")[0]
