"""The walls of commands are as exact as the files: each test goes red when its guard is taken away."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.host.sandboxed import QUIET_GIT, WHO, Session, level

from gripfast.builtin.session import open_session
from gripfast.errors import SandboxViolation
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.program import own
from gripfast.host.shell import broker_connection, sandbox
from gripfast.host.shell.caches import caches_folder, caches_size, clear_caches, trim_caches
from gripfast.host.shell.quarantine import quarantined, release
from gripfast.host.shell.sandbox import Sandbox
from gripfast.host.shell.shells import Shells

pytestmark = pytest.mark.usefixtures("own_state")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def git(where: Path, *words: str) -> str:
    done = subprocess.run(["git", *WHO.split(), *words], cwd=where, env=QUIET_GIT, check=True, capture_output=True)
    return done.stdout.decode()


@pytest.fixture
def repository(root: Path) -> Path:
    git(root, "init", "-q")
    (root / "a").write_text("one\n")
    git(root, "add", "a")
    git(root, "commit", "-qm", "one")
    return root


# ---- roots are the directories they were ----


def test_a_root_that_was_replaced_is_refused_by_every_tool_in_the_same_words(root: Path) -> None:
    (root / "file").write_text("x")
    scope = Scope.workspace(root)
    fs = ScopedFs(scope)
    assert fs.read(WorkPath("file")) == "x"
    root.rename(root.with_name("moved"))
    root.mkdir()
    (root / "file").write_text("another")
    words: set[str] = set()
    for use in (
        lambda: fs.read(WorkPath("file")),
        lambda: fs.write(WorkPath("new"), "x"),
        lambda: fs.glob("*"),
        lambda: fs.grep("x"),
        lambda: Session(scope).run("echo x > new"),
    ):
        with pytest.raises(SandboxViolation) as refused:
            use()
        words.add(refused.value.message)
    assert len(words) == 1
    assert "no longer the directory" in words.pop()
    assert os.listdir(root) == ["file"]


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
@pytest.mark.parametrize("inner", ["inner", "deep/er/inner"])
def test_an_inner_root_that_is_swapped_for_a_link_opens_nothing(
    name: str, inner: str, root: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (root / inner).mkdir(parents=True)
    session = Session(Scope.workspace(root, root / inner), name)
    top = inner.split("/", maxsplit=1)[0]
    swap = f"mv {top} away; mkdir -p $(dirname {inner}); ln -s {out} {inner}; true"
    with pytest.raises(SandboxViolation, match="no longer the directory"):
        session.run(swap, f"echo x > {inner}/new; echo x > {out}/new")
    assert not list(out.iterdir())


# ---- ancestors are pinned ----


@pytest.mark.parametrize(
    ("made", "attack"),
    [
        (
            ".github/workflows/ci.yml",
            "mv .github .old; mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
        ),
        ("lib/.git/config", "mv lib old; mkdir -p lib/.git; echo x > lib/.git/config"),
        ("conf/deep/.envrc", "mv conf old; mkdir -p conf/deep; echo x > conf/deep/.envrc"),
        ("conf/deep/.envrc", "mv conf/deep old; mkdir -p conf/deep; echo x > conf/deep/.envrc"),
        ("conf/.envrc", "rm -rf conf; mkdir -p conf; echo x > conf/.envrc"),
    ],
)
def test_the_directory_above_a_protected_name_can_not_be_moved_away(made: str, attack: str, root: Path) -> None:
    (root / made).parent.mkdir(parents=True)
    (root / made).write_text("kept")
    Session(Scope.workspace(root)).run(attack)
    assert (root / made).read_text() == "kept"


def test_a_protected_link_that_was_replaced_is_put_back_and_told(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "config").write_text("kept")
    (root / ".git").symlink_to("real")
    session = Session(Scope.workspace(root))
    session.run("rm .git; mkdir .git; echo evil > .git/config")
    assert os.readlink(root / ".git") == "real"
    assert (root / ".git" / "config").read_text() == "kept"
    assert [item.path for item in session.taken] == [str(root / ".git")]


def test_a_dangling_protected_link_does_not_stop_commands(root: Path) -> None:
    (root / ".envrc").symlink_to("nowhere")
    assert Session(Scope.workspace(root)).run("echo fine", "echo again") == ["fine\n", "again\n"]


def test_a_protected_place_inside_a_hidden_or_read_only_one_opens_nothing(root: Path) -> None:
    (root / ".claude" / "deep" / "secret").mkdir(parents=True)
    (root / ".claude" / "deep" / "kept").write_text("kept")
    scope = Scope.workspace(root, deny=[".claude/deep/secret"])
    Session(scope).run("echo x > .claude/deep/kept; ls .claude/deep/secret")
    assert (root / ".claude" / "deep" / "kept").read_text() == "kept"


# ---- git works, and runs nothing later ----


WORK = {
    "commit": f"echo two >> a && git {WHO} commit -qam two && git log --oneline | wc -l",
    "branch and switch": "git switch -qc other && git branch --list | wc -l",
    "merge": f"git switch -qc x && echo b > b && git add b && git {WHO} commit -qm b && git switch -q - && "
    f"git {WHO} merge -q --no-ff -m m x && git log --oneline | wc -l",
    "stash": f"echo two >> a && git {WHO} stash -q && git stash list | wc -l && git {WHO} stash pop -q",
    "rebase": f"git switch -qc x && echo b > b && git add b && git {WHO} commit -qm b && "
    f"git {WHO} rebase -q -f HEAD~1",
    "tag": f"git {WHO} tag -a v1 -m v1 && git tag",
    "worktree": f"git worktree add -q wt && cd wt && echo b > b && git add b && git {WHO} commit -qm b && "
    "cd .. && git worktree list | wc -l",
    "gc": "git gc -q && git fsck",
    "init": "git init -q new && cd new && git status --short",
    "clone": "git clone -q . copy && cd copy && git log --oneline | wc -l",
}  # fmt: skip


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
@pytest.mark.parametrize("work", WORK)
def test_git_works(name: str, work: str, repository: Path) -> None:
    session = Session(Scope.workspace(repository), name)
    before = (repository / ".git" / "config").read_bytes()
    session.run(WORK[work], "git status")
    assert [(ended.reason, ended.exit_code) for ended in session.ended] == [("exited", 0)] * 2
    assert session.taken == []
    assert (repository / ".git" / "config").read_bytes() == before


@pytest.mark.parametrize("where", ["worktree", "submodule"])
def test_git_works_where_the_repository_lies_outside_the_root(where: str, repository: Path, tmp_path: Path) -> None:
    if where == "worktree":
        root = tmp_path / "wt"
        git(repository, "worktree", "add", "-q", str(root))
    else:
        git(tmp_path, "clone", "-q", str(repository), "super")
        git(tmp_path / "super", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "sub")
        root = tmp_path / "super" / "sub"
    session = Session(Scope.workspace(root))
    common = Path(git(root, "rev-parse", "--path-format=absolute", "--git-common-dir").strip())
    before = (common / "config").read_bytes()
    session.run(
        f"echo two >> a && git {WHO} commit -qam two",
        f"echo x >> {common}/config; echo x > {common}/hooks/post-checkout; mv {common} {common}.old",
    )
    assert session.ended[0].exit_code == 0
    assert "two" in git(root, "log", "--oneline")
    assert (common / "config").read_bytes() == before
    assert not (common / "hooks" / "post-checkout").exists()


def test_a_git_file_that_the_named_repository_does_not_know_opens_nothing(repository: Path, tmp_path: Path) -> None:
    root = tmp_path / "other"
    root.mkdir()
    (root / ".git").write_text(f"gitdir: {repository}/.git\n")
    Session(Scope.workspace(root)).run(f"echo x > {repository}/.git/new")
    assert not (repository / ".git" / "new").exists()


INSTRUCTED = {
    "a hook": "echo x > .git/hooks/post-checkout",
    "hooks moved away": "mv .git/hooks .git/old; mkdir .git/hooks; echo x > .git/hooks/post-checkout",
    "hooks by link": "mkdir evil; rm -rf .git/hooks; ln -s ../evil .git/hooks; echo x > .git/hooks/post-checkout",
    "config": "git config core.fsmonitor ./evil; echo '[core]' >> .git/config",
    "config.worktree": "printf '[core]\\n\\tfsmonitor = ./evil\\n' > .git/config.worktree",
    "commondir": "mkdir -p evil/objects evil/refs; printf '[core]\\nfsmonitor = x\\n' > evil/config; "
    "echo ../evil > .git/commondir",
    "attributes": "mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes",
    "the whole of it moved": "mv .git old; cp -r old .git; echo x > .git/hooks/post-checkout",
    "a submodule's hook": "mkdir -p .git/modules/m/hooks; echo 'ref: x' > .git/modules/m/HEAD; "
    "echo x > .git/modules/m/hooks/post-checkout",
    "a submodule's config": "mkdir -p .git/modules/m; echo 'ref: x' > .git/modules/m/HEAD; "
    "printf '[core]\\n\\tfsmonitor = ./evil\\n' > .git/modules/m/config",
    "a worktree led elsewhere": "git worktree add -q wt; mkdir evil; "
    "echo ../../../evil > .git/worktrees/wt/commondir",
    "a new repository's hook": "git init -q new; echo x > new/.git/hooks/post-checkout",
    "a new repository's config": "git init -q new; git -C new config core.fsmonitor ./evil",
    "a new repository's alias": "git init -q new; git -C new config alias.st '!evil'",
    "a bare one inside": "git init -q --bare new; git --git-dir new config core.fsmonitor ./evil",
    "a .git file": "git init -q --bare $TMPDIR/r; git --git-dir $TMPDIR/r config core.fsmonitor evil; mkdir new; "
    "echo gitdir: $TMPDIR/r > new/.git",
    "a .git link": "mkdir new evil; git init -q --bare evil; ln -s ../evil new/.git",
}  # fmt: skip


def runs_code(root: Path) -> list[str]:
    """What git in the workspace would run or follow, wherever it stands."""
    found: list[str] = []
    for path in root.rglob("*"):
        hook = path.parent.name == "hooks" and not path.name.endswith(".sample")
        text = path.read_text(errors="replace") if path.is_file() and path.name.startswith("config") else ""
        told = path.name in ("commondir", "attributes") and "worktrees" not in path.parts
        astray = path.name == "commondir" and path.read_text().strip() != "../.." and "worktrees" in path.parts
        dot_git = path.name == ".git" and not path.is_dir() and path.parent.name == "new"
        linked = path.name == ".git" and path.is_symlink()
        if hook or told or astray or dot_git or linked or "evil" in text:
            found.append(str(path.relative_to(root)))
    return [name for name in found if not name.startswith("evil")]


@pytest.mark.parametrize("attack", INSTRUCTED)
def test_nothing_that_a_command_leaves_makes_git_run_code(attack: str, repository: Path) -> None:
    Session(Scope.workspace(repository)).run(INSTRUCTED[attack])
    assert runs_code(repository) == []
    assert "one" in git(repository, "log", "--oneline")


def test_names_that_git_does_not_have_yet_leave_nothing_behind(repository: Path) -> None:
    before = sorted(str(path) for path in (repository / ".git").rglob("*"))
    Session(Scope.workspace(repository)).run("true")
    assert sorted(str(path) for path in (repository / ".git").rglob("*")) == before


# ---- late names ----


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
@pytest.mark.parametrize("late", [".envrc", ".mcp.json", "deep/er/.envrc", ".vscode/tasks.json"])
def test_a_protected_name_that_a_command_makes_waits_in_quarantine(name: str, late: str, root: Path) -> None:
    session = Session(Scope.workspace(root), name)
    session.run(f"mkdir -p $(dirname {late}); echo evil > {late}; echo fine > kept")
    assert not (root / late).exists()
    assert (root / "kept").exists()
    [item] = quarantined()
    assert [item.path] == [taken.path for taken in session.taken]
    release(item)
    assert (root / late).read_text() == "evil\n"
    assert quarantined() == []


def test_what_a_background_command_makes_is_taken_out_at_the_next_command(root: Path) -> None:
    taken: list[str] = []

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level("bwrap")) as shells:

            async def ignore(_: bytes) -> None: ...

            shell = await shells.start("echo x > .envrc; echo x > done; sleep 60")
            while not (root / "done").exists():
                await anyio.sleep(0.01)
            ended = await shells.run("cat .envrc", ignore)
            taken.extend(item.path for item in ended.quarantined)
            await shells.kill(shell.name)

    anyio.run(main)
    assert taken == [str(root / ".envrc")]
    assert not (root / ".envrc").exists()


def test_what_the_user_makes_between_commands_stays_and_is_protected(root: Path) -> None:
    session = Session(Scope.workspace(root))
    session.run("true", lambda: (root / ".envrc").write_text("mine"), "echo x > .envrc; true")
    assert (root / ".envrc").read_text() == "mine"
    assert session.taken == []


# ---- deny is exact ----


SECRET = "SECRET-VALUE"


@pytest.mark.parametrize(
    "where", [".env", "a/b/c/d/e/f/g/.env", "node_modules/p/.env", ".venv/lib/.env", ".git/.env", ".claude/x/.env"]
)
def test_denied_names_are_hidden_from_commands_wherever_they_are(where: str, root: Path) -> None:
    (root / where).parent.mkdir(parents=True, exist_ok=True)
    (root / where).write_text(SECRET)
    top = where.split("/", maxsplit=1)[0]
    session = Session(Scope.workspace(root, deny=[".env"]))
    texts = session.run(f"cat {where}; mv {top} moved; cat moved/{where.partition('/')[2]}; grep -r SECRET . ; true")
    assert SECRET not in texts[0]
    assert (root / where).read_text() == SECRET


def test_a_denied_name_that_appears_between_commands_is_hidden_from_the_next(root: Path) -> None:
    (root / "sub").mkdir()

    def save() -> None:
        (root / "sub" / "fresh").write_text(SECRET)
        (root / "sub" / "fresh").rename(root / "sub" / ".env")

    texts = Session(Scope.workspace(root, deny=[".env"])).run(
        "true", save, "cat sub/.env; true", save, "cat sub/.env"
    )
    assert SECRET not in "".join(texts)


def test_absolute_deny_patterns_close_places_outside_the_roots(root: Path, tmp_path: Path) -> None:
    keys = tmp_path / "home" / ".ssh"
    keys.mkdir(parents=True)
    (keys / "id").write_text(SECRET)
    (tmp_path / "home" / "x.pem").write_text(SECRET)
    deny = [str(keys), f"{tmp_path}/home/*.pem"]
    [text] = Session(Scope.workspace(root, deny=deny)).run(f"cat {keys}/id {tmp_path}/home/x.pem; true")
    assert SECRET not in text


def test_deny_is_judged_from_every_root_that_contains_the_path(root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "secret").write_text(SECRET)
    scope = Scope.workspace(root, inner, deny=["inner/secret"])
    with pytest.raises(SandboxViolation):
        ScopedFs(scope).read(WorkPath(str(inner / "secret")))
    assert SECRET not in Session(scope).run("cat inner/secret; true")[0]


# ---- nobody can change what we run ----


@pytest.fixture
def served_code(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Our own environment, as if it lay in the served root."""
    code = root / ".venv" / "bin"
    code.mkdir(parents=True)
    (code / "rg").write_text("ours")
    (root / "src").mkdir()
    monkeypatch.setattr(own, "_code", lambda: (str(root / ".venv"),))
    own._places.cache_clear()  # pyright: ignore[reportPrivateUsage] - what it knows of the real place
    yield code / "rg"
    own._places.cache_clear()  # pyright: ignore[reportPrivateUsage] - the same


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
@pytest.mark.parametrize(
    "attack",
    ["echo x > .venv/bin/rg", "rm -rf .venv; mkdir -p .venv/bin; echo x > .venv/bin/rg", "mv .venv old; ls old"],
)
def test_no_command_can_change_what_the_server_runs(name: str, attack: str, served_code: Path, root: Path) -> None:
    session = Session(Scope.workspace(root, protect=[]), name)
    [_, text] = session.run(attack, "echo x > src/file && cat src/file")
    assert served_code.read_text() == "ours"
    assert text == "x\n"


