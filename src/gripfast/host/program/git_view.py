"""What git's index says about files, and how old an object is, without obeying any setting of the repository.

Commands write most of a repository, and git obeys what it finds there: settings, replaced objects, remotes to fetch a
missing object from. So git runs in an empty repository of ours, and is given only the index file and the directory of
the objects. https://git-scm.com/docs/git#_environment_variables
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import stat
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from gripfast.host.kernel.regular import READ_FLAGS, read_regular
from gripfast.host.program.git_index import is_sha256
from gripfast.host.program.places import private_directory, state_directory
from gripfast.host.program.programs import find_program
from gripfast.host.program.repository import common_of, repository_of
from gripfast.records import dataclass

_SECONDS = 20
_MEMORY = 4 << 30
_LARGEST_INDEX, _LARGEST_TEXT, _LARGEST_REFS = 512 << 20, 1 << 20, 8 << 20
_MOST_PACKS, _MOST_ALTERNATES, _MOST_REFS, _MOST_COMMITS = 2000, 5, 5000, 500
_COARSE = 5  # CLOCK_REALTIME_COARSE: what the kernel stamps files with
_SKEW = 1_000_000_000
_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class WorkTree:
    """A directory whose files git follows, where git keeps its index and HEAD, and its objects and branches.
    `identity` is the device and inode of both."""

    path: str
    git: str
    common: str
    identity: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, directory: str) -> WorkTree | None:
        """The work tree that a directory is in, if any."""
        found = repository_of(directory)
        return None if found is None else cls.at(*found, common_of(found[1]))

    @classmethod
    def at(cls, path: str, git: str, common: str) -> WorkTree | None:
        """None if one of the directories can't be looked at."""
        try:
            found = [os.lstat(place) for place in (git, common)]
        except OSError:
            return None
        return cls(path, git, common, tuple((one.st_dev, one.st_ino) for one in found))

    def is_unmoved(self) -> bool:
        return self == WorkTree.at(self.path, self.git, self.common)


@dataclass(frozen=True, slots=True)
class TrackedFile:
    """An entry of the index: the object's name and its mode; `is_left_out`: git keeps no file there."""

    name: str
    mode: int
    is_left_out: bool


class Unsure(Exception):
    """Something about a repository could not be determined."""


def time_of_files() -> int:
    """The time as local file systems stamp it: no file that changes from now on gets an earlier one."""
    return time.clock_gettime_ns(_COARSE)


def object_name(content: bytes, length: int = 40) -> str:
    """The name that git gives to a file's content."""
    digest = hashlib.sha1 if length == 40 else hashlib.sha256
    return digest(b"blob %d\0" % len(content) + content).hexdigest()


def index_entries(tree: WorkTree, paths: Sequence[str]) -> dict[str, TrackedFile | None]:
    """The entries of git's index at or below these paths, relative to the tree; None for one that is in conflict, or
    for which git keeps no regular file. Raises Unsure."""
    index = f"{tree.git}/index"
    _require_regular(index, _LARGEST_INDEX)
    command = ["--literal-pathspecs", "ls-files", "-t", "-s", "-z", "--", *paths]
    found: dict[str, TrackedFile | None] = {}
    for row in filter(None, _git(tree, command, GIT_INDEX_FILE=index).split(b"\0")):
        facts, _, path = os.fsdecode(row).partition("\t")
        tag, mode, name, stage = facts.split(" ")
        is_plain = stage == "0" and mode.startswith("100")
        found[path] = TrackedFile(name, int(mode, 8), tag == "S") if is_plain else None
    return found


def tips(tree: WorkTree) -> frozenset[str] | None:
    """The objects that branches, tags and other refs name; None if there are too many to tell."""
    files = [*_files_below(f"{tree.common}/refs", most := _MOST_REFS + 1)]
    packed = _text(f"{tree.common}/packed-refs", _LARGEST_REFS)
    if len(files) >= most or len(packed) >= _LARGEST_REFS:
        return None
    named = (_text(path).strip() for path in files)
    lines = (line.partition(" ")[0] for line in packed.splitlines() if not line.startswith("#"))
    return frozenset(name for name in (*named, *lines) if _NAME.fullmatch(name))


