"""ScopedFs: files inside one scope. A path is resolved once, beneath a held root; then only descriptors count."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from gripfast.errors import NotFound, ToolError
from gripfast.host.files.beneath import ResolvedPath, Strategy, chosen_strategy, strategy_works
from gripfast.host.files.encodings import checked_encoding, text_of
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.missing import not_found
from gripfast.host.files.named_entry import writable_entry
from gripfast.host.files.opened import OpenDirectory, OpenFile
from gripfast.host.files.opening import open_directory, open_file
from gripfast.host.files.paths import HERE, WorkPath
from gripfast.host.files.reading import lines_as_text, whole_content
from gripfast.host.files.scope import Scope
from gripfast.host.files.scoped_paths import HeldRoots, ScopedPaths
from gripfast.host.files.session_tmp import SessionTmp
from gripfast.host.files.walk import Kind, Tree
from gripfast.host.files.writable import ProtectedName, writable
from gripfast.host.files.writing import CurrentFile, FileChange, FileWriter
from gripfast.host.kernel.mounts import Locality
from gripfast.host.search.stop import Stop
from gripfast.text.below import is_below
from gripfast.text.escape import escaped

if TYPE_CHECKING:
    from gripfast.host.files.finding import Finder
    from gripfast.host.search.search_types import GlobResult, GrepOptions, GrepResult

T = TypeVar("T")


class ScopedFs:
    """Reads and writes inside a `Scope`, by `WorkPath` only. Synchronous; may be shared between threads."""

    def __init__(
        self,
        scope: Scope,
        *,
        encoding: str | None = None,
        strategy: Strategy | None = None,
        paths: ScopedPaths | None = None,
    ) -> None:
        """`encoding` is that of files that are not UTF-8 and have no byte order mark, and of new or plain ASCII ones.

        `paths` are those of another `ScopedFs` over the same scope, whose open directories are then shared.
        """
        if strategy is not None and not strategy_works(strategy):
            raise ValueError(f"the confinement strategy {strategy!r} does not work on this machine")
        self.scope = scope
        self.encoding = checked_encoding(encoding)
        self._paths = paths or ScopedPaths(scope, HeldRoots(scope), strategy or chosen_strategy())
        self._writer = FileWriter(self._paths)
        self._shared: object | None = None

    def shared(self, make: Callable[[ScopedFs], T]) -> T:
        """What the tools over this file system share: made at its first use, and dropped with the file system."""
        if self._shared is None:
            self._shared = make(self)
        return cast("T", self._shared)

    @functools.cached_property
    def _finder(self) -> Finder:
        from gripfast.host.files.finding import Finder  # noqa: PLC0415 - loaded with the first search

        return Finder(self._paths)

    @property
    def roots(self) -> tuple[str, ...]:
        """The real paths of the workspace's directories, the one relative paths start from first."""
        return self._paths.roots

    @property
    def tmp(self) -> SessionTmp:
        """The temporary directory that file tools and commands share."""
        return self._paths.tmp

    @property
    def strategy(self) -> Strategy:
        """How paths are confined here: `openat2` or `walk`."""
        return self._paths.resolver.strategy

    @property
    def is_local(self) -> bool:
        """Whether all that can be opened is on a disk of this machine: no network to wait for."""
        return self.scope.read is not None and self._locality.all_local

    @functools.cached_property
    def _locality(self) -> Locality:
        return Locality(self.roots)

    def within_roots(self) -> ScopedFs:
        """The same files without unrestricted reading: what is outside the named roots is refused."""
        return ScopedFs(self.scope, encoding=self.encoding, paths=self._paths.within_roots())

    # --- names ---

    def show(self, path: WorkPath) -> str:
        """How answers name a path: from the first root, absolute only outside it, always on one line."""
        return self._paths.show(path)

    def show_real(self, absolute: str) -> str:
        """How answers name a real place, given by its absolute path."""
        return self._paths.show_real(absolute)

    def spellings(self, path: WorkPath) -> tuple[str, ...]:
        """The names rules are matched against: as requested and as it really is, from the first root."""
        return self._paths.spellings(path)

    def real(self, path: WorkPath) -> str:
        """The absolute path a caller means, without following a link at its end; it need not exist."""
        return self._paths.requested(path)

    def relative(self, path: WorkPath) -> str:
        """A path from the first root, never absolute: as requested, or as it really is where it goes up."""
        return self._paths.relative(path)

    # --- opening ---

    def judged(self, path: WorkPath, *, written: bool = False, may_ask: bool = False) -> WorkPath:
        """The path bound to the place it leads to now: later it leads there or nowhere. Raises ToolError for a
        place that the scope refuses, for reading or, with `written`, for writing. With `may_ask`, a protected name
        gives a `lifted` path, for which somebody must be asked."""
        try:
            with writable(self._paths, path) if written else self._paths.allowed(path, "read") as place:
                return path.as_judged(place.absolute)
        except ProtectedName:
            if not may_ask:
                raise
        with writable(self._paths, path.as_lifted()) as place:
            return path.as_lifted().as_judged(place.absolute)

    def protection(self, path: WorkPath) -> str:
        """What protects a name, in a few words: by the name itself or by where it leads."""
        places = self._paths.places
        return places.protected(self.real(path)) or places.protected(path.judged or "") or "a protected name"

    def is_private(self, absolute: str) -> bool:
        """Whether a real place is in the temporary directory that only this session sees, as `/tmp`."""
        return bool(self.tmp.real) and self.tmp.is_tmp() and is_below(absolute, self.tmp.real)

    def write_refusal(self, absolute: str) -> str | None:
        """Why a real place can't be written, None if it can."""
        try:
            self.judged(WorkPath.parse(absolute), written=True)
        except ToolError as fault:
            return fault.message
        return None

    def open_read(self, path: WorkPath) -> OpenFile:
        """A regular file, open for reading. FIFOs, sockets, devices and kernel views are never opened."""
        return open_file(self._paths, path)

    def open_dir(self, path: WorkPath) -> OpenDirectory:
        """A directory, open for listing and as the start of a walk or a search."""
        return open_directory(self._paths, path)

    def writable_entry(self, absolute: str, *, lifted: bool = False, restoring: bool = False) -> ResolvedPath:
        """The place of a name itself, no link followed, if it may be written; for undo and transactions. `lifted`:
        a person has allowed a protected name. `restoring`: a transaction takes back what it did there."""
        return writable_entry(self._paths, absolute, lifted=lifted, restoring=restoring)

    def is_link(self, path: WorkPath) -> bool:
        """Whether the name at the end of a path is a symbolic link."""
        return os.path.islink(self._paths.requested(path))

    def is_denied(self, absolute: str) -> bool:
        """Whether a `deny` pattern closes a real place, for walkers and searchers."""
        return self._paths.is_denied(absolute)

    def not_found(self, path: WorkPath) -> NotFound:
        """The error for a missing path, with up to three near names that exist."""
        return not_found(self._paths, path)

    # --- reading ---

    def read_bytes(self, path: WorkPath) -> bytes:
        """All bytes of a file."""
        with self.open_read(path) as file:
            return whole_content(path, file)

    def read(self, path: WorkPath) -> str:
        """A whole text file, decoded; its line ends as they are. Binary and undecodable files are refused."""
        return text_of(self.read_bytes(path), self.encoding, escaped(path.text)).body.decode("utf-8")

    def read_lines(self, path: WorkPath, offset: int = 0, limit: int = 2000) -> str:
        """Lines as text, from `offset` on (negative: from the end), each ended by a newline but perhaps the last."""
        with self.open_read(path) as file:
            return lines_as_text(path, file, offset, limit, self.encoding)

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
        return self._finder.glob(pattern, base, include_ignored=include_ignored, limit=limit, stop=stop)

    def grep(
        self,
        pattern: str,
        path: WorkPath = HERE,
        options: GrepOptions | None = None,
        *,
        stop: Stop | None = None,
    ) -> GrepResult:
        """Lines that match ripgrep's regex in a file or beneath a directory, in path order, with true totals.

        Files that are not UTF-8 are searched in the configured encoding.
        """
        from gripfast.host.search.search_types import GrepOptions  # noqa: PLC0415 - loaded with the first search

        return self._finder.grep(pattern, path, replace(options or GrepOptions(), encoding=self.encoding), stop=stop)

    def tree(
        self, path: WorkPath, *, max_depth: int, max_entries: int, accept: Callable[[str, str, Kind], bool]
    ) -> Tree:
        """What is beneath a directory, in order and bounded. `accept(path, name, kind)` says what counts."""
        return self._finder.tree(path, max_depth=max_depth, max_entries=max_entries, accept=accept)

    # --- writing ---

    def write(
        self,
        path: WorkPath,
        content: str,
        *,
        reads: ReadLog | None = None,
        commit: bool = True,
        last_word: Callable[[], None] | None = None,
    ) -> FileChange:
        """Create or replace a text file, in the encoding, line ends and final newline the old one has."""
        from gripfast.host.files.text_edits import rewriting  # noqa: PLC0415 - reading needs none of it

        compute = rewriting(content, self.encoding, escaped(path.text))
        return self.change(path, compute, reads=reads, commit=commit, last_word=last_word)

    def replace(
        self, path: WorkPath, old: str, new: str, *, all: bool = False, reads: ReadLog | None = None
    ) -> FileChange:
        """Replace a text that occurs once, or every occurrence of it."""
        from gripfast.host.files.text_edits import replacing  # noqa: PLC0415 - the same

        edit = replacing(old, new, all=all, encoding=self.encoding, shown=escaped(path.text))

        def compute(before: bytes | None) -> bytes:
            if before is None:
                raise self.not_found(path)
            return edit(before)

        return self.change(path, compute, reads=reads)

    def current(self, path: WorkPath, *, reads: ReadLog | None = None) -> CurrentFile | None:
        """A file as a change of it would begin with it, None where there is none. Raises ToolError if it may not be
        changed; with `reads`, also if it is not what that log last saw."""
        return self._writer.current(path, reads=reads)

    def change(
        self,
        path: WorkPath,
        compute: Callable[[bytes | None], bytes],
        *,
        reads: ReadLog | None = None,
        commit: bool = True,
        last_word: Callable[[], None] | None = None,
    ) -> FileChange:
        """Put `compute(the file's bytes, or None)` in the file's place, atomically.

        With `reads`, an existing file must be what that log last saw. `compute` may be called again, when the file
        changes meanwhile. Without `commit`, or when nothing changes, nothing is touched. `last_word` is called when
        all is ready and nothing done: what it raises stops the change.
        """
        return self._writer.change(path, compute, reads=reads, commit=commit, last_word=last_word)
