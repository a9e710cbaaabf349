"""ScopedFs: files inside one scope. A path is resolved once, beneath a held root; then only descriptors count."""

from __future__ import annotations

import contextlib
import difflib
import errno
import functools
import heapq
import itertools
import os
import posixpath
import stat
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import (
    BinaryNotSupported,
    Conflict,
    EncodingProblem,
    Internal,
    InvalidArgument,
    NoMatch,
    NotDirectory,
    NotFile,
    NotFound,
    NotUnique,
    SandboxViolation,
    SizeLimitExceeded,
    ToolError,
)
from holdfast.host.atomic import Fresh, MadeDirectories, locked, sweep_strays, sync_directory
from holdfast.host.beneath import (
    DIRECTORY_FLAGS,
    Place,
    Resolver,
    Root,
    Strategy,
    chosen_strategy,
    is_kernel_view,
    strategy_works,
)
from holdfast.host.faults import explained
from holdfast.host.globs import Glob, check_glob, compile_glob, hiding, is_literal
from holdfast.host.guard import HASHED_BYTES, Identity, ReadLog, digest_of
from holdfast.host.match import exact_spans, spliced, splices
from holdfast.host.mounts import Locality
from holdfast.host.opened import OpenDirectory, OpenFile
from holdfast.host.paths import WorkPath, escaped, is_below
from holdfast.host.protect import protected_by
from holdfast.host.scope import Scope
from holdfast.host.search import GlobResult, GrepOptions, GrepResult, Stop, check_options, check_pattern, glob, grep
from holdfast.host.search import Place as SearchPlace
from holdfast.host.text import Form, checked_encoding, is_binary, rewritten, shown_form, text_of
from holdfast.host.walk import Kind, Tree, walk

MAX_WHOLE_BYTES = 256 * 1024 * 1024  # what is read into memory at once, to be edited
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEAR_LISTED = 5_000  # names looked through for near ones when a path is missing
_NEAR_SURELY, _NEAR_WIDTH, _NEAR_SECONDS = 100, 64, 0.05
_SWAPPED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.ENOENT, errno.ENXIO})  # it is something else now
_HASTY = 2  # attempts at a write without holding the lock throughout
HERE = WorkPath(".")
_TRIES = 16  # resolutions tried while somebody swaps what the path leads to


@dataclass(frozen=True, slots=True)
class Change:
    """What a write did. `before` is None where there was no file; bytes as they are in the file."""

    before: bytes | None
    after: bytes
    real: str

    @property
    def created(self) -> bool:
        return self.before is None


class _SwappedError(Exception):
    """What a path led to became something else between looking and opening."""


