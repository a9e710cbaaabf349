"""Which writes of a command the sandbox refused, found in what the command printed and compared with the walls."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from gripfast.host.files.closed_places import OWN_CODE, ClosedPlaces
from gripfast.host.files.scope import Scope
from gripfast.host.shell.walls import MountKind, Walls
from gripfast.records import dataclass
from gripfast.text.below import is_below

Why: TypeAlias = Literal["outside", "protected", "git", "own", "hidden", "unknown"]

_MOST_LINES, _LONGEST_LINE = 60, 2000
_BEFORE, _AFTER = 3, 2
# EROFS, EACCES and EBUSY (a mounted name can't be replaced) as programs print them; EPERM is what macOS says.
_SIGNS = re.compile(
    rb"read-only file ?system|permission denied|device or resource busy|operation not permitted"
    rb"|\b(?:EROFS|EACCES|EBUSY|EPERM)\b|\[Errno (?:13|16|30)\]|os error (?:13|16|30)\b",
    re.IGNORECASE,
)
# The same for a first look at much output: parts that every spelling has.
_HINTS = (b"ead-only file", b"ermission denied", b"esource busy", b"EROFS", b"EACCES", b"EBUSY", b"not permitted")
_MOST_BYTES = 64 * 1024 * 1024
_READ_ONLY = re.compile(r"read-only file ?system|\bEROFS\b|\[Errno 30\]|os error 30\b", re.IGNORECASE)
_BUSY = re.compile(r"device or resource busy|\bEBUSY\b|\[Errno 16\]|os error 16\b", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']+'|\"[^\"]+\"|`[^`']+['`]|‘[^’]+’")
_BARE = re.compile(r"[^\s:'\"`‘’,;()\[\]<>|]+")
_MOST_WORDS = 40
_SAID_BY_GIT = re.compile(
    r"(?:error|fatal|warning): (?:unable to (?:unlink|create|write|append)|cannot (?:create|unlink)|failed to remove"
    r"|could not (?:create|unlink|remove))"
)


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A place that a command could not write, and why: it is outside what commands may write, protected by the
    pattern in `detail`, an instruction of git, this program's own, or hidden. `folder` is the directory that would
    have to be writable, `wide` one that can't be: it holds the home directory. `by_git`: it was git that tried."""

    path: str
    why: Why
    detail: str = ""
    folder: str = ""
    wide: bool = False
    by_git: bool = False


class Signs:
    """Collects, from output as it arrives, the lines that report a refusal, and the lines around them."""

    def __init__(self) -> None:
        self._rest = b""
        self._last: list[bytes] = []
        self._follow = 0
        self._lines: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        if len(self._lines) >= _MOST_LINES or self._size > _MOST_BYTES:
            return
        text = self._rest + data
        if not self._follow and not any(hint in text for hint in _HINTS):
            *last, self._rest = text[-_LONGEST_LINE:].split(b"\n")
            self._last = [*self._last, *last][-_BEFORE:]
            return
        *lines, self._rest = text.split(b"\n")
        for line in lines:
            self._take(line[:_LONGEST_LINE])

    def _take(self, line: bytes) -> None:
        if _SIGNS.search(line):
            self._lines += [*self._last, line]
            self._last, self._follow = [], _AFTER
        elif self._follow:
            self._lines.append(line)
            self._follow -= 1
        else:
            self._last = [*self._last, line][-_BEFORE:]

    def lines(self) -> list[str]:
        """The lines so far, at most sixty."""
        if self._rest:
            self._take(self._rest[:_LONGEST_LINE])
            self._rest = b""
        return [line.decode(errors="replace") for line in self._lines[:_MOST_LINES]]


def refusals(lines: Sequence[str], walls: Walls, scope: Scope, level: str, directory: str) -> list[RefusedWrite]:
    """The places named in these lines that the walls closed. Nothing is said of a place where the user's own
    permissions would have refused it too."""
    if not lines or level == "none":
        return []
    found = {refusal.path: refusal for refusal in _named(lines, walls, scope, level, directory)}
    if not found and any(_READ_ONLY.search(line) for line in lines):
        return [RefusedWrite("", "unknown")]
    return list(found.values())


def _named(lines: Sequence[str], walls: Walls, scope: Scope, level: str, directory: str) -> Iterator[RefusedWrite]:
    """A line that reports a refusal usually names the place; if not, the lines around it may."""
    judge = _Judge(walls, scope, level)
    telling = [line for line in lines if _SIGNS.search(line.encode(errors="replace"))]
    found = [one for line in telling for one in _refused(line, judge, directory, busy=bool(_BUSY.search(line)))]
    yield from found
    if not found and _READ_ONLY.search("\n".join(telling)):
        for line in lines:
            yield from _refused(line, judge, directory, busy=False)


