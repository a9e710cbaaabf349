"""Commands that a person lets run outside the sandbox: those inside it can't change what they run."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from tests.host.sandboxed import LEVELS, level

from gripfast.host.files.scope import Scope
from gripfast.host.shell.caches import caches_folder
from gripfast.host.shell.sandbox import Sandbox
from gripfast.host.shell.shells import Shells

REWRITES = """
import glob, os, time
while not os.path.exists("made"):
    time.sleep(0.01)
for name in [open("made").read().strip(), *glob.glob(os.environ["TMPDIR"] + "/tmp.*")]:
    try:
        open(name, "w").write("echo evil")
    except OSError:
        pass
open("tried", "w").close()
"""
APPROVED = (
    "f=$(mktemp) && echo 'echo fine' > $f && echo $f > made.new && mv made.new made && "
    "while [ ! -e tried ]; do sleep 0.01; done; sh $f; rm $f"
)


async def outside(shells: Shells, command: str) -> str:
    printed: list[bytes] = []

    async def feed(data: bytes) -> None:
        printed.append(data)

    with anyio.fail_after(30):
        await shells.run(command, feed, outside=True)
    return b"".join(printed).decode()


def shells_in(root: Path, sandbox: Sandbox) -> Shells:
    shells = Shells(Scope.workspace(root), sandbox=sandbox)
    shells.may_leave = True
    return shells


@pytest.mark.anyio
@pytest.mark.parametrize("name", LEVELS)
async def test_a_command_in_the_background_can_not_rewrite_the_temporary_files_of_an_approved_one(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "r.py").write_text(REWRITES)
    async with shells_in(tmp_path, level(name)) as shells:
        await shells.start("python3 r.py")
        assert await outside(shells, APPROVED) == "fine\n"


@pytest.mark.anyio
@pytest.mark.parametrize("name", LEVELS)
async def test_no_variable_of_an_approved_command_leads_where_others_write(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, own = tmp_path / "project", tmp_path / "own"
    for place in (root, own):
        place.mkdir()
    shared = str(caches_folder() / "tools")
    monkeypatch.setenv("TMPDIR", str(own))
    monkeypatch.setenv("UV_CACHE_DIR", shared)
    monkeypatch.setenv("NODE_PATH", f"/usr/lib/node:{shared}")
    monkeypatch.setenv("PATH", f"{shared}/bin:/usr/bin:/bin")
    async with shells_in(root, level(name)) as shells:
        found = await outside(shells, "env; mktemp")
        assert shells.temporary not in found
        assert str(caches_folder()) not in found
        assert f"TMPDIR={own}\n" in found and f"\n{own}/tmp." in found


@pytest.mark.anyio
async def test_a_tmpdir_in_the_workspace_is_not_that_of_an_approved_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "tmp"
    inside.mkdir()
    monkeypatch.setenv("TMPDIR", str(inside))
    async with shells_in(tmp_path, Sandbox("none")) as shells:
        assert await outside(shells, "echo ${TMPDIR-none}") == "none\n"
