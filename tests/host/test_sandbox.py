"""The sandbox really blocks; each test goes red when the sandbox is off."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.host.sandboxed import LEVELS, Session, level

from gripfast.errors import InvalidArgument
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.program import programs
from gripfast.host.shell import sandbox as sandboxes
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells


def bash(scope: Scope, sandbox: Sandbox, *commands: str) -> list[str]:
    """Runs commands one after the other in one session; what each printed."""
    return Session(scope, sandbox).run(*commands)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace `in`, with a neighbour `out` that no command may touch."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "kept").write_text("kept")
    return tmp_path


ESCAPES = {
    "a new file": "echo x > {out}/new",
    "an existing file": "echo x > {out}/kept",
    "appending": "echo x >> {out}/kept",
    "truncating": "truncate -s 0 {out}/kept; : > {out}/kept",
    "removing": "rm -f {out}/kept",
    "renaming into": "echo x > a; mv a {out}/new",
    "renaming away": "mv {out}/kept .",
    "hard link and write": "ln {out}/kept here; echo x > here",
    "a symbolic link": "ln -s {out} link; echo x > link/new",
    "a directory": "mkdir {out}/new",
    "a fifo": "mkfifo {out}/new",
    "a child in a session of its own": "setsid -w bash -c 'echo x > {out}/new'",
    "remounting": "mount -o remount,rw / ; mount -o remount,rw {out}; echo x > {out}/new",
    "a user namespace": "unshare -Urm bash -c 'mount -o remount,rw,bind {out}; echo x > {out}/new'",
    "through another process's root": "for p in /proc/[0-9]*; do echo x > $p/root{out}/new; done 2>/dev/null",
    "through descriptor links": "exec 5<{out}; echo x > /proc/self/fd/5/new",
    "home": "echo x > ~/.gripfast-escape && mv ~/.gripfast-escape {out}/new",
}  # fmt: skip


def attempt(name: str, place: Path, sandbox: Sandbox) -> bool:
    """Whether the neighbour is still as it was."""
    command = ESCAPES[name].format(out=place / "out")
    bash(Scope.workspace(place / "in"), sandbox, command)
    out = place / "out"
    return sorted(os.listdir(out)) == ["kept"] and (out / "kept").read_text() == "kept"


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("name", LEVELS)
def test_a_write_outside_the_scope_is_blocked(name: str, escape: str, place: Path) -> None:
    assert attempt(escape, place, level(name))


def test_without_a_sandbox_the_same_writes_go_through(place: Path) -> None:
    """The proof that the test above can fail."""
    assert not attempt("a new file", place, Sandbox("none"))
    (place / "out" / "new").unlink()
    assert not attempt("a symbolic link", place, Sandbox("none"))


@pytest.mark.parametrize("name", LEVELS)
def test_a_directory_swapped_for_a_link_in_mid_command_does_not_lead_out(name: str, place: Path) -> None:
    swap = "for i in $(seq 100); do rm -rf d; mkdir d; rm -rf d; ln -s {out} d; done & "
    write = "for i in $(seq 100); do echo x > d/new; done 2>/dev/null; wait"
    bash(Scope.workspace(place / "in"), level(name), (swap + write).format(out=place / "out"))
    assert sorted(os.listdir(place / "out")) == ["kept"]


@pytest.mark.parametrize("name", LEVELS)
def test_the_scope_and_the_temporary_directory_can_be_written(name: str, place: Path) -> None:
    command = (
        "mkdir -p a/b && echo x > a/b/c && mv a/b/c d && ln -s d e && echo y >> e && rm -r a && "
        'echo z > "$TMPDIR/t" && cat "$TMPDIR/t" d && mktemp >/dev/null && echo > /dev/null && echo fine'
    )
    texts = bash(Scope.workspace(place / "in"), level(name), command, 'cat "$TMPDIR/t"')
    assert texts == ["z\nx\ny\nfine\n", "z\n"]
    assert (place / "in" / "d").read_text() == "x\ny\n"


@pytest.mark.parametrize("name", LEVELS)
def test_a_read_only_scope_can_be_read_and_not_written(name: str, place: Path) -> None:
    (place / "in" / "file").write_text("text")
    scope = Scope.workspace(place / "in", read_only=True)
    texts = bash(scope, level(name), "cat file; echo x > new")
    assert texts[0].startswith("text")
    assert not (place / "in" / "new").exists()


@pytest.mark.parametrize("name", LEVELS)
def test_several_roots_are_each_writable(name: str, place: Path) -> None:
    scope = Scope.workspace(place / "in", place / "out")
    bash(scope, level(name), f"echo a > one; echo b > {place}/out/two")
    assert (place / "in" / "one").exists()
    assert (place / "out" / "two").exists()


def repository(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})


PROTECTED_WRITES = [
    "echo x > .git/hooks/post-checkout",
    "echo x >> .git/config",
    "mv .git .old && mkdir .git",
    "echo x > .mcp.json",
    "rm .mcp.json; echo x > .mcp.json",
    "echo x > deep/er/.git/config",
    "chmod 777 .git/config",
]


@pytest.mark.parametrize("command", PROTECTED_WRITES)
def test_protected_names_are_read_only_under_bubblewrap(command: str, place: Path) -> None:
    before = protected_workspace(place / "in")
    bash(Scope.workspace(place / "in"), level("bwrap"), command)
    assert picture(place / "in") == before


def test_what_git_takes_as_instructions_outlives_the_removal_of_everything_else(place: Path) -> None:
    before = {path: content for path, _, content in protected_workspace(place / "in")}
    bash(Scope.workspace(place / "in"), level("bwrap"), "rm -rf .git")
    kept = {path: content for path, _, content in picture(place / "in")}
    assert {path for path in kept if path.startswith(".git/")} >= {".git/config"}
    assert all(before[path] == content for path, content in kept.items())


def test_without_a_sandbox_protected_names_are_written(place: Path) -> None:
    before = protected_workspace(place / "in")
    bash(Scope.workspace(place / "in"), Sandbox("none"), PROTECTED_WRITES[0])
    assert picture(place / "in") != before


def test_protection_that_the_user_lifted_is_not_there(place: Path) -> None:
    before = protected_workspace(place / "in")
    bash(Scope.workspace(place / "in", protect=[]), level("bwrap"), PROTECTED_WRITES[0])
    assert picture(place / "in") != before


def test_a_user_may_protect_hooks_and_config_alone_so_that_commits_work(place: Path) -> None:
    repository(place / "in")
    scope = Scope.workspace(place / "in", protect=[".git/hooks", ".git/config"])
    commit = "git -c user.name=a -c user.email=b commit -q --allow-empty -m one && git log --oneline | wc -l"
    texts = bash(
        scope,
        level("bwrap"),
        commit,
        "echo x > .git/hooks/pre-commit; git config core.fsmonitor evil",
        "mv .git .moved; cp -r .moved .git; echo x > .git/hooks/pre-commit",
    )
    assert texts[0] == "1\n"
    assert "busy" in texts[2]
    assert not (place / "in" / ".git" / "hooks" / "pre-commit").exists()
    assert "evil" not in (place / "in" / ".git" / "config").read_text()


def protected_workspace(root: Path) -> list[tuple[str, int, bytes]]:
    repository(root)
    (root / ".mcp.json").write_text("{}")
    (root / "deep" / "er" / ".git").mkdir(parents=True)
    (root / "deep" / "er" / ".git" / "config").write_text("x = y")
    return picture(root)


def picture(root: Path) -> list[tuple[str, int, bytes]]:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return [(str(path.relative_to(root)), path.stat().st_mode, path.read_bytes()) for path in files]


def test_a_repository_made_in_one_command_is_protected_from_the_next(place: Path) -> None:
    texts = bash(
        Scope.workspace(place / "in"),
        level("bwrap"),
        "git init -q . && mkdir -p .git/hooks && echo one > $TMPDIR/kept",
        "echo x > .git/hooks/post-checkout; cat $TMPDIR/kept",
    )
    assert not (place / "in/.git/hooks/post-checkout").exists()
    assert texts[1].endswith("one\n"), "the temporary directory outlives the rebuilt walls"


def test_a_protected_file_that_was_replaced_from_outside_stays_protected(place: Path) -> None:
    config = place / "in" / ".mcp.json"
    config.write_text("{}")

    async def main() -> None:
        async with Shells(Scope.workspace(place / "in"), sandbox=level("bwrap")) as shells:

            async def ignore(_: bytes) -> None: ...

            await shells.run("true", ignore)
            fresh = place / "in" / "fresh"
            fresh.write_text("{1}")
            fresh.replace(config)
            await shells.run("echo x > .mcp.json", ignore)

    anyio.run(main)
    assert config.read_text() == "{1}"


def test_denied_places_can_not_be_read_under_bubblewrap(place: Path) -> None:
    (place / "in" / ".env").write_text("SECRET=1")
    (place / "in" / "private").mkdir()
    (place / "in" / "private" / "file").write_text("SECRET=2")
    scope = Scope.workspace(place / "in", deny=[".env", "private"])
    texts = bash(scope, level("bwrap"), "cat .env private/file; ls private; rm -rf .env private")
    assert "SECRET" not in texts[0]
    assert (place / "in" / ".env").read_text() == "SECRET=1"
    assert (place / "in" / "private" / "file").read_text() == "SECRET=2"


def test_bubblewrap_hides_run_and_the_machines_temporary_files(place: Path) -> None:
    texts = bash(Scope.workspace(place / "in"), level("bwrap"), "ls -A /run; ls /tmp | head")
    inside = set(texts[0].splitlines())
    assert set(os.listdir("/run")) & inside <= {os.path.realpath("/etc/resolv.conf").split("/")[2]}
    assert str(place / "in").split("/")[2] in texts[0] or place.parts[1] != "tmp"
    assert "gripfast-probe" not in texts[0]


@pytest.mark.parametrize("name", LEVELS)
def test_a_command_can_not_signal_what_is_outside(name: str, place: Path) -> None:
    sandbox = level(name)
    if name == "landlock" and landlock_version() < 6:
        pytest.skip("Landlock keeps signals inside from ABI 6 on")
    if name == "bwrap" and "--unshare-pid" not in sandbox.spaces:
        pytest.skip("no process space of its own here")
    victim = subprocess.Popen(["sleep", "60"])
    try:
        bash(Scope.workspace(place / "in"), sandbox, f"kill -9 {victim.pid}")
        with pytest.raises(subprocess.TimeoutExpired):
            victim.wait(0.5)
    finally:
        victim.kill()
        victim.wait()


@pytest.mark.parametrize("name", LEVELS)
def test_a_command_sets_its_own_limits_and_not_those_of_the_server(name: str, place: Path) -> None:
    """With too few descriptors the server could not put back what a command made, nor record what it changed."""
    victim = subprocess.Popen(["sleep", "60"])
    set_limit = f'python3 -c "import resource as r; r.prlimit({victim.pid}, r.RLIMIT_NOFILE, (3, 3))" 2>&1 | tail -1'
    try:
        before = resource.prlimit(victim.pid, resource.RLIMIT_NOFILE)
        [refused, own] = bash(Scope.workspace(place / "in"), level(name), set_limit, "ulimit -n 64; ulimit -n")
        assert resource.prlimit(victim.pid, resource.RLIMIT_NOFILE) == before
        assert "Error" in refused
        assert own.strip() == "64"
    finally:
        victim.kill()
        victim.wait()


SLOWING = {
    "nice": "renice -n 19 -p {pid}",
    "nice of its group": "renice -n 19 -g {pid}",
    "scheduler": "chrt -i -p 0 {pid}",
    "scheduler, as it was called before": "python3 -c 'import os; "
    "os.sched_setscheduler({pid}, os.SCHED_IDLE, os.sched_param(0))'",
    "parameters": "python3 -c 'import os; os.sched_setparam({pid}, os.sched_param(0))'",
    "processors": "taskset -pc 0 {pid}",
    "input and output": "ionice -c 3 -p {pid}",
}


def schedule_of(pid: int) -> tuple[object, ...]:
    order = subprocess.run(["ionice", "-p", str(pid)], capture_output=True, check=True).stdout
    return os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid), os.sched_getaffinity(pid), order


@pytest.mark.parametrize("name", LEVELS)
def test_a_command_can_not_slow_down_the_server(name: str, place: Path) -> None:
    powerless = ["setpriv", "--bounding-set=-all", "--"] if os.geteuid() == 0 else []  # as a plain user's server is
    victim = subprocess.Popen([*powerless, "sleep", "60"], start_new_session=True)
    lines = [f"{line.format(pid=victim.pid)} >/dev/null 2>&1 && echo done" for line in SLOWING.values()]
    try:
        before = schedule_of(victim.pid)
        assert bash(Scope.workspace(place / "in"), level(name), *lines) == [""] * len(SLOWING)
        assert schedule_of(victim.pid) == before
    finally:
        victim.kill()
        victim.wait()


@pytest.mark.parametrize("name", LEVELS)
def test_a_command_can_slow_down_itself(name: str, place: Path) -> None:
    lines = ["nice -n 19 nice", "taskset -c 0 nproc", "chrt -i 0 chrt -p 0 | head -1", "ionice -c 3 ionice"]
    [own, processors, scheduler, order] = bash(Scope.workspace(place / "in"), level(name), *lines)
    assert own == "19\n" and processors == "1\n" and "SCHED_IDLE" in scheduler and order == "idle\n"


@pytest.mark.parametrize("name", LEVELS)
def test_a_root_users_shell_has_no_power_over_the_machine(name: str, place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root")
    turn = "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness"
    [text] = bash(Scope.workspace(place / "in"), level(name), f"grep CapEff /proc/self/status; {turn}; mknod d b 8 0")
    assert text.splitlines()[0].split()[1] == f"{0b1 | 0b10 | 0b1000 | 0b10000:016x}"
    assert "swappiness: Read-only" in text or "swappiness: Permission denied" in text
    assert not (place / "in" / "d").exists()


def test_off_is_none_and_require_refuses_to_go_without(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose("off").level == "none"
    nothing: Callable[[], Sandbox] = lambda: Sandbox("none", faults=("bwrap: not installed", "landlock: no"))  # noqa: E731
    monkeypatch.setattr(sandboxes, "_best", nothing)
    assert choose("auto").level == "none"
    with pytest.raises(InvalidArgument, match="not installed"):
        choose("require")


def test_a_program_is_never_taken_from_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "gripfast-fake"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"bin:{fake.parent}:{os.environ['PATH']}")
    assert sandboxes.find_program("gripfast-fake", [str(tmp_path)]) == ""
    assert sandboxes.find_program("gripfast-fake") == str(fake)


def test_bubblewrap_is_never_taken_from_the_path_which_may_lead_into_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(programs, "_SYSTEM_PLACES", ("/nonexistent",))
    sandboxes._best.__wrapped__()  # pyright: ignore[reportPrivateUsage] - the probe itself, not what it found before
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("made", ["before", "meanwhile"])
def test_the_token_and_the_outputs_of_other_sessions_can_not_be_read_by_commands(
    made: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = place / "state" / "gripfast" / "http-token"
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "in" / "cache"))

    def make() -> None:
        for file in (secret, place / "in" / "cache" / "gripfast" / "index.db"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("secret")

    if made == "before":
        make()
    texts: list[str] = []

    async def main() -> None:
        async with Shells(Scope.workspace(place / "in", place), sandbox=level("bwrap")) as shells:
            for _ in range(2):
                kept = bytearray()

                async def feed(data: bytes, kept: bytearray = kept) -> None:
                    kept.extend(data)

                await shells.run(f"cat {secret} cache/gripfast/index.db; echo done", feed)
                texts.append(kept.decode())
                if not secret.exists():
                    make()

    anyio.run(main)
    assert all("secret" not in text and "done" in text for text in texts)


def test_every_level_has_words_for_people_and_models() -> None:
    assert all(name in words for name, words in sandboxes.WORDS.items())
