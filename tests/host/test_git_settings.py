"""Git settings that commands make: what runs nothing is kept, the rest never takes effect outside."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.host.sandboxed import LEVELS, QUIET_GIT, Session, git, level

from gripfast.host.files.gitconfig import Judged, changed_part
from gripfast.host.files.scope import Scope
from gripfast.host.shell.quarantine import Quarantined, quarantined
from gripfast.host.shell.shells import Shells

pytestmark = pytest.mark.usefixtures("own_state")
LOCAL = "git -c protocol.file.allow=always"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A root with a repository `app`, a bare one to push to, and a library to add as a submodule."""
    script = """
        git init -q --bare origin.git
        for name in lib app; do
            git init -qb main $name; cd $name; git config user.name a; git config user.email a@b
            echo 1 > $name.txt; git add -A; git commit -qm one; cd ..
        done
        git -C app config core.hooksPath .husky
        git -C app config alias.mine '!echo mine'
    """
    (tmp_path / "work").mkdir()
    git(tmp_path / "work", script)
    return tmp_path / "work"


def config(work: Path, *words: str) -> str:
    words = words or ("--list",)
    done = subprocess.run(
        ["git", "-C", work / "app", "config", "--local", *words], env=QUIET_GIT, capture_output=True
    )
    return done.stdout.decode()


def run(work: Path, sandbox: str, *commands: str) -> tuple[list[str], list[Quarantined]]:
    """What each command printed, and what was taken out; a command must succeed unless it ends with `|| true`."""
    session = Session(Scope.workspace(work / "app", work), sandbox)
    return session.run(*commands, must_succeed=True), session.taken


WORK = {
    "config": ("git config user.name 'New Name'", "user.name=New Name"),
    "remote add": ("git remote add up https://example.org/x.git", "remote.up.url=https://example.org/x.git"),
    "push -u": (f"git remote add o ../origin.git && {LOCAL} push -qu o main", "branch.main.remote=o"),
    "upstream": (
        f"git remote add o ../origin.git && {LOCAL} push -q o main && git fetch -q o && "
        "git branch -q --set-upstream-to o/main",
        "branch.main.merge=refs/heads/main",
    ),
    "submodule": (
        f"{LOCAL} submodule --quiet add ../lib lib && git commit -qm sub && {LOCAL} submodule --quiet update && "
        "test -f lib/lib.txt && git -C lib log --oneline | grep one",
        "submodule.lib.active=true",
    ),
    "worktree": ("git worktree add -q --track -b t ../t main && git -C ../t config user.name t", "user.name=t"),
}


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("name", WORK)
def test_git_writes_its_settings_in_a_repository_that_was_there(name: str, sandbox: str, work: Path) -> None:
    command, expected = WORK[name]
    _, taken = run(work, sandbox, command, "git status --short && git config --list | grep -qi hookspath")
    assert expected in config(work).splitlines()
    assert "core.hookspath=.husky" in config(work)
    assert "alias.mine=!echo mine" in config(work)
    assert taken == []


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_submodule_that_is_in_the_index_is_made_and_updated(sandbox: str, work: Path) -> None:
    script = (
        f"cd app && {LOCAL} submodule --quiet add ../lib lib && git commit -qm s && cd .. && {LOCAL} clone -q app c"
    )
    git(work, script)
    where = "cd ../c && git config user.name c && git config user.email c@d"
    run(
        work,
        sandbox,
        where,
        f"{LOCAL} submodule --quiet init && {LOCAL} submodule --quiet update",
        "test -f lib/lib.txt",
    )
    told = subprocess.run(
        ["git", "-C", work / "c", "submodule", "status"], env=QUIET_GIT, capture_output=True, check=True
    )
    assert told.stdout.startswith(b" ")


