"""Finding inside a scope: names, text, and what is beneath a directory."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Callable
from dataclasses import replace

from gripfast.errors import InvalidArgument, NotDirectory, NotFile, NotFound, ToolError
from gripfast.host.files.opening import open_directory, open_file
from gripfast.host.files.paths import HERE, WorkPath
from gripfast.host.files.scoped_paths import ScopedPaths
from gripfast.host.files.walk import Kind, Tree, walk
from gripfast.host.search.glob import glob
from gripfast.host.search.grep import grep
from gripfast.host.search.patterns import check_options, check_pattern
from gripfast.host.search.search_types import GlobResult, GrepOptions, GrepResult, SearchPlace
from gripfast.host.search.stop import Stop
from gripfast.text.globs import Glob, check_glob, compile_glob, hiding, is_literal


class Finder:
    """Searches inside a scope. What is denied is neither found nor counted."""

    def __init__(self, paths: ScopedPaths) -> None:
        self._paths = paths

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
        if ".git" in posixpath.join(base.text, pattern).split("/"):
            return GlobResult((), 0)  # what git keeps there is never listed
        with open_directory(self._paths, base):
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
            raise InvalidArgument(
                f"the glob pattern {pattern!r} has `..` after a wildcard; name the directory in `path` instead"
            )
        found = self._globbed(whole, base, include_ignored=include_ignored, limit=limit, stop=stop)
        return found.beginning_with(named)

    def _globbed(
        self, whole: Glob, base: WorkPath, *, include_ignored: bool, limit: int, stop: Stop | None
    ) -> GlobResult:
        """Search from where the literal beginning of the pattern leads."""
        try:
            start = open_directory(self._paths, _joined(base, whole.head))
        except (NotFound, NotDirectory):
            return GlobResult((), 0)
        with start:
            rest = compile_glob(whole.rest) if whole.head else whole
            place = self._search_place(start.real)
            found = glob(place, rest, include_ignored=include_ignored, limit=limit, stop=stop)
        return replace(found, paths=tuple(self._named(place, path) for path in found.paths))

    def _existing(self, pattern: str, base: WorkPath) -> str | None:
        """The name of what a pattern leads to, read literally. Raises ToolError only if it has no wildcards."""
        try:
            path = _joined(base, pattern)
            with self._paths.allowed(path, "list") as place:
                return None if place.stat is None else self._paths.from_first(self._paths.requested(path))
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
                check_pattern(pattern, options, roots=self._paths.roots)  # a bad pattern is reported first
                raise
            found = grep(place, pattern, options, stop=stop)
        return replace(found, files=tuple(replace(one, path=self._named(place, one.path)) for one in found.files))

    def _grep_place(self, path: WorkPath, stack: contextlib.ExitStack) -> SearchPlace:
        try:
            return self._search_place(stack.enter_context(open_directory(self._paths, path)).real)
        except NotDirectory:
            file = stack.enter_context(open_file(self._paths, path))
            return self._search_place(file.real, file.fd)

    def _search_place(self, real: str, file: int | None = None) -> SearchPlace:
        found = self._paths.resolver.root_of(real)
        assert found is not None, "what was opened lies beneath a root"
        root, below = found
        if not self._paths.hides:
            return SearchPlace(root.fd, root.real, below, file, confined=not root.anywhere, roots=self._paths.roots)
        return SearchPlace(
            root.fd,
            root.real,
            below,
            file,
            confined=not root.anywhere,
            hidden=tuple(in_ripgrep for text in self._paths.scope.deny.texts for in_ripgrep in hiding(text)),
            keep=lambda path: not self._paths.is_denied(posixpath.join(root.real, path)),
            roots=self._paths.roots,
        )

    def _named(self, place: SearchPlace, path: str) -> str:
        """How a path that was found is called: from the first root, absolute only outside it."""
        return self._paths.from_first(posixpath.join(place.root_path, path))

    def tree(
        self, path: WorkPath, *, max_depth: int, max_entries: int, accept: Callable[[str, str, Kind], bool]
    ) -> Tree:
        """What is beneath a directory, in order and bounded. `accept(path, name, kind)` says what counts."""
        top = self._paths.relative(path)
        with open_directory(self._paths, path) as directory:
            start = 0 if top == "." else len(top) + 1

            def admit(inside: str, name: str, kind: Kind) -> bool:
                return accept(inside, name, kind) and not self._paths.is_denied(f"{directory.real}/{inside[start:]}")

            chosen = admit if self._paths.hides else accept
            return walk(directory.fd, top, max_depth=max_depth, max_entries=max_entries, accept=chosen)


def _joined(base: WorkPath, below: str) -> WorkPath:
    """A path that starts in another; nothing below it is the other itself."""
    if not below:
        return base
    start = base.judged or ("" if base == HERE else base.text)
    return WorkPath.parse(posixpath.join(start, below))