class ScopedFs:
    """Reads and writes inside a `Scope`, by `WorkPath` only. Synchronous; may be shared between threads."""

    def __init__(self, scope: Scope, *, encoding: str | None = None, strategy: Strategy | None = None) -> None:
        """`encoding` is what files are in that are neither UTF-8 nor marked (and new and plain ASCII ones)."""
        if strategy is not None and not strategy_works(strategy):
            raise ValueError(f"the confinement strategy {strategy!r} does not work on this machine")
        self.scope = scope
        self.encoding = checked_encoding(encoding)
        self._swept: set[tuple[int, int]] = set()
        roots = _held(scope)
        weakref.finalize(self, _close_all, [root.fd for root in roots])
        self._resolver = Resolver(roots, strategy or chosen_strategy())

    @property
    def roots(self) -> tuple[str, ...]:
        """The real paths of the workspace's directories, the one relative paths start from first."""
        return tuple(root.real for root in self._resolver.roots if not root.anywhere)

    @property
    def strategy(self) -> Strategy:
        """How paths are confined here: `openat2` or `walk`."""
        return self._resolver.strategy

    @property
    def answers_at_once(self) -> bool:
        """Whether all that can be opened is on a disk of this machine: no network to wait for."""
        return self.scope.read is not None and self._locality.all_local

    @functools.cached_property
    def _locality(self) -> Locality:
        return Locality(self.roots)

    def within_roots(self) -> ScopedFs:
        """The same files without unrestricted reading: what is outside the named roots is refused."""
        narrow = object.__new__(ScopedFs)
        narrow.__dict__.update(self.__dict__, _wide=self)
        kept = [root for root in self._resolver.roots if root.real != "/"] or self._resolver.roots
        narrow._resolver = Resolver(kept, self.strategy)
        return narrow

    # --- names ---

    def show(self, path: WorkPath) -> str:
        """How answers name a path: from the first root, absolute only outside it, always on one line."""
        if ".." in path.text:  # above a link, only the real place tells what that means
            return escaped(self.spellings(path)[-1])
        return escaped(self._from_first(self._requested(path)))

    def show_real(self, absolute: str) -> str:
        """How answers name a real place, given by its absolute path."""
        return escaped(self._from_first(absolute))

    def spellings(self, path: WorkPath) -> tuple[str, ...]:
        """The names rules are matched against: as requested and as it really is, from the first root."""
        requested = self._from_first(self._requested(path))
        try:
            with self._resolver.locate(path.text) as place:
                real = self._from_first(place.absolute)
        except (ToolError, OSError):
            return (requested,)
        return (requested,) if real == requested else (requested, real)

    def _requested(self, path: WorkPath) -> str:
        absolute = posixpath.join(self._resolver.roots[0].real, path.text)
        return "/" + posixpath.normpath(absolute).lstrip("/")

    def _from_first(self, absolute: str) -> str:
        rest = self._resolver.roots[0].rest(absolute)
        return absolute if rest is None else rest or "."

    # --- opening ---

    def open_read(self, path: WorkPath) -> OpenFile:
        """A regular file, open for reading. FIFOs, sockets, devices and kernel views are never opened."""
        for _ in range(_TRIES):
            with self._allowed(path, "read") as place:
                file = self._open_regular(path, place)
            if file is not None:
                return file
        raise NotFound(f"`{escaped(path.text)}` changes all the time; try again", retriable=True)

    def _open_regular(self, path: WorkPath, place: Place) -> OpenFile | None:
        """None: it was swapped since it was looked at."""
        if place.stat is None:
            raise self.not_found(path, place)
        _require_regular(path, place.stat)
        try:
            fd = os.open(place.name, _READ_FLAGS, dir_fd=place.dir_fd)
        except OSError as error:
            if error.errno in _SWAPPED:
                return None
            raise explained(error, path.text, "read") from None
        try:
            found = os.fstat(fd)
            _require_regular(path, found)
            if found.st_dev != place.root.device and is_kernel_view(fd):
                raise NotFile(f"`{escaped(path.text)}` is a view into the kernel (/proc and the like), not a file")
        except BaseException:
            os.close(fd)
            raise
        return OpenFile(fd, found, place.absolute, path.text)

    def open_dir(self, path: WorkPath) -> OpenDirectory:
        """A directory, open for listing and as the start of a walk or a search."""
        for _ in range(_TRIES):
            with self._allowed(path, "list") as place:
                if place.stat is None:
                    raise self.not_found(path, place)
                if not stat.S_ISDIR(place.stat.st_mode):
                    raise NotDirectory(f"`{escaped(path.text)}` is not a directory")
                try:
                    fd = os.open(place.name, _LIST_FLAGS, dir_fd=place.dir_fd)
                except OSError as error:
                    if error.errno in _SWAPPED:
                        continue
                    raise explained(error, path.text, "list") from None
            found = os.fstat(fd)
            if found.st_dev != place.root.device and is_kernel_view(fd):
                os.close(fd)
                raise NotDirectory(f"`{escaped(path.text)}` is a view into the kernel, not a directory of files")
            return OpenDirectory(fd, found, place.absolute)
        raise NotFound(f"`{escaped(path.text)}` changes all the time; try again", retriable=True)

    def is_denied(self, absolute: str) -> bool:
        """Whether a `deny` pattern closes a real place, for walkers and searchers."""
        return self._closed_by(absolute) is not None

    def _allowed(self, path: WorkPath, doing: str) -> Place:
        """The place a path leads to, unless a `deny` pattern closes it, as requested or as it really is."""
        if not self.scope.deny:
            return self._located(path, doing)
        self._refuse_denied(path, self._requested(path))
        place = self._located(path, doing)
        try:
            self._refuse_denied(path, place.absolute)
        except BaseException:
            place.close()
            raise
        return place

    def _located(self, path: WorkPath, doing: str) -> Place:
        try:
            return self._resolver.locate(path.text)
        except OSError as error:
            raise explained(error, path.text, doing) from None

    def _refuse_denied(self, path: WorkPath, absolute: str) -> None:
        pattern = self._closed_by(absolute)
        if pattern is not None:
            raise SandboxViolation(f"`{escaped(path.text)}` is closed by the deny pattern `{pattern}`")

    def _closed_by(self, absolute: str) -> str | None:
        found = self._resolver.root_of(absolute)
        return self.scope.deny.find(found[1] if found else absolute.lstrip("/"), absolute)

    # --- what is missing ---

    def not_found(self, path: WorkPath, place: Place | None = None) -> NotFound:
        """The error for a missing path, with up to three near names that exist."""
        if place is None:
            with self._located(path, "read") as place:
                return self.not_found(path, place)
        near = self._near(place)
        hint = f"; near: {', '.join(f'`{name}`' for name in near)}" if near else ""
        return NotFound(f"`{escaped(path.text)}` does not exist{hint}", details={"near": near})

    def _near(self, place: Place) -> list[str]:
        wanted, *after = (*place.missing, place.name)
        above = place.absolute.removesuffix("/".join((wanted, *after))).rstrip("/")
        with contextlib.suppress(OSError):
            names = _near_names(place.dir_fd, wanted)
            found = [_with_rest(place.dir_fd, name, after) for name in names]
            return [self.show_real(real) for name in found if not self.is_denied(real := f"{above}/{name}")]
        return []

    # --- reading ---

    def read_bytes(self, path: WorkPath) -> bytes:
        """All bytes of a file."""
        with self.open_read(path) as file:
            return self._content(path, file)

    def read(self, path: WorkPath) -> str:
        """A whole text file, decoded; its line ends as they are. Binary and undecodable files are refused."""
        return text_of(self.read_bytes(path), self.encoding, escaped(path.text)).body.decode("utf-8")

    def read_lines(self, path: WorkPath, offset: int = 0, limit: int = 2000) -> str:
        """Lines as text, from `offset` on (negative: from the end), each ended by a newline but perhaps the last."""
        with self.open_read(path) as file:
            if is_binary(file.head()):
                raise BinaryNotSupported(f"`{escaped(path.text)}` is binary; it has no lines")
            window = file.window(offset, limit)
        text = b"\n".join(window.lines)
        form = shown_form(text, None if file.form.wide else self.encoding)
        return text.decode(form.codec, "backslashreplace") + ("\n" if window.newline and window.lines else "")

    def _content(self, path: WorkPath, file: OpenFile) -> bytes:
        if file.stat.st_size > MAX_WHOLE_BYTES:
            raise SizeLimitExceeded(
                f"`{escaped(path.text)}` has {file.stat.st_size} bytes; at most {MAX_WHOLE_BYTES} are read at once"
            )
        return file.content()

    # --- finding ---

    def glob(
        self,
        pattern: str,
        base: WorkPath = HERE,
        *,
        include_ignored: bool = False,
        limit: int = 1000,
        stop: Stop | None = None,
    ) -> GlobResult:
        """Files whose path from `base` matches, newest first; a literal path that exists always does."""
        check_glob(pattern)
        with self.open_dir(base):
            named = self._existing(pattern, base)
        if is_literal(pattern):
            return GlobResult((), 0).beginning_with(named)
        try:
            whole = compile_glob(pattern)
        except InvalidArgument:
            if named is None:
                raise
            return GlobResult((), 0).beginning_with(named)  # brackets may be a part of a name
        if ".." in whole.rest.split("/"):
            raise InvalidArgument(f"the glob pattern {pattern!r} goes up after a wildcard; give `path` instead")
        found = self._globbed(whole, base, include_ignored=include_ignored, limit=limit, stop=stop)
        return found.beginning_with(named)

    def _globbed(
        self, whole: Glob, base: WorkPath, *, include_ignored: bool, limit: int, stop: Stop | None
    ) -> GlobResult:
        """Search from where the literal beginning of the pattern leads."""
        try:
            start = self.open_dir(_joined(base, whole.head))
        except (NotFound, NotDirectory):
            return GlobResult((), 0)
        with start:
            rest = compile_glob(whole.rest) if whole.head else whole
            place = self._search_place(start.real)
            found = glob(place, rest, include_ignored=include_ignored, limit=limit, stop=stop)
        return replace(found, paths=tuple(self._named(place, path) for path in found.paths))

    def _existing(self, pattern: str, base: WorkPath) -> str | None:
        """The name of what a pattern, taken word for word, leads to. Only a plain one may fail."""
        try:
            path = _joined(base, pattern)
            with self._allowed(path, "list") as place:
                return None if place.stat is None else self._from_first(self._requested(path))
        except (NotFound, NotDirectory, NotFile):
            return None
        except ToolError:
            if is_literal(pattern):
                raise
            return None

    def grep(
        self,
        pattern: str,
        path: WorkPath = HERE,
        options: GrepOptions = GrepOptions(),  # noqa: B008 (frozen)
        *,
        stop: Stop | None = None,
    ) -> GrepResult:
        """Lines that match ripgrep's regex in a file or beneath a directory, in path order, with true totals."""
        check_options(pattern, options)
        with contextlib.ExitStack() as stack:
            try:
                place = self._grep_place(path, stack)
            except ToolError:
                check_pattern(pattern, options, roots=self.roots)  # a bad pattern is told first
                raise
            found = grep(place, pattern, options, stop=stop)
        return replace(found, files=tuple(replace(one, path=self._named(place, one.path)) for one in found.files))

    def _grep_place(self, path: WorkPath, stack: contextlib.ExitStack) -> SearchPlace:
        try:
            return self._search_place(stack.enter_context(self.open_dir(path)).real)
        except NotDirectory:
            file = stack.enter_context(self.open_read(path))
            return self._search_place(file.real, file.fd)

    def _search_place(self, real: str, file: int | None = None) -> SearchPlace:
        found = self._resolver.root_of(real)
        assert found is not None, "what was opened lies beneath a root"
        root, below = found
        if not self.scope.deny:
            return SearchPlace(root.fd, root.real, below, file, confined=not root.anywhere, roots=self.roots)
        return SearchPlace(
            root.fd,
            root.real,
            below,
            file,
            confined=not root.anywhere,
            hidden=tuple(in_ripgrep for text in self.scope.deny.texts for in_ripgrep in hiding(text)),
            keep=lambda path: not self.is_denied(posixpath.join(root.real, path)),
            roots=self.roots,
        )

    def _named(self, place: SearchPlace, path: str) -> str:
        """How a path that was found is called: from the first root, absolute only outside it."""
        return self._from_first(posixpath.join(place.root_path, path))

    def tree(
        self, path: WorkPath, *, max_depth: int, max_entries: int, accept: Callable[[str, str, Kind], bool]
    ) -> Tree:
        """What is beneath a directory, in order and bounded. `accept(path, name, kind)` says what counts."""
        top = self.relative(path)
        with self.open_dir(path) as directory:
            start = 0 if top == "." else len(top) + 1

            def admit(inside: str, name: str, kind: Kind) -> bool:
                return accept(inside, name, kind) and not self.is_denied(f"{directory.real}/{inside[start:]}")

            chosen = admit if self.scope.deny else accept
            return walk(directory.fd, top, max_depth=max_depth, max_entries=max_entries, accept=chosen)

    def relative(self, path: WorkPath) -> str:
        """A path from the first root, never absolute: as requested, or as it really is where it goes up."""
        absolute = self._requested(path)
        if ".." in path.text.split("/"):
            with self._located(path, "read") as place:
                absolute = place.absolute
        return posixpath.relpath(absolute, self._resolver.roots[0].real)

    # --- writing ---

    def write(
        self,
        path: WorkPath,
        content: str,
        *,
        reads: ReadLog | None = None,
        last_word: Callable[[], None] | None = None,
    ) -> Change:
        """Create or replace a text file, in the encoding, line ends and final newline the old one has."""
        shown = escaped(path.text)
        body = _utf8(content, shown)

        def rewrite(before: bytes | None) -> bytes:
            if before is None:
                return Form(self.encoding or "utf-8").bytes_of(body, shown)
            text = text_of(before, self.encoding, shown)
            return text.form.bytes_of(rewritten(text.body, body), shown)

        return self.change(path, rewrite, reads=reads, last_word=last_word)

    def replace(
        self, path: WorkPath, old: str, new: str, *, all: bool = False, reads: ReadLog | None = None
    ) -> Change:
        """Replace a text that occurs once, or every occurrence of it."""
        shown = escaped(path.text)

        def edit(before: bytes | None) -> bytes:
            if before is None:
                raise self.not_found(path)
            text = text_of(before, self.encoding, shown)
            spans = exact_spans(text.body, _utf8(old, shown))
            if len(spans) != 1 and not (spans and all):
                count = f"occurs {len(spans)} times" if spans else "does not occur"
                raise (NotUnique if spans else NoMatch)(f"the text to replace {count} in `{shown}`")
            return text.form.bytes_of(spliced(text.body, splices(text.body, spans, _utf8(new, shown))), shown)

        return self.change(path, edit, reads=reads)

    def change(
        self,
        path: WorkPath,
        compute: Callable[[bytes | None], bytes],
        *,
        reads: ReadLog | None = None,
        commit: bool = True,
        last_word: Callable[[], None] | None = None,
    ) -> Change:
        """Put `compute(the file's bytes, or None)` in the file's place, atomically.

        With `reads`, an existing file must be what that log last saw. `compute` may be called again, when the file
        changes meanwhile. Without `commit`, or when nothing changes, nothing is touched. `last_word` is called when
        all is ready and nothing done: what it raises stops the change.
        """
        for attempt in range(_TRIES):
            try:
                done = self._attempt(path, compute, reads, commit, last_word, patient=attempt >= _HASTY)
            except Conflict:
                if attempt >= _HASTY:
                    raise
                done = None  # perhaps a colleague in this session is between writing and noting it
            except _SwappedError:
                done = None
            except OSError as error:
                raise explained(error, path.text, "write") from None
            if done is not None:
                return done
        raise Conflict(f"`{escaped(path.text)}` changes all the time; try again", retriable=True)

    def _attempt(
        self,
        path: WorkPath,
        compute: Callable[[bytes | None], bytes],
        reads: ReadLog | None,
        commit: bool,
        last_word: Callable[[], None] | None,
        *,
        patient: bool,
    ) -> Change | None:
        """One try. A hasty one locks only to publish, so that files don't wait for each other; a patient one locks
        from the beginning, so that it can't be overtaken. None: the file changed meanwhile."""
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(self._writable(path))
            if patient and not place.missing:
                stack.enter_context(locked(place.dir_fd, escaped(path.text)))
            old = self._old(path, place, stack)
            before = None if old is None else self._content(path, old)
            if old is not None and reads is not None:
                reads.check(escaped(path.text), place.absolute, old.stat, before)
            after = compute(before)
            if commit and after != before:
                held = patient and not place.missing
                if not self._publish(path, place, old, after, reads, last_word, held=held):
                    return None
            return Change(before, after, place.absolute)

    def _old(self, path: WorkPath, place: Place, stack: contextlib.ExitStack) -> OpenFile | None:
        """The file that is there now, open; None where there is none."""
        if place.name == ".":
            raise NotFile(f"`{escaped(path.text)}` is a directory; name a file in it")
        if place.stat is None:
            return None
        file = self._open_regular(path, place)
        if file is None:
            raise _SwappedError
        return stack.enter_context(file)

    def _publish(
        self,
        path: WorkPath,
        place: Place,
        old: OpenFile | None,
        after: bytes,
        reads: ReadLog | None,
        last_word: Callable[[], None] | None,
        *,
        held: bool,
    ) -> bool:
        """Write beside, lock, make sure the file is still the one that was read, put the new one in its place."""
        with MadeDirectories(place.dir_fd, place.missing) as made, contextlib.ExitStack() as stack:
            self._sweep(made.fd)
            fresh = stack.enter_context(Fresh(made.fd))
            fresh.fill(after, None if old is None else old.fd)
            lock = contextlib.nullcontext(-1) if held else locked(made.fd, escaped(path.text))
            stack.enter_context(lock)
            if not _unchanged(made.fd, place.name, old):
                return False
            if last_word is not None:
                last_word()
            try:
                (fresh.publish_new if old is None else fresh.publish_over)(place.name)
            except FileExistsError:
                return False
            changed = made.keep()
            if reads is not None:
                digest = digest_of(after) if len(after) <= HASHED_BYTES else None
                reads.record(place.absolute, os.fstat(fresh.fd), digest)
            _sync(path, changed)
        return True

    def _sweep(self, dir_fd: int) -> None:
        """Once for each directory that is written to: what killed writers left there."""
        found = os.fstat(dir_fd)
        if (found.st_dev, found.st_ino) not in self._swept:
            self._swept.add((found.st_dev, found.st_ino))
            with contextlib.suppress(OSError):
                sweep_strays(dir_fd)

    def _writable(self, path: WorkPath) -> Place:
        """The place a path leads to, if it may be written: in a root for writing, not denied, not protected."""
        self._refuse_protected_name(path)
        place = self._allowed(path, "write")
        try:
            self._refuse_unwritable(path, place)
        except BaseException:
            place.close()
            raise
        return place

    def _refuse_protected_name(self, path: WorkPath) -> None:
        requested = self._requested(path)
        found = self._resolver.root_of(requested)
        pattern = self.scope.protect.find(found[1], requested) if found else None
        if pattern is not None:
            raise _protected(path, f"`{pattern}`")

    def _refuse_unwritable(self, path: WorkPath, place: Place) -> None:
        absolute = place.absolute
        if not any(is_below(absolute, directory.real) for directory in self.scope.write):
            where = ", ".join(escaped(directory.given) for directory in self.scope.write) or "nowhere"
            raise SandboxViolation(f"`{escaped(path.text)}` may be read but not written; writable: {where}")
        found = self._resolver.root_of(absolute)
        reason = protected_by(place, found[1] if found else absolute.lstrip("/"), self.scope.protect)
        if reason is not None:
            raise _protected(path, reason)