def test_no_file_tool_can_change_what_the_server_runs(served_code: Path, root: Path) -> None:
    fs = ScopedFs(Scope.workspace(root, protect=[]))
    for path in (".venv/bin/rg", ".venv/new"):
        with pytest.raises(SandboxViolation, match="gripfast itself runs"):
            fs.write(WorkPath(path), "x")
    assert fs.read(WorkPath(".venv/bin/rg")) == "ours"


def test_files_in_use_can_not_be_changed_and_secret_ones_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_given", {})
    for name in ("tools.py", "tokens"):
        (root / name).write_text(SECRET)
        own.in_use(root / name, secret=name == "tokens")
    fs = ScopedFs(Scope.workspace(root))
    with pytest.raises(SandboxViolation):
        fs.write(WorkPath("tools.py"), "x")
    with pytest.raises(SandboxViolation):
        fs.read(WorkPath("tokens"))
    assert [one.path for one in fs.grep(SECRET).files] == ["tools.py"]
    [text] = Session(Scope.workspace(root)).run("echo x > tools.py; cat tokens; true")
    assert (root / "tools.py").read_text() == SECRET
    assert SECRET not in text


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
def test_tokens_and_outputs_of_others_can_not_be_read(name: str, root: Path, own_state: Path, tmp_path: Path) -> None:
    token, output = own_state / "gripfast" / "http-token", tmp_path / "cache" / "gripfast" / "outputs" / "one"
    for file in (token, output):
        file.parent.mkdir(parents=True)
        file.write_text(SECRET)
    (tmp_path / "beside").write_text("beside")
    (root / "file").write_text("inside")
    look = f"cat {token} {output}; cat file; echo x > new; cat new {tmp_path}/*"
    [text] = Session(Scope.workspace(root), name).run(look)
    assert SECRET not in text
    assert "inside" in text
    assert name == "bwrap" or "beside" in text


