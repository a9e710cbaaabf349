"""The settings of a git configuration that run nothing, so that a repository made by a command may keep them."""

from __future__ import annotations

import re

_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"([^"\\\n]*)")?\][ \t]*\Z')
_SETTING = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*?))?[ \t]*\Z")
_HARMLESS = frozenset(
    [
        *(
            f"core.{name}"
            for name in (
                "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks "
                "worktree autocrlf eol safecrlf abbrev sparsecheckout sparsecheckoutcone longpaths "
                "quotepath sharedrepository"
            ).split()
        ),
        *(f"remote.*.{name}" for name in "url pushurl fetch tagopt promisor partialclonefilter mirror prune".split()),
        *(f"branch.*.{name}" for name in "remote merge rebase pushremote description".split()),
        *(f"submodule.*.{name}" for name in "url active branch update ignore".split()),
        *"submodule.active submodule.recurse user.name user.email init.defaultbranch pull.rebase pull.ff".split(),
        *"push.default push.autosetupremote fetch.prune merge.conflictstyle diff.algorithm diff.renames".split(),
        *"extensions.objectformat extensions.partialclone extensions.refstorage extensions.worktreeconfig".split(),
        *"lfs.repositoryformatversion index.version gc.auto rerere.enabled advice.detachedhead".split(),
    ]
)
_RUNS = re.compile(r"\s*(?:!|ext::|fd::)|.*\\\Z", re.IGNORECASE)


def harmless_part(text: str) -> tuple[str, tuple[str, ...]]:
    """A configuration without what isn't known to run nothing, and the names of what was left out.

    A line that isn't simple (a value that continues on the next line, a setting on a section's line) is omitted too.
    """
    kept: list[str] = []
    dropped: list[str] = []
    section: tuple[str, str | None] | None = None
    for line in text.split("\n"):
        if not line.strip() or line.lstrip()[:1] in "#;":
            kept.append(line)
        elif header := _SECTION.match(line.strip()):
            section = (header[1].lower(), header[2])
            kept.append(line)
        elif section is not None and (setting := _SETTING.match(line)) and _is_harmless(section, setting):
            kept.append(line)
        else:
            dropped.append(_name(section, line))
            section = None if "[" in line.split("=")[0] else section
    return "\n".join(kept), tuple(dropped)


def _is_harmless(section: tuple[str, str | None], setting: re.Match[str]) -> bool:
    middle = "" if section[1] is None else ".*"
    if f"{section[0]}{middle}.{setting[1].lower()}" not in _HARMLESS:
        return False
    return not _RUNS.match(setting[2] or "")


def _name(section: tuple[str, str | None] | None, line: str) -> str:
    key = line.split("=")[0].strip()[:80]
    return key if section is None else ".".join(filter(None, (section[0], section[1], key)))
