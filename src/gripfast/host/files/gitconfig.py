"""The settings of a git configuration that run nothing, so that a command may make them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from gripfast.records import dataclass
from gripfast.text.below import is_below

_SECTION = r'\[([A-Za-z0-9.-]+)(?:[ \t]+"([^"\\\n]*)")?\][ \t]*\Z'
_SETTING = r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*?))?[ \t]*\Z"
_WORKTREE = r"(?i)[ \t]*worktree[ \t]*(?:=(.*))?\Z"
_HARMLESS = frozenset(
    [
        *(
            f"core.{name}"
            for name in (
                "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks "
                "worktree autocrlf eol safecrlf abbrev sparsecheckout sparsecheckoutcone longpaths "
                "quotepath sharedrepository whitespace commentchar compression"
            ).split()
        ),
        *(f"remote.*.{name}" for name in "url pushurl fetch tagopt promisor partialclonefilter mirror prune".split()),
        *(f"branch.*.{name}" for name in "remote merge rebase pushremote description".split()),
        *(f"submodule.*.{name}" for name in "url path active branch update ignore shallow".split()),
        *"submodule.active submodule.recurse user.name user.email init.defaultbranch pull.rebase pull.ff".split(),
        *"push.default push.autosetupremote fetch.prune merge.conflictstyle diff.algorithm diff.renames".split(),
        *"extensions.objectformat extensions.partialclone extensions.refstorage extensions.worktreeconfig".split(),
        *"diff.colormoved diff.mnemonicprefix log.date log.decorate commit.verbose tag.sort branch.sort".split(),
        *"branch.autosetupmerge branch.autosetuprebase push.followtags fetch.prunetags merge.ff".split(),
        *"rebase.autostash rebase.autosquash rebase.updaterefs rerere.autoupdate".split(),
        *"lfs.repositoryformatversion index.version gc.auto rerere.enabled advice.detachedhead".split(),
    ]
)
# Sections of which git reads nothing that it runs. A signing key is left out: it goes to the program that signs.
_HARMLESS_SECTIONS = r"(?:color|column|advice)\.(?:\*\.)?[a-z0-9-]+|user\.(?!signingkey)[a-z0-9-]+"
# A program, or a transport that is one: `ext::sh -c ...`, or anything that names a `git-remote-...`; or an option of
# one, since git and others pass names and values on as arguments.
_RUNS = r"(?i)\s*(?:[!-]|[A-Za-z0-9+.-]*::|(?!(?:https?|ssh|git|git\+ssh|ssh\+git|ftps?|file)://)[\w+.-]+://)"
_OPTION_AS_HOST = r"(?:://|@)-"
# Where git fetches from and pushes to; a push to a directory runs the hooks in it.
_PLACES = frozenset("remote.*.url remote.*.pushurl branch.*.remote branch.*.pushremote submodule.*.url".split())
# These turn a repository that is there already into another one, or its next push into one that deletes.
_ONLY_IN_NEW = frozenset(
    {"core.worktree", "core.bare", "core.sharedrepository", "core.repositoryformatversion", "remote.*.mirror"}
)
LeadsAstray: TypeAlias = Callable[[str], bool]
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}


@dataclass(frozen=True, slots=True)
class Judged:
    """What may stay of a changed configuration, and the names of what may not."""

    text: str
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """A line; `name` is empty where it sets nothing."""

    text: str
    name: str = ""
    shape: str = ""
    value: str | None = None
    shown: str = ""
    between: str = ""  # the quoted part of the section's name

    def is_harmless(self, leads_astray: LeadsAstray) -> bool:
        if not self.name:
            return True
        # A word without a value may be what is left of a line that went on.
        known = self.shape in _HARMLESS or (self.value and re.fullmatch(_HARMLESS_SECTIONS, self.shape) is not None)
        if not known or self.value is None or re.match(_RUNS, self.value):
            return False
        if re.search(_OPTION_AS_HOST, self.value) or re.match(_RUNS, self.between):
            return False
        return self.shape not in _PLACES or not leads_astray(self.value)


def _nowhere(_: str) -> bool:
    return False


def changed_part(before: str, after: str, leads_astray: LeadsAstray = _nowhere) -> Judged:
    """What may stay of the changes that a command made to a configuration. What the user had set stays as it was: if
    a command took that out or moved it, nothing of its changes stays. `leads_astray` says of a URL that it leads to
    where nobody looks for hooks."""
    old, new = list(_lines(before)), list(_lines(after))

    def is_free(line: _Line) -> bool:
        return line.shape not in _ONLY_IN_NEW and line.is_harmless(leads_astray)

    owned = [(line.name, line.text.strip()) for line in old if not is_free(line)]
    waiting = list(owned)
    kept: list[_Line] = []
    refused: list[str] = []
    for line in new:
        if is_free(line):
            kept.append(line)
        elif waiting and waiting[0] == (line.name, line.text.strip()):
            kept.append(line)
            del waiting[0]
        else:
            refused.append(line.shown)
    if waiting or "\0" in after or any(line.text.rstrip("\r").endswith("\\") for line in old):
        return Judged(before, tuple(refused or [name for name, _ in waiting] or ["not plain"]))
    left = _without_empty_sections(kept, old) if refused else kept
    return Judged("\n".join(line.text for line in left), tuple(refused))


def _without_empty_sections(lines: Sequence[_Line], old: Sequence[_Line]) -> list[_Line]:
    """Leaves out sections that were not there before and that set nothing now."""
    there = {line.text.strip() for line in old if not line.name}
    left: list[_Line] = []
    is_empty = True
    for line in reversed(lines):
        is_header = not line.name and re.match(_SECTION, line.text.strip()) is not None
        if not (is_header and is_empty and line.text.strip() not in there):
            left.append(line)
        is_empty = is_header or (is_empty and not line.name)
    return left[::-1]


def urls_in(text: str) -> Iterator[str]:
    """What a configuration says about where git fetches from and pushes to."""
    return (line.value for line in _lines(text) if line.shape in _PLACES and line.value is not None)


def settings_in(text: str) -> Iterator[tuple[str, str]]:
    """The settings of a configuration, with `*` for the quoted part of a section's name."""
    return ((line.shape, line.value) for line in _lines(text) if line.name and line.value is not None)


