"""The sandbox on macOS: the profile as text anywhere, its way to every shell, and on macOS that it holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.host.files.scope import Scope
from gripfast.host.shell import sandbox as sandboxes
from gripfast.host.shell.sandbox import Sandbox, choose, seatbelt_profile
from gripfast.host.shell.seatbelt import profile, quoted
from gripfast.host.shell.shells import Shells
from gripfast.host.shell.walls import Mount, Walls

macos_only = pytest.mark.skipif(sys.platform != "darwin", reason="sandbox-exec is a program of macOS")


def rules(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def test_writing_is_refused_first_and_then_allowed_in_the_roots() -> None:
    first, *_, allowed = rules(profile(["/src/app", "/src/lib"]))[1:4]
    assert [first, rules(profile([]))[2]] == ["(allow default)", "(deny file-write*)"]
    assert allowed.startswith("(allow file-write* ")
    assert '(subpath "/src/app")' in allowed and '(subpath "/src/lib")' in allowed


def test_closed_places_come_after_the_roots_they_lie_in_because_the_last_rule_decides() -> None:
    text = rules(profile(["/app"], protected=["/app/.git"], denied=["/app/.env"]))
    roots = next(at for at, line in enumerate(text) if '(subpath "/app")' in line)
    assert text.index('(deny file-write* (subpath "/app/.git"))') > roots
    assert text.index('(deny file-read* file-write* (subpath "/app/.env"))') > roots


def test_a_directory_that_holds_a_closed_place_can_not_be_renamed_away() -> None:
    text = rules(profile(["/app"], protected=["/app/sub/dir/.git", "/elsewhere/.git"]))
    fixed = [line for line in text if line.startswith("(deny file-write-unlink")]
    assert fixed == [f'(deny file-write-unlink (literal "{path}"))' for path in ("/app", "/app/sub", "/app/sub/dir")]


def test_the_temporary_directory_is_named_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    text = seatbelt_profile(Walls((Mount("/app", "write", (0, 0, 0, 0)),), temporary=str(tmp_path / "link")))
    assert f'(subpath "{os.path.realpath(tmp_path / "real")}")' in text


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))))
def test_no_name_of_a_directory_can_end_its_string_and_add_a_rule(name: str) -> None:
    read = re.fullmatch(r'"((?:[^"\\]|\\.)*)"', quoted(name), re.DOTALL)
    assert read is not None
    assert re.sub(r"\\(.)", r"\1", read[1], flags=re.DOTALL) == name


def bash(scope: Scope, sandbox: Sandbox, command: str) -> str:
    output = bytearray()

    async def main() -> None:
        async def feed(data: bytes) -> None:
            output.extend(data)

        async with Shells(scope, sandbox=sandbox) as shells:
            await shells.run(command, feed, timeout_ms=30_000)

    anyio.run(main)
    return output.decode()


def test_every_shell_is_started_through_sandbox_exec_with_the_profile_of_its_scope(tmp_path: Path) -> None:
    """A stand-in for the program, which only macOS has, writes its arguments down and runs what it is given."""
    (tmp_path / "app" / ".git").mkdir(parents=True)
    stand_in = tmp_path / "sandbox-exec"
    stand_in.write_text(f'#!/bin/sh\nprintf %s "$1$2" > {tmp_path}/given\nshift 2\nexec "$@"\n')
    stand_in.chmod(0o755)
    scope = Scope.workspace(tmp_path / "app")
    assert bash(scope, Sandbox("seatbelt", str(stand_in)), "pwd; env").startswith(f"{tmp_path.resolve()}/app\n")
    given_text = (tmp_path / "given").read_text()
    assert given_text.startswith("-p(version 1)\n")
    assert f'(deny file-write* (subpath "{tmp_path.resolve()}/app/.git"))' in given_text


def test_no_command_sees_the_profile(tmp_path: Path) -> None:
    stand_in = tmp_path / "sandbox-exec"
    stand_in.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    stand_in.chmod(0o755)
    (tmp_path / "app").mkdir()
    assert "SEATBELT" not in bash(Scope.workspace(tmp_path / "app"), Sandbox("seatbelt", str(stand_in)), "env")


def test_on_macos_a_sandbox_that_does_not_work_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.path.exists(sandboxes.seatbelt.PROGRAM):
        pytest.skip("sandbox-exec is here")
    monkeypatch.setattr(sys, "platform", "darwin")
    found = sandboxes._best.__wrapped__()  # pyright: ignore[reportPrivateUsage] - what is cached for this machine
    assert found.level == "none"
    assert found.faults == ("seatbelt: it could not be started (FileNotFoundError)",)


@macos_only
def test_the_profile_is_accepted_and_chosen() -> None:
    assert choose("auto").level == "seatbelt", choose("auto").faults


@macos_only
@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("echo x > inside", False),
        ("echo x > $TMPDIR/x && echo x > /dev/null", False),
        ("echo x > ../outside", True),
        ("echo x > .git/config", True),
        ("mv .git moved", True),
        ("mv sub moved", True),
        ("cat .env", True),
    ],
)
def test_on_macos_commands_are_held_by_it(command: str, refused: bool, tmp_path: Path) -> None:
    app = tmp_path / "app"
    for directory in (app / ".git", app / "sub" / ".git"):
        directory.mkdir(parents=True)
    (app / ".env").write_text("secret")
    said = bash(Scope.workspace(app, deny=[".env"]), choose("require"), f"({command}) 2>&1; echo $?")
    assert (said.splitlines()[-1] != "0") is refused, said


@macos_only
def test_on_macos_the_profile_compiles_with_odd_names() -> None:
    text = profile(['/tmp/a "quoted" \\ name'])
    subprocess.run([sandboxes.seatbelt.PROGRAM, "-p", text, "/usr/bin/true"], check=True, timeout=30)