# ---- descriptors and sockets ----


def test_no_descriptor_of_the_machine_outside_reaches_a_command(repository: Path) -> None:
    [text] = Session(Scope.workspace(repository)).run("readlink /proc/self/fd/* /proc/1/fd/*")
    kinds = {line.split(":")[0] for line in text.splitlines() if "(deleted)" not in line and "/fd" not in line}
    assert kinds <= {"/dev/null", "pipe", "socket", "anon_inode"}


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
def test_abstract_sockets_are_out_of_reach(name: str, root: Path) -> None:
    if landlock_version() < 6:
        pytest.skip("Landlock keeps abstract sockets out from ABI 6 on")
    with socket.socket(socket.AF_UNIX) as server:
        name_of_it = f"gripfast-test-{os.getpid()}"
        server.bind(f"\0{name_of_it}")
        server.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name_of_it}'); print('in')"
        [text] = Session(Scope.workspace(root), name).run(f'/usr/bin/env python3 -c "{code}"')
    assert "PermissionError" in text


def listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


def knock(path: Path) -> str:
    return f"python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{path}'); print('in')\" 2>&1; true"


def test_sockets_of_other_programs_are_out_of_reach_unless_named(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gripfast.host.shell.sockets._MASKED", ("/run",))  # the test's home is in /tmp
    with listening(home / "agent.sock"), listening(root / "own.sock"):
        scope = Scope([root, home], [root], wide=True)
        [foreign, own_one] = Session(scope).run(knock(home / "agent.sock"), knock(root / "own.sock"))
        allowed = Session(scope, sockets=[str(home / "agent.sock")]).run(knock(home / "agent.sock"))
    assert "in\n" not in foreign
    assert own_one == "in\n"
    assert allowed == ["in\n"]


# ---- caches ----


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    (place / "data").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(place))
    for name in ("XDG_CACHE_HOME", "CARGO_HOME", "GOPATH", "GRADLE_USER_HOME", "PNPM_HOME", "npm_config_cache"):
        monkeypatch.delenv(name, raising=False)
    return place


