"""A repository that wants its code run by whoever looks at it: no git command that rules allow does so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gripfast.builtin.machine import ShellPlace, facts_of
from gripfast.builtin.rulesets import GIT_LOOKING, rule_set
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from gripfast.host.program.repository import git_runs
from gripfast.host.shell.environment import command_environment

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="needs git")

# What a command may be given so that it looks at files, diffs and signatures.
LOOKS = {
    "diff": ["", "--stat", "HEAD~1"],
    "log": ["-p", "--stat -1"],
    "show": ["HEAD"],
    "whatchanged": ["-1"],
    "blame": ["a.txt"],
    "grep": ["a"],
    "cat-file": ["-p HEAD"],
    "merge-base": ["HEAD HEAD"],
    "name-rev": ["HEAD"],
    "check-ignore": ["a.txt"],
    "diff-tree": ["-p HEAD"],
    "remote get-url": ["origin"],
    "stash show": ["-p"],
    "ls-tree": ["HEAD"],
    "rev-list": ["HEAD"],
    "rev-parse": ["HEAD"],
    "ls-files": ["-m", "-o"],
}
CHANGES = [
    *("add -A", "commit -am x", "stash", "stash pop", "tag v1", "switch -c other", "checkout -b third"),
    *("merge other", "rebase other", "restore --staged a.txt", "mv b.txt c.txt", "worktree add tree"),
]
TRAPS = {
    "core.fsmonitor": "{evil}",
    "core.pager": "{evil}",
    "core.sshCommand": "{evil}",
    "core.editor": "{evil}",
    "core.hooksPath": "{folder}",
    "core.alternateRefsCommand": "{evil}",
    "diff.external": "{evil}",
    "diff.trap.textconv": "{evil}",
    "diff.trap.command": "{evil}",
    "filter.trap.clean": "{evil}",
    "filter.trap.smudge": "{evil}",
    "filter.trap.process": "{evil}",
    "merge.trap.driver": "{evil}",
    "gpg.program": "{evil}",
    "log.showSignature": "true",
    "commit.gpgSign": "true",
    "tag.gpgSign": "true",
    "pager.log": "{evil}",
    "pager.diff": "{evil}",
    "interactive.diffFilter": "{evil}",
    "alias.status": "!{evil}",
    "alias.log": "!{evil}",
    "credential.helper": "{evil}",
    "include.path": "{folder}/more",
    "core.worktree": "/",
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository with two commits, a changed file, and attributes that name every driver."""
    folder = tmp_path / "work"
    folder.mkdir()
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    evil.chmod(0o755)
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitattributes").write_text("* diff=trap filter=trap merge=trap\n")
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(f"{name}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    (folder / "a.txt").write_text("two\n")
    git(folder, "commit", "-qam", "two")
    git(folder, "remote", "add", "origin", "https://example.org/x.git")
    (folder / "a.txt").write_text("three\n")
    git(folder, "stash", "-q")
    git(folder, "stash", "apply", "-q")
    return folder


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, env=environment(folder.parent), capture_output=True)


