"""CI files in the sandbox: git moves them as everywhere, and whatever else changes them is put back and told."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import pytest

from gripfast.host.files.scope import PROTECTED, Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.quarantine import Quarantined
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
WHO = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
CI = ".github/workflows/ci.yml"
both_levels = pytest.mark.parametrize("sandbox", ["bwrap", "landlock"])


def level(name: str) -> Sandbox:
    found = Sandbox("landlock") if name == "landlock" and landlock_version() else choose("auto")
    if found.level != name:
        pytest.skip(f"{name} does not work here: {found.faults}")
    return found


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def git(where: Path, script: str) -> str:
    done = subprocess.run(["bash", "-ec", script], cwd=where, env=ENVIRONMENT, check=True, capture_output=True)
    return done.stdout.decode()


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


class Session:
    """Commands one after the other in one session; what each took out."""

    def __init__(self, root: Path, sandbox: str, protect: Sequence[str] = PROTECTED) -> None:
        self.scope, self.sandbox = Scope.workspace(root, protect=protect), level(sandbox)
        self.taken: list[Quarantined] = []
        self.printed: list[str] = []

    def run(self, *steps: str | Callable[[], object], fails: bool = False) -> list[Quarantined]:
        async def main() -> None:
            async with Shells(self.scope, sandbox=self.sandbox) as shells:
                for step in steps:
                    if not isinstance(step, str):
                        step()
                        continue
                    kept = bytearray()

                    async def feed(data: bytes, kept: bytearray = kept) -> None:
                        kept.extend(data)

                    ended = await shells.run(f"{WHO}{step}", feed, timeout_ms=60_000)
                    self.printed.append(kept.decode())
                    self.taken += ended.quarantined
                    assert fails or ended.exit_code == 0, kept.decode()

        anyio.run(main)
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
    assert Session(root, sandbox).run(*itertools.chain(*steps)) == []


@both_levels
@pytest.mark.parametrize("rebase", ["false", "true"])
def test_a_pull_brings_ci_files_that_are_new(rebase: str, sandbox: str, root: Path) -> None:
    git(root, "echo far >> .git/info/exclude; git clone -q . far; git remote add origin far; git fetch -q")
    git(root, "git branch -qu origin/main")
    git(root / "far", f"echo further > {CI}; echo n > .travis.yml; git add .; git commit -qam g")
    pull = f"echo mine > mine; git add mine; git commit -qm m; git pull -q --no-edit --rebase={rebase}"
    assert Session(root, sandbox).run(pull) == []
    assert ci_files(root) == {CI: b"further\n", ".travis.yml": b"n\n"}
    assert is_clean(root)


ATTACKS = (
    f"echo x >> {CI}",
    f"echo x >> {CI}; git add .",
    f"echo x >> {CI}; git commit -qam x",
    f"echo x >> {CI}; git commit -qa --amend --no-edit",
    f"rm {CI}",
    f"cp code {CI}",
    "rm -r .github; ln -s {out} .github",
    "git mv .github/workflows .github/w; ln -s w .github/workflows",
    "mv .github/workflows .github/w; ln -s w .github/workflows",
    "rm -rf .github; echo x > .github",
    f"rm {CI}; mkdir {CI}; echo x > {CI}/x",
    f"rm {CI}; mkfifo {CI}",
    f"rm {CI}; ln -s ../../code {CI}; git add .",
    f"git show other:{CI} > c; rm {CI}; ln c {CI}; git add {CI}",
    f"git init -q .github; echo x > .github/workflows/x.yml; echo x >> {CI}",
    f"git show other:{CI} > {CI}",
    f"export GIT_INDEX_FILE=$PWD/.git/i; cp .git/index .git/i; git checkout -q other -- {CI}",
    f"mv .git .g 2>/dev/null && git init -q && git add . ; echo x >> {CI}; git add .",
    f"chmod +x {CI}",
    f"git merge -q other; git show both:{CI} > {CI}; git add .; echo y >> {CI}",
    "for i in $(seq 1100); do echo > .github/workflows/$i; done",
    f"echo x >> {CI}; touch .git/index.lock",
    f"echo x >> {CI}; rm .git/index; mkfifo .git/index",
    f"cp .git/index i; rm .git/index; ln -s ../i .git/index; echo x >> {CI}; git add .",
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
    taken = Session(root, sandbox).run(*itertools.chain(*steps), fails=True)
    assert len([item for item in taken if item.path == f"{root}/{CI}"]) >= 15


@both_levels
@pytest.mark.parametrize("then", ["git status -s", "git add .", "git add .; git commit -qm x"])
def test_what_a_command_makes_among_ci_files_is_taken_out(then: str, sandbox: str, root: Path) -> None:
    names = (".github/workflows/new.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile")
    made = "; ".join(f"mkdir -p $(dirname {name}); echo {name} > {name}" for name in names)
    taken = Session(root, sandbox).run(f"{made}; {then}")
    assert not [name for name in names if (root / name).exists()]
    assert {item.path for item in taken} == {f"{root}/{name.removesuffix('/config.yml')}" for name in names}