def _refused(line: str, judge: _Judge, directory: str, *, busy: bool) -> Iterator[RefusedWrite]:
    for word in _words(line):
        path = os.path.normpath(os.path.join(directory, os.path.expanduser(word)))
        relative = not word.startswith(("/", "~", "../"))
        # Most words of a line are not paths.
        if relative and not (os.path.lexists(path) or ("/" in word and os.path.isdir(os.path.dirname(path)))):
            continue
        refusal = judge.judged(path, relative=relative, busy=busy)
        if refusal is not None:
            yield replace(refusal, by_git=refusal.why == "protected" and bool(_SAID_BY_GIT.match(line.lstrip())))


def _words(line: str) -> list[str]:
    """What may be a path in a line: what is in quotes, then single words."""
    quoted = [found[0][1:-1] for found in _QUOTED.finditer(line)]
    rest = [found[0] for found in _BARE.finditer(_QUOTED.sub(" ", line))]
    words = [word.rstrip(".") for word in (*quoted, *rest)][:_MOST_WORDS]
    return [word for word in words if word.strip("/.") and "\0" not in word and len(word) < _LONGEST_LINE]


class _Judge:
    def __init__(self, walls: Walls, scope: Scope, level: str) -> None:
        self._walls, self._scope, self._level = walls, scope, level
        self._places = ClosedPlaces(scope)
        self._kinds: dict[str, MountKind] = {mount.path: mount.kind for mount in walls.mounts}

    def judged(self, path: str, *, relative: bool, busy: bool) -> RefusedWrite | None:
        """Why commands can't write a path, if it is the walls that keep them from it."""
        folder = _existing(path)
        real = os.path.join(os.path.realpath(folder), os.path.relpath(path, folder)) if folder != path else path
        real = os.path.realpath(path) if os.path.exists(path) else os.path.normpath(real)
        kind = self._kind(real)
        if kind == "write" and not (busy and real in self._kinds):
            return None
        if relative and kind is None:
            return None
        return self._refusal(real, kind, os.path.realpath(folder))

    def _kind(self, real: str) -> MountKind | None:
        """What holds for a place: the word of the innermost mount around it; None: commands only read there."""
        if self._level == "landlock":
            return self._kind_by_ruleset(real)
        if is_below(real, *self._walls.caches.shown) and not self._is_mounted(real):
            return None  # what the user has in a cache directory, beside what commands have for themselves
        if self._level == "bwrap" and is_below(real, "/tmp", "/dev", "/proc", "/run") and not self._is_mounted(real):
            return "write"  # private, or the kernel's: what fails there is not about a directory of the user
        caches = (place for _, place in self._walls.caches.over)
        if is_below(real, self._walls.temporary, *caches, *self._walls.caches.folders):
            return "write"
        if self._walls.everywhere and not self._is_mounted(real):
            return "write"
        above = real
        while above not in self._kinds and above != "/":
            above = os.path.dirname(above)
        return self._kinds.get(above)

    def _is_mounted(self, real: str) -> bool:
        return any(is_below(real, path) for path in self._kinds)

    def _kind_by_ruleset(self, real: str) -> MountKind | None:
        walls = self._walls
        if is_below(real, *walls.hidden):
            return "hide"
        write = (*walls.allowed, walls.temporary, *walls.caches.folders, "/dev", "/proc")
        return "write" if is_below(real, *write) else None

    def _refusal(self, real: str, kind: MountKind | None, folder: str) -> RefusedWrite | None:
        if kind == "hide":
            return RefusedWrite(real, "hidden", self._places.denied(real) or "")
        if not os.access(folder if not os.path.exists(real) else real, os.W_OK):
            return None  # the user can't write there either
        if kind is None:
            place = real if os.path.isdir(real) else folder
            home = os.path.realpath(os.path.expanduser("~"))
            return RefusedWrite(real, "outside", folder=place, wide=is_below(home, place))
        reason = self._places.protected(real) or ""
        if reason == OWN_CODE:
            return RefusedWrite(real, "own")
        if "/.git/" in f"{real}/" or not reason:
            return RefusedWrite(real, "git", reason.strip("`"))
        return RefusedWrite(real, "protected", reason.strip("`"))


def _existing(path: str) -> str:
    """The path itself or the nearest directory above it that exists."""
    while not os.path.lexists(path) and path != "/":
        path = os.path.dirname(path)
    return path if os.path.isdir(path) else os.path.dirname(path)
