"""Directories without rights for their owner hide nothing from the walls. Root may look everywhere, so a plain user
tries this."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from plain_user import USER, environment, give, plain_python

SESSION = """
import json, os, sys, anyio
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

async def main(root, level, commands):
    sandbox = Sandbox("landlock") if level == "landlock" and landlock_version() else choose("auto")
    if sandbox.level != level:
        return print(json.dumps(None))
    said = []
    async with Shells(Scope.workspace(root, deny=[".env"]), sandbox=sandbox) as shells:
        for command in commands:
            kept = bytearray()
            async def feed(data, kept=kept):
                kept.extend(data)
            ended = await shells.run(command, feed, timeout_ms=60_000)
            said.append([kept.decode(), [os.path.relpath(item.path, root) for item in ended.quarantined]])
    print(json.dumps(said))

anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
"""


@pytest.fixture(scope="module")
def plain() -> list[str]:
    return plain_python()


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gripfast-sealed-", dir="/var/tmp") as name:
        place = Path(os.path.realpath(name))
        (place / "in").mkdir()
        give(place, place / "in")
        yield place


def session(plain: list[str], home: Path, level: str, *commands: str) -> list[tuple[str, list[str]]]:
    """What each command printed, and what was taken out after it."""
    done = subprocess.run(
        [*plain, "-c", SESSION, str(home / "in"), level, *commands],
        env=environment(home),
        cwd="/",
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    if said is None:
        pytest.skip(f"{level} does not work here for a plain user")
    return said


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
@pytest.mark.parametrize("mode", ["311", "600"])
def test_what_a_command_makes_in_a_sealed_directory_is_taken_out(
    mode: str, level: str, home: Path, plain: list[str]
) -> None:
    attack = f"git init -q e; git -C e config core.fsmonitor evil; echo evil > e/.envrc; chmod {mode} e"
    ((_, taken),) = session(plain, home, level, attack)
    assert sorted(taken) == ["e/.envrc", "e/.git/config"]
    hooks = f"git init -q f; echo evil > f/.git/hooks/pre-push; chmod {mode} f/.git/hooks f/.git"
    ((_, taken),) = session(plain, home, level, hooks)
    assert "f/.git/hooks/pre-push" in taken


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_a_sealed_root_hides_nothing_either(level: str, home: Path, plain: list[str]) -> None:
    ((_, taken),) = session(plain, home, level, "echo evil > .envrc; mkdir .vscode; chmod 311 .")
    assert sorted(taken) == [".envrc", ".vscode"]


@pytest.mark.parametrize("mode", ["311", "600"])
def test_sealing_a_directory_takes_no_wall_down(mode: str, home: Path, plain: list[str]) -> None:
    script = f"mkdir conf; echo secret > conf/.env; echo mine > conf/.envrc; chown -R {USER} . 2>/dev/null || true"
    subprocess.run(["bash", "-c", script], cwd=home / "in", check=True)
    look = "cat conf/.env; chmod 755 conf; cat conf/.env; echo evil > conf/.envrc"
    said = session(plain, home, "bwrap", f"chmod {mode} conf", look)
    assert "secret" not in said[1][0]
    (home / "in/conf").chmod(int(mode, 8))  # by the user, or in an earlier session
    said = session(plain, home, "bwrap", look, look)
    assert not any("secret" in text for text, _ in said)
    (home / "in/conf").chmod(0o755)
    assert (home / "in/conf/.envrc").read_text() == "mine\n"
