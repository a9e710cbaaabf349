"""What commands leave for git and others to run, wherever and whenever they make it: each is taken out, and told."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.host.sandboxed import LEVELS, QUIET_GIT, WHO, Session, git, level, repository_at

from gripfast.errors import Conflict
from gripfast.host.files.scope import Scope
from gripfast.host.shell import unfinished
from gripfast.host.shell.quarantine import Quarantined, quarantined, release, take_out
from gripfast.host.shell.shells import Shells

pytestmark = pytest.mark.usefixtures("own_state")
EVIL = "[core]\\n\\tfsmonitor = touch PWNED;false\\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository_at(tmp_path / "in")


async def ignore(_: bytes) -> None: ...


def run(root: Path, sandbox: str, *commands: str) -> list[Quarantined]:
    """What was taken out, and told, after commands in one session; each must succeed."""
    session = Session(Scope.workspace(root), sandbox)
    session.run(*commands, must_succeed=True)
    return session.taken


SIBLINGS = (
    "opencode.jsonc .woodpecker.yaml .drone.jsonnet .drone.star prek.toml hk.pkl .overcommit.yml captainhook.json "
    "grumphp.yml .run/x.run.xml .externalToolBuilders/x.launch .yarnrc"
).split()


@pytest.mark.parametrize("sandbox", LEVELS)
def test_other_spellings_of_what_programs_run_are_taken_out_too(sandbox: str, root: Path) -> None:
    run(root, sandbox, f"mkdir .run .externalToolBuilders; for f in {' '.join(SIBLINGS)}; do echo x > $f; done")
    assert [name for name in SIBLINGS if (root / name).exists()] == []


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize(
    "where", ["node_modules/p", ".venv/p", "venv/src/p", "node_modules/a/__pycache__/p", "bare/p"]
)
def test_a_repository_is_found_wherever_a_command_makes_it(where: str, sandbox: str, root: Path) -> None:
    attack = (
        f"git init -q --bare bare; git clone -q . {where}; printf '{EVIL}' >> {where}/.git/config; "
        f"git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),{where}"
    )
    taken = run(root, sandbox, attack)
    git(root, f"git status; cd {where}; git status")
    assert not list(root.rglob("PWNED"))
    assert [item.path for item in taken] == [f"{root}/{where}/.git/config"]


def test_what_packages_bring_stays_where_it_is(root: Path) -> None:
    taken = run(root, "bwrap", "mkdir -p node_modules/p/.vscode; cd node_modules/p; echo x > .npmrc; echo x > .envrc")
    assert taken == []
    assert (root / "node_modules/p/.envrc").exists()


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("when", ["while it runs", "when it is ended"])
def test_what_a_command_makes_until_the_session_closes_is_taken_out(when: str, sandbox: str, root: Path) -> None:
    evil = f"git init -q late; printf '{EVIL}' >> late/.git/config; echo x > .envrc; echo x > done"
    how = "evil; cat fifo" if when == "while it runs" else "trap 'evil; exit' TERM; echo x > ready; cat fifo & wait"
    seen = root / ("done" if when == "while it runs" else "ready")
    os.mkfifo(root / "fifo")

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            await shells.run(f"evil() {{ {evil}; }}; ({how}) > /dev/null 2>&1 &", ignore)
            with anyio.fail_after(60):
                while not seen.exists():
                    await anyio.sleep(0.01)

    anyio.run(main)
    assert (root / "done").exists()
    assert not (root / ".envrc").exists()
    assert "fsmonitor" not in (root / "late/.git/config").read_text()
    assert {f"{root}/.envrc", f"{root}/late/.git/config"} == {item.path for item in quarantined()}


@pytest.mark.parametrize("sandbox", LEVELS)
def test_names_made_between_two_looks_are_not_known_to_the_next(sandbox: str, root: Path) -> None:
    loop = "while test ! -e stop; do i=$(((i+1)%300)); mkdir -p d$i; echo x > d$i/.envrc; done; echo x > done"

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            await shells.start(loop)
            for _ in range(4):
                await shells.run("true", ignore)
            await shells.run("touch stop; until test -e done; do sleep 0.01; done", ignore)
            await shells.run("true", ignore)
            assert not list(root.rglob(".envrc"))

    anyio.run(main)
    assert not list(root.rglob(".envrc"))


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_repository_that_a_command_made_is_examined_as_long_as_one_runs(sandbox: str, root: Path) -> None:
    os.mkfifo(root / "fifo")

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            shell = await shells.start(
                f"git init -q new; read x < fifo; printf '{EVIL}' >> new/.git/config; echo x > done; sleep 60"
            )
            await shells.run("until test -e new/.git/HEAD; do sleep 0.01; done", ignore)
            await shells.run("echo x > fifo; until test -e done; do sleep 0.01; done", ignore)
            assert "fsmonitor" not in (root / "new/.git/config").read_text()
            await shells.kill(shell.name)

    anyio.run(main)


def test_what_the_user_released_stays_while_a_command_runs(root: Path) -> None:
    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level("bwrap")) as shells:
            shell = await shells.start("sleep 60")
            await shells.run("echo x > .envrc", ignore)
            [item] = quarantined()
            release(item)
            ended = [await shells.run("true", ignore) for _ in range(2)]
            assert [one.quarantined for one in ended] == [(), ()]
            await shells.kill(shell.name)

    anyio.run(main)
    assert (root / ".envrc").read_text() == "x\n"
    assert quarantined() == []


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("made", [".git/hooks/post-commit", ".vscode/tasks.json", ".vscode/link"])
def test_nothing_is_added_to_a_protected_directory(made: str, sandbox: str, root: Path) -> None:
    (root / ".vscode").mkdir()
    (root / ".vscode/settings.json").write_text("kept")
    how = f"ln -s ../.. {made}" if made.endswith("link") else f"echo x > {made}; chmod +x {made}"
    taken = run(root, sandbox, f"({how}); true")
    assert not os.path.lexists(root / made)
    assert (root / ".vscode/settings.json").read_text() == "kept"
    is_told = sandbox == "landlock" or "hooks" in made  # of hooks, commands have a copy; the rest is read-only
    assert [item.path for item in taken] == ([f"{root}/{made}"] if is_told else [])


@pytest.mark.parametrize("sandbox", LEVELS)
def test_the_settings_of_a_worktree_run_nothing(sandbox: str, root: Path) -> None:
    git(root, "git config extensions.worktreeConfig true")
    taken = run(
        root,
        sandbox,
        "git worktree add -q wt; cd .git/worktrees/wt; "
        f"printf '{EVIL}[core]\\n\\tsparseCheckout = false\\n' > config.worktree",
    )
    git(root / "wt", "git status")
    assert not list(root.rglob("PWNED"))
    assert [item.path for item in taken] == [f"{root}/.git/worktrees/wt/config.worktree"]
    assert git(root / "wt", "git config core.sparseCheckout") == "false\n"


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_worktree_without_its_repository_has_no_settings_of_its_own(sandbox: str, root: Path) -> None:
    run(
        root,
        sandbox,
        "git worktree add -q wt; cd .git/worktrees/wt; rm commondir; cp -r ../../objects ../../refs .; "
        f"printf '[core]\\n\\trepositoryformatversion = 0\\n{EVIL}' > config",
    )
    subprocess.run(["git", "status"], cwd=root / "wt", env=QUIET_GIT, capture_output=True, check=False)
    assert not list(root.rglob("PWNED"))


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_repository_whose_files_lie_outside_does_not_stay_so(sandbox: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    inside = "git init -q --separate-git-dir here.git here; git --git-dir here.git config core.worktree ../here"
    taken = run(root, sandbox, f"git init -q e; git -C e config core.worktree {tmp_path}/out; {inside}")
    assert [item.path for item in taken if item.path.endswith("config")] == [f"{root}/e/.git/config"]
    assert git(root / "e", "git rev-parse --show-toplevel") == f"{root}/e\n"
    assert git(root, "git --git-dir here.git config core.worktree") == "../here\n"


@pytest.mark.parametrize("sandbox", LEVELS)
def test_the_steps_of_a_rebase_run_no_program_of_a_command(sandbox: str, root: Path) -> None:
    todo = ".git/rebase-merge/git-rebase-todo"
    (root / ".git/rebase-merge").mkdir()
    (root / todo).write_text("exec mine\npick 1\n")
    taken = run(root, sandbox, f"printf 'x evil\\n  exec evil\\npick 2 exec\\n' >> {todo}")
    assert (root / todo).read_text() == "exec mine\npick 1\npick 2 exec\n"
    assert [item.path for item in taken] == [f"{root}/{todo}"]


def test_nothing_is_released_through_a_link_that_was_made_meanwhile(root: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    run(root, "bwrap", "mkdir -p sub/deep; echo x > sub/deep/.envrc", f"rm -r sub; ln -s {tmp_path}/out sub")
    [item] = quarantined()
    with pytest.raises(Conflict, match="leads through a link"):
        release(item)
    assert list((tmp_path / "out").iterdir()) == []
    assert quarantined() == [item]
    (root / "sub").unlink()
    release(item)
    assert (root / "sub/deep/.envrc").read_text() == "x\n"


ODD = {
    "a directory .gitmodules": "mkdir -p sub/.gitmodules",
    "a pipe .gitmodules": "mkfifo .gitmodules",
    "a directory in the place of a configuration": "rm n/.git/config; mkdir -p n/.git/config",
    "a pipe in the place of a configuration": "rm n/.git/config; mkfifo n/.git/config",
    "a worktree whose commondir is a pipe": "rm .git/worktrees/*/commondir; mkfifo .git/worktrees/w/commondir",
    "a worktree whose commondir is a directory": "rm .git/worktrees/*/commondir; mkdir .git/worktrees/w/commondir",
    "a directory of steps": "mkdir -p .git/rebase-merge/git-rebase-todo",
    "no bytes that are text": "printf 'gitdir: \\0\\377' > n/s/.git; printf '\\0\\377' > n/.git/config",
}  # fmt: skip


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("odd", ODD)
def test_nothing_that_a_command_makes_stops_the_look(odd: str, sandbox: str, root: Path) -> None:
    """Whatever can't be examined is taken out, and so is all the rest."""
    make = f"git init -q n; mkdir n/s; git worktree add -q w; {ODD[odd]}"
    more = f"echo x > .envrc; mkdir .vscode; echo x > .vscode/x; git init -q z; printf '{EVIL}' >> z/.git/config"
    taken = {item.path for item in run(root, sandbox, f"{make}; {more}", "true")}
    assert {f"{root}/.envrc", f"{root}/.vscode", f"{root}/z/.git/config"} <= taken
    assert "fsmonitor" not in (root / "z/.git/config").read_text()
    assert not (root / ".envrc").exists()


