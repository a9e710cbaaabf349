"""A developer's day in the sandbox: git, environments and package managers do their work, and the user's own files
stay as they are. By root it is walked as a plain user with a home of its own, if there is an interpreter for it.

No step needs a network: packages are made here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import anyio

from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells
from torture.trial import Outcome, Torment

_PLAIN_USER = "31337"
_CAN_RUN = """import anyio, subprocess, gripfast.host.shell.shells
from gripfast.host.program.programs import interpreter
subprocess.run([interpreter(), "-c", ""], check=True)"""
_OWN = (".cache/gripfast", ".local/state/gripfast")
_CI = ".github/workflows/ci.yml"
_FILES = "git -c protocol.file.allow=always"
_CLONE = f"{_FILES} clone -q"
# What real pytest needs, by the names of its packages.
_PYTEST = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
# Each step with the program that it needs. One shell runs them all, in this order.
STEPS: tuple[tuple[str, str, str], ...] = (
    ("git commit", "git", "echo a > a.txt && git add -A && git commit -qm first && git log --oneline | grep first"),
    ("git branch", "git", "git switch -qc topic && echo b > b.txt && git add b.txt && git commit -qm topic"),
    ("git merge", "git", "git switch -q main && git merge -q --no-ff -m merged topic && test -f b.txt"),
    (
        "git stash",
        "git",
        "echo c >> a.txt && git stash -q && ! grep -q c a.txt && git stash pop -q && grep -q c a.txt",
    ),
    ("git rebase", "git", "git commit -qam c && git switch -q topic && git rebase -q main && git switch -q main"),
    (
        "git switch across CI files",
        "git",
        f"git switch -q ci && grep -q 2 {_CI} && git switch -q main && grep -q 1 {_CI} && git diff --quiet",
    ),
    (
        "git rebase and merge across CI files",
        "git",
        f"git switch -qc over && echo o > over.txt && git add over.txt && git commit -qm over && git rebase -q ci && "
        f"grep -q 2 {_CI} && git switch -q main && git merge -q -m over over && grep -q 2 {_CI} && git diff --quiet",
    ),
    (
        "git pull of CI files",
        "git",
        f"git pull -q --no-rebase --no-edit ../upstream main && grep -q 3 {_CI}.more && git diff --quiet",
    ),
    ("git tag", "git", "git tag -a v1 -m one && git describe | grep v1"),
    ("git worktree", "git", "git worktree add -q ../tree topic && git -C ../tree status -sb && echo t > ../tree/t"),
    (
        "commit in a worktree",
        "git",
        "git -C ../tree add -A && git -C ../tree commit -qm t && git log topic | grep -q t",
    ),
    (
        "git worktree remove",
        "git",
        "git worktree move ../tree ../moved && git worktree remove ../moved && test ! -e ../moved",
    ),
    ("git clone", "git", "git clone -q . ../copy && git -C ../copy log --oneline | grep merged"),
    (
        "commit in a clone",
        "git",
        "cd ../copy && echo d > d && git add d && git commit -qm d; r=$?; cd ../app; exit $r",
    ),
    ("git submodule", "git", "git submodule foreach -q 'git log --oneline' | grep lib && git submodule status"),
    ("git submodule update", "git", f"{_FILES} submodule update --init && git submodule status | grep -q '^ .* lib'"),
    (
        "git submodule add",
        "git",
        f"cd ../copy && {_FILES} submodule --quiet add $PWD/../lib-origin more && git commit -qm more; r=$?; "
        "cd ../app; exit $r",
    ),
    ("clone with submodules", "git", f"{_CLONE} --recurse-submodules . ../whole && test -f ../whole/lib/tiny.py"),
    ("rm of a clone", "git", "rm -rf ../whole && test ! -e ../whole"),
    (
        "commit in a submodule",
        "git",
        "git -C lib switch -qc work && echo 2 > lib/two && git -C lib add two && git -C lib commit -qm two",
    ),
    (
        "venv",
        "python3",
        "python3 -m venv .venv && .venv/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix'",
    ),
    ("pip", "python3", "pip install -q --no-index ../tiny-1.0-py3-none-any.whl && python -c 'import tiny'"),
    (
        "pytest",
        "python3",
        "pip install -q --no-index --find-links ../wheels pytest && mkdir -p tests && "
        "printf 'import tiny\\ndef test_x():\\n    assert tiny.x == 1\\n' > tests/test_a.py && "
        "pytest -q tests | grep '1 passed'",
    ),
    (
        "uv",
        "uv",
        "uv venv -q --python python3 ../uvenv && uv pip install -q --offline --python ../uvenv/bin/python "
        "../tiny-1.0-py3-none-any.whl && ../uvenv/bin/python -c 'import tiny'",
    ),
    (
        "npm",
        "npm",
        "npm install --silent --no-audit --no-fund --offline ../tiny-1.0.0.tgz && test -d node_modules/tiny",
    ),
    (
        "npm install -g",
        "npm",
        "npm install -g --silent --no-audit --no-fund --offline ../tiny-1.0.0.tgz && $(npm prefix -g)/bin/tiny",
    ),
    ("npm script", "npm", "npm pkg set scripts.hi='tiny' --silent && npm run --silent hi | grep tiny"),
    ("npx", "npx", "npx --offline tiny | grep tiny"),
    ("a program of node_modules", "npm", "tiny | grep tiny"),
    (
        "pnpm",
        "pnpm",
        "mkdir -p ../p && cd ../p && echo '{}' > package.json && "
        "pnpm add --offline --silent ../tiny-1.0.0.tgz; test -e node_modules/tiny; r=$?; cd ../app; exit $r",
    ),
    (
        "cargo",
        "cargo",
        "cargo init -q --vcs none --name day ../rust && cargo build -q --offline "
        "--manifest-path ../rust/Cargo.toml && ../rust/target/debug/day",
    ),
    (
        "go",
        "go",
        "mkdir -p ../gone && cd ../gone && go mod init day 2>/dev/null && "
        "printf 'package main\\nfunc main() { println(1) }\\n' > main.go && "
        "go build . && ./day; r=$?; cd ../app; exit $r",
    ),
    ("make", "make", "printf 'all:\\n\\t@echo made > made\\n' > Makefile && make -s && test -f made"),
)


def run(torment: Torment) -> None:
    best = choose("auto")
    levels = {"bwrap": best.level == "bwrap", "landlock": landlock_version() > 0}
    for level, works in levels.items():
        what, promise = f"a developer's day, {level}", "every step works, the user's own files are as before"
        if not works:
            torment.tell(Outcome(what, promise, why="not on this machine"))
            continue
        try:
            with tempfile.TemporaryDirectory(
                prefix="gripfast-day-", dir="/var/tmp"
            ) as room:  # /tmp is private to commands
                found = _walked(Path(os.path.realpath(room)), level)
        except (OSError, subprocess.SubprocessError, ValueError) as fault:
            torment.tell(Outcome(what, promise, 1, 1, str(fault)[:200]))
            continue
        for name, said in found["failed"].items():
            torment.say(f"    {name}: {said}")
        missing = f"; not installed: {', '.join(found['missing'])}" if found["missing"] else ""
        torment.tell(Outcome(what, promise, found["tried"], len(found["failed"]), f"as {found['user']}{missing}"))


def _walked(room: Path, level: str) -> dict[str, Any]:
    """The day in a process of its own, by a plain user where root can become one."""
    room.chmod(0o755)
    prepared(room)
    environment = {"PATH": os.environ["PATH"], "HOME": str(room / "home"), "LANG": "C.UTF-8"}
    here = Path(__file__).resolve().parents[1]
    packages = [place for place in sys.path if place.endswith("site-packages")]
    environment["PYTHONPATH"] = os.pathsep.join([str(here / "src"), str(here), *packages])
    program, user = _interpreter(environment)
    if user == "a plain user":
        subprocess.run(["chown", "-R", f"{_PLAIN_USER}:{_PLAIN_USER}", str(room)], check=True)
        program = _with_rust(program, room, environment)
    done = subprocess.run(
        [*program, "-m", "torture.day", str(room), level], env=environment, cwd="/", capture_output=True, timeout=1800
    )
    if done.returncode:
        raise ValueError(done.stderr.decode(errors="replace").strip()[-200:])
    return {**json.loads(done.stdout), "user": user}


def _interpreter(environment: dict[str, str]) -> tuple[list[str], str]:
    plain = ["setpriv", "--reuid", _PLAIN_USER, "--regid", _PLAIN_USER, "--clear-groups"]
    for python in [sys.executable, "/usr/bin/python3"] if os.geteuid() == 0 and shutil.which("setpriv") else []:
        test = [*plain, python, "-c", _CAN_RUN]
        if subprocess.run(test, env=environment, cwd="/", capture_output=True).returncode == 0:
            return [*plain, python], "a plain user"
    return [sys.executable], "root" if os.geteuid() == 0 else "a plain user"


def _with_rust(program: list[str], room: Path, environment: dict[str, str]) -> list[str]:
    """The same with root's toolchain of Rust, where a plain user can't reach it: mounted in its own name space."""
    reaches = subprocess.run([*program[:-1], "rustc", "--version"], env=environment, cwd="/", capture_output=True)
    if os.geteuid() != 0 or reaches.returncode == 0 or not (shutil.which("rustc") and shutil.which("unshare")):
        return program
    asked = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True)
    if asked.returncode:
        return program
    place = room / "rust-toolchain"
    place.mkdir()
    environment["PATH"] = f"{place}/bin:{environment['PATH']}"
    script = 'mount --bind "$0" "$1" && shift && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, asked.stdout.strip(), str(place), *program]


# ---- before the day ----


def prepared(room: Path) -> None:
    """A home as a developer has it, a repository with a submodule, and packages to install."""
    home, work = room / "home", room / "home" / "work"
    files = {".bashrc": "alias x=y\n", ".ssh/id_ed25519": "secret\n", ".npmrc": "audit=false\n"}
    files |= {".gitconfig": "[user]\n\tname = Dev\n\temail = dev@localhost\n[init]\n\tdefaultBranch = main\n"}
    caches = ".cache/pip/x .cache/uv/x .npm/_cacache/x .cargo/registry/x .cargo/bin/x go/pkg/x .local/bin/x"
    for name, text in {**files, **dict.fromkeys(caches.split(), "mine\n")}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    work.mkdir()
    _wheel(work / "tiny-1.0-py3-none-any.whl")
    for name in _PYTEST:
        _wheel_of(name, work / "wheels")
    _npm_package(work)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    script = f"""
        git init -q lib-origin && cd lib-origin && echo x = 1 > tiny.py && git add -A && git commit -qm lib && cd ..
        git init -q app && cd app && echo node_modules > .gitignore && echo .venv >> .gitignore
        git -c protocol.file.allow=always submodule --quiet add "$PWD/../lib-origin" lib
        mkdir -p .github/workflows && echo 1 > {_CI} && git add -A && git commit -qm start
        git switch -qc ci && echo 2 > {_CI} && git commit -qam ci && git switch -q main
        git clone -q . ../upstream && cd ../upstream && echo 3 > {_CI}.more && git add -A && git commit -qm more
        cd ../app
        echo '#!/bin/sh' > .git/hooks/pre-push && echo '{{"name": "app", "version": "1.0.0"}}' > package.json
    """
    subprocess.run(["bash", "-ec", script], cwd=work, env=environment, check=True, capture_output=True)


def _wheel(place: Path) -> None:
    info = "tiny-1.0.dist-info"
    parts = {
        "tiny.py": "x = 1\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: day\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    parts[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*parts, f"{info}/RECORD"])
    with zipfile.ZipFile(place, "w") as wheel:
        for name, text in parts.items():
            wheel.writestr(name, text)


def _wheel_of(name: str, folder: Path) -> None:
    """A wheel made of a package as it is installed here."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    folder.mkdir(exist_ok=True)
    files = [file for file in found.files or () if file.parts[0] != ".." and "__pycache__" not in file.parts]
    with zipfile.ZipFile(folder / f"{name}-{found.version}-py3-none-any.whl", "w") as wheel:
        for file in files:
            if file.name not in ("INSTALLER", "REQUESTED", "direct_url.json"):
                wheel.write(str(file.locate()), str(file))