def harmless_part(text: str, leads_astray: LeadsAstray) -> tuple[str, tuple[str, ...]]:
    """A configuration without what isn't known to run nothing, and the names of what was left out.

    A line that isn't simple (a value that continues on the next line, a setting on a section's line) is omitted too.
    """
    lines = list(_lines(text))
    dropped = tuple(line.shown for line in lines if not line.is_harmless(leads_astray))
    return "\n".join(line.text for line in lines if line.is_harmless(leads_astray)), dropped


def _lines(text: str) -> Iterator[_Line]:
    section: tuple[str, str | None] | None = None
    for line in text.split("\n"):
        plain = line.removesuffix("\r")
        if not plain.strip() or plain.lstrip()[:1] in "#;":
            yield _Line(line)
        elif header := re.match(_SECTION, plain.strip()):
            section = (header[1].lower(), header[2])
            yield _Line(line)
        elif section is not None and (setting := re.match(_SETTING, plain)):
            middle, key = "" if section[1] is None else ".*", setting[1].lower()
            name = ".".join(filter(None, (section[0], section[1], key)))
            shape, shown = f"{section[0]}{middle}.{key}", _name(section, plain)
            yield _Line(line, name, shape, _value(setting[2] or ""), shown, section[1] or "")
        else:
            yield _Line(line, "?", "?", None, _name(section, plain))
            section = None if "[" in plain.split("=")[0] else section


def _value(raw: str) -> str | None:
    """A value as git understands it, without quotes and comment. None: it goes on in the next line, or is faulty."""
    value: list[str] = []
    quoted, letters = False, iter(raw)
    for letter in letters:
        if letter == "\\":
            escaped = _ESCAPES.get(next(letters, ""))
            if escaped is None:
                return None
            value.append(escaped)
        elif letter == '"':
            quoted = not quoted
        elif letter in "#;" and not quoted:
            break
        else:
            value.append(letter)
    return None if quoted or raw.endswith("\\") else "".join(value).strip()


def without_worktree_outside(text: str, directory: str, roots: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """A harmless configuration of a git directory without a `core.worktree` that leads out of the roots."""
    kept: list[str] = []
    led: list[str] = []
    for line in text.split("\n"):
        setting = re.match(_WORKTREE, line)
        if setting is None or _is_inside((setting[1] or "").strip(), directory, roots):
            kept.append(line)
        else:
            led.append("core.worktree")
    return "\n".join(kept), tuple(led)


def _is_inside(value: str, directory: str, roots: Sequence[str]) -> bool:
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    if re.search(r'["\\#;]', value):
        return False  # not plain
    return is_below(os.path.realpath(os.path.join(directory, value)), *roots)


def _name(section: tuple[str, str | None] | None, line: str) -> str:
    key = line.split("=")[0].strip()[:80]
    return key if section is None else ".".join(filter(None, (section[0], section[1], key)))