SPECIAL = {
    "a directory": "mkdir -p $1",
    "a pipe": "mkfifo $1",
    "a link to a directory": "ln -s / $1",
    "a link that leads nowhere": "ln -s nowhere $1",
    "a link in a circle": "ln -s ${1##*/} $1",
    "no text": "printf '\\377\\0\\n' > $1",
    "too large": "truncate -s 3M $1",
    "closed": "mkdir $1; chmod 0 $1",
    "a path too long": "printf 'gitdir: %0.sx/' $(seq 3000) > $1",
    "itself": "echo gitdir: . > $1",
    "a socket": "/usr/bin/env python3 -c 'import socket, sys; socket.socket(1).bind(sys.argv[1])' $1",
}
IN_GIT = (
    "config config.worktree hooks info info/attributes commondir HEAD objects refs worktrees worktrees/w modules "
    "worktrees/w/commondir worktrees/w/gitdir worktrees/w/HEAD worktrees/w/config.worktree modules/m modules/m/HEAD "
    "modules/m/config modules/m/modules rebase-merge rebase-merge/git-rebase-todo rebase-merge/strategy "
    "sequencer/opts"
)
OF_THE_USER = (
    "config.worktree commondir worktrees/w/commondir worktrees/w/gitdir rebase-merge/strategy sequencer/opts"
)


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("special", SPECIAL)
def test_anything_in_any_place_that_is_read_is_survived(special: str, sandbox: str, root: Path) -> None:
    put = f"put() {{ mkdir -p ${{1%/*}}; rm -rf $1; {SPECIAL[special]}; }}; n=0; "
    put += f"for p in {IN_GIT}; do n=$((n+1)); git init -q r$n; put r$n/.git/$p; done; "
    put += f"for p in {OF_THE_USER}; do put .git/$p; done; "
    names = ".git .gitmodules .envrc .vscode HEAD .hg/hgrc .cargo/config.toml .github/workflows"
    put += f"for p in {names}; do n=$((n+1)); mkdir r$n; put r$n/$p; done; "
    put += "mkdir -p r/objects r/refs; put r/HEAD; put r/config; "
    more = f"echo x > .envrc; mkdir .vscode; echo x > .vscode/x; git init -q z; printf '{EVIL}' >> z/.git/config"
    taken = {item.path for item in run(root, sandbox, f"{put} {more}", "true")}
    assert {f"{root}/.envrc", f"{root}/.vscode", f"{root}/z/.git/config"} <= taken
    assert "fsmonitor" not in (root / "z/.git/config").read_text()
    assert run(root, sandbox, "true") == [], "the next session works, and finds nothing new"