@pytest.fixture
def bare_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory as if it were not below /tmp, which commands don't see."""
    monkeypatch.setattr("gripfast.host.shell.caches._MASKED", ("/run",))
    return home


def test_caches_are_writable_kept_and_the_users_own_untouched(root: Path, bare_home: Path) -> None:
    for name in (".cache/models", ".cache/pip", ".cargo/bin", ".npm/_npx"):
        (bare_home / name).mkdir(parents=True)
        (bare_home / name / "file").write_text("mine")
    write = "; ".join(
        f"mkdir -p ~/{name}; echo x > ~/{name}/new" for name in (".cache/pip", ".npm/_npx", ".cargo/registry")
    )
    read = (
        "cat ~/.cache/models/file ~/.cargo/bin/file; echo x > ~/.cache/models/file; echo x > ~/.cargo/bin/file; true"
    )
    session = Session(Scope.workspace(root))
    texts = session.run(f"{write}; ls ~/.cache/pip ~/.npm/_npx", f"{read}; true")
    assert "file" not in texts[0], "what the user has cached can't be changed, so it isn't shown"
    assert texts[1].startswith("minemine")
    places = {refusal.folder for refusal in session.ended[1].refused if refusal.why == "outside"}
    assert places == {f"{bare_home}/.cache/models", f"{bare_home}/.cargo/bin"}, "each refusal names its setting"
    assert (
        sorted(str(path.relative_to(bare_home)) for path in bare_home.rglob("new") if "gripfast" not in path.parts)
        == []
    )
    assert all(path.read_text() == "mine" for path in bare_home.rglob("file"))
    again = Session(Scope.workspace(root)).run("cat ~/.cache/pip/new ~/.npm/_npx/new ~/.cargo/registry/new")
    assert again == ["x\nx\nx\n"]


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
def test_tools_without_a_cache_in_the_home_directory_are_told_of_ours(name: str, root: Path, home: Path) -> None:
    names = "CARGO_HOME npm_config_cache GRADLE_USER_HOME"
    command = f'for n in {names}; do mkdir -p "${{!n}}/d" && echo x > "${{!n}}/d/f" && echo fine; done'
    [text] = Session(Scope.workspace(root), name).run(command)
    assert text == "fine\nfine\nfine\n"
    assert not (home / ".cargo").exists()


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
def test_a_workspace_has_caches_of_its_own(name: str, root: Path, bare_home: Path) -> None:
    """What lies in a cache runs: settings of npm, cargo and gradle, packages that were built."""
    (bare_home / ".cache").mkdir()
    other = root.with_name("other")
    other.mkdir()
    places = ("$npm_config_prefix/etc", "${CARGO_HOME:-$HOME/.cargo}", "$HOME/.cache/pip", "$UV_TOOL_DIR")
    write = "; ".join(f"mkdir -p {place} && echo theirs > {place}/evil" for place in places)
    read = "; ".join(f"cat {place}/evil" for place in places)
    [_, mine] = Session(Scope.workspace(root), name).run(write, read)
    assert mine.startswith("theirs\n")
    [folder] = (path for path in caches_folder().iterdir() if path.is_dir())
    [theirs, _] = Session(Scope.workspace(other), name).run(read, f"echo evil > {folder}/evil")
    assert "theirs\n" not in theirs
    assert not (folder / "evil").exists()


