"""Ready-made rules: `read-only`, `workspace`, `trusted`. The guide choosing-rules says what each lets through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from holdfast.call.decision import Action, PermissionRule
from holdfast.call.rules import Permissions


def _listed(text: str) -> list[str]:
    return [" ".join(item.split()) for item in text.split(",")]


# Programs that only look, with the options their tables know.
LOOKING = _listed(
    """ls, cat, tac, nl, head, tail, wc, stat, file, du, df, tree, basename, dirname, realpath, readlink, md5sum,
    sha1sum, sha256sum, cksum, cmp, diff, comm, strings, od, hexdump, xxd, sort, uniq, cut, tr, paste, join,
    fold, fmt, column, rev, expand, unexpand, sed, jq, grep, egrep, fgrep, rg, find, fd, fdfind, echo, printf,
    pwd, true, false, cd, test, type, which, whereis, date, id, whoami, groups, uname, hostname, nproc, uptime,
    free, ps, seq, sleep, command -v"""
)
LOOKING_EXACTLY = _listed(
    """ps aux, ps -ef, git --version, python --version, python3 --version, python -V, python3 -V, node --version,
    node -v, npm --version, npm -v, cargo --version, rustc --version, go version, ruff --version"""
)
GIT_LOOKING = _listed(
    """status, diff, log, show, whatchanged, reflog, shortlog, branch, tag, rev-parse, rev-list, ls-files, ls-tree,
    blame, describe, grep, cat-file, merge-base, show-ref, for-each-ref, name-rev, check-ignore, diff-tree,
    count-objects, remote, remote get-url, stash list, stash show, worktree list"""
)

# They run the project's own code, or write in the workspace.
WORKING = _listed(
    """pytest, python -m pytest, python3 -m pytest, ruff check, ruff format, mypy, pyright, npm test, npm ls, cargo
    test, cargo check, cargo build, cargo clippy, cargo fmt, cargo tree, go test, go build, go vet, go list,
    gofmt, mkdir, touch, git add"""
)
MAKE_TARGETS = ["", "all", "build", "check", "docs", "fmt", "format", "lint", "test", "tests", "typecheck", "unit"]
NPM_SCRIPTS = ["build", "check", "format", "lint", "test", "typecheck"]

# What can't be taken back, or reaches beyond the machine: asked about even where everything else is allowed.
NOT_LIGHTLY = _listed(
    """sudo, su, doas, pkexec, dd, shred, mkfs*, fdisk, parted, shutdown, reboot, poweroff, halt, crontab,
    systemctl, ssh, scp, rsync, sftp, twine, rm -*, git push, git clean, git reset, git filter-branch, git
    update-ref, npm publish, cargo publish, docker push, gh, chmod -*, chown, kubectl, terraform"""
)
SHELLS_THAT_READ = ["sh", "bash", "dash", "zsh", "ksh", "fish"]

# Tools that touch nothing but the session itself.
OF_THE_SESSION = ["write_todos", "done", "BashOutput", "KillBash", "tool_output_cache", "tool_output_cache_grep"]


@lru_cache(maxsize=8)
def rule_set(name: str) -> Permissions:
    """One of the ready-made sets, by name; made when it is first asked for."""
    if name not in RULE_SETS:
        raise ValueError(f"no rule set {name!r}; there are {', '.join(RULE_SETS)}")
    return RULE_SETS[name]()


def _for_tools(tools: Iterable[str], action: Action) -> list[PermissionRule]:
    return [PermissionRule(tool, "*", action) for tool in tools]


def _for_commands(patterns: Iterable[str], action: Action) -> list[PermissionRule]:
    return [PermissionRule("effect:run", pattern, action) for pattern in patterns]


def _looking() -> list[PermissionRule]:
    programs = [f"{program} *" for program in LOOKING]
    git = [f"git {command} *" for command in GIT_LOOKING]
    return _for_commands([*programs, *LOOKING_EXACTLY, *git], "allow")


def _working() -> list[PermissionRule]:
    make = [f"make {target}".strip() for target in MAKE_TARGETS]
    npm = [f"npm run {script}" for script in NPM_SCRIPTS]
    return _for_commands([*(f"{program} *" for program in WORKING), *make, *npm], "allow")


def _read_only() -> Permissions:
    tools = _for_tools(["effect:read", *OF_THE_SESSION], "allow")
    return Permissions("deny", [*tools, *_looking()], inside_only=True)


def _workspace() -> Permissions:
    tools = _for_tools(["effect:read", "effect:write", *OF_THE_SESSION], "allow")
    return Permissions("ask", [*tools, *_looking(), *_working()], inside_only=True)


def _trusted() -> Permissions:
    not_lightly = [f"{program} *" for program in NOT_LIGHTLY]
    return Permissions("allow", _for_commands([*not_lightly, *SHELLS_THAT_READ], "ask"))


RULE_SETS: Mapping[str, Callable[[], Permissions]] = {
    "read-only": _read_only,
    "workspace": _workspace,
    "trusted": _trusted,
}