class GitView:
    """A look at one repository after a command; `began` is when the command began."""

    def __init__(self, tree: WorkTree, began: int) -> None:
        self._tree = tree
        self._objects = f"{tree.common}/objects"
        self._began = began + _skew(tree.common)

    def has(self, name: str) -> bool:
        """Whether there is such an object."""
        return any(True for _ in self._places(name))

    def is_old(self, name: str) -> bool:
        """Whether an object was there before the command, or came from the remote that was cloned."""
        for place, is_loose in self._places(name):
            with_promise = not is_loose and os.path.lexists(f"{place.removesuffix('.idx')}.promisor")
            if with_promise or self._is_older(place):
                return True
        return False

    def fetched(self, wanted: dict[str, str]) -> set[str]:
        """Which of these paths, each with its object, have it in a commit that was fetched. Raises Unsure."""
        commits = [*dict.fromkeys(self._fetched_commits())][:_MOST_COMMITS]
        pairs = [(commit, path) for path in wanted for commit in commits if "\n" not in path]
        if not pairs:
            return set()
        asked = "".join(f"{commit}:{path}\n" for commit, path in pairs)
        answers = _git(self._tree, ["cat-file", "--batch-check"], os.fsencode(asked)).split(b"\n")
        answered = zip(pairs, answers, strict=False)  # the last line is empty
        return {path for (_, path), answer in answered if answer.startswith(f"{wanted[path]} blob ".encode())}

    def _is_older(self, place: str) -> bool:
        try:
            found = os.lstat(place)
        except OSError:
            return False
        return found.st_dev == self._tree.identity[1][0] and found.st_ctime_ns < self._began

    def _places(self, name: str) -> Iterator[tuple[str, bool]]:
        """The files that hold an object, or the index of a pack that does. git refreshes the time of a pack that it
        would have written again; it leaves that of its index alone."""
        for objects in self._stores():
            loose = f"{objects}/{name[:2]}/{name[2:]}"
            if _is_regular(loose):
                yield loose, True
            yield from ((pack, False) for pack in _packs(objects) if _has_object(pack, bytes.fromhex(name)))

    def _stores(self) -> Iterator[str]:
        yield self._objects
        for line in _text(f"{self._objects}/info/alternates").splitlines()[:_MOST_ALTERNATES]:
            if line and not line.startswith("#") and "\0" not in line:
                yield os.path.join(self._objects, line)

    def _fetched_commits(self) -> Iterator[str]:
        fetched = f"{self._tree.git}/FETCH_HEAD"
        if not self._is_older(fetched):
            yield from (line[: line.find("\t")] for line in _text(fetched).splitlines() if _is_name(line))
        for path in _files_below(f"{self._tree.common}/refs/remotes"):
            if not self._is_older(path) and _NAME.fullmatch(name := _text(path).strip()):
                yield name


_VARIABLES = {
    "HOME": "/",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_OPTIONAL_LOCKS": "0",
}


def _git(tree: WorkTree, command: Sequence[str], given: bytes = b"", **more: str) -> bytes:
    with started_git(tree, command, **more) as git:
        output, _ = git.communicate(given)
    if git.returncode:
        raise Unsure(f"git ended with {git.returncode}")
    return output