def _joined(base: WorkPath, below: str) -> WorkPath:
    """A path that starts in another; nothing below it is the other itself."""
    if not below:
        return base
    return WorkPath.parse(below if base == HERE else posixpath.join(base.text, below))


def _held(scope: Scope) -> list[Root]:
    """The scope's directories, open. The last one is `/` when reading is unrestricted."""
    writable = {directory.real for directory in scope.write}
    roots: list[Root] = []
    for directory in scope.roots:
        try:
            fd = os.open(directory.real, DIRECTORY_FLAGS)
        except OSError as error:
            _close_all([root.fd for root in roots])
            raise explained(error, directory.given, "open") from None
        device = os.fstat(fd).st_dev
        roots.append(Root(directory.given, directory.real, fd, device, directory.real in writable))
    if scope.read is None:
        fd = os.open("/", DIRECTORY_FLAGS)
        roots.append(Root("/", "/", fd, os.fstat(fd).st_dev, writable=False, anywhere=True))
    return roots


def _close_all(descriptors: Sequence[int]) -> None:
    for fd in descriptors:
        os.close(fd)


def _require_regular(path: WorkPath, found: os.stat_result) -> None:
    mode = found.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise NotFile(f"`{escaped(path.text)}` is a directory; name a file in it")
    kinds = ((stat.S_ISFIFO, "FIFO"), (stat.S_ISSOCK, "socket"), (stat.S_ISLNK, "link"))
    kind = next((word for test, word in kinds if test(mode)), "device")
    raise NotFile(f"`{escaped(path.text)}` is a {kind}, not a regular file")