IN_PROGRESS = {
    "a strategy": ("rebase-merge/strategy", "x/evil\n"),
    "a strategy of the other kind of rebase": ("rebase-apply/strategy", "x/evil\n"),
    "a strategy of a cherry-pick": ("sequencer/opts", "[options]\n\tedit = true\n\tStrategy = x/evil\n"),
    "a large list of steps": ("rebase-merge/git-rebase-todo", "#" * (2 << 20) + "\nexec evil\n"),
}


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("name", IN_PROGRESS)
def test_what_is_in_progress_runs_no_program_of_a_command(name: str, sandbox: str, root: Path) -> None:
    place, text = IN_PROGRESS[name]
    (root / ".git" / place).parent.mkdir()
    (root / "made").write_text(text)
    run(root, sandbox, f"cp made .git/{place}")
    assert not (root / ".git" / place).exists() or b"evil" not in (root / ".git" / place).read_bytes()
    for link in (f"ln -s ../../made .git/{place}", f"rm -r .git/{place.split('/')[0]}; mkdir d; "
                 f"cp made d/{place.split('/')[1]}; ln -s ../d .git/{place.split('/')[0]}"):  # fmt: skip
        run(root, sandbox, f"rm -rf .git/{place}; {link}")
        assert not (root / ".git" / place).exists()


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_strategy_of_git_or_of_the_user_stays(sandbox: str, root: Path) -> None:
    (root / ".git/rebase-merge").mkdir()
    (root / ".git/rebase-merge/strategy").write_text("mine\n")
    run(root, sandbox, "mkdir .git/sequencer; printf '[options]\n\tstrategy = ort\n' > .git/sequencer/opts")
    assert (root / ".git/rebase-merge/strategy").read_text() == "mine\n"
    assert "ort" in (root / ".git/sequencer/opts").read_text()


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_bare_repository_brings_nothing_that_others_run_beside_it(sandbox: str, root: Path) -> None:
    command = "git init -q --bare bare; mkdir -p .github/workflows; echo x > .github/workflows/w.yml"
    assert [item.path for item in run(root, sandbox, command)] == [f"{root}/.github/workflows"]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_no_repository_hides_in_another_spelling_of_git(sandbox: str, root: Path) -> None:
    taken = run(root, sandbox, f"git init -q .GIT; printf '{EVIL}' >> .GIT/.git/config; git init -q sub/.Git")
    assert {item.path for item in taken} == {f"{root}/.GIT", f"{root}/sub/.Git"}


