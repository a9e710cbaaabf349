"""What a search is asked and what it answers: records only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from gripfast.host.search.hits import FileHits
from gripfast.records import dataclass

OutputMode = Literal["files_with_matches", "content", "count"]


@dataclass(frozen=True, slots=True)
class SearchPlace:
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
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class GrepResult:
    """The files asked for, in path order, and the true totals. `partial`: time ran out, there may be more."""

    files: tuple[FileHits, ...]
    total_files: int
    total_matches: int
    binary_files: int = 0
    unreadable: int = 0
    partial: bool = False
    unknown_encoding: str | None = None
    """The configured encoding, where ripgrep does not know it: files in it were searched as bytes."""


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
