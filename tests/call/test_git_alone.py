"""Which lines are proved to run nothing but git."""

from __future__ import annotations

import pytest

from gripfast.call.shell.git_alone import runs_git_alone

ALONE = (
    "git merge other",
    "git switch main && git pull 2>&1 | tail -3",
    "cd x && git rebase main",
    "git checkout main; git stash pop",
    "git merge -m 'a b' x && echo done",
    "git reset --hard HEAD~1",
    "git -C sub --no-pager checkout -q feature -- src/a.py",
    "git -c core.editor=true rebase --continue",
    "git switch x || git merge --abort",
    "git fetch -q && git switch x 2>/dev/null",
)
NOT_ALONE = (
    "git status",
    "git switch x && npm test",
    "git commit -m x && git switch y",
    "git -c alias.switch='!evil' switch x",
    "git -c core.fsmonitor=evil switch x",
    "git --exec-path=/x switch y",
    "git merge -s evil x",
    "git merge --strategy=evil x",
    "git merge --strat evil x",
    "git rebase -x evil main",
    "git rebase --exec evil main",
    "git rebase --exe evil main",
    "git rebase -i main",
    "git pull --upload-pack=evil",
    "git pull --upl=evil",
    "git bisect run evil",
    "git checkout x; git diff --output=.npmrc",
    "git switch x > .npmrc",
    "git switch x < in",
    "git switch $X",
    "git switch `evil`",
    "git switch $(evil)",
    "git switch x*",
    "PATH=. git switch x",
    "GIT_SSH=evil git pull",
    "git switch x; tail -f y",
    "git switch x; cat y",
    "git switch x & evil",
    "git switch x | sh",
    "for i in 1 2; do git switch x; done",
    "./git switch x",
    "env git switch x",
    "cd -P x; git switch y",
    "git config core.hooksPath x; git switch y",
    "git mv evil .npmrc; git switch y",
    "git() { evil; }; git switch x",
    "git switch x\nevil",
    "git switch x; exec evil",
    "git checkout-index -a; git switch x",
)


@pytest.mark.parametrize("line", ALONE)
def test_a_line_of_git_commands_runs_git_alone(line: str) -> None:
    assert runs_git_alone(line)


@pytest.mark.parametrize("line", NOT_ALONE)
def test_a_line_that_may_run_something_else_does_not(line: str) -> None:
    assert not runs_git_alone(line)
