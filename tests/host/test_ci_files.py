"""CI files in the sandbox: git moves them as everywhere, and whatever else changes them is put back and told."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.host.sandboxed import LEVELS, Session, git, level

from gripfast.host.files.scope import PROTECTED, Scope
from gripfast.host.program.git_view import GitView, object_name
from gripfast.host.shell.quarantine import Quarantined, release
from gripfast.host.shell.shells import Shells

pytestmark = pytest.mark.usefixtures("own_state")
WHO = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
CI = ".github/workflows/ci.yml"
both_levels = pytest.mark.parametrize("sandbox", LEVELS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Branches whose CI files differ: `other` changes one and has another more, `bare` has none, `code` differs in
    code alone, `both` has changed the same lines as `other`'s neighbour `main`."""
    root = tmp_path / "in"
    root.mkdir()
    git(
        root,
        f"""git init -qb main; git config commit.gpgsign false; mkdir -p .github/workflows
        seq 20 > {CI}; echo code > code; git add .; git commit -qm one
        git switch -qc other; sed -i s/^2$/two/ {CI}; echo x > .github/workflows/more.yml; echo y > .gitlab-ci.yml
        git add .; git commit -qm other
        git switch -qc bare; git rm -qr .github .gitlab-ci.yml; git commit -qm bare
        git switch -q main; git switch -qc code; echo more >> code; git commit -qam code
        git switch -q main; git switch -qc both; sed -i s/^19$/nineteen/ {CI}; git commit -qam both
        git switch -q main""",
    )
    return root


class CiSession(Session):
    """A session whose commands may commit."""

    def __init__(self, root: Path, sandbox: str, protect: Sequence[str] = PROTECTED) -> None:
        super().__init__(Scope.workspace(root, protect=protect), sandbox, before=WHO)

    def taken_after(self, *steps: str | Callable[[], object], fails: bool = False) -> list[Quarantined]:
        self.run(*steps, must_succeed=not fails)
        return self.taken


def is_clean(root: Path) -> bool:
    return git(root, "git status --porcelain") == ""


def ci_files(root: Path) -> dict[str, bytes]:
    names = (".github", ".gitlab-ci.yml", ".travis.yml")
    found = (path for name in names for path in [root / name, *(root / name).rglob("*")])
    return {str(path.relative_to(root)): path.read_bytes() for path in found if path.is_file()}


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
    "git bisect start bare main && git bisect bad",
    "git bisect start bare main && git bisect bad && git bisect reset",
    f"git rm -q {CI} && git commit -qm gone",
    "echo z > code; git stash -q; git switch -q other; git stash pop -q; git checkout -- code",
    "git sparse-checkout set none",
)


