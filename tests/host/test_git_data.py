"""What commands leave in the data of a git directory: the user's own git never writes elsewhere because of it."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
from pathlib import Path

import pytest
from tests.host.sandboxed import LEVELS, QUIET_GIT, WHO, Session, git, repository_at

from gripfast.host.files.git_data import GitData
from gripfast.host.files.scope import Scope
from gripfast.host.program.git_index import MalformedIndex, forbidden_path

pytestmark = pytest.mark.usefixtures("own_state")

FORGE = r"""
import hashlib, os, struct, subprocess, sys
index, *paths = sys.argv[1:]
oid = subprocess.run(["git", "hash-object", "-w", "--stdin"], input=b"#!/bin/sh\ntouch PWNED\n", capture_output=True)
data = b"DIRC" + struct.pack(">II", 2, len(paths))
for path in sorted(map(os.fsencode, paths)):
    entry = struct.pack(">10I", *[0] * 6, 0o100755, 0, 0, 0) + bytes.fromhex(oid.stdout.decode())
    entry += struct.pack(">H", len(path)) + path
    data += entry + b"\0" * (8 - len(entry) % 8)
open(index, "wb").write(data + hashlib.sha1(data).digest())
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").write_text("mine\n")
    return repository_at(tmp_path / "in")


def run(root: Path, sandbox: str, *commands: str) -> list[str]:
    """What was taken out after commands, relative to the root's parent."""
    session = Session(Scope.workspace(root), sandbox)
    session.run(*commands, must_succeed=True)
    return [os.path.relpath(item.path, root) for item in session.taken]


LINKS = [
    ("logs/HEAD", "git commit -qm more --allow-empty"),
    ("packed-refs", "git pack-refs --all"),
    ("COMMIT_EDITMSG", "git commit -qm more --allow-empty"),
    ("index", "git add -A"),
    ("FETCH_HEAD", "git fetch -q . main"),
    ("ORIG_HEAD", "git reset -q --hard"),
    ("shallow", "git status"),
    ("refs/heads/other", "git branch -f other"),
    ("refs/heads/objects/other", "git branch -f objects/other"),
    ("logs/refs/heads/main", "git commit -qm more --allow-empty"),
    ("info/exclude", "git status"),
    ("description", "git status"),
    ("MERGE_MSG", "git status"),
    ("rr-cache", "git status"),
    ("objects/pack", "git status"),
    ("objects/info", "git status"),
    ("modules/a/logs/HEAD", "git status"),
    ("worktrees/a/logs/HEAD", "git status"),
]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_links_in_a_git_directory_are_taken_out(sandbox: str, root: Path) -> None:
    make = [
        f"mkdir -p .git/$(dirname {name}); rm -rf .git/{name}; ln -s {root.parent}/outside .git/{name}"
        for name, _ in LINKS
    ]
    taken = run(root, sandbox, "; ".join(["mkdir -p .git/modules/a; echo > .git/modules/a/HEAD", *make]))
    assert sorted(taken) == sorted(f".git/{name}" for name, _ in LINKS)
    assert not [path for path in (root / ".git").rglob("*") if path.is_symlink()]


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize(("name", "then"), LINKS[:6])
def test_the_users_git_does_not_write_through_a_link(name: str, then: str, sandbox: str, root: Path) -> None:
    taken = run(root, sandbox, f"rm -f .git/{name}; ln -s {root.parent}/outside .git/{name}")
    git(root, f"git branch -f other; {then}".replace("git commit", f"git {WHO} commit"))
    assert (root.parent / "outside").read_text() == "mine\n"
    assert taken == [f".git/{name}"]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_directory_of_objects_or_refs_does_not_become_a_link(sandbox: str, root: Path) -> None:
    names = ["refs/heads/z", "logs/refs/heads/z", "objects/zz", "lfs/objects/ab"]
    taken = run(
        root,
        sandbox,
        "mkdir -p .git/lfs/objects; " + "; ".join(f"ln -s {root.parent} .git/{name}" for name in names),
    )
    assert sorted(taken) == sorted(f".git/{name}" for name in names)