def environment(home: Path) -> dict[str, str]:
    who = {f"GIT_{role}_{what}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {"PATH": os.environ["PATH"], "HOME": str(home), **who}


def trapped(folder: Path, key: str) -> None:
    value = TRAPS[key].format(evil=folder.parent / "evil", folder=folder.parent)
    subprocess.run(["git", "config", key, value], cwd=folder, check=True)
    if key == "core.hooksPath":
        for hook in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction"):
            shutil.copy(folder.parent / "evil", folder.parent / hook)
    if key == "include.path":
        (folder.parent / "more").write_text(f"[core]\n\tfsmonitor = {folder.parent / 'evil'}\n")


def lines(changing: bool) -> list[str]:
    looking = [f"git {name} {words}".strip() for name in GIT_LOOKING for words in LOOKS.get(name, [""])]
    return [*looking, *(f"git {words}" for words in CHANGES)] if changing else looking


def runs_code(folder: Path, line: str) -> bool:
    """Whether the line, in the environment that commands get, ran the trap."""
    mark = folder.parent / "ran"
    mark.unlink(missing_ok=True)
    variables = command_environment(
        temporary=str(folder.parent), roots=[str(folder)], source=environment(folder.parent)
    )
    os.utime(folder / "a.txt")
    subprocess.run(
        ["bash", "-c", line], cwd=folder, env=variables, capture_output=True, stdin=subprocess.DEVNULL, timeout=60
    )
    return mark.exists()


def allowed(folder: Path, name: str, line: str) -> bool:
    fs = ScopedFs(Scope.workspace(str(folder)))
    rules = rule_set(name).within(fs.roots, facts_of(fs, ShellPlace(), "off"))
    return rules.judge(tool="Bash", effect="run", spellings=(line,)).action == "allow"


@pytest.mark.parametrize("key", TRAPS)
def test_no_git_command_that_is_allowed_runs_what_the_repository_names(hostile: Path, key: str) -> None:
    trapped(hostile, key)
    for line in lines(changing=True):
        sets = [name for name in ("read-only", "workspace", "trusted") if allowed(hostile, name, line)]
        assert not sets or not runs_code(hostile, line), (line, sets)


def test_without_the_look_at_the_configuration_the_traps_run(hostile: Path) -> None:
    """The test above can fail: the same commands, not judged, run what the repository names."""
    for key in ("diff.external", "filter.trap.clean", "diff.trap.textconv"):
        trapped(hostile, key)
    assert any(runs_code(hostile, line) for line in ("git diff", "git status", "git log -p"))


def test_a_plain_repository_is_looked_at_and_worked_in_without_questions(hostile: Path) -> None:
    asked = [line for line in lines(changing=True) if not allowed(hostile, "workspace", line)]
    assert asked == []


@pytest.mark.parametrize("hook", ["pre-commit", "post-index-change"])
def test_hooks_are_part_of_a_change_in_the_sandbox_and_of_nothing_else(hostile: Path, hook: str) -> None:
    shutil.copy(hostile.parent / "evil", hostile / ".git" / "hooks" / hook)
    assert git_runs(str(hostile), looks=False, sandboxed=False) is not None
    assert git_runs(str(hostile), looks=False, sandboxed=True) is None
    assert (git_runs(str(hostile), looks=True, sandboxed=True) is None) == (hook == "pre-commit")


def test_a_trap_in_a_submodule_or_another_tree_is_seen(hostile: Path) -> None:
    inner = hostile / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x").write_text("x")
    git(inner, "add", "x")
    git(inner, "commit", "-qm", "x")
    git(hostile, "add", "inner")
    assert git_runs(str(hostile), looks=True, sandboxed=True) is None
    git(inner, "config", "filter.trap.clean", "evil")
    assert "filter.trap.clean" in (git_runs(str(hostile), looks=True, sandboxed=True) or "")
    git(hostile, "worktree", "add", "-q", str(hostile.parent / "tree"))
    git(hostile, "config", "diff.external", "evil")
    assert "diff.external" in (git_runs(str(hostile.parent / "tree"), looks=True, sandboxed=True) or "")


@pytest.mark.parametrize(
    "text",
    [
        "[core] fsmonitor = x\n[diff] external = evil",
        "[diff]external=evil",
        "[ diff ]\n\texternal = evil",
        '[diff "a\\"b"]\n\ttextconv = evil',
        "[DIFF]\n\tEXTERNAL\t= evil",
        "[core]\n\tfilemode = true ; [x]\n[diff]\n\texternal = evil",
        "[include]\n\tpath = x",
        '[includeIf "gitdir:/"]\n\tpath = x',
        "[diff.trap]\n\ttextconv = evil",
        "\ufeff[diff]\nexternal = evil",
        "garbage",
    ],
)
def test_a_key_is_found_however_it_is_written(hostile: Path, text: str) -> None:
    (hostile / ".git" / "config").write_text(text, encoding="utf-8")
    assert git_runs(str(hostile), looks=True, sandboxed=True) is not None


@pytest.mark.parametrize(
    "key",
    ["remote.origin.promisor", "remote.origin.partialclonefilter", "extensions.partialClone", "gc.recentObjectsHook"],
)
def test_a_repository_that_fetches_or_runs_something_when_it_is_looked_at_is_asked_about(
    hostile: Path, key: str
) -> None:
    with (hostile / ".git" / "config").open("a") as config:
        section, _, name = key.rpartition(".")
        head, dot, tail = section.partition(".")
        config.write(f'[{head} "{tail}"]\n' if dot else f"[{head}]\n")
        config.write(f"\t{name} = true\n")
    assert not allowed(hostile, "read-only", "git log -p")
