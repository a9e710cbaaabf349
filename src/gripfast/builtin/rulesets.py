"""Ready-made rule sets: `read-only`, `workspace`, `trusted`. docs/guides/choosing-rules.md says what each allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from gripfast.builtin import tools as tool_list
from gripfast.call.decision import Action, PermissionRule
from gripfast.call.rules import Permissions


def _listed(text: str) -> list[str]:
    return [" ".join(item.split()) for item in text.split(",")]


# Programs that only look, with the options their tables know.
LOOKING = _listed(
    """ls, cat, tac, nl, head, tail, wc, stat, file, du, df, tree, basename, dirname, realpath, readlink, md5sum,
    sha1sum, sha256sum, sha512sum, cksum, cmp, diff, comm, strings, od, hexdump, xxd, base64, sort, uniq, cut, tr,
    paste, join, fold, fmt, column, rev, expand, unexpand, sed, awk, jq, grep, egrep, fgrep, rg, find, fd, fdfind,
    echo, printf, pwd, true, false, cd, test, type, which, whereis, date, id, whoami, groups, uname, hostname,
    nproc, uptime, free, ps, pgrep, lsof, ss, netstat, jobs, seq, sleep, command -v, unzip -l"""
)
LISTING_ARCHIVES = [f"tar {letters}" for letters in "-tf tf -tzf tzf -tvf tvf -tzvf tzvf -tvzf".split()]
SHELL_WORDS = _listed(":, exit, return, break, continue, wait, set, read, export")
LOOKING_EXACTLY = _listed("ps aux, ps -ef, git --version, node --version, node -v")
GIT_LOOKING = _listed(
    """status, diff, log, show, whatchanged, reflog, shortlog, branch, tag, rev-parse, rev-list, ls-files, ls-tree,
    blame, describe, grep, cat-file, merge-base, show-ref, for-each-ref, name-rev, check-ignore, diff-tree,
    count-objects, remote, remote get-url, stash list, stash show, worktree list, config user.name, config
    user.email"""
)

# They run the project's own code, or write in the workspace.
WORKING = _listed(
    """pytest, python -m pytest, python3 -m pytest, python -m unittest, python3 -m unittest, python -m mypy, python3
    -m mypy, python -m json.tool, python3 -m json.tool, python -m py_compile, python3 -m py_compile, python -m
    compileall, python3 -m compileall, python -m venv, python3 -m venv, uv venv, ruff check, ruff format, mypy,
    pyright, black, isort, flake8, tox, nox, uv sync, uv lock, uv pip list, uv pip show, uv pip freeze,
    uv pip check, uv pip tree, uv pip compile, uv pip install, uv pip sync, uv pip uninstall, pip install,
    pip3 install, pip list, pip show, pip freeze,
    npm test, npm run, npm ci, npm install, npm i, npm ls, npm root, npm outdated, npm audit, npm
    view, npm info, npm explain, npm pack --dry-run, npx, pnpm install, pnpm run, pnpm test, pnpm build, pnpm lint,
    yarn install, yarn run, yarn test, yarn build, yarn lint, bun install, bun test, bun run, tsc, tsgo, tsx,
    ts-node, eslint, prettier, vitest, jest, mocha, biome, cargo test, cargo check, cargo build, cargo clippy, cargo
    fmt, cargo tree, cargo run, cargo doc, cargo bench, cargo update, cargo metadata, go test, go build, go vet, go
    list, go run, go mod tidy, go mod download, go mod verify, go fmt, go doc, gofmt, gradle, ./gradlew, mvn,
    ./mvnw, make, mkdir, touch, rmdir, cp, mv, tee, sed -i, sed -i.bak, sed -E -i, sed -r -i, sed -Ei, git add, git
    commit, git switch, git checkout, git stash, git stash push, git stash pop, git stash apply, git merge, git
    rebase, git restore --staged, git reset, git mv, git worktree add, git worktree prune, curl, docker ps, docker
    images, docker logs, kill"""
)
ACTIVATING = [
    f"{word} {place}/bin/activate" for word in ("source", ".") for place in (".venv", "venv", "./.venv", "./venv")
]
# Where the project's code may run, the project's own programs may also say which they are. rustup and go fetch the
# version that the project names, so these say it nowhere else.
SAYING_VERSIONS = _listed("cargo --version, rustc --version, go version")
WORKING_ANYHOW = _listed("git tag ?*, git tag -a ?* -m ?*")  # plain words, so no other options
REMOVING = _listed("rm")  # only what the record can bring back
REMOVING_TREES = _listed("rm -r, rm -R, rm -f, rm -rf, rm -fr, rm -Rf")

# What reaches beyond the machine or the user's rights: asked about even where everything else is allowed.
NOT_LIGHTLY = _listed(
    """sudo, sudoedit, su, doas, pkexec, mkfs*, fdisk, parted, shutdown, reboot, poweroff, halt, crontab, systemctl,
    ssh, sshpass, scp, rsync, sftp, twine, git push, git send-pack, git subtree push, git lfs push, git send-email,
    hg push, svn commit, svn ci, bzr push, jj git push, cargo publish, gem push, poetry publish, uv publish, pdm
    publish, hatch publish, flit publish, bun publish, npm *publish*, npm *deploy*, npm *release*, yarn *publish*,
    yarn *deploy*, yarn *release*, pnpm *publish*, pnpm *deploy*, pnpm *release*, make *publish*, make *deploy*,
    make *release*, mvn *deploy*, mvn release*, mvnw *deploy*, mvnw release*, gradle *publish*, gradle *deploy*,
    gradle *upload*, gradle release, gradlew *publish*, gradlew *deploy*, gradlew *upload*, gradlew release, docker
    push, docker --push, podman push, podman --push, gh, glab, kubectl, helm, terraform, vercel, netlify, wrangler,
    firebase, aws, gcloud, az"""
)
# What can't be taken back: asked about as well, unless nothing is kept.
LOSING = _listed(
    """dd, shred, rm -*, find -delete, git stash clear, git stash drop, git clean, git reset, git filter-branch, git
    update-ref, git reflog expire, git reflog delete, git prune, git gc --p*, git gc * --p*, chmod -*, chown"""
)
TAKEN_BACK = ["git reset *"]  # with the options of its table, which leave every file as it is
# A shell that is given no script runs what it is fed.
SHELLS_THAT_READ = [
    f"{shell}{words}"
    for shell in ("sh", "bash", "dash", "zsh", "ksh", "fish")
    for words in ("", " -", " - *", " -?", " -??", " -s *", " /dev/stdin *", " /dev/fd/0 *", " /proc/self/fd/0 *")
]


@lru_cache(maxsize=8)
def rule_set(name: str) -> Permissions:
    """A ready-made rule set by name."""
    if name not in RULE_SETS:
        raise ValueError(f"no rule set {name!r}; there are {', '.join(RULE_SETS)}")
    return RULE_SETS[name]()


_own = PermissionRule.of_our_own


def _of_the_session() -> list[str]:
    """The tools that touch nothing but the session itself."""
    return [tool.name for tool in tool_list.TOOLS if tool.traits.session_only]


def _for_tools(tools: Iterable[str], action: Action) -> list[PermissionRule]:
    return [_own(tool, "*", action) for tool in tools]


def _for_commands(patterns: Iterable[str], action: Action) -> list[PermissionRule]:
    return [_own("effect:run", pattern, action) for pattern in patterns]


def _versions() -> list[str]:
    from gripfast.call.shell.programs import VERSIONS  # noqa: PLC0415 - tables of options, which `trusted` has no use for

    return sorted(VERSIONS)


def _looking() -> list[PermissionRule]:
    programs = [f"{program} *" for program in (*LOOKING, *LISTING_ARCHIVES, *SHELL_WORDS)]
    git = [f"git {command} *" for command in GIT_LOOKING]
    return _for_commands([*programs, *LOOKING_EXACTLY, *_versions(), *git], "allow")


def _working() -> list[PermissionRule]:
    programs = (*WORKING, *ACTIVATING, *_versions(), *SAYING_VERSIONS)
    anyhow = [_own("effect:run", pattern, "allow", any_options=True) for pattern in WORKING_ANYHOW]
    return [*_for_commands([f"{program} *" for program in programs], "allow"), *anyhow]


def _read_only() -> Permissions:
    tools = _for_tools(["effect:read", *_of_the_session()], "allow")
    return Permissions("deny", [*tools, *_looking()], inside_only=True, remark="this session is read-only")


def _removing(programs: Iterable[str]) -> list[PermissionRule]:
    return [_own("effect:run", f"{program} *", "allow", undoable=True) for program in programs]


def _workspace() -> Permissions:
    tools = _for_tools(["effect:read", "effect:write", *_of_the_session()], "allow")
    rules = [*tools, *_looking(), *_working(), *_removing(REMOVING)]
    return Permissions("ask", rules, inside_only=True, unknown_reads=True)


def _trusted() -> Permissions:
    not_lightly = [f"{program} *" for program in NOT_LIGHTLY]
    asked = _for_commands([*not_lightly, *SHELLS_THAT_READ], "ask")
    losing = [_own("effect:run", f"{program} *", "ask", undoable=True) for program in LOSING]
    return Permissions("allow", [*_removing(REMOVING_TREES), *_for_commands(TAKEN_BACK, "allow"), *asked, *losing])


IN_WORDS: Mapping[str, str] = {
    "read-only": "commands may only look at the workspace",
    "workspace": "what leaves the workspace and unknown programs are asked about",
    "trusted": "what can't be undone or reaches other machines (push, publish, sudo, ssh) is asked about",
}
"""What each set holds back, for the model and for people, after `Rules: `."""

RULE_SETS: Mapping[str, Callable[[], Permissions]] = {
    "read-only": _read_only,
    "workspace": _workspace,
    "trusted": _trusted,
}
