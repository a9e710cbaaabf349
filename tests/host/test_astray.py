"""Where commands write and nobody looks (caches, temporary directories, inside `.git`): nothing leads git or others
there, whatever a command writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.host.sandboxed import LEVELS, QUIET_GIT, Session, git, repository_at

from gripfast.host.files.gitremotes import leads_astray
from gripfast.host.files.scope import Scope
from gripfast.host.shell.quarantine import Quarantined, quarantined, release

pytestmark = pytest.mark.usefixtures("own_state")
HOOK = "evil() { git init -q --bare $1; h=$1/hooks/update; printf '#!/bin/sh\\ntouch {pwned}' > $h; chmod +x $h; }; "
CACHE = "E=$UV_TOOL_DIR/x; mkdir -p $E; "


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository_at(tmp_path / "in")


def run(root: Path, sandbox: str, *commands: str) -> list[Quarantined]:
    """What was taken out, and told, after commands in one session."""
    session = Session(Scope.workspace(root), sandbox)
    session.run(*commands)
    return session.taken


REMOTES = {
    "inside .git": "evil .git/x; git remote add origin $PWD/.git/x",
    "among the objects": "evil .git/objects/x.git; git remote add origin .git/objects/x",
    "by another URL for pushes": "evil .git/x; git remote add origin https://x.invalid/; "
                                 "git config remote.origin.pushurl .git/x",
    "as the remote of a branch": "evil .git/x; git config branch.main.pushRemote ./.git/x",
    "in a file of .git/branches": "evil .git/x; mkdir -p .git/branches; echo $PWD/.git/x > .git/branches/origin",
    "in a file of .git/remotes": "evil .git/x; mkdir -p .git/remotes; echo URL: $PWD/.git/x > .git/remotes/origin",
    "a cache with a host": CACHE + "evil $E/e.git; git remote add origin file://localhost$E/e.git",
    "a cache with any host": CACHE + "evil $E/e.git; git remote add origin file://u@any:1$E/e",
    "a cache by a file": CACHE + "evil $E/e.git; echo gitdir: $E/e.git > r; git remote add origin $PWD/r",
    "a cache by a file with .git": CACHE + "evil $E/e.git; echo gitdir: $E/e.git > r.git; git remote add origin ./r",
    "a cache by a link": CACHE + "evil $E/e.git; ln -s $E/e.git r; git remote add origin ./r",
    "a cache by a link with .git": CACHE + "evil $E/e.git; ln -s $E/e.git r.git; git remote add origin ./r",
    "the directory of a process": "evil .git/x; git remote add origin /proc/self/cwd/.git/x",
    "shared memory": "evil /dev/shm/{name}; git remote add origin /dev/shm/{name}",
}  # fmt: skip


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("way", REMOTES)
def test_no_push_runs_hooks_that_nobody_judged(way: str, sandbox: str, root: Path, tmp_path: Path) -> None:
    shared = f"/dev/shm/{tmp_path.parent.name}-{tmp_path.name}"
    attack = HOOK.replace("{pwned}", f"{tmp_path}/PWNED") + REMOTES[way].replace("/dev/shm/{name}", shared)
    try:
        taken = run(root, sandbox, attack)
        of_branch = "branch." in REMOTES[way]
        where = ["-c", "push.default=current", "push"] if of_branch else ["push", "origin", "HEAD:refs/heads/z"]
        subprocess.run(["git", *where], cwd=root, env=QUIET_GIT, check=False, capture_output=True)
    finally:
        subprocess.run(["rm", "-rf", shared], check=True)
    assert not (tmp_path / "PWNED").exists()
    assert taken or (way == "in a file of .git/branches" and sandbox == "bwrap"), "what is read-only needs no look"


@pytest.mark.parametrize("sandbox", LEVELS)
def test_what_a_remote_leads_to_is_judged_as_long_as_it_leads_there(sandbox: str, root: Path, tmp_path: Path) -> None:
    """The URL is harmless when it is set, and the file is harmless as long as no URL leads to it."""
    hook = HOOK.replace("{pwned}", f"{tmp_path}/PWNED")
    assert run(root, sandbox, "git remote add origin ./later; git init -q --bare later", "rm -rf later") == []
    taken = run(root, sandbox, "true", f"{hook}{CACHE} evil $E/e.git; echo gitdir: $E/e.git > later", "true")
    assert [item.path for item in taken] == [f"{root}/later"]
    taken = run(root, sandbox, f"{CACHE} ln -s $E/e.git later.git")
    assert [item.path for item in taken] == [f"{root}/later.git"]


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("way", ["clone -q $E/e.git c", "submodule --quiet add $E/e.git c"])
def test_a_clone_of_a_cache_does_not_keep_its_remote(way: str, sandbox: str, root: Path) -> None:
    attack = f"{CACHE} git init -q --bare $E/e.git; git push -q $E/e.git HEAD:refs/heads/main; git init -q n; "
    run(root, sandbox, f"{attack} git -c protocol.file.allow=always {way}")
    assert "cache" not in git(root / "c", "git config --list")
    assert not (root / ".gitmodules").exists() or "cache" not in (root / ".gitmodules").read_text()


LINKS = {
    "a directory": "ln -s $E/r s",
    "the one above": "ln -s $E s",
    "relative": "ln -s $(realpath --relative-to=. $E/r) s",
    "in two steps": "ln -s $E/r .t; ln -s .t s",
    "a step that comes later": "ln -s t s; ln -s $E/r t",
    "in a cache": "mkdir $E/d; ln -s ../r $E/d/l; ln -s $E/d s",
    "up again": "mkdir d; ln -s $E d/l; ln -s d/l/../x/r s",
    "an environment": "ln -s $E/r .venv",
    "a package": "mkdir node_modules; ln -s $E/r node_modules/x",
    "inside .git": "mv $E/r .git/r; ln -s .git/r s",
    "inside .git, later": "ln -s .git/r s; true; mv $E/r .git/r",
    "the git directory": "mv $E/r .git/r; ln -s .git z; ln -s z/r s",
    "a process": "mv $E/r .git/r; ln -s /proc/self/cwd/.git/r s",
    "a process, from here": "mv $E/r .git/r; ln -s ../../../../../../../proc/self/cwd/.git/r s",
}


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("way", LINKS)
def test_no_link_leads_to_a_repository_that_nobody_judges(way: str, sandbox: str, root: Path, tmp_path: Path) -> None:
    evil = f"{CACHE} git init -q $E/r; git -C $E/r config core.fsmonitor 'touch {tmp_path}/PWNED; false'; "
    taken = run(root, sandbox, evil + LINKS[way])
    for place in ("s", "s/r", "s/l", ".venv", "node_modules/x"):
        subprocess.run(
            f"cd {place} && git status", shell=True, cwd=root, env=QUIET_GIT, check=False, capture_output=True
        )
    assert not (tmp_path / "PWNED").exists()
    assert taken and all(os.path.dirname(item.path).startswith(str(root)) for item in taken)


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("made", [".envrc", "deep/er/.vscode/tasks.json", "bare.git/HEAD"])
def test_what_comes_to_lie_behind_a_link_is_judged_in_a_later_session_too(
    made: str, sandbox: str, root: Path
) -> None:
    assert run(root, sandbox, f"{CACHE} mkdir $E/d; echo 1 > $E/d/x; ln -s $E/d s") == []
    assert (root / "s/x").read_text() == "1\n"
    more = "mkdir -p $E/d/bare.git/objects $E/d/bare.git/refs; " if "bare" in made else ""
    taken = run(root, sandbox, f"{CACHE} {more} mkdir -p $(dirname $E/d/{made}); echo x > $E/d/{made}")
    assert [item.path for item in taken] == [f"{root}/s"]
    assert "not watched" in taken[0].reason and not os.path.lexists(root / "s")
    release(quarantined()[0])
    assert run(root, sandbox, "true") == []
    assert os.readlink(root / "s").endswith("/d")


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_settings_file_of_cargo_is_found_by_the_name_that_the_user_sees(sandbox: str, root: Path) -> None:
    taken = run(root, sandbox, f"{CACHE} mkdir $E/d; echo x > $E/d/config.toml; ln -s $E/d .cargo; ln -s $E/d other")
    assert [item.path for item in taken] == [f"{root}/.cargo"]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_links_that_lead_nowhere_else_stay(sandbox: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "out/.vscode").mkdir(parents=True)
    ways = ("mkdir -p p/x; echo x > p/x/y; ln -s p/x l; mkdir node_modules; ln -s ../p/x node_modules/x; "
            f"ln -s {tmp_path}/out o; ln -s /usr/bin u; ln -s .git/hooks h; ln -s gone g; ln -s self self; "
            f"ln -s p/../p/x c; {CACHE} mkdir $E/d; echo x > $E/d/x; ln -s $E/d e; ln -s $E/d/x f")  # fmt: skip
    assert run(root, sandbox, ways, "cat l/y node_modules/x/y c/y e/x f", "true") == []
    assert all(os.path.islink(root / name) for name in ("l", "node_modules/x", *"ouhgcef", "self"))


def test_a_link_of_the_user_stays_with_what_was_behind_it(root: Path) -> None:
    git(root, "mkdir -p .git/mine/.vscode; ln -s .git/mine mine; ln -s .git dot")
    assert run(root, "bwrap", "echo x > a; mkdir .git/mine/.idea; git init -q .git/mine", "true") == []
    assert os.readlink(root / "mine") == ".git/mine"
    assert [item.path for item in run(root, "bwrap", "ln -sfn .git/mine/.vscode/.. mine")] == [f"{root}/mine"]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_link_to_too_much_is_taken_out(sandbox: str, root: Path) -> None:
    taken = run(root, sandbox, f"{CACHE} mkdir $E/d; cd $E/d; touch $(seq 2100); ln -s $E/d {root}/s")
    assert [item.path for item in taken] == [f"{root}/s"]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_remotes_in_files_of_the_user_stay_and_commands_add_none(sandbox: str, root: Path) -> None:
    (root / ".git/branches").mkdir(exist_ok=True)
    (root / ".git/branches/mine").write_text("https://example.org/x\n")
    run(root, sandbox, "(echo /evil > .git/branches/mine; echo /evil > .git/branches/new; "
        "mkdir .git/remotes; echo URL: /evil > .git/remotes/new); true")  # fmt: skip
    assert (root / ".git/branches/mine").read_text() == "https://example.org/x\n"
    assert [path.name for path in (root / ".git/branches").iterdir()] == ["mine"]
    assert not (root / ".git/remotes").exists()
    assert run(root, sandbox, "git init -q; git init -q new; git init -q --bare b.git") == []


def astray(url: str, root: Path) -> bool:
    return leads_astray(url, f"{root}/.git/config", (f"{root.parent}/cache",))


@pytest.mark.parametrize(
    "url",
    ["https://x/y", "ssh://git@x:22/y", "git@x:y/-z.git", "../up", "/a/b", "file:///a/b", "git://x/y-z", "./b.git",
     "../lib/.git", "http://localhost:3000/me/x.git", "origin", ".", "..", "[::1]:x", "https://github.com/tmp/x"],
)  # fmt: skip
def test_urls_that_people_use_lead_nowhere_astray(url: str, root: Path) -> None:
    assert not astray(url, root)


@pytest.mark.parametrize(
    "url",
    ["file://localhost/a", "file:///a%2fb", "file://", "/proc/self/cwd/x", "//proc/self/cwd/x", "/dev/fd/3/x",
     "x/../.git/x", "{c}", "{c}/x", "localhost:{c}/x", "ssh://localhost{c}/x", "ssh://me@any:22{c}/x", "git://127.1{c}/x",
     "http://[::1]:80{c}/x", "http://LOCALHOST.{c}/x", "https://0x7f000001{c}/x", "http://[::ffff:127.0.0.1]{c}/x",
     "me@any:{c}/x", "a\0b"],
)  # fmt: skip
def test_urls_to_where_nobody_looks_lead_astray(url: str, root: Path) -> None:
    assert astray(url.replace("{c}", f"{root.parent}/cache"), root)


PIECES = st.sampled_from(
    ["file:", "file://", "//", "/", "localhost", "u@h:1", "{c}", "../cache", "cache", "e", ".git", "e.git", ".", "..",
     "%65", "%2e", "l", "g", "in", "~", ":", "[::1]", "?", " "]
)  # fmt: skip


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, min_size=1, max_size=6).map("".join))
def test_whatever_git_follows_to_an_unseen_place_is_refused(root: Path, text: str) -> None:
    """Asks git itself: it is told to push to that URL, with a hook in the repository that nobody looks at."""
    cache, pwned = root.parent / "cache", root.parent / "PWNED"
    if not cache.exists():
        hook = HOOK.replace("{pwned}", str(pwned))
        git(root.parent, f"mkdir cache; {hook} evil cache/e.git; cd in; ln -s ../cache l; "
            "echo gitdir: ../cache/e.git > g")  # fmt: skip
    url = text.replace("{c}", str(cache))
    refused = astray(url.strip(), root)
    push = [
        "git",
        "-c",
        f"remote.o.url={url}",
        "-c",
        "core.sshCommand=false",
        "push",
        "-qf",
        "o",
        "HEAD:refs/heads/z",
    ]
    subprocess.run(push, cwd=root, env=QUIET_GIT, check=False, capture_output=True)
    ran = pwned.exists()
    pwned.unlink(missing_ok=True)
    subprocess.run(["git", "-C", cache / "e.git", "update-ref", "-d", "refs/heads/z"], env=QUIET_GIT, check=False)
    assert refused or not ran
