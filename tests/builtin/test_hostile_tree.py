"""A tree with links and files that other programs run: no command line that rules allow is led astray by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gripfast.builtin.machine import ShellPlace, facts_of
from gripfast.builtin.rulesets import rule_set
from gripfast.builtin.write import write
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A workspace with links out of it, into .git and to itself, and a tree that would bring such things along."""
    work = tmp_path / "work"
    for folder in (".git/hooks", "src", "evil/repo/.git", "vend/sub/.vscode", "plain/deep", "envs", "-odd/.vscode"):
        (work / folder).mkdir(parents=True)
    (work / "hk").symlink_to(".git/hooks")
    (work / "lnkdot").symlink_to(".")
    (work / "evil" / "link").symlink_to(tmp_path)
    (work / "flink").symlink_to("src/a.py")
    (work / "envs" / ".envrc").write_text("x")
    for name in ("src/a.py", "plain/a", "plain/deep/b", "one.txt"):
        (work / name).write_text("x")
    return work


def test_the_rules_for_writing_are_those_of_the_tool_that_writes(tree: Path) -> None:
    assert facts_of(ScopedFs(Scope.workspace(str(tree))), ShellPlace(), "off").writer == write.name


def action(tree: Path, line: str, name: str = "workspace") -> str:
    fs = ScopedFs(Scope.workspace(str(tree)))
    rules = rule_set(name).within(fs.roots, facts_of(fs, ShellPlace(), "off"))
    return rules.judge(tool="Bash", effect="run", spellings=(line,)).action


@pytest.mark.parametrize(
    "line",
    [
        *("echo hi > hk/../config", "touch lnkdot/../x", "tee src/../y", "cd hk && echo hi > ../config"),
        *("cp -aT vend .", "cp -rT plain src", "mv -T plain src", "cp -a --no-target-directory plain src"),
        *("cp -a vend new", "mv vend new", "cp -r envs new", "cp -R evil new", "mv -v envs src", "cp -r env* src"),
        *(
            "cp -a -- -odd x",
            "mv flink x",
            "mv evil x; echo hi > x/link/f",
            "cp -a evil x; cd x/link && touch q",
            "git mv evil x",
        ),
        *("git checkout b; echo hi > flink", "git stash pop; touch a", "git merge x && cd src && touch q"),
        *(
            "git switch b && cd src",
            "for i in 1 2; do cd src; git checkout b; done",
            "git checkout b & echo hi > one",
        ),
        *("timeout 5 git checkout b; echo hi > one", "(sleep 1; echo hi > one) & git rebase main"),
        *("git worktree add w && cd w && git diff", "git checkout b && mv one.txt two"),
        *("cp -a evil/repo new && cd new && git diff", "mv evil/repo new && cd new && git log"),
        *("git rebase --continue", "git rebase --skip", "git checkout src", "git checkout one.txt"),
    ],
)
def test_a_line_that_links_or_a_trees_own_files_could_lead_elsewhere_is_asked_about(tree: Path, line: str) -> None:
    assert action(tree, line) != "allow"


@pytest.mark.parametrize(
    "line",
    [
        *("mkdir -p d && echo x > d/f", "git add -A && git commit -m x", "cp -r plain copy", "mv plain copy"),
        *("cp one.txt two.txt && sed -i s/x/y/ two.txt", "mv one.txt two.txt", "mv ./*.txt src", "cp -r pl* src"),
        *("cd src && echo x > a.py", "cd src && touch b && git add b", "git checkout main", "git checkout -b new"),
        *("git checkout -b new && echo x > new.txt", "git switch -c new && cd src", "git stash && pytest -q"),
        *(
            "git stash; git stash pop",
            "cd src && git checkout main",
            "git rebase main",
            "git checkout main > /dev/null",
        ),
    ],
)
def test_ordinary_lines_are_allowed(tree: Path, line: str) -> None:
    assert action(tree, line) == "allow"


@pytest.mark.parametrize("line", ["git checkout b; echo hi > one.txt", "echo hi > src/../two", "cp -a evil new"])
def test_where_programs_are_trusted_such_a_line_is_not_asked_about(tree: Path, line: str) -> None:
    assert action(tree, line, "trusted") == "allow"