def test_caches_over_the_limit_lose_what_was_used_longest_ago(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gripfast.host.shell.caches.LIMIT_BYTES", 150_000)
    other = root.with_name("other")
    other.mkdir()
    fill = "mkdir -p $UV_TOOL_DIR/d; head -c 100000 /dev/zero > $UV_TOOL_DIR/d/x; chmod 555 $UV_TOOL_DIR/d"
    for place in (root, other):
        Session(Scope.workspace(place)).run(fill)
    folders = sorted(path for path in caches_folder().iterdir() if path.is_dir())
    os.utime(folders[0], (1, 1))
    (caches_folder() / ".trimmed").unlink(missing_ok=True)
    trim_caches()
    assert [path for path in caches_folder().iterdir() if path.is_dir()] == [folders[1]]


def test_the_caches_have_a_size_and_can_be_emptied(root: Path, home: Path) -> None:
    Session(Scope.workspace(root)).run("mkdir -p $npm_config_cache; head -c 100000 /dev/zero > $npm_config_cache/x")
    assert caches_size() >= 100_000
    clear_caches()
    assert caches_size() == 0


# ---- one /tmp ----


def test_what_a_command_writes_to_tmp_is_what_file_tools_find_there(root: Path) -> None:
    level("bwrap")
    kept: list[object] = []

    async def main() -> None:
        async with open_session(Scope.workspace(root)) as session:

            async def call(name: str, **arguments: object) -> str:
                return str((await session.call(name, arguments)).content)

            await call("Bash", command="echo one > /tmp/x.py; mkdir /tmp/d; echo two > /tmp/d/y")
            kept.append(await call("Read", file_path="/tmp/x.py"))
            kept.append(await call("Edit", file_path="/tmp/x.py", old_string="one", new_string="three"))
            kept.append(await call("Write", file_path="/tmp/made/z", content="four\n"))
            kept.append(await call("Bash", command="cat /tmp/x.py /tmp/made/z"))
            kept.append(await call("Grep", pattern="two", path="/tmp"))
            kept.append(await call("Glob", pattern="**/*", path="/tmp"))

    anyio.run(main)
    read, _, _, shown, grepped, globbed = map(str, kept)
    assert "one" in read
    assert shown.startswith("three\nfour\n")
    assert "/tmp/d/y" in grepped
    assert {"/tmp/x.py", "/tmp/made/z", "/tmp/d/y"} <= set(globbed.splitlines())
    assert not os.path.exists("/tmp/x.py")


def test_the_shared_tmp_is_one_for_each_session_and_ends_with_it(root: Path) -> None:
    level("bwrap")
    places: list[str] = []
    texts: list[str] = []

    async def main() -> None:
        fs, other = ScopedFs(Scope.workspace(root)), ScopedFs(Scope.workspace(root))
        async with open_session(fs) as session, open_session(other) as second:
            await session.call("Write", {"file_path": "/tmp/only-mine", "content": "x"})
            texts.append(str((await session.call("Bash", {"command": "cat /tmp/only-mine"})).content))
            texts.append(str((await second.call("Bash", {"command": "cat /tmp/only-mine"})).content))
            texts.append(str((await second.call("Read", {"file_path": "/tmp/only-mine"})).content))
            places.extend([fs.tmp.real, other.tmp.real])

    anyio.run(main)
    assert texts[0] == "x"
    assert "No such file" in texts[1]
    assert "does not exist" in texts[2]
    assert places[0] != places[1]
    assert not any(os.path.exists(place) for place in places)


def test_a_root_below_tmp_stays_what_it_is(root: Path) -> None:
    level("bwrap")
    texts: list[str] = []

    async def main() -> None:
        async with open_session(Scope.workspace(root)) as session:
            await session.call("Write", {"file_path": str(root / "file"), "content": "here\n"})
            texts.append(str((await session.call("Bash", {"command": f"cat {root}/file"})).content))
            texts.append(str((await session.call("Read", {"file_path": f"{root}/../out"})).content))

    anyio.run(main)
    assert texts[0] == "here\n"
    assert (root / "file").read_text() == "here\n"


def test_a_place_that_is_changed_while_the_walls_are_built_is_noticed(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mount lands on what was put in the place of a directory above it; no command runs behind such walls."""
    (repository / "conf").mkdir()
    (repository / "conf" / ".envrc").write_text("kept")
    started = broker_connection.bwrap_arguments
    swaps: list[str] = []

    def swapped(*arguments: object) -> list[str]:
        words = started(*arguments)  # pyright: ignore[reportArgumentType] - handed on
        if not swaps:
            at = words.index(str(repository / "conf" / ".envrc"))
            swaps.append(words[at])
            words[at - 2 : at + 1] = []
        return words

    monkeypatch.setattr(broker_connection, "bwrap_arguments", swapped)
    Session(Scope.workspace(repository)).run("echo x > conf/.envrc")
    assert swaps
    assert (repository / "conf" / ".envrc").read_text() == "kept"


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
def test_when_memory_is_short_the_command_goes_before_the_server(name: str, root: Path) -> None:
    [text] = Session(Scope.workspace(root), name).run("cat /proc/self/oom_score_adj")
    mine = int(Path("/proc/self/oom_score_adj").read_text())
    assert int(text) >= mine + 200


@pytest.mark.parametrize(
    ("spaces", "version", "words"),
    [
        ("--unshare-pid --unshare-ipc", 6, "bwrap"),
        ("--unshare-ipc", 6, "bwrap without its own process space"),
        ("--unshare-pid", 6, "bwrap without its own shared memory"),
        ("--unshare-pid --unshare-ipc", 5, "bwrap without a guard on abstract sockets"),
        ("", 6, "landlock"),
        ("", 5, "landlock without a guard on signals and a guard on abstract sockets"),
        (
            "",
            2,
            "landlock without a guard on truncation and a guard on signals and a guard on abstract sockets",
        ),
    ],
)
def test_a_level_says_in_its_name_what_it_lacks_here(
    spaces: str, version: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "landlock_version", lambda: version)
    found = Sandbox("bwrap", "bwrap", tuple(spaces.split())) if "bwrap" in words else Sandbox("landlock")
    assert found.name == words
    assert found.description.startswith(f"sandbox {words}: ")


def test_under_landlock_a_command_writes_to_no_terminal_of_others(root: Path) -> None:
    ours, theirs = os.openpty()
    try:
        name = os.ttyname(theirs)
        [text] = Session(Scope.workspace(root), "landlock").run(f"echo x > {name}; echo $?")
    finally:
        os.close(ours)
        os.close(theirs)
    assert text.endswith("1\n")


@pytest.mark.parametrize(
    "attack", ["kill -9 {pid}", "echo x > /proc/{pid}/root{out}/new; ls /proc/{pid}/root{out}/*"]
)
def test_without_a_process_space_of_its_own_a_command_still_reaches_nothing_outside(
    attack: str, root: Path, tmp_path: Path
) -> None:
    if landlock_version() < 6:
        pytest.skip("Landlock keeps signals inside from ABI 6 on")
    found = level("bwrap")
    reduced = Sandbox("bwrap", found.program, ("--unshare-ipc",))
    out = tmp_path / "out"
    out.mkdir()
    victim = subprocess.Popen(["sleep", "60"])
    try:
        session = Session(Scope.workspace(root))
        session.sandbox = reduced
        session.run(attack.format(pid=victim.pid, out=out))
        with pytest.raises(subprocess.TimeoutExpired):
            victim.wait(0.5)
    finally:
        victim.kill()
        victim.wait()
    assert list(out.iterdir()) == []


def test_a_file_that_nobody_may_write_is_not_replaced_without_a_word(root: Path) -> None:
    (root / "kept").write_text("kept")
    (root / "kept").chmod(0o444)
    with pytest.raises(SandboxViolation, match="read-only"):
        ScopedFs(Scope.workspace(root)).write(WorkPath("kept"), "x")
    assert (root / "kept").read_text() == "kept"


@pytest.mark.parametrize("where", [".gitignore", "deep/er/.ignore"])
def test_a_fifo_named_like_an_ignore_file_does_not_hold_up_a_search(where: str, root: Path) -> None:
    (root / where).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(root / where)
    (root / "file").write_text("needle")
    found = ScopedFs(Scope.workspace(root)).grep("needle")
    assert [one.path for one in found.files] == ["file"]
    assert not found.partial


def test_a_file_of_another_user_does_not_become_ours_without_a_word(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to have a file of another user")
    (root / "theirs").write_text("kept")
    (root / "theirs").chmod(0o666)
    os.chown(root / "theirs", 12345, 12345)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)  # a member of the team who may write it
    with pytest.raises(SandboxViolation, match="belongs to another user"):
        ScopedFs(Scope.workspace(root)).write(WorkPath("theirs"), "x")
    assert (root / "theirs").read_text() == "kept"


def test_the_working_directory_is_not_set_to_what_a_command_writes_on_our_descriptor(root: Path) -> None:
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    session = Session(Scope.workspace(root))
    session.run(*(f"printf '{place}\\0' >&199; kill -9 $$" for place in (f"{root}/link", "relative", f"{root}/x/..")))
    assert [ended.directory for ended in session.ended] == ["", "", ""]


@pytest.mark.parametrize(
    "attack",
    [
        "echo x > .git/config",
        "echo x > .git/new; mv .git/new .git/config",
        "rm -rf .git/config .github",
        "rm -rf .github; ln -s {out} .github",
        "mv .github g; mkdir -p .github/workflows; echo x > .github/workflows/w",
        "chmod 777 .git/config; echo x >> .github/workflows/w; truncate -s0 .envrc",
    ],
)
def test_under_landlock_protected_files_that_a_command_changed_are_put_back_and_told(
    attack: str, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (repository / ".github" / "workflows").mkdir(parents=True)
    kept = [repository / name for name in (".git/config", ".github/workflows/w", ".envrc")]
    for path in kept[1:]:
        path.write_text("kept")
    before = [(path.read_text(), path.stat().st_mode) for path in kept]
    session = Session(Scope.workspace(repository), "landlock")
    session.run(attack.format(out=tmp_path / "out"))
    assert [(path.read_text(), path.stat().st_mode) for path in kept] == before
    assert list((tmp_path / "out").iterdir()) == []
    if "rm -rf .git/config" not in attack:  # what is only gone is put back without a copy
        assert session.taken


def test_under_landlock_what_the_user_changes_between_commands_stays(repository: Path) -> None:
    envrc = repository / ".envrc"
    envrc.write_text("old")
    session = Session(Scope.workspace(repository), "landlock")
    session.run("true", lambda: envrc.write_text("new"), "true")
    assert envrc.read_text() == "new"
    assert session.taken == []


# ---- who runs commands ----

_TRACE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
pid = os.getppid()
while pid > 0:
    with open(f"/proc/{pid}/stat") as file:
        name, _, rest = file.read().partition("(")[2].rpartition(")")
    above = int(rest.split()[1])
    if "bash" in name:
        pid = above
        continue
    print("looked at", pid)
    if libc.ptrace(16, pid, 0, 0) == 0:
        print("traced", pid)
        libc.ptrace(17, pid, 0, 0)
    try:
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
        print("opened", pid)
    except OSError:
        pass
    if "python" not in name:
        break
    pid = above
"""


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
def test_no_command_traces_what_runs_commands(name: str, root: Path) -> None:
    """It could make a later, approved line run as another one."""
    (root / "trace.py").write_text(_TRACE)
    texts = Session(Scope.workspace(root), name).run("/usr/bin/env python3 trace.py", "echo fine")
    assert "looked at" in texts[0]
    assert "traced" not in texts[0] and "opened" not in texts[0]
    assert texts[1] == "fine\n"