@pytest.mark.parametrize("sandbox", LEVELS)
def test_without_a_quarantine_what_others_would_run_has_another_name(
    sandbox: str, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "state/gripfast").mkdir(parents=True, mode=0o700)
    (tmp_path / "state/gripfast/quarantine").write_text("no directory")
    taken = run(root, sandbox, f"echo x > .envrc; git init -q z; printf '{EVIL}' >> z/.git/config")
    assert {item.path for item in taken} == {f"{root}/.envrc", f"{root}/z/.git/config"}
    assert all("is now" in item.reason for item in taken)
    assert not (root / ".envrc").exists()
    assert not (root / "z/.git/config").exists()
    assert [path.read_text() for path in root.glob(".envrc.taken-out-*")] == ["x\n"]


ALIASES = {
    "another name": ("echo good > x; ln x .envrc", "echo evil > x", ".envrc"),
    "another name in a directory": ("mkdir .vscode; echo good > x; ln x .vscode/x", "echo evil > x", ".vscode/x"),
    "an open file": ("echo good > .envrc; (exec 3>>.envrc; while sleep 0.01; do [ ! -e go ] || "
                     "{ echo evil >&3; touch done; exit; }; done) >/dev/null 2>&1 &",
                     "touch go; until [ -e done ]; do sleep 0.01; done", ".envrc"),
    "an open directory": ("mkdir .vscode; echo good > .vscode/x; (cd .vscode; until [ -e /tmp/go ]; do sleep 0.01; "
                          "done; echo evil > x; touch /tmp/done) >/dev/null 2>&1 &",
                          "touch /tmp/go; until [ -e /tmp/done ]; do sleep 0.01; done", ".vscode/x"),
}  # fmt: skip


@pytest.mark.parametrize("how", ALIASES)
def test_what_a_person_looks_at_in_quarantine_is_what_is_released(how: str, root: Path) -> None:
    """Neither a hard link nor an open descriptor changes what is in quarantine, or what was released."""
    make, change, path = ALIASES[how]

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level("bwrap")) as shells:
            await shells.run(make, ignore)
            [item] = quarantined()
            await shells.run(change, ignore, timeout_ms=20_000)
            release(item)
            await shells.run("[ ! -e x ] || echo evil > x", ignore)

    anyio.run(main)
    assert (root / path).read_text() == "good\n"


