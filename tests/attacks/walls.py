"""Ways round the walls of commands, by the finding they come from: what is there, what is tried, what must hold."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio

from gripfast.errors import ToolError
from gripfast.host.files.scope import Scope
from gripfast.host.shell.sandbox import Sandbox
from gripfast.host.shell.shells import Shells

SECRET = "SECRET-VALUE"
KEPT = "kept"
BOTH, EXACT = ("bwrap", "landlock"), ("bwrap",)


@dataclass(frozen=True)
class Attack:
    """`before` runs outside the sandbox in the workspace, `commands` inside it, one after the other. Afterwards the
    files of `kept` say what they said, those of `gone` are not there, nothing is outside, no secret was shown."""

    finding: str
    before: str
    commands: tuple[str, ...]
    kept: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    levels: tuple[str, ...] = EXACT
    deny: tuple[str, ...] = ()
    inner: str = ""


def _git(more: str = "true") -> str:
    return f"git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m one && {more}"


ATTACKS: tuple[Attack, ...] = (
    Attack("2 nested roots", "mkdir -p i", ("mv i j; ln -s {out} i", "echo x > i/new"), levels=BOTH, inner="i"),
    Attack("2 nested roots, deep", "mkdir -p a/i",
           ("mv a j; mkdir a; ln -s {out} a/i", "echo x > a/i/f"), inner="a/i"),
    Attack("5 the directory above", "mkdir -p .github/workflows; echo kept > .github/workflows/w",
           ("mv .github g; mkdir -p .github/workflows; echo x > .github/workflows/w",), (".github/workflows/w",),
           levels=BOTH),
    Attack("5 a CI file, with git", _git("mkdir -p .github/workflows; echo kept > .github/workflows/w; git add ."),
           ("echo x > .github/workflows/w; git add .", "git checkout -- .", "git status; mv .github g"),
           (".github/workflows/w",), levels=BOTH),
    Attack("5 the repository above", "mkdir -p lib/.git; echo kept > lib/.git/config",
           ("mv lib l; mkdir -p lib/.git; echo x > lib/.git/config",), ("lib/.git/config",), levels=BOTH),
    Attack("5 a link of that name", "mkdir real; echo kept > real/config; ln -s real .git",
           ("rm .git; mkdir .git; echo x > .git/config", "echo x > .git/config"), (".git/config",)),
    Attack("5 what a protected file says", "mkdir .vscode; echo kept > .vscode/tasks.json; echo kept > .envrc",
           ("echo x > .envrc; rm -r .vscode; mkdir .vscode; echo x > .vscode/tasks.json",),
           (".envrc", ".vscode/tasks.json"), levels=BOTH),
    Attack("6 a denied name", "echo SECRET-VALUE > .env",
           ("cat .env; cp .env copy; ln .env hard; cat copy hard",), deny=(".env",)),
    Attack("6 a denied name, deep", "mkdir -p a/b/c; echo SECRET-VALUE > a/b/c/.env",
           ("mv a z; cat a/b/c/.env z/b/c/.env; grep -r SECRET .",), deny=(".env",)),
    Attack("6 below node_modules", "mkdir -p node_modules/p; echo SECRET-VALUE > node_modules/p/.env",
           ("cat node_modules/p/.env; tar c . | strings | grep SECRET",), deny=(".env",)),
    Attack("8 a hook", _git(), ("mv .git/hooks h; mkdir .git/hooks; echo x > .git/hooks/pre-commit",),
           gone=(".git/hooks/pre-commit",)),
    Attack("8 a hook beside the samples", _git(), ("echo x > .git/hooks/pre-commit",),
           gone=(".git/hooks/pre-commit",)),
    Attack("8 commondir", _git(), ("echo ../evil > .git/commondir",), gone=(".git/commondir",), levels=BOTH),
    Attack("8 config.worktree", _git(),
           ("printf '[core]\\n\\tfsmonitor = SECRET-VALUE\\n' > .git/config.worktree", "cat .git/config.worktree"),
           levels=BOTH),
    Attack("8 a .git file to a cache", _git(),
           ("H=$UV_TOOL_DIR/e; mkdir -p s; git init -q --bare $H; "
            "printf '[core]\\n\\tbare = false\\n\\tworktree = '$PWD'/s\\n' > $H/config; echo gitdir: $H > s/.git",),
           gone=("s/.git",), levels=BOTH),
    Attack("8 a remote that leads into .git", _git(), ("git remote add o .git/SECRET-VALUE", "git remote -v"),
           levels=BOTH),
    Attack("8 a remote that leads to a cache", _git(),
           ("git remote add o file://localhost$UV_TOOL_DIR/SECRET-VALUE", "git remote -v"), levels=BOTH),
    Attack("8 a remote in a file", _git(), ("mkdir -p .git/remotes; echo URL: /x > .git/remotes/o",),
           gone=(".git/remotes/o",), levels=BOTH),
    Attack("8 a directory turned into a repository", "mkdir hooks; echo kept > hooks/x; echo kept > config",
           ("mkdir objects refs; echo x > HEAD",), ("hooks/x", "config"), gone=("HEAD",), levels=BOTH),
    Attack("8 a strategy", _git("mkdir .git/rebase-merge"), ("echo x/evil > .git/rebase-merge/strategy",),
           gone=(".git/rebase-merge/strategy",), levels=BOTH),
    Attack("12 a look that fails", _git(),
           ("mkdir -p s/.gitmodules .git/rebase-merge/git-rebase-todo; echo x > .envrc; git init -q r; "
            "rm r/.git/config; mkdir -p r/.git/config r/.git/worktrees/w; mkfifo r/.git/worktrees/w/commondir",),
           gone=(".envrc",), levels=BOTH),
    Attack("12 a link to a cache", "true",
           ("C=$UV_TOOL_DIR/c; mkdir -p $C; echo x > $C/.envrc; ln -s $C s",), gone=("s",), levels=BOTH),
    Attack("12 another name", "true", ("echo x > x; ln x .envrc; echo y > x",), gone=(".envrc",), levels=BOTH),
    Attack("12 another spelling of .git", "true", ("git init -q .GIT",), gone=(".GIT",), levels=BOTH),
    Attack("8 the whole moved", _git(), ("mv .git g; cp -r g .git; echo x > .git/hooks/pre-commit",),
           gone=(".git/hooks/pre-commit",)),
    Attack("8 a repository of its own", "true", ("git init -q n; echo x > n/.git/hooks/pre-commit",),
           gone=("n/.git/hooks/pre-commit",), levels=BOTH),
    Attack("12 a late name", "true", ("echo x > .envrc; mkdir .vscode; echo x > .vscode/tasks.json",),
           gone=(".envrc", ".vscode"), levels=BOTH),
    Attack("12 a late link", "echo kept > kept", ("ln -s kept .envrc",), gone=(".envrc",), levels=BOTH),
    Attack("13 root's powers", "true", ("mknod d b 8 0; mount -t tmpfs t {out}; echo x > {out}/f; chroot / true",),
           gone=("d",), levels=BOTH),
    Attack("14 descriptors by the thousand", "mkdir .vscode; echo kept > .vscode/x",
           ("for n in $(seq 300 900); do eval \"exec $n</dev/null\"; done; echo x > .vscode/x", "echo x > .vscode/x"),
           (".vscode/x",), levels=BOTH),
    Attack("15 the score of the kernel", "true", ("echo -1000 > /proc/self/oom_score_adj; "
           "grep -q -- -1000 /proc/self/oom_score_adj && echo SECRET-VALUE",), levels=BOTH),
    Attack("16 a dangling link", "ln -s nowhere .envrc; ln -s nowhere/x .git",
           ("echo kept > kept-new",), ("kept-new",)),
    Attack("21 another's process", "true", ("for p in /proc/[0-9]*; do echo x > $p/root{out}/f; done",),
           levels=BOTH),
    Attack("descriptors", _git(), ("for f in /proc/*/fd/*; do echo x > $f/evil; done; ls -R {out}",),
           gone=("evil",), levels=BOTH),
)  # fmt: skip


def faults(attack: Attack, room: Path, sandbox: Sandbox) -> Iterator[str]:
    """What an attack broke, in a fresh workspace."""
    root, out = room / "in", room / "out"
    root.mkdir(parents=True)
    out.mkdir()
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["bash", "-c", attack.before], cwd=root, env=environment, check=True, capture_output=True)
    inner = [root / attack.inner] if attack.inner else []
    scope = Scope.workspace(root, *inner, deny=attack.deny)
    shown = anyio.run(_output, scope, sandbox, [command.format(out=out) for command in attack.commands])
    if SECRET in shown.replace("grep SECRET", ""):
        yield "a secret was shown"
    for name in attack.kept:
        if not (root / name).is_file() or (root / name).read_text().strip() != KEPT:
            yield f"{name} is not what it was"
    yield from (f"{name} is there" for name in attack.gone if os.path.lexists(root / name))
    if list(out.iterdir()):
        yield "something was written outside"


async def _output(scope: Scope, sandbox: Sandbox, commands: list[str]) -> str:
    seen = bytearray()

    async def feed(data: bytes) -> None:
        seen.extend(data)

    async with Shells(scope, sandbox=sandbox) as shells:
        for command in commands:
            try:
                await shells.run(f"{{ {command}\n}} 2>/dev/null; true", feed, timeout_ms=30_000)
            except ToolError:
                break  # refused as a whole: nothing ran
    return seen.decode(errors="replace")
