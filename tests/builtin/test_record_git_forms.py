"""The record of files that git keeps in another form than the working tree has them, or does not have at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from builtin.test_record import bash, opened, state
from builtin.test_record_cases import git
from trees import tree_of

__all__ = ["state"]
pytestmark = pytest.mark.anyio

CRLF = r"printf 'one\r\ntwo\r\n' > f.txt"
COMMIT = "git add -f .; git commit -qm c"
SETUPS = {
    "core.autocrlf": f"git config core.autocrlf true; {CRLF}; {COMMIT}",
    "eol=crlf": f"echo '*.txt text eol=crlf' > .gitattributes; {CRLF}; {COMMIT}",
    "eol=crlf in info/attributes": f"echo '*.txt text eol=crlf' > .git/info/attributes; {CRLF}; {COMMIT}",
    "an encoding of another size": (
        "echo '*.txt working-tree-encoding=UTF-16LE' > .gitattributes; printf 'a\\0b\\0' > f.txt; " + COMMIT
    ),
    "an encoding of the same size, below": (
        "mkdir d; echo '*.txt working-tree-encoding=IBM037' > d/.gitattributes; printf '\\301\\302\\45' > d/f.txt; "
        + COMMIT
    ),
    "a filter of the same size, below": (
        "git config --global filter.up.clean 'tr a-z A-Z'; mkdir d; echo '*.txt filter=up' > d/.gitattributes;"
        f"echo lower > d/f.txt; {COMMIT}"
    ),
    "a filter that is run by nobody": (
        f"echo '*.txt filter=own' > .gitattributes; echo text > f.txt; {COMMIT};"
        "git config filter.own.smudge 'touch ../ran; cat'; git config filter.own.clean 'touch ../ran; cat'"
    ),
    "an expanded keyword": (
        "echo '*.txt ident' > .gitattributes; echo '$Id$' > f.txt; " + COMMIT + "; rm f.txt; git checkout -q f.txt"
    ),
    "objects that are gone": f"echo text > f.txt; echo other > g.txt; {COMMIT}; rm -r .git/objects/??",
    "one object that is gone": (
        f"echo text > f.txt; echo other > g.txt; {COMMIT}; o=$(git rev-parse HEAD:f.txt);"
        'rm -f ".git/objects/${o:0:2}/${o:2}"'
    ),
    "one object that a partial clone lacks": (
        f"echo text > f.txt; echo other > g.txt; {COMMIT}; o=$(git rev-parse HEAD:f.txt);"
        'rm -f ".git/objects/${o:0:2}/${o:2}"; git config extensions.partialClone origin;'
        "git config core.repositoryformatversion 1; git config remote.origin.url /nowhere;"
        "git config remote.origin.promisor true"
    ),
    "alternates that are gone": (
        f"echo text > f.txt; {COMMIT}; mv .git/objects ../elsewhere; mkdir -p .git/objects/info;"
        "echo /nowhere/objects > .git/objects/info/alternates"
    ),
    "an object that is replaced": (
        f"echo text > f.txt; {COMMIT};"
        "git replace $(git rev-parse HEAD:f.txt) $(echo evil | git hash-object -w --stdin)"
    ),
}


@pytest.mark.parametrize("name", SETUPS)
async def test_a_file_that_git_does_not_have_as_it_is_can_be_undone(
    name: str, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    root = tmp_path / "ws"
    root.mkdir()
    git(root, f"git init -q; {SETUPS[name]}")
    # git trusts an entry of its index only if the file is older than the index.
    git(root, "find . -name '*.txt' | xargs touch -d 2020-01-01; git update-index -q --refresh || true")
    (tmp_path / "ran").unlink(missing_ok=True)
    before = tree_of(root)
    assert any(path.endswith("f.txt") for path in before)
    async with opened(root) as session:
        answer = await bash(session, "for f in $(find . -name '*.txt'); do echo changed > $f; done")
        assert "undo does not cover" not in answer
        done = await session.undo()
    assert (done.refused, tree_of(root)) == ((), before)
    assert not (tmp_path / "ran").exists()


async def test_a_file_whose_object_goes_while_the_command_runs_is_named_with_the_reason(
    tmp_path: Path, state: Path
) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    git(root, f"git init -q; echo text > f.txt; touch -d 2020-01-01 f.txt; {COMMIT}")
    async with opened(root) as session:
        answer = await bash(session, "rm -rf .git/objects/??; echo changed > f.txt")
    assert "f.txt (git no longer has its content)" in answer