def test_what_is_too_large_to_be_copied_at_once_is_copied_when_it_is_released(root: Path) -> None:
    run(root, "bwrap", "truncate -s 100M x; ln x .envrc")
    [item] = quarantined()
    release(item)
    assert (root / ".envrc").stat().st_size == 100 << 20
    assert (root / ".envrc").stat().st_ino != (root / "x").stat().st_ino


@pytest.mark.parametrize(
    "kind", ["mkfifo .envrc", "ln -s nowhere .envrc", "mkdir .envrc", "touch .envrc; chmod 0 .envrc"]
)
def test_every_kind_of_file_comes_out_of_quarantine_as_it_went_in(kind: str, root: Path) -> None:
    run(root, "bwrap", kind)
    [item] = quarantined()
    release(item)
    found = (root / ".envrc").lstat().st_mode
    subprocess.run(["bash", "-c", f"rm -rf .envrc; {kind}"], cwd=root, check=True)
    assert found == (root / ".envrc").lstat().st_mode
    assert quarantined() == []


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_directory_that_is_a_repository_by_its_commondir_is_found(sandbox: str, root: Path) -> None:
    attack = (
        "mkdir -p e c; cp -r .git/objects .git/refs c; git rev-parse HEAD > e/HEAD; echo ../c > e/commondir; "
        "printf '[core]\\n bare = true\\n[alias]\\n x = !touch PWNED\\n' > c/config"
    )
    taken = run(root, sandbox, attack)
    subprocess.run(["bash", "-c", "cd e && git x"], cwd=root, env=QUIET_GIT, capture_output=True, check=False)
    assert not list(root.rglob("PWNED"))
    assert [item.path for item in taken] == [f"{root}/e/commondir"]


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("kind", ["a repository", "a worktree"])
@pytest.mark.parametrize("where", ["$UV_TOOL_DIR/evil", "$TMPDIR/evil"])
def test_no_git_file_leads_to_a_repository_that_nobody_looked_at(
    where: str, kind: str, sandbox: str, root: Path
) -> None:
    """Commands can write our caches and the session's /tmp, and repositories there are not judged."""
    make = f"H={where}; mkdir -p s; git init -q --bare $H; printf '{EVIL}' >> $H/config; "
    if kind == "a repository":
        make += "printf '\\tbare = false\\n\\tworktree = '$PWD/s'\\n' >> $H/config; echo gitdir: $H > s/.git"
    else:
        make += (
            "mkdir -p $H/worktrees/w; cp $H/HEAD $H/worktrees/w; echo ../.. > $H/worktrees/w/commondir; "
            "echo $PWD/s/.git > $H/worktrees/w/gitdir; echo gitdir: $H/worktrees/w > s/.git"
        )
    taken = run(root, sandbox, make, make.rpartition("; ")[2].replace("$H", where))
    assert [item.path for item in taken] == [f"{root}/s/.git"] * 2
    assert not (root / "s/.git").exists()


@pytest.mark.parametrize("sandbox", LEVELS)
def test_worktrees_of_a_bare_repository_work(sandbox: str, root: Path) -> None:
    commands = (
        "git clone -q --bare . b.git && git --git-dir=b.git worktree add -q w",
        "git -C w status",
        "git -C w log",
    )
    assert run(root, sandbox, *commands, "git --git-dir=b.git worktree remove w") == []


# ---- what commands made, they can remove ----

ADD = f"git {WHO} worktree add -q -B wt wt"
REMOVED = {
    "worktree remove": (ADD, "git worktree remove wt", "test ! -e wt -a ! -e .git/worktrees/wt"),
    "worktree move": (ADD, "git worktree move wt moved", "git -C moved status && git worktree remove moved"),
    "worktree moved by hand": (ADD, "mv wt moved", "git worktree repair moved && git worktree remove moved"),
    "worktree prune": (ADD, "rm -rf wt", "git worktree prune && test ! -e .git/worktrees/wt"),
    "clone": ("git clone -q . d/cl", "rm -rf d/cl", "test ! -e d/cl && git clone -q . d/cl && rm -rf d"),
    "clone moved": ("git clone -q . d/cl", "mv d b", "git -C b/cl status && rm -rf b"),
    "init": ("git init -q new", "rm -rf new", "test ! -e new"),
    "bare": ("git init -q --bare new.git", "rm -rf new.git", "test ! -e new.git"),
    "submodule": (
        "git -c protocol.file.allow=always submodule add -q -f {root} sub",
        "git rm -qf sub && rm -rf .git/modules/sub",
        "test ! -e sub -a ! -e .git/modules/sub",
    ),
}


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("name", REMOVED)
def test_commands_remove_and_move_the_repositories_that_commands_made(name: str, sandbox: str, root: Path) -> None:
    made, *rest = (command.replace("{root}", str(root)) for command in REMOVED[name])
    assert run(root, sandbox, made, *rest) == []