HOSTILE = {
    "core.fsmonitor": "./evil",
    "core.hooksPath": "evil",
    "core.sshCommand": "evil",
    "core.pager": "evil",
    "core.editor": "evil",
    "core.worktree": "/evil",
    "core.attributesFile": "evil",
    "filter.x.clean": "evil",
    "filter.x.process": "evil",
    "alias.st": "!evil",
    "alias.mine": "!evil",
    "include.path": "../evil",
    "includeIf.gitdir:/.path": "../evil",
    "url.ext::evil.insteadOf": "https://",
    "diff.x.command": "evil",
    "diff.x.textconv": "evil",
    "merge.x.driver": "evil",
    "credential.helper": "!evil",
    "gpg.program": "evil",
    "protocol.ext.allow": "always",
    "remote.up.url": "ext::evil",
    "remote.up.uploadpack": "evil",
    "remote.up.vcs": "evil",
    "branch.main.remote": "ext::evil",
    "submodule.x.update": "!evil",
    "sequence.editor": "evil",
    "uploadpack.packObjectsHook": "evil",
}


@pytest.mark.parametrize("sandbox", LEVELS)
def test_settings_that_run_programs_never_stay_and_are_told(sandbox: str, work: Path) -> None:
    before = config(work)
    commands = [f"git config --replace-all '{key}' '{value}'" for key, value in HOSTILE.items()]
    _, taken = run(work, sandbox, *commands)
    assert config(work) == before
    assert [item.path for item in taken] == [str(work / "app/.git/config")] * len(HOSTILE)


ODD = [
    "printf '[core] fsmonitor = evil\\n' >> .git/config",
    'printf \'[submodule "x"]\\n update = "!evil"\\n\' >> .git/config',
    'printf \'[remote "x"]\\n url = e"xt::evil"\\n\' >> .git/config',
    "printf '[user]\\n name = a \\\\\\n evil\\n[core]\\n fsmonitor = evil\\n' >> .git/config",
    "printf '[user]\\r\\n name = a \\\\\\r\\n evil\\r\\n' >> .git/config",
    "git config --unset core.hooksPath",
    "rm -f .git/config; ln -s /etc/passwd .git/config; true",
    "for f in /tmp/.git-settings/*; do rm -f $f; ln -s /etc/passwd $f; done; true",
    "for f in /tmp/.git-settings/*; do rm -f $f; mkdir $f; done; true",
    "rm -rf /tmp/.git-settings; ln -s / /tmp/.git-settings; true",
    "git config remote.up.url {unseen}/evil.git",
    "git config remote.up.url file://{unseen}/evil.git",
]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_odd_ways_to_change_a_configuration_leave_what_the_user_had(sandbox: str, work: Path) -> None:
    before = config(work)
    unseen = work.parent / "cache" / "gripfast" / "commands"
    run(work, sandbox, *(attack.replace("{unseen}", str(unseen)) for attack in ODD))
    assert config(work) == before
    assert not (work / "app/.git/config").is_symlink()


def test_while_a_command_runs_the_file_itself_says_nothing_hostile(work: Path) -> None:
    """Under bubblewrap there is no moment at which git outside would follow it."""
    before = (work / "app/.git/config").read_bytes()

    async def main() -> None:
        async with Shells(Scope.workspace(work / "app", work), sandbox=level("bwrap")) as shells:
            shell = await shells.start("git config core.fsmonitor evil && cat .git/config; exec cat ../fifo")
            while b"fsmonitor" not in shell.read(0, 10_000):
                await anyio.sleep(0.01)
            assert (work / "app/.git/config").read_bytes() == before
            await shells.kill(shell.name)
            taken = await shells.late_names(shell)
            assert [item.reason for item in taken] == ["settings that may run programs: core.fsmonitor"]

    os.mkfifo(work / "fifo")
    anyio.run(main)
    assert (work / "app/.git/config").read_bytes() == before