def _npm_package(work: Path) -> None:
    package = work / "made" / "package"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "tiny", "version": "1.0.0", "bin": {"tiny": "cli.js"}}')
    (package / "cli.js").write_text("#!/usr/bin/env node\nconsole.log('tiny')\n")
    (package / "cli.js").chmod(0o755)
    subprocess.run(["tar", "-czf", str(work / "tiny-1.0.0.tgz"), "-C", str(work / "made"), "package"], check=True)
    shutil.rmtree(work / "made")


# ---- the day ----


def walked(room: Path, sandbox: Sandbox, steps: tuple[tuple[str, str, str], ...] = STEPS) -> dict[str, Any]:
    """Every step in one session; what failed, with its output, and what of the user's own changed."""
    home, work = room / "home", room / "home" / "work"
    before = _state(home)
    failed: dict[str, str] = {}
    there = [step for step in steps if shutil.which(step[1])]

    async def day() -> None:
        async with Shells(
            Scope.workspace(work / "app", work), sandbox=sandbox, directory=str(work / "app")
        ) as shells:
            for name, _, command in there:
                said: list[bytes] = []

                async def feed(data: bytes, said: list[bytes] = said) -> None:
                    said.append(data)

                ended = await shells.run(command, feed, timeout_ms=600_000)
                if ended.exit_code != 0 or ended.quarantined:
                    taken = [item.path for item in ended.quarantined]
                    failed[name] = f"{b''.join(said).decode(errors='replace')[-600:]} {taken or ''}".strip()

    anyio.run(day)
    after = _state(home)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    failed |= dict.fromkeys(changed, "it is not as it was before")
    return {"tried": len(there) + len(before), "failed": failed, "missing": [s[0] for s in steps if s not in there]}


def _state(home: Path) -> dict[str, str]:
    """Every file of the home outside the work, and what git takes as instructions in it, by content and mode."""
    own = [home / "work", *(home / name for name in _OWN)]
    files = [path for path in home.rglob("*") if not any(path == one or one in path.parents for one in own)]
    git = home / "work" / "app" / ".git"
    files += [git / "config", *(git / "hooks").rglob("*"), git / "modules" / "lib" / "config"]
    return {
        str(path.relative_to(home)): f"{path.stat().st_mode} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in files
        if path.is_file()
    }


if __name__ == "__main__":
    room, level = Path(sys.argv[1]), sys.argv[2]
    print(json.dumps(walked(room, choose("auto") if level == "bwrap" else Sandbox("landlock"))))