@pytest.mark.parametrize("sandbox", LEVELS)
def test_what_commands_made_they_can_remove_in_another_session(sandbox: str, root: Path) -> None:
    run(root, sandbox, f"{ADD}; git clone -q . cl")
    assert run(root, sandbox, "git worktree remove wt && rm -rf cl && ! ls -d wt cl .git/worktrees/wt") == []


@pytest.mark.parametrize("sandbox", LEVELS)
def test_the_repository_of_the_root_can_not_be_replaced_by_a_hostile_one(sandbox: str, root: Path) -> None:
    run(root, sandbox, f"rm -rf .git; git init -q . 2>/dev/null; printf '{EVIL}' >> .git/config; true")
    git(root, "git status || true")
    assert not (root / "PWNED").exists()


TRICKS = {
    "hook": "printf '#!/bin/sh\ntouch {pwned}' > cl/.git/hooks/post-checkout; chmod +x cl/.git/hooks/post-checkout",
    "setting": "git -C cl config core.fsmonitor 'touch {pwned};false'",
    "the file of a worktree": (
        "cp -r cl/.git $TMPDIR/evil; printf '[core]\n fsmonitor = touch {pwned};false\n' >> $TMPDIR/evil/config; "
        "echo gitdir: {tmp}/evil > wt/.git"
    ),
    "where a worktree belongs": (
        "cp -r cl/.git $TMPDIR/evil; printf '[core]\n fsmonitor = touch {pwned};false\n' >> $TMPDIR/evil/config; "
        "echo {tmp}/evil > .git/worktrees/wt/commondir"
    ),
    "a link in the place of hooks": (
        "mkdir h; printf '#!/bin/sh\ntouch {pwned}' > h/post-checkout; chmod +x h/post-checkout; "
        "rm -rf cl/.git/hooks; ln -s ../../h cl/.git/hooks"
    ),
    "a submodule of a clone": (
        "mkdir -p cl/.git/modules; cp -r cl/.git $TMPDIR/m; mv $TMPDIR/m cl/.git/modules/m; "
        "git config -f cl/.git/modules/m/config core.worktree ../../../m; mkdir cl/m; "
        "echo gitdir: ../.git/modules/m > cl/m/.git; cp -r cl/.git/modules/m $TMPDIR/n; "
        "git config -f cl/.git/modules/m/config core.fsmonitor 'touch {pwned};false'"
    ),
}


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("trick", TRICKS)
def test_nothing_of_what_commands_made_runs_outside_afterwards(trick: str, sandbox: str, root: Path) -> None:
    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            for command in (f"git clone -q . cl; {ADD}", "true"):
                assert (await shells.run(command, ignore)).exit_code == 0
            attack = TRICKS[trick].replace("{pwned}", f"{root}/PWNED").replace("{tmp}", shells.temporary)
            assert (await shells.run(attack, ignore)).quarantined
            look_with_git()

    def look_with_git() -> None:
        for place in ("cl", "wt", "cl/m"):
            if (root / place).is_dir():
                script = "git status; git checkout -qf HEAD; git submodule status"
                subprocess.run(
                    ["bash", "-c", script], cwd=root / place, env=QUIET_GIT, capture_output=True, check=False
                )
        assert not (root / "PWNED").exists()

    anyio.run(main)
    look_with_git()