@pytest.mark.parametrize("sandbox", LEVELS)
def test_what_a_background_command_set_is_gone_when_the_session_ends(sandbox: str, work: Path) -> None:
    before = (work / "app/.git/config").read_bytes()

    async def main() -> None:
        async with Shells(Scope.workspace(work / "app", work), sandbox=level(sandbox)) as shells:
            shell = await shells.start("git config core.fsmonitor evil && echo done; exec cat ../fifo")
            while b"done" not in shell.read(0, 10_000):
                await anyio.sleep(0.01)

    os.mkfifo(work / "fifo")
    anyio.run(main)
    assert (work / "app/.git/config").read_bytes() == before
    assert [item.path for item in quarantined()] == [str(work / "app/.git/config")]


def test_taking_settings_over_opens_the_file_to_no_running_command(work: Path) -> None:
    """A file that is renamed over loses its mounts; the next one would then be there to write."""

    async def main() -> None:
        async with Shells(Scope.workspace(work / "app", work), sandbox=level("bwrap")) as shells:
            shell = await shells.start(
                "read < ../fifo; echo '[core] fsmonitor = evil' >> .git/config; readlink .git/config"
            )

            async def feed(_: bytes) -> None: ...

            await shells.run("git config user.name other", feed)
            assert config(work, "user.name") == "other\n"
            await shells.run("echo > ../fifo", feed)
            assert await shells.wait_for_end(shell, 30)
            await shells.late_names(shell)
            assert shell.read(0, 1000).startswith(b"/tmp/")

    os.mkfifo(work / "fifo")
    anyio.run(main)
    assert "evil" not in config(work)


@pytest.mark.parametrize("sandbox", LEVELS)
def test_what_the_user_sets_between_commands_reaches_the_next(sandbox: str, work: Path) -> None:
    async def main() -> None:
        async with Shells(Scope.workspace(work / "app", work), sandbox=level(sandbox)) as shells:
            said = bytearray()

            async def feed(data: bytes) -> None:
                said.extend(data)

            await shells.run("git config user.name agent", feed)
            for value in ("one", "two", "three"):  # a rename each: the number of an inode may come back
                config(work, "core.pager", value)
                await shells.run("git config core.pager; readlink .git/config; git config core.pager evil", feed)
            assert [line for line in said.decode().split() if "/" not in line] == ["one", "two", "three"]

    anyio.run(main)
    assert config(work, "core.pager") == "three\n"
    assert config(work, "user.name") == "agent\n"


def test_a_copy_of_a_repository_has_a_configuration_of_its_own(work: Path) -> None:
    run(work, "bwrap", "cp -a . ../copy")
    copied = work / "copy/.git/config"
    assert not copied.is_symlink()
    assert "[core]" in copied.read_text()
    assert ".husky" not in copied.read_text()


NAMES = st.sampled_from(["name", "email", "url", "fsmonitor", "hooksPath", "x", "update", "active"])
HEADS = st.sampled_from(
    ["[user]", "[core]", '[remote "a"]', '[submodule "s"]', "[alias]", "[core] pager = evil", "["]
)
VALUES = st.text(st.sampled_from('a!:e\\"#; \t\r'), max_size=6)
LINES = st.one_of(HEADS, st.builds("\t{} = {}".format, NAMES, VALUES), VALUES)


@settings(deadline=None)
@given(st.lists(LINES, max_size=8), st.lists(LINES, max_size=8))
def test_whatever_a_command_writes_only_known_settings_are_new(before: list[str], after: list[str]) -> None:
    old, new = "\n".join(before), "\n".join(before + after)
    judged = changed_part(old, new)
    assert judged.text == old or changed_part(old, judged.text) == Judged(judged.text)
    owned, now = _understood(old), _understood(judged.text)
    if owned is not None and now is not None:
        fresh = now[len(owned) :]
        assert all(name.split(".")[0] in ("user", "remote", "submodule") for name, _ in fresh)
        assert not any(value.strip().startswith("!") or "::" in value for _, value in fresh)


