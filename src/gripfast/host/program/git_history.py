"""What commits have at a path. Each object is compared with its name, since commands can write objects as well."""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import IO

from gripfast.host.program.git_view import TrackedFile, Unsure, WorkTree, started_git
from gripfast.records import dataclass

_MOST_COMMITS, _MOST_TIPS, _NEAR, _SECONDS = 5000, 1000, 500, 10.0
_LARGEST = 16 << 20


@dataclass(frozen=True, slots=True)
class _Commit:
    tree: str
    parents: tuple[str, ...]


class History:
    """The commits of one repository; use it as `with history_of(tree) as history`. Its methods raise Unsure."""

    def __init__(self, given: IO[bytes], answers: IO[bytes]) -> None:
        self._given, self._answers = given, answers
        self._until = time.monotonic() + _SECONDS
        self._commits: dict[str, _Commit | None] = {}
        self._trees: dict[str, dict[str, tuple[int, str]]] = {}

    def commits_with(
        self, path: str, wanted: TrackedFile | None, tips: Collection[str], without: Collection[str]
    ) -> Iterator[str]:
        """The commits that are, or are behind, one of these tips and have this file at a path; None: no file."""
        return (commit for commit in self._behind(tips, without) if self._has(commit, path, wanted))

    def is_near(self, commit: str, tips: Collection[str]) -> bool:
        """Whether a commit is one of the nearest behind these tips, or one of them."""
        near = zip(self._behind(tips, ()), range(_NEAR), strict=False)
        return any(found == commit for found, _ in near)

    def came_by_others(
        self, commit: str, path: str, wanted: TrackedFile, made: Collection[str], base: Collection[str]
    ) -> bool:
        """Whether a commit has a file from one of `base`, or from one that changed it, and not only from those that
        were `made`."""
        waiting, seen = deque([commit]), {commit}
        while waiting:
            self._require_time(len(seen))
            if (commit := waiting.popleft()) in base:
                return True
            found = self._commit(commit)
            parents = () if found is None else found.parents
            same = [parent for parent in parents if self._may_have(parent, path, wanted, made)]
            if not same:
                return True
            waiting.extend(parent for parent in same if parent not in seen and parent not in made)
            seen.update(same)
        return False

    def _may_have(self, commit: str, path: str, wanted: TrackedFile, made: Collection[str]) -> bool:
        is_lost = commit in made and self._commit(commit) is None
        return is_lost or self._has(commit, path, wanted)

    def _behind(self, tips: Iterable[str], without: Collection[str]) -> Iterator[str]:
        waiting = deque(list(dict.fromkeys(tips))[:_MOST_TIPS])
        seen = {*waiting, *without}
        passed = 0
        while waiting and passed < _MOST_COMMITS:
            self._require_time(0)
            passed += 1
            commit = waiting.popleft()
            found = self._commit(commit)
            if found is not None:
                yield commit
                waiting.extend(parent for parent in found.parents if parent not in seen)
                seen.update(found.parents)

    def _require_time(self, steps: int) -> None:
        if steps > _MOST_COMMITS or time.monotonic() > self._until:
            raise Unsure("the history is too long")

    def _has(self, commit: str, path: str, wanted: TrackedFile | None) -> bool:
        found = self._commit(commit)
        entry = None if found is None else self._entry(found.tree, path)
        return entry == (None if wanted is None else (wanted.mode, wanted.name))

    def _entry(self, tree: str, path: str) -> tuple[int, str] | None:
        """The mode and the name of what a tree has at a path."""
        *folders, last = path.split("/")
        for folder in folders:
            mode, tree = self._tree(tree).get(folder, (0, ""))
            if mode != 0o40000:
                return None
        return self._tree(tree).get(last)

    def _commit(self, name: str) -> _Commit | None:
        """None for one that is not there, as in a shallow clone, and for a tag of something else."""
        if name not in self._commits:
            self._commits[name] = self._read_commit(name)
        return self._commits[name]

    def _read_commit(self, name: str) -> _Commit | None:
        kind, content = self._object(name)
        for _ in range(5):
            if kind != "tag":
                break
            kind, content = self._object(
                content.partition(b"\n")[0].removeprefix(b"object ").decode("ascii", "replace")
            )
        if kind != "commit":
            return None
        lines = content.partition(b"\n\n")[0].decode("ascii", "replace").split("\n")
        parents = tuple(line[7:] for line in lines if line.startswith("parent "))
        return _Commit(lines[0].removeprefix("tree "), parents)

    def _tree(self, name: str) -> dict[str, tuple[int, str]]:
        if name not in self._trees:
            kind, content = self._object(name)
            self._trees[name] = dict(_entries(content, len(name) // 2)) if kind == "tree" else {}
        return self._trees[name]

    def _object(self, name: str) -> tuple[str, bytes]:
        """An object's kind and content; empty if there is none."""
        if not name.isalnum():
            raise Unsure("an object has an odd name")
        try:
            self._given.write(f"{name}\n".encode())
            self._given.flush()
            facts = self._answers.readline().split()
            if len(facts) != 3 or int(facts[2]) > _LARGEST:
                if facts[-1:] == [b"missing"]:
                    return "", b""
                raise Unsure("an object can't be read")
            content = self._answers.read(int(facts[2]) + 1)[:-1]
        except (OSError, ValueError) as fault:
            raise Unsure(str(fault)) from None
        digest = hashlib.sha1 if len(name) == 40 else hashlib.sha256
        if digest(b"%s %d\0" % (facts[1], len(content)) + content).hexdigest() != name:
            raise Unsure("an object is not what its name says")
        return facts[1].decode(), content


def _entries(tree: bytes, length: int) -> Iterator[tuple[str, tuple[int, str]]]:
    """https://git-scm.com/book/en/v2/Git-Internals-Git-Objects"""
    at = 0
    while at < len(tree):
        space, end = tree.index(b" ", at), tree.index(b"\0", at)
        at_next = end + 1 + length
        yield os.fsdecode(tree[space + 1 : end]), (int(tree[at:space], 8), tree[end + 1 : at_next].hex())
        at = at_next


@contextmanager
def history_of(tree: WorkTree) -> Generator[History]:
    """Reads a repository's objects until the end of the block. Raises Unsure."""
    with started_git(tree, ["cat-file", "--batch"]) as git:
        assert git.stdin is not None, "it is a pipe"
        assert git.stdout is not None, "it is a pipe"
        yield History(git.stdin, git.stdout)