@pytest.mark.parametrize("sandbox", LEVELS)
def test_what_the_user_does_in_a_clone_that_a_command_made_stays(sandbox: str, root: Path) -> None:
    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            await shells.run("git clone -q . cl", ignore)
            git(root / "cl", "git config alias.x '!true'; echo '#!/bin/sh' > .git/hooks/pre-push")
            ended = await shells.run("git -C cl config user.name me; echo evil >> cl/.git/hooks/pre-push", ignore)
            assert [item.path for item in ended.quarantined] == [f"{root}/cl/.git/hooks/pre-push"]
            assert (await shells.run("true", ignore)).quarantined == ()

    anyio.run(main)
    assert git(root / "cl", "git config alias.x; git config user.name").split() == ["!true", "me"]
    assert (root / "cl/.git/hooks/pre-push").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_worktree_that_was_there_leads_where_it_led(sandbox: str, root: Path) -> None:
    """Its `.git` file is a word of git as much as a hook is: it says which configuration counts."""
    git(root, ADD)
    before = (root / "wt/.git").read_text()
    run(root, sandbox, "cp -r .git $TMPDIR/evil; echo gitdir: $TMPDIR/evil > wt/.git || true")
    assert (root / "wt/.git").read_text() == before


@pytest.mark.parametrize("sandbox", LEVELS)
def test_the_repository_of_a_worktree_is_guarded_where_it_lies_outside(sandbox: str, root: Path) -> None:
    git(root, f"git {WHO} worktree add -q ../wt -b wt; echo user > .git/hooks/pre-push; rm -f .git/info/attributes")
    config = (root / ".git/config").read_text()
    attack = (
        "cd $(git rev-parse --git-common-dir); echo evil >> hooks/pre-push; echo evil > hooks/pre-commit; "
        "echo '* filter=evil' > info/attributes; git config core.pager evil; "
        "printf '[core]\n fsmonitor = evil\n' > worktrees/wt/config.worktree; true"
    )
    run(root.parent / "wt", sandbox, attack, "true")
    assert (root / ".git/hooks/pre-push").read_text() == "user\n"
    assert (root / ".git/config").read_text() == config
    left = [".git/hooks/pre-commit", ".git/info/attributes"]
    assert not any((root / name).exists() for name in left)
    assert "evil" not in git(root.parent / "wt", "git config --list")


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_hook_that_a_background_command_changed_is_put_back(sandbox: str, root: Path) -> None:
    hook = root / ".git/hooks/pre-push"
    hook.write_text("user\n")

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            await shells.start("echo evil >> .git/hooks/pre-push; touch done; sleep 600")
            with anyio.fail_after(30):
                while not (root / "done").exists():
                    await anyio.sleep(0.02)
            await shells.run("true", ignore)
            assert hook.read_text() == "user\n"

    anyio.run(main)
    assert hook.read_text() == "user\n"


# ---- a server that is ended before it could look ----