def _understood(text: str) -> list[tuple[str, str]] | None:
    """What git itself reads; None where it refuses the text."""
    done = subprocess.run(
        ["git", "config", "-z", "--list", "--file", "-"],
        input=text.encode(),
        env=QUIET_GIT,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        return None
    return [(one.split("\n")[0], one.partition("\n")[2]) for one in done.stdout.decode().split("\0")[:-1]]


@pytest.mark.parametrize(
    "text",
    [
        '[remote "--upload-pack=evil"]\n\turl = x\n',
        '[remote "--upload-pack=evil"]\n\tfetch = +refs/heads/*:refs/x/*\n',
        '[branch "main"]\n\tremote = --upload-pack=evil\n',
        '[branch "main"]\n\tmerge = --upload-pack=evil\n',
        '[branch "-x"]\n\tremote = origin\n',
        '[remote "o"]\n\turl = -oProxyCommand=evil:y\n',
        '[remote "o"]\n\turl = ssh://-oProxyCommand=evil/y\n',
        '[remote "o"]\n\turl = git@-oProxyCommand=evil:y\n',
        '[remote "o"]\n\turl = foo://bar\n',
        '[remote "o"]\n\turl = " -x"\n',
        '[remote "o"]\n\tmirror = true\n',
        '[submodule "s"]\n\tbranch = --x\n',
    ],
)
def test_names_and_values_that_programs_take_for_options_are_refused(text: str) -> None:
    judged = changed_part("", text)
    assert judged.refused and " = " not in judged.text


@pytest.mark.parametrize(
    "text",
    [
        "[user]\n\tnickname = x\n",
        "[color]\n\tui = auto\n",
        '[color "diff"]\n\tnew = green bold\n',
        "[advice]\n\tdetachedHead = false\n",
        "[rebase]\n\tautosquash = true\n",
        "[core]\n\twhitespace = trailing-space\n",
    ],
)
def test_settings_that_run_nothing_stay(text: str) -> None:
    assert changed_part("", text) == Judged(text)


def test_a_refused_setting_leaves_no_empty_section() -> None:
    before = "[core]\n\tbare = false\n[old]\n"
    after = f"{before}[alias]\n\tlol = !evil\n[user]\n\tsigningkey = x\n\tname = a\n[alias]\n\tx = !evil\n"
    judged = changed_part(before, after)
    assert judged.text == f"{before}[user]\n\tname = a\n"
    assert judged.refused == ("alias.lol", "user.signingkey", "alias.x")
    assert changed_part("[old]\n", "[old]\n[alias]\n\tx = !evil\n").text == "[old]\n"


@pytest.mark.parametrize(
    "url", ["https://x/y", "ssh://git@x:22/y", "git@x:y/-z.git", "../up", "/a/b", "file:///a/b", "git://x/y-z"]
)
def test_urls_that_people_use_stay(url: str) -> None:
    text = f'[remote "origin-2"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
    assert changed_part("", text) == Judged(text)


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_submodule_is_added_where_there_is_a_list_of_them(sandbox: str, work: Path) -> None:
    file = work / "app/.gitmodules"
    before = '[submodule "old"]\n\tpath = old\n\turl = ../old\n\tfetchRecurseSubmodules = false\n'
    file.write_text(before)
    git(work / "app", "git add .gitmodules; git commit -qm list")
    add = f"{LOCAL} submodule --quiet add ../lib"
    _, taken = run(work, sandbox, f"{add} one", "git rm -qf one", f"{add} two")
    assert taken == []
    assert file.read_text().startswith(before) and '[submodule "two"]' in file.read_text()
    evil = "git config -f .gitmodules submodule.two.update '!evil'; git config -f .gitmodules core.pager evil"
    _, taken = run(work, sandbox, evil)
    assert "evil" not in file.read_text() and [item.path for item in taken] == [str(file)]
    run(work, sandbox, "ln -sf app.txt .gitmodules || true")
    assert not file.is_symlink() and file.read_text().startswith(before)
