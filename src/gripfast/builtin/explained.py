"""The notes under a command's output that explain why something did not work, and what would."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from shlex import quote

from gripfast.host.files.closed_places import ClosedPlaces
from gripfast.host.files.fs import ScopedFs
from gripfast.host.shell.ended import Ended
from gripfast.host.shell.network import Network
from gripfast.host.shell.not_found import programs_named
from gripfast.host.shell.refused import RefusedWrite
from gripfast.host.shell.stuck import StuckFile
from gripfast.text.escape import escaped

_MOST = 3
_MOST_NAMES = 8
_UNREACHED = re.compile(
    r"could not resolve host|name resolution|network is unreachable|ENOTFOUND|EAI_AGAIN|ENETUNREACH|"
    r"name or service not known|failed to lookup address|dns error|no such host",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(r"^(?:\S*: )?(?:line \d+: |\d+: )?([^\s:]+): (?:command )?not found$", re.MULTILINE)


def refused_writes(
    refused: Sequence[RefusedWrite], fs: ScopedFs, sandbox: str, *, may_leave: bool = False
) -> Iterator[str]:
    """Notes on writes that the sandbox refused: the place, the reason, and the setting that would allow it."""
    for refusal in refused[:_MOST]:
        if refusal.why == "unknown":
            yield f"[{sandbox}]"
        else:
            yield f"[the sandbox refused to write {escaped(fs.show_real(refusal.path))}: {_reason(refusal)}]"
    if may_leave and any(refusal.why in ("outside", "git", "unknown") for refusal in refused):
        yield '[if it is necessary: Bash(command, outside_sandbox="why") asks the user]'


def stuck_files(
    stuck: Sequence[StuckFile], refused: Sequence[RefusedWrite], fs: ScopedFs, *, may_leave: bool = False
) -> Iterator[str]:
    """One note on the protected files that git could not change: it moved on without them, or stopped."""
    paths = [*dict.fromkeys([*(file.path for file in stuck), *(one.path for one in refused if one.by_git)])]
    if not paths:
        return
    shown = [escaped(fs.show_real(path)) for path in paths[:_MOST_NAMES]]
    more = f" and {len(paths) - _MOST_NAMES} more" if len(paths) > _MOST_NAMES else ""
    yield (
        f"[git could not change {', '.join(shown)}{more}: protected and unchanged. Don't commit that; "
        f"{_way_on(paths, stuck, fs, may_leave=may_leave)}]"
    )


def _way_on(paths: Sequence[str], stuck: Sequence[StuckFile], fs: ScopedFs, *, may_leave: bool) -> str:
    """How to finish what git began. A line that runs nothing but git can change what git may move."""
    if not all(map(ClosedPlaces(fs.scope).may_move, paths)):
        remedy = (
            'the same command with outside_sandbox="why" asks the user'
            if may_leave
            else "ask the user to run it in their own terminal"
        )
        return f"git may have stopped half-way, see git status. To do it, {remedy}"
    moved_on = {file.path for file in stuck if not file.is_gone}
    if moved_on.issuperset(paths):
        names = " ".join(quote(fs.show_real(path)) for path in paths)
        return f"run this as a line of its own: git checkout -- {names}"
    return (
        "git may have stopped half-way, see git status. To do it, run git in a line of its own, with no other "
        "program and not in a script; if files of the other side are left, first: git stash -u (it puts aside your "
        "changes too)"
    )


def _reason(refusal: RefusedWrite) -> str:
    match refusal.why:
        case "outside":
            return _outside(refusal)
        case "protected":
            return (
                "other programs run what is written there. Write and Edit can ask the user for one file; "
                f"the user can allow all with {_setting('unprotect', refusal.detail)}"
            )
        case "git":
            return (
                "git would run or follow what it says, also outside the sandbox. Ask the user to run the command; "
                f"for a setting in one command use git -c NAME=VALUE. {_setting('unprotect', '.git')} in the user's "
                "configuration opens all of .git"
            )
        case "own":
            return "it is part of what gripfast itself runs, so no command may change it"
        case _:
            return f"it is closed to commands by {refusal.detail or 'the sandbox'}"


def _outside(refusal: RefusedWrite) -> str:
    where, folder = "it is outside the workspace", refusal.folder
    if refusal.wide:
        return f"{where}, and {escaped(folder)} is too wide to be made writable; use the workspace or $TMPDIR"
    return f"{where}; the user can allow it with {_setting('writable', folder)} in the configuration"


def unreached_names(text: str, ended: Ended, network: Network) -> Iterator[str]:
    """Notes on names that commands may not reach."""
    for name in ended.unreached[:_MOST]:
        yield (
            f"[{escaped(name)} was not reached: commands have {network.description}; "
            f"the user can add it to `network` in the configuration]"
        )
    if network.kind == "off" and _UNREACHED.search(text):
        yield '[commands have no network; the user can allow names with network = ["example.org"]]'


def _setting(key: str, value: str) -> str:
    return f"{key} = [{json.dumps(value, ensure_ascii=False)}]"


def not_found(text: str, ended: Ended, fs: ScopedFs) -> Iterator[str]:
    """Notes on programs that were not found by name, if there is one to use instead."""
    names = dict.fromkeys(_NOT_FOUND.findall(text[-20_000:])) if "not found" in text else {}
    if "apply_patch" in names or "applypatch" in names:
        yield "[apply_patch is a tool and not a program: call the tool, or Edit or Write if it is not offered]"
    for name in list(names)[:_MOST]:
        found = programs_named(name, ended.directory or fs.roots[0], fs.roots)
        if found:
            yield f"[{escaped(name)} is not on PATH; use {' or '.join(escaped(one) for one in found)}]"