KILLED = """
import os, signal, sys, anyio
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.brokers import Brokers
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

root, level, how = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    sandbox = Sandbox("landlock") if level == "landlock" and landlock_version() else choose("auto")
    async with Shells(Scope.workspace(root), sandbox=sandbox) as shells:
        attack = "git init -q e; git -C e config core.fsmonitor evil; echo evil >> .git/hooks/pre-push"
        again = "touch up; while :; do echo evil > .envrc; sleep 0.01; done"
        await shells.start(f"trap '{attack}; echo 1 > .envrc' TERM; {attack}; {again}")
        while not os.path.exists(f"{root}/up"):
            await anyio.sleep(0.02)
        if how == "at once":
            die()
        Brokers._last_look = die

anyio.run(main)
"""


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("how", ["at once", "before its own look"])
def test_what_commands_made_is_taken_out_though_the_server_was_killed(how: str, sandbox: str, root: Path) -> None:
    level(sandbox)
    (root / ".git/hooks/pre-push").write_text("mine\n")
    done = subprocess.run([sys.executable, "-c", KILLED, str(root), sandbox, how], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    until = time.monotonic() + 60
    while (root / ".envrc").exists() or "evil" in (root / "e/.git/config").read_text():
        assert time.monotonic() < until, "nobody looked"
        time.sleep(0.05)
    while (root / ".git/hooks/pre-push").read_text() != "mine\n":
        assert time.monotonic() < until, "nobody put it back"
        time.sleep(0.05)
    assert {item.path for item in quarantined()} >= {f"{root}/.envrc", f"{root}/e/.git/config"}


@pytest.mark.parametrize("sandbox", LEVELS)
def test_what_is_written_for_the_last_look_is_read_again_whole(sandbox: str, root: Path, tmp_path: Path) -> None:
    """With everything that it may contain: a clone that a command made, a hook, and CI files that git may move."""
    (root / ".github/workflows").mkdir(parents=True)
    (root / ".github/workflows/ci.yml").write_text("on: push\n")
    (root / ".envrc").write_text("mine\n")
    git(root, f"git add .; git {WHO} commit -qm two; echo hook > .git/hooks/pre-push")

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            await shells.run("git clone -q . copy; git status", ignore, timeout_ms=60_000)
            await shells.run("git status", ignore, timeout_ms=60_000)
            (file,) = (tmp_path / "state/gripfast/unfinished").iterdir()
            with file.open("rb") as opened:
                found = unfinished.read(opened)
        assert found.seen.names and found.copies is not None and found.moved.copies

    anyio.run(main)


@pytest.mark.parametrize("function", [subprocess.call, take_out, subprocess.Popen, Path])
def test_what_is_written_for_the_last_look_names_no_program(function: Callable[..., object], tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
            return function, (f"touch {tmp_path}/PWNED",)

    with pytest.raises(pickle.UnpicklingError, match="is not part of what was written"):
        unfinished.read(io.BytesIO(pickle.dumps(Evil())))
    assert not (tmp_path / "PWNED").exists()


def test_an_orderly_session_leaves_no_journal(root: Path, tmp_path: Path) -> None:
    run(root, "bwrap", "true", "git init -q e")
    assert list((tmp_path / "state/gripfast/unfinished").iterdir()) == []


def test_what_is_large_and_on_another_disk_stays_under_another_name(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other disk")
    with tempfile.TemporaryDirectory(dir=elsewhere) as state:
        monkeypatch.setenv("XDG_STATE_HOME", state)
        taken = run(root, "bwrap", "truncate -s 10G .envrc; mkdir .vscode; echo x > .vscode/x")
        assert {item.path for item in taken} == {f"{root}/.envrc", f"{root}/.vscode"}
        assert [path.stat().st_size for path in root.glob(".envrc*")] == [10 << 30]
        assert not (root / ".envrc").exists()
        [item] = quarantined()
        release(item)
    assert (root / ".vscode/x").read_text() == "x\n"


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("where", [".", "src"])
def test_a_directory_of_the_user_is_not_turned_into_a_repository(where: str, sandbox: str, root: Path) -> None:
    """As a repository it would be closed to every tool, undo included, and what it calls `config` would be git's."""
    (root / "src/hooks").mkdir(parents=True)
    for name in ("src/f", "src/config", "src/hooks/pre-commit"):
        (root / name).write_text("[core]\n\tfsmonitor = mine\n")
    turn = f"cd {where}; mkdir objects refs; echo ref: refs/heads/x > HEAD"
    taken = run(root, sandbox, "true", turn, "true")
    assert [item.path for item in taken] == [os.path.normpath(root / where / "HEAD")]
    assert (
        (root / "src/config").read_text()
        == (root / "src/hooks/pre-commit").read_text()
        == (root / "src/f").read_text()
    )
    assert run(root, sandbox, "mkdir b", "git init -q --bare b", "echo x > b/mine", "git --git-dir b fsck") == []


def test_a_directory_that_the_user_turned_into_a_repository_is_guarded(root: Path) -> None:
    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level("bwrap")) as shells:
            await shells.run("mkdir d; echo x > d/x", ignore)
            git(root, "git init -q --bare d")
            ended = await shells.run("echo x > d/hooks/update; echo x > a", ignore)
            assert [item.path for item in ended.quarantined] == [f"{root}/d/hooks/update"]

    anyio.run(main)
    assert not (root / "d/hooks/update").exists()
    assert (root / "d/HEAD").exists()


@pytest.mark.parametrize("name", LEVELS)
def test_what_a_person_let_run_outside_the_sandbox_stays(name: str, tmp_path: Path) -> None:
    root = repository_at(tmp_path / "in")
    (root / ".vscode").mkdir()
    (root / ".vscode" / "tasks.json").write_text("old\n")
    sandbox = level(name)

    async def main() -> None:
        async def feed(_: bytes) -> None:
            pass

        async with Shells(Scope.workspace(root), sandbox=sandbox) as shells:
            shells.may_leave = True
            await shells.run("true", feed)
            allowed = "echo new > .vscode/tasks.json; echo x > .vscode/more.json; echo y > .envrc"
            ended = await shells.run(allowed, feed, outside=True)
            assert not ended.quarantined
            ended = await shells.run("echo evil > .vscode/tasks.json; echo z > .npmrc", feed)
            assert {os.path.basename(one.path) for one in ended.quarantined} >= {".npmrc"}

    anyio.run(main)
    assert (root / ".vscode" / "tasks.json").read_text() == "new\n"
    assert (root / ".vscode" / "more.json").exists() and (root / ".envrc").exists()
    assert not (root / ".npmrc").exists()