@pytest.mark.parametrize("sandbox", LEVELS)
def test_pipes_and_sockets_in_a_git_directory_are_taken_out(sandbox: str, root: Path) -> None:
    socket = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\".git/gc.pid\")'"
    taken = run(root, sandbox, f"rm .git/logs/HEAD; mkfifo .git/logs/HEAD; {socket}")
    assert sorted(taken) == [".git/gc.pid", ".git/logs/HEAD"]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_links_are_found_in_repositories_that_a_command_makes(sandbox: str, root: Path) -> None:
    link = f"ln -sf {root.parent}/outside"
    taken = run(
        root,
        sandbox,
        f"git clone -q . n/clone; {link} n/clone/.git/ORIG_HEAD; git clone -q --bare . b; {link} b/shallow; "
        f"git worktree add -q wt; {link} .git/worktrees/wt/FETCH_HEAD; chmod 0 .git/worktrees/wt",
    )
    assert sorted(taken) == [".git/worktrees/wt/FETCH_HEAD", "b/shallow", "n/clone/.git/ORIG_HEAD"]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_links_are_found_in_the_repository_of_a_worktree_that_lies_elsewhere(sandbox: str, root: Path) -> None:
    git(root, "git worktree add -q ../tree")
    tree = root.parent / "tree"
    names = ["logs/refs/heads/tree", "packed-refs", "worktrees/tree/ORIG_HEAD"]
    taken = run(tree, sandbox, "; ".join(f"ln -sf {root.parent}/outside {root}/.git/{name}" for name in names))
    assert sorted(taken) == sorted(f"../in/.git/{name}" for name in names)


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_link_that_the_user_made_stays(sandbox: str, root: Path) -> None:
    git(root, "rm .git/info/exclude; ln -s ../../../outside .git/info/exclude; git symbolic-ref HEAD refs/heads/main")
    assert run(root, sandbox, "echo 2 > a; git add a; git status") == []
    assert (root / ".git/info/exclude").is_symlink()
    assert run(root, sandbox, f"ln -sfn {root.parent} .git/info/exclude") == [".git/info/exclude"]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_link_is_taken_out_although_a_background_command_runs_on(sandbox: str, root: Path) -> None:
    taken = run(
        root,
        sandbox,
        f"(while [ ! -e .git/stop ]; do [ -L .git/shallow ] || ln -s {root.parent}/outside .git/shallow; "
        "sleep 0.05; done; rm -f .git/shallow) >/dev/null 2>&1 & sleep 0.3",
        "sleep 0.3; touch .git/stop; sleep 0.3",
    )
    assert ".git/shallow" in taken
    assert not (root / ".git/shallow").is_symlink()


PATHS = [".git/hooks/pre-commit", "../outside", "/etc/evil", "a/.GIT/x", "a//b", "./a", "git~1/x", ".g\u200cit/x"]


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("path", PATHS)
def test_an_index_with_a_path_that_leads_out_is_taken_out(path: str, sandbox: str, root: Path) -> None:
    (root / "forge.py").write_text(FORGE)
    assert run(root, sandbox, f"python3 forge.py .git/index a '{path}'") == [".git/index"]
    git(root, "git reset -q; git restore .; git checkout -q -- .")
    assert not (root / ".git/hooks/pre-commit").exists()
    assert (root.parent / "outside").read_text() == "mine\n"


@pytest.mark.parametrize("sandbox", LEVELS)
def test_every_index_is_examined(sandbox: str, root: Path) -> None:
    (root / "forge.py").write_text(FORGE)
    places = [".git/worktrees/wt/index", "n/.git/index", ".git/sharedindex.abc", ".git/modules/m/index"]
    taken = run(
        root,
        sandbox,
        "git worktree add -q wt; git init -q n; mkdir -p .git/modules/m; cp .git/HEAD .git/modules/m; "
        + "; ".join(f"python3 forge.py {place} .git/hooks/pre-commit" for place in places),
    )
    assert sorted(taken) == sorted(places)


@pytest.mark.parametrize("sandbox", LEVELS)
def test_ordinary_work_with_git_leaves_index_and_directory_alone(sandbox: str, root: Path) -> None:
    work = (
        "mkdir -p d/e; for i in $(seq 40); do echo $i > d/e/file$i; done; git add .; git commit -qm two; "
        "git update-index --index-version 4; git switch -qc b; echo 3 > a; git commit -qam three; "
        "git update-index --split-index; echo 4 > a; git add a; git status; git update-index --no-split-index; "
        "git -c core.sparseCheckoutCone=true sparse-checkout set --sparse-index d; git sparse-checkout disable; "
        "git commit -qm four; git switch -q main; git merge -q b; git stash list; git gc -q; git pack-refs --all; "
        "git worktree add -q wt; git rebase -q HEAD~1; git fetch -q . main; git update-server-info; "
        "git update-index --untracked-cache; git -c index.threads=2 add -A . "
    )
    prefix = f'git() {{ command git {WHO} -c advice.addEmbeddedRepo=false "$@"; }}; set -e; '
    taken = run(root, sandbox, prefix + work)
    assert [name for name in taken if "/config" not in name] == []  # sparse-checkout makes settings


def test_a_large_index_in_blocks_is_read_as_git_reads_it(root: Path) -> None:
    oid = git(root, "git rev-parse HEAD:a").strip()
    rows = "".join(f"100644 {oid} 0\tdir{i // 100}/file{i}\n" for i in range(30_000))
    for version in (2, 4):
        subprocess.run(
            ["git", "-c", "index.threads=4", "-c", f"index.version={version}", "update-index", "--index-info"],
            input=rows.encode(), cwd=root, env=QUIET_GIT, check=True,
        )  # fmt: skip
        data = (root / ".git/index").read_bytes()
        assert b"IEOT" in data and b"EOIE" in data
        assert forbidden_path(data) is None
        at = data.index(b"IEOT") + 12
        moved = data[:at] + struct.pack(">I", struct.unpack_from(">I", data, at)[0] + 72) + data[at + 4 :]
        with pytest.raises(MalformedIndex):
            forbidden_path(moved[:-20] + hashlib.sha1(moved[:-20]).digest())
        (root / ".git/index").unlink()


def test_an_index_that_was_examined_is_not_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(root / ".git/index")
    data, owner = GitData(), str(root / ".git")
    monkeypatch.setattr("gripfast.host.files.git_data._TICK_NS", -(1 << 60))
    assert list(data.look([owner], unseal=True)) == []
    monkeypatch.setattr("gripfast.host.files.git_data.read_regular", None)
    monkeypatch.setattr("gripfast.host.files.git_data.entries_of", None)
    assert list(data.look([owner], unseal=True)) == []