def _near_names(dir_fd: int, wanted: str) -> list[str]:
    fd = os.open(".", _LIST_FLAGS, dir_fd=dir_fd)
    try:
        with os.scandir(fd) as entries:
            names = {entry.name.lower(): entry.name for entry in itertools.islice(entries, _NEAR_LISTED)}
    finally:
        os.close(fd)
    return [names[low] for low in _closest(wanted.lower(), names)]


def _closest(wanted: str, names: Iterable[str]) -> list[str]:
    """The three names most like the one wanted, as far as they can be found in no time: a directory may be full of
    names made to be compared for long."""
    matcher = difflib.SequenceMatcher(None, "", wanted[:_NEAR_WIDTH])
    until = time.monotonic() + _NEAR_SECONDS
    found: list[tuple[float, str]] = []
    for count, name in enumerate(names):
        if count > _NEAR_SURELY and time.monotonic() > until:
            break
        matcher.set_seq1(name[:_NEAR_WIDTH])
        if matcher.real_quick_ratio() >= 0.6 and matcher.quick_ratio() >= 0.6 and matcher.ratio() >= 0.6:
            found.append((matcher.ratio(), name))
    return [name for _, name in heapq.nlargest(3, found)]


def _with_rest(dir_fd: int, name: str, after: list[str]) -> str:
    """A near directory with the rest of the path, if that exists in it; else the directory alone."""
    whole = "/".join((name, *after))
    try:
        os.stat(whole, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return name
    return whole


def _utf8(text: str, shown: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise EncodingProblem(f"the text for `{shown}` has a lone surrogate at character {error.start}") from None


def _protected(path: WorkPath, reason: str) -> SandboxViolation:
    return SandboxViolation(
        f"`{escaped(path.text)}` is protected against writing ({reason}): other programs run what it says. "
        "Ask the user to change it, or to lift this with `protect` in their config"
    )


def _unchanged(dir_fd: int, name: str, old: OpenFile | None) -> bool:
    """Whether a name still is the file that was read; under the lock, just before it is replaced."""
    try:
        now = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return old is None
    return old is not None and Identity.of(now) == Identity.of(old.stat) and old.is_still_what_was_read()


def _sync(path: WorkPath, directories: Sequence[int]) -> None:
    try:
        for dir_fd in directories:
            sync_directory(dir_fd)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        raise Internal(
            f"`{escaped(path.text)}` was written, but its directory could not be synced ({name}): "
            "after a power cut the old content may be back",
            details={"errno": name, "written": True},
        ) from None