@contextmanager
def started_git(tree: WorkTree, command: Sequence[str], **more: str) -> Generator[subprocess.Popen[bytes]]:
    """A git that knows only the objects of a repository, for at most 20 seconds. Raises Unsure."""
    program = find_program("git", on_path=False)
    objects = f"{tree.common}/objects"
    alternates = f"{objects}/info/alternates"
    if os.path.lexists(alternates):
        _require_regular(alternates, _LARGEST_INDEX)  # git would wait for a pipe
    try:
        place = str(_empty_repository(is_sha256(tree.common)))
        variables = {**_VARIABLES, "GIT_DIR": place, "GIT_OBJECT_DIRECTORY": objects, **more}
        with subprocess.Popen(
            [program, *command],
            cwd=place,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as git:
            limit = Timer(_SECONDS, git.kill)
            limit.start()
            try:
                resource.prlimit(git.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
                yield git
            finally:
                limit.cancel()
                git.kill()
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as fault:
        raise Unsure(str(fault)) from None


def _empty_repository(is_sha256: bool) -> Path:
    """A repository of ours without objects, in the state directory, where no command can write."""
    state = private_directory(state_directory())
    place = state / ("git-view-sha256" if is_sha256 else "git-view")
    if (place / "HEAD").exists():
        return place
    version, extension = (1, "[extensions]\n\tobjectFormat = sha256\n") if is_sha256 else (0, "")
    core = "\tbare = true\n\tcommitGraph = false\n\tmultiPackIndex = false\n\tfsmonitor = false\n"
    with tempfile.TemporaryDirectory(dir=state, prefix="git-view-") as made:
        for name in ("objects", "refs", "new/objects", "new/refs"):
            os.makedirs(f"{made}/{name}")
        new = Path(made, "new")
        (new / "config").write_text(f"[core]\n\trepositoryformatversion = {version}\n{core}{extension}")
        (new / "HEAD").write_text("ref: refs/heads/none\n")
        try:
            os.rename(new, place)
        except OSError:
            if not (place / "HEAD").exists():  # if it does, another session was faster
                raise
    return place


def _skew(directory: str) -> int:
    """How far the clock that stamps files in a directory is ahead of ours; it may be a file server's clock."""
    try:
        fd = os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError:  # not every file system supports it
        return _skew_by_name(directory)
    try:
        ahead = os.fstat(fd).st_ctime_ns - time_of_files()
    finally:
        os.close(fd)
    return ahead if abs(ahead) > _SKEW else 0


def _skew_by_name(directory: str) -> int:
    try:
        with tempfile.NamedTemporaryFile(dir=directory, prefix="gripfast-") as file:
            ahead = os.fstat(file.fileno()).st_ctime_ns - time_of_files()
    except OSError as fault:
        raise Unsure(str(fault)) from None
    return ahead if abs(ahead) > _SKEW else 0


def _packs(objects: str) -> list[str]:
    try:
        with os.scandir(f"{objects}/pack") as found:
            names = [entry.path for entry in found if entry.name.endswith(".idx")]
    except OSError:
        return []
    return names[:_MOST_PACKS]


def _has_object(pack: str, name: bytes) -> bool:
    """Whether the index of a pack lists an object. https://git-scm.com/docs/pack-format"""
    try:
        fd = os.open(pack, READ_FLAGS)
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode) and _lists(fd, name)
    except OSError:
        return False
    finally:
        os.close(fd)


def _lists(fd: int, name: bytes) -> bool:
    """Searches without mapping the file: if a command truncated it meanwhile, a signal would kill this process."""
    if os.pread(fd, 8, 0) != b"\xfftOc\0\0\0\2":
        return False
    size, names = len(name), 8 + 256 * 4
    below = os.pread(fd, 4, 4 + name[0] * 4) if name[0] else b""
    low, high = int.from_bytes(below), int.from_bytes(os.pread(fd, 4, 8 + name[0] * 4))
    while low < high:
        middle = (low + high) // 2
        found = os.pread(fd, size, names + middle * size)
        if found == name:
            return True
        low, high = (middle + 1, high) if found < name else (low, middle)
    return False


def _files_below(directory: str, most: int = _MOST_REFS) -> Iterator[str]:
    """The files below a directory, a few thousand at most. No link is followed."""
    waiting, seen = [directory], 0
    while waiting and seen < most:
        try:
            with os.scandir(waiting.pop()) as found:
                entries = list(found)
        except OSError:
            continue
        seen += len(entries)
        waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        yield from (entry.path for entry in entries if entry.is_file(follow_symlinks=False))


def _is_name(line: str) -> bool:
    return _NAME.fullmatch(line.partition("\t")[0]) is not None


def _text(path: str, most: int = _LARGEST_TEXT) -> str:
    """The beginning of a regular file; empty for anything else."""
    try:
        return os.fsdecode(read_regular(path, most))
    except OSError:
        return ""


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _require_regular(path: str, largest: int) -> None:
    try:
        found = os.lstat(path)
    except OSError as fault:
        raise Unsure(str(fault)) from None
    if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
        raise Unsure(f"{path} is not a regular file, or is too large")