@both_levels
def test_git_moves_ci_files_as_it_does_outside(sandbox: str, root: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-a", root, tmp_path / "kept"], check=True)
    outside = tmp_path / "outside"

    def again(command: str) -> None:
        git(tmp_path, "rm -rf outside in/{*,.git*}; cp -a kept/. in; cp -a kept outside")
        for place in (root, outside):
            git(place, "git status")
        git(outside, command)

    def compare(command: str) -> None:
        assert ci_files(root) == ci_files(outside), command
        assert is_clean(root) == is_clean(outside), command

    steps = [(partial(again, command), command, partial(compare, command)) for command in MOVES]
    assert CiSession(root, sandbox).taken_after(*itertools.chain(*steps)) == []


@both_levels
@pytest.mark.parametrize("rebase", ["false", "true"])
def test_a_pull_brings_ci_files_that_are_new(rebase: str, sandbox: str, root: Path) -> None:
    git(root, "echo far >> .git/info/exclude; git clone -q . far; git remote add origin far; git fetch -q")
    git(root, "git branch -qu origin/main")
    git(root / "far", f"echo further > {CI}; echo n > .travis.yml; git add .; git commit -qam g")
    pull = f"echo mine > mine; git add mine; git commit -qm m; git pull -q --no-edit --rebase={rebase}"
    assert CiSession(root, sandbox).taken_after(pull) == []
    assert ci_files(root) == {CI: b"further\n", ".travis.yml": b"n\n"}
    assert is_clean(root)


ATTACKS = (
    f"echo $EPOCHREALTIME >> {CI}",
    f"echo $EPOCHREALTIME >> {CI}; git add .",
    f"echo $EPOCHREALTIME >> {CI}; git commit -qam x",
    f"echo $EPOCHREALTIME >> {CI}; git commit -qa --amend --no-edit",
    f"rm {CI}",
    f"cp code {CI}",
    "rm -r .github; ln -s {out} .github",
    "git mv .github/workflows .github/w; ln -s w .github/workflows",
    "mv .github/workflows .github/w; ln -s w .github/workflows",
    "rm -rf .github; echo $EPOCHREALTIME > .github",
    f"rm {CI}; mkdir {CI}; echo $EPOCHREALTIME > {CI}/x",
    f"rm {CI}; mkfifo {CI}",
    f"rm {CI}; ln -s ../../code {CI}; git add .",
    f"git checkout -q other -- {CI}; ln {CI} c",
    f"git init -q .github; echo $EPOCHREALTIME > .github/workflows/x.yml; echo $EPOCHREALTIME >> {CI}",
    f"git show other:{CI} > {CI}",
    f"export GIT_INDEX_FILE=$PWD/.git/i; cp .git/index .git/i; git checkout -q other -- {CI}",
    f"mv .git .g 2>/dev/null && git init -q && git add . ; echo $EPOCHREALTIME >> {CI}; git add .",
    f"chmod +x {CI}",
    f"git merge -q other; git show both:{CI} > {CI}; git add .; echo $EPOCHREALTIME >> {CI}",
    "for i in $(seq 1100); do echo > .github/workflows/$i; done",
    f"echo $EPOCHREALTIME >> {CI}; touch .git/index.lock",
    f"echo $EPOCHREALTIME >> {CI}; rm .git/index; mkfifo .git/index",
    f"cp .git/index i; rm .git/index; ln -s ../i .git/index; echo $EPOCHREALTIME >> {CI}; git add .",
    f"chmod 0 .github/workflows; chmod 0 {CI}",
)


@both_levels
def test_what_a_command_changes_in_ci_files_is_put_back(sandbox: str, root: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-a", root, tmp_path / "kept"], check=True)
    (tmp_path / "out").mkdir()
    before, mode = (root / CI).read_bytes(), (root / CI).stat().st_mode

    def check(command: str) -> None:
        assert (root / CI).exists(), command
        assert (root / CI).read_bytes() == before and (root / CI).stat().st_mode == mode, command
        assert not (root / CI).is_symlink() and (root / CI).resolve() == root.resolve() / CI, command
        assert os.listdir(root / ".github/workflows") == ["ci.yml"], command
        assert list((tmp_path / "out").iterdir()) == []

    def again() -> None:
        git(tmp_path, "rm -rf in/{*,.git*,.g}; cp -a kept/. in; git -C in status")

    steps = [
        (again, f"git --version; {command.format(out=tmp_path / 'out')}", partial(check, command))
        for command in ATTACKS
    ]
    taken = CiSession(root, sandbox).taken_after(*itertools.chain(*steps), fails=True)
    assert len([item for item in taken if item.path == f"{root}/{CI}"]) >= 15


@both_levels
@pytest.mark.parametrize("then", ["git status -s", "git add .", "git add .; git commit -qm x"])
def test_what_a_command_makes_among_ci_files_is_taken_out(then: str, sandbox: str, root: Path) -> None:
    names = (".github/workflows/new.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile")
    made = "; ".join(f"mkdir -p $(dirname {name}); echo {name} > {name}" for name in names)
    taken = CiSession(root, sandbox).taken_after(f"{made}; {then}")
    assert not [name for name in names if (root / name).exists()]
    assert {item.path for item in taken} == {f"{root}/{name.removesuffix('/config.yml')}" for name in names}


# ---- what counts as old ----


@both_levels
def test_new_content_does_not_become_old_by_a_commit_in_an_earlier_command(sandbox: str, root: Path) -> None:
    before = (root / CI).read_bytes()
    session = CiSession(root, sandbox)
    taken = session.taken_after(f"echo x >> {CI}; git commit -qam x", f"git checkout -- {CI}", "git reset -q --hard")
    assert (root / CI).read_bytes() == before
    assert [item.path for item in taken] == [f"{root}/{CI}"] * 3
    assert f"git checkout -- {CI}" in taken[0].reason


@both_levels
def test_a_merge_with_new_content_is_told_and_can_be_released(sandbox: str, root: Path) -> None:
    before = (root / CI).read_bytes()
    (taken,) = CiSession(root, sandbox).taken_after("git merge -q --no-edit both; git merge -q -m m other")
    assert taken.path == f"{root}/{CI}" and f"git checkout -- {CI}" in taken.reason
    assert (root / CI).read_bytes() == before
    release(taken)
    assert is_clean(root)
    moves = ("git switch -q both", "git switch -q main", "git stash -q; git stash pop -q; true")
    assert CiSession(root, sandbox).taken_after(*moves) == []
    assert is_clean(root)


@both_levels
def test_what_the_user_wrote_travels_with_the_stash_and_with_branches(sandbox: str, root: Path) -> None:
    def edit() -> None:
        (root / CI).write_text("mine\n")

    session = CiSession(root, sandbox)
    assert session.taken_after(edit, "git status -s", "git stash -q", "git switch -q code", "git stash pop -q") == []
    assert (root / CI).read_text() == "mine\n"
    assert (
        session.taken_after("git commit -qam mine; git switch -q main", "git switch -q code; git gc -q --prune=now")
        == []
    )
    assert (root / CI).read_text() == "mine\n" and is_clean(root)


@both_levels
def test_a_file_that_git_does_not_have_is_not_lost(sandbox: str, root: Path) -> None:
    (root / ".github/workflows/mine.yml").write_text("untracked")
    CiSession(root, sandbox).taken_after("git clean -fdxq; rm -rf .github/workflows/mine.yml")
    assert (root / ".github/workflows/mine.yml").read_text() == "untracked"


# ---- what runs on this machine ----


@both_levels
def test_what_runs_on_this_machine_stays_out_also_beside_ci_files(sandbox: str, root: Path) -> None:
    git(root, "echo far >> .git/info/exclude; git clone -q . far")
    git(
        root / "far",
        """git switch -qc nested; mkdir -p .circleci/r/{objects,refs} .circleci/.vscode; cd .circleci
        echo ok > config.yml; echo evil > .envrc; echo evil > .vscode/tasks.json; echo ref: refs/heads/x > r/HEAD
        printf '[core]\\nbare = true\\nfsmonitor = evil\\n' > r/config; touch r/objects/x r/refs/x
        git add -f .; git commit -qm nested; git switch -q main""",
    )
    fetch = "git fetch -q far nested:nested"
    taken = CiSession(root, sandbox).taken_after(fetch, "git switch -q nested", "git status -s")
    places = (".circleci/.envrc", ".circleci/.vscode", ".circleci/r/config")
    assert {item.path for item in taken} == {f"{root}/{place}" for place in places}
    assert (root / ".circleci/config.yml").read_text() == "ok\n"
    assert not (root / ".circleci/.envrc").exists() and not (root / ".circleci/.vscode").exists()
    assert "evil" not in (root / ".circleci/r/config").read_text()


@pytest.mark.parametrize("more", [(".github",), (".github/workflows",), ("**/.github/workflows",)])
def test_a_name_that_the_user_protects_is_closed_to_git_as_well(more: tuple[str, ...], root: Path) -> None:
    for protect in ((*PROTECTED, *more), (".git", *more)):
        CiSession(root, "bwrap", protect).taken_after("git switch -q other", fails=True)
        assert "two" not in (root / CI).read_text()
        git(root, "git reset -q --hard; git switch -qf main")


def test_ci_files_outside_a_repository_stay_closed(tmp_path: Path) -> None:
    (tmp_path / "in/.github/workflows").mkdir(parents=True)
    (tmp_path / "in" / CI).write_text("kept")
    [text] = CiSession(tmp_path / "in", "bwrap").run(f"git --version; echo x > {CI}")
    assert "Read-only file system" in text
    assert (tmp_path / "in" / CI).read_text() == "kept"


# ---- who else changes files ----


def test_what_the_user_edits_while_a_command_runs_stays(root: Path) -> None:
    """A command that doesn't name git can't change CI files, so it was somebody else."""

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level("bwrap")) as shells:
            await shells.run("git switch -q other", ignore)
            shell = await shells.start("until test -e stop; do sleep 0.01; done")
            (root / CI).write_text("mine\n")
            ended = await shells.run(f"git status; echo x > {CI} && false", ignore)
            assert [item.path for item in ended.quarantined] == [f"{root}/{CI}"]
            (root / CI).write_text("mine again\n")
            (root / "stop").touch()
            while shells.is_running(shell):
                await anyio.sleep(0.01)
            assert await shells.late_names(shell) == []

    anyio.run(main)
    assert (root / CI).read_text() == "mine again\n"


async def ignore(_: bytes) -> None: ...


@both_levels
def test_what_a_background_command_does_to_ci_files_is_judged_at_each_look(sandbox: str, root: Path) -> None:
    waits = "until test -e {0}; do sleep 0.01; done"
    steps = f"git switch -q other; touch one; {waits.format('two')}; echo x >> {CI}; git commit -qam x; touch three"

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            shell = await shells.start(f"{WHO}{steps}; {waits.format('four')}; echo z > .gitlab-ci.yml")
            await shells.run(waits.format("one"), ignore)
            ended = await shells.run("true", ignore)
            assert ended.quarantined == () and "two" in (root / CI).read_text()
            ended = await shells.run(f"touch two; {waits.format('three')}", ignore)
            assert [item.path for item in ended.quarantined] == [f"{root}/{CI}"]
            assert "x" not in (root / CI).read_text()
            ended = await shells.run("touch four", ignore)
            while shells.is_running(shell):
                await anyio.sleep(0.01)
            taken = [*ended.quarantined, *await shells.late_names(shell)]
            assert [item.path for item in taken] == [f"{root}/.gitlab-ci.yml"]

    anyio.run(main)
    assert (root / CI).read_bytes() == git(root, f"git show other~0:{CI}").replace("x\n", "").encode()
    assert (root / ".gitlab-ci.yml").read_text() == "y\n"


KILLED = """
import os, signal, sys, anyio
from gripfast.host.files.scope import Scope
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

async def main():
    sandbox = Sandbox("landlock") if sys.argv[2] == "landlock" else choose("auto")
    async with Shells(Scope.workspace(sys.argv[1]), sandbox=sandbox) as shells:
        await shells.start("git switch -q other; echo x >> .gitlab-ci.yml; touch up; sleep 600")
        while not os.path.exists(f"{sys.argv[1]}/up"):
            await anyio.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


@both_levels
def test_a_server_that_was_killed_leaves_what_git_moved_and_nothing_else(sandbox: str, root: Path) -> None:
    level(sandbox)
    done = subprocess.run([sys.executable, "-c", KILLED, str(root), sandbox], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    until = time.monotonic() + 60
    while (root / ".gitlab-ci.yml").exists():
        assert time.monotonic() < until, "nobody looked"
        time.sleep(0.05)
    assert "two" in (root / CI).read_text() and (root / ".github/workflows/more.yml").exists()


# ---- what we run ourselves ----


@both_levels
def test_nothing_runs_that_a_repository_names(sandbox: str, root: Path, tmp_path: Path) -> None:
    evil = f"sh -c 'touch {tmp_path}/PWNED'"
    for key, value in {
        "core.fsmonitor": evil,
        "core.hooksPath": str(tmp_path),
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{evil}",
        "protocol.ext.allow": "always",
        "remote.origin.uploadpack": evil,
    }.items():
        git(root, f'git config {key} "{value}"')
    attack = (
        f"echo x >> {CI}; git -c core.fsmonitor= add {CI}; rm -f {tmp_path}/PWNED; echo {'d' * 40} > .git/FETCH_HEAD"
    )
    CiSession(root, sandbox).taken_after(
        f"{attack}; mkfifo .git/refs/remotes .git/objects/info/alternates", fails=True
    )
    assert not (tmp_path / "PWNED").exists()
    assert "x" not in (root / CI).read_text()


@both_levels
def test_no_program_runs_where_no_ci_file_changed(sandbox: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("nothing was to be judged")

    monkeypatch.setattr(GitView, "__init__", fail)
    CiSession(root, sandbox).taken_after(
        "true", "git status -s", "git switch -q code", "echo x > y; git add y; git commit -qm y"
    )


@both_levels
def test_ci_files_of_a_worktree_are_moved_by_git(sandbox: str, root: Path, tmp_path: Path) -> None:
    git(root, f"git worktree add -q {tmp_path}/tree code")
    tree = tmp_path / "tree"
    session = CiSession(tree, sandbox)
    assert session.taken_after("git switch -q other", "git reset -q --hard bare", "git reset -q --hard both") == []
    assert "nineteen" in (tree / CI).read_text() and is_clean(tree)
    (taken,) = session.taken_after(f"git status; echo x > {CI}; git add .")
    assert taken.path == f"{tree}/{CI}" and "nineteen" in (tree / CI).read_text()


# ---- any order ----

GIT_STEPS = (
    *(f"git switch -qf {branch}" for branch in ("main", "other", "bare", "code", "both")),
    *(f"git merge -q -m m {branch}" for branch in ("other", "code", "both")),
    *("git reset -q --hard other", "git stash -q", "git stash pop -q", "git checkout -q other -- ."),
    *(
        "git merge --abort",
        "git reset -q --hard",
        "git add -A",
        "git commit -qam x",
        "git rebase -q main",
        "git rebase --abort",
    ),
)
OTHER_STEPS = (
    *(f"echo $RANDOM >> {CI}", "echo $RANDOM > .gitlab-ci.yml", f"rm -f {CI}", "rm -rf .github", "mv .github g"),
    *(f"cp code {CI}", "mkdir -p .github/workflows; echo $RANDOM > .github/workflows/n.yml", f"chmod 755 {CI}"),
)


@both_levels
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_runs_every_ci_file_is_as_before_or_an_old_version_of_gits(
    seed: int, sandbox: str, root: Path
) -> None:
    choose_from = random.Random(seed)
    old = {git(root, f"git rev-parse {branch}:{CI}").strip() for branch in ("main", "other", "both")}
    old |= {
        git(root, f"git rev-parse other:{name}").strip() for name in (".github/workflows/more.yml", ".gitlab-ci.yml")
    }
    before: dict[str, bytes] = {}
    seen: set[tuple[str, bytes]] = set()

    def note() -> None:
        before.clear()
        before.update(ci_files(root))
        seen.update(before.items())

    def check() -> None:
        now = ci_files(root)
        for path in now.keys() | before.keys():
            if now.get(path) != before.get(path) and (path, now.get(path)) not in seen:
                staged = git(root, f"git ls-files -s -- {path}").split()
                assert bool(staged) == (path in now), path
                assert not staged or object_name(now[path]) == staged[1] in old, path

    steps: list[str | Callable[[], object]] = []
    for _ in range(25):
        some = choose_from.choices(GIT_STEPS, k=2) + choose_from.choices(OTHER_STEPS, k=choose_from.choice((0, 1, 1)))
        choose_from.shuffle(some)
        steps += [note, f"git --version; {'; '.join(some)}", check]
    CiSession(root, sandbox).taken_after(*steps, fails=True)
