"""Files of a project that the user's git settings name: no command makes the user's git run something."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.host.sandboxed import LEVELS, QUIET_GIT, WHO, Session, repository_at

from gripfast.errors import SandboxViolation
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.named_by_git import NamedByGit
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope

pytestmark = pytest.mark.usefixtures("own_state")
# What the user had set up, what a command then does, what the user does. EVIL leaves a mark outside.
CASES = {
    "a hook in a directory of the project": (
        "mkdir .githooks; echo 'exit 0' > .githooks/pre-commit; chmod +x .githooks/*; "
        "git config core.hooksPath .githooks",
        "printf '#!/bin/sh\\nEVIL\\n' > .githooks/pre-commit",
    ),
    "a new hook there": (
        "mkdir .githooks; echo x > .githooks/README; git config core.hooksPath .githooks",
        "printf '#!/bin/sh\\nEVIL\\n' > .githooks/post-commit; chmod +x .githooks/post-commit",
    ),
    "another directory in its place": (
        "mkdir .githooks; echo x > .githooks/README; git config core.hooksPath .githooks",
        "mkdir other; printf '#!/bin/sh\\nEVIL\\n' > other/post-commit; chmod +x other/*; mv .githooks o; "
        "mv other .githooks",
    ),
    "a link in its place": (
        "git config core.hooksPath tools/hooks",
        "mkdir other tools; printf '#!/bin/sh\\nEVIL\\n' > other/post-commit; chmod +x other/*; "
        "ln -s ../other tools/hooks",
    ),
    "a directory of hooks that is missing": (
        "git config core.hooksPath tools/hooks",
        "mkdir -p tools/hooks; printf '#!/bin/sh\\nEVIL\\n' > tools/hooks/post-commit; chmod +x tools/hooks/*",
    ),
    "an included file": (
        "echo > .gitconfig; git config include.path ../.gitconfig",
        "git config -f .gitconfig core.fsmonitor 'EVIL; false'",
    ),
    "an included file that is missing": (
        "git config include.path ../cfg/git.inc",
        "mkdir cfg; git config -f cfg/git.inc core.fsmonitor 'EVIL; false'",
    ),
    "a file that an included one includes": (
        "git config -f one include.path two; echo > two; git config includeIf.gitdir:/.path ../one",
        "git config -f two core.fsmonitor 'EVIL; false'",
    ),
    "the directory of hooks that an included file names": (
        "git config -f one core.hooksPath hk; mkdir hk; echo x > hk/x; git config include.path ../one",
        "printf '#!/bin/sh\\nEVIL\\n' > hk/post-commit; chmod +x hk/post-commit",
    ),
    "a link among the hooks": (
        "mkdir hk; echo 'exit 0' > hk/pc; chmod +x hk/pc; ln -s ../../hk/pc .git/hooks/pre-commit",
        "printf '#!/bin/sh\\nEVIL\\n' > hk/pc",
    ),
    "a program": (
        "mkdir tools; printf '#!/bin/sh\\nfalse\\n' > tools/watch; chmod +x tools/watch; "
        "git config core.fsmonitor tools/watch",
        "printf '#!/bin/sh\\nEVIL\\n' > tools/watch",
    ),
    "the script of a program": (
        "mkdir tools; echo cat > tools/clean; git config filter.x.clean 'sh ./tools/clean %f'; "
        "echo '*.t filter=x' > .gitattributes; echo 1 > z.t",
        "echo 'EVIL; cat' > tools/clean; echo 2 > z.t",
    ),
    "a script below $PWD": (
        "mkdir tools; echo false > tools/fs; git config core.fsmonitor 'env A=1 sh \"$PWD/tools/fs\"'",
        "echo 'EVIL; false' > tools/fs",
    ),
    "a script in a directory that the command enters": (
        "mkdir tools; echo false > tools/fs; chmod +x tools/fs; git config core.fsmonitor 'cd tools && ./fs'",
        "printf '#!/bin/sh\\nEVIL\\n' > tools/fs",
    ),
    "a module of Python": (
        "mkdir tools; echo 1 > tools/fs.py; git config core.fsmonitor 'python3 -m tools.fs'",
        "echo 'import os; os.system(\"EVIL\")' > tools/fs.py",
    ),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository_at(tmp_path / "in")


def bash(root: Path, script: str, settings: Path | None = None) -> None:
    variables = QUIET_GIT | ({"GIT_CONFIG_GLOBAL": str(settings)} if settings else {})
    subprocess.run(["bash", "-c", script], cwd=root, env=variables, check=False, capture_output=True)


def users_git(root: Path, settings: Path | None = None) -> None:
    bash(root, f"git status; git add -A; git {WHO} commit -q --allow-empty -m later", settings)


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("name", CASES)
def test_what_git_settings_name_stays_as_the_user_had_it(name: str, sandbox: str, root: Path, tmp_path: Path) -> None:
    before, command = CASES[name]
    mark = tmp_path / "mark"
    bash(root, before)
    Session(Scope.workspace(root), sandbox).run("true", command.replace("EVIL", f"touch {mark}"), "true")
    users_git(root)
    assert not mark.exists()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "mv " not in case[1]])
def test_without_the_sandbox_the_same_would_run(name: str, root: Path, tmp_path: Path) -> None:
    before, command = CASES[name]
    mark = tmp_path / "mark"
    bash(root, before)
    bash(root, command.replace("EVIL", f"touch {mark}"))
    users_git(root)
    assert mark.exists()


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("setting", ["core.hooksPath .gh", "include.path ROOT/cfg"])
def test_the_users_settings_for_all_repositories_count(
    setting: str, sandbox: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, home = tmp_path / "mark", tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    setting = setting.replace("ROOT", str(root))
    bash(root, f"mkdir .gh; echo x > .gh/x; echo > cfg; git config -f {home}/.gitconfig {setting}")
    hook = f"printf '#!/bin/sh\\ntouch {mark}\\n' > .gh/post-commit; chmod +x .gh/*"
    command = f"{hook}; git config -f cfg core.fsmonitor 'touch {mark}; false'"
    Session(Scope.workspace(root), sandbox).run("true", command)
    users_git(root, home / ".gitconfig")
    assert not mark.exists()


@pytest.mark.parametrize("sandbox", LEVELS)
def test_the_rest_of_such_a_directory_can_be_written(sandbox: str, root: Path) -> None:
    bash(root, "mkdir scripts; echo 1 > scripts/build; git config core.hooksPath scripts")
    Session(Scope.workspace(root), sandbox).run(
        "echo 2 > scripts/build; echo new > scripts/deploy", must_succeed=True
    )
    assert (root / "scripts/build").read_text() == "2\n"
    assert (root / "scripts/deploy").read_text() == "new\n"


@pytest.mark.parametrize("path", [".githooks/pre-commit", ".githooks/post-merge", "cfg"])
def test_file_tools_ask_before_they_write_what_git_settings_name(path: str, root: Path) -> None:
    bash(root, "mkdir .githooks; git config core.hooksPath .githooks; git config include.path ../cfg")
    fs = ScopedFs(Scope.workspace(root))
    with pytest.raises(SandboxViolation, match="your git configuration names it"):
        fs.judged(WorkPath.parse(path), written=True)
    assert fs.judged(WorkPath.parse(path), written=True, may_ask=True).lifted
    assert not fs.judged(WorkPath.parse(".githooks/README"), written=True, may_ask=True).lifted


def test_a_repository_that_the_root_lies_in_counts(root: Path) -> None:
    bash(root, "mkdir -p app/hooks; git config core.hooksPath app/hooks")
    fs = ScopedFs(Scope.workspace(root / "app"))
    assert fs.judged(WorkPath.parse("hooks/pre-commit"), written=True, may_ask=True).lifted


def test_a_template_for_repositories_and_programs_below_the_home_directory_count(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(root.parent))
    bash(root, "git config init.templateDir '~/in/tmpl'; git config core.pager '${HOME}/in/tools/page'")
    named = NamedByGit([str(root)]).of([f"{root}/.git"])
    assert named >= {f"{root}/tmpl", f"{root}/tools/page"}
