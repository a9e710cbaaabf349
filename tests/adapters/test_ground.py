"""Files and commands for frameworks with tools of their own: inside the scope, under the rules, nothing left."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gripfast import PermissionRule, Permissions, Scope
from gripfast.adapters.ground import Ground, literal
from gripfast.errors import Conflict, InvalidArgument, NotDirectory, NotFound, PolicyDenied, SandboxViolation
from gripfast.host.shell.sandbox import choose

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def project() -> Iterator[Path]:
    """Not beneath /tmp, which is private here."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        root = Path(place) / "project"
        root.mkdir()
        (root / "a.txt").write_text("one\n", encoding="utf-8")
        (root.parent / "secret.txt").write_text("secret\n", encoding="utf-8")
        yield root


@pytest.fixture
async def ground(project: Path) -> AsyncIterator[Ground]:
    made = Ground(Scope.workspace(project, deny=["*.key"]))
    yield made
    await made.close()


def path(project: Path, name: str) -> str:
    return str(project / name)


async def test_bytes_go_in_and_come_out_as_they_are(ground: Ground, project: Path) -> None:
    data = bytes(range(256)) * 100
    await ground.write_bytes(path(project, "new/deep.bin"), data)
    assert (project / "new" / "deep.bin").read_bytes() == data
    assert await ground.read_bytes(path(project, "new/deep.bin")) == data


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfa\r\nb\r\0\x1b", "ä\u2028\U0001f600".encode(), b"\xff\xfe", b""])
async def test_text_and_what_is_no_text_are_written_to_the_byte(ground: Ground, project: Path, data: bytes) -> None:
    await ground.write_bytes(path(project, "written"), data)
    assert (project / "written").read_bytes() == data


async def test_plain_text_is_searched_for_as_it_is(ground: Ground, project: Path) -> None:
    odd = r"a b\d .+*?()|[]{}^$ #&-~ 'x' <y>"
    (project / "odd.txt").write_text(f"a bd\n{odd}\n", encoding="utf-8")
    lines, _ = await ground.grep(literal(odd), path(project, "odd.txt"), glob=None, limit=10)
    assert [(number, text) for _, number, text in lines] == [(2, odd)]
    assert literal("a b-c") == "a b-c"  # an older ripgrep takes no backslash before these


async def test_what_is_outside_is_neither_read_nor_written_nor_removed(ground: Ground, project: Path) -> None:
    outside = project.parent / "secret.txt"
    (project / "link").symlink_to(outside)
    for name in (str(outside), path(project, "link"), path(project, "../secret.txt")):
        with pytest.raises(SandboxViolation):
            await ground.read_bytes(name)
        with pytest.raises(SandboxViolation):
            await ground.write_bytes(name, b"x")
    with pytest.raises(SandboxViolation):
        await ground.remove(str(outside))
    with pytest.raises(SandboxViolation):
        await ground.make_directory(str(project.parent / "made"))
    assert outside.read_text() == "secret\n" and not (project.parent / "made").exists()


async def test_removing_a_link_leaves_what_it_leads_to(ground: Ground, project: Path) -> None:
    (project / "link").symlink_to(project.parent)
    await ground.remove(path(project, "link"))
    assert not (project / "link").is_symlink() and (project.parent / "secret.txt").exists()


async def test_a_tree_with_something_protected_in_it_is_not_removed_at_all(ground: Ground, project: Path) -> None:
    for name in ("tree/.git/config", "tree/kept.txt", "other/my.key"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x")
    for tree in ("tree", "other"):
        with pytest.raises(SandboxViolation, match="can't be removed"):
            await ground.remove(path(project, tree))
    assert (project / "tree" / "kept.txt").exists() and (project / "other" / "my.key").exists()


@pytest.mark.parametrize("name", [".", "", "..", "/"])
async def test_the_workspace_itself_is_not_removed(ground: Ground, project: Path, name: str) -> None:
    with pytest.raises(InvalidArgument, match="holds the workspace"):
        await ground.remove(str(project / name) if name != "/" else "/")
    assert (project / "a.txt").exists()


async def test_removing_and_listing_what_is_missing_says_so(ground: Ground, project: Path) -> None:
    with pytest.raises(NotFound):
        await ground.remove(path(project, "missing"))
    with pytest.raises(NotFound):
        await ground.entries(path(project, "missing"))
    with pytest.raises(NotDirectory):
        await ground.make_directory(path(project, "a.txt"))


async def test_a_listing_leaves_out_what_is_denied(ground: Ground, project: Path) -> None:
    (project / "my.key").write_text("x")
    assert [one.name for one in await ground.entries(str(project))] == ["a.txt"]


async def test_a_read_only_file_is_not_replaced(ground: Ground, project: Path) -> None:
    (project / "a.txt").chmod(0o444)
    with pytest.raises(SandboxViolation, match="read-only"):
        await ground.write_bytes(path(project, "a.txt"), b"x")
    assert (project / "a.txt").read_text() == "one\n"


async def test_creating_over_a_file_is_a_conflict(ground: Ground, project: Path) -> None:
    with pytest.raises(Conflict, match="already exists"):
        await ground.write_bytes(path(project, "a.txt"), b"x", do="create")


async def test_a_command_has_its_streams_apart_its_input_its_variables_and_no_memory(
    ground: Ground, project: Path
) -> None:
    ran = await ground.run("cat; echo $A; echo err >&2; cd /; exit 3", input=b"in\n", env={"A": "it's"})
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"in\nit's\n", b"err\n")
    again = await ground.run("pwd; ls -A $TMPDIR | grep '^[.]gripfast'", split=False)  # no file of ours is left
    assert again.stdout.decode() == f"{project}\n"


async def test_the_words_of_a_program_are_taken_as_they_are(ground: Ground) -> None:
    ran = await ground.run(["printf", "%s|", "$HOME", "`id`", "a b", "'"])
    assert ran.stdout == b"$HOME|`id`|a b|'|"
    assert (await ground.run(["if"])).exit_code == 127


@pytest.mark.skipif(choose().level != "bwrap", reason="only bubblewrap makes /tmp private")
async def test_tmp_is_private_and_the_same_for_files_and_commands(ground: Ground) -> None:
    await ground.write_bytes("/tmp/gripfast-shared.txt", b"from a file operation\n")
    assert not Path("/tmp/gripfast-shared.txt").exists()
    assert (await ground.run("cat /tmp/gripfast-shared.txt")).stdout == b"from a file operation\n"
    await ground.run("echo from a command > /tmp/other.txt")
    assert await ground.read_bytes("/tmp/other.txt") == b"from a command\n"
    assert await ground.real_path("/tmp/other.txt") == "/tmp/other.txt"
    with pytest.raises(NotFound, match=r"`/tmp/missing\.txt` does not exist"):
        await ground.read_bytes("/tmp/missing.txt")


async def test_a_real_path_does_not_tell_what_lies_outside(ground: Ground, project: Path) -> None:
    (project / "in").symlink_to(project / "a.txt")
    (project / "out").symlink_to(project.parent / "secret.txt")
    assert await ground.real_path(path(project, "in")) == path(project, "a.txt")
    assert await ground.real_path(path(project, "out")) == path(project, "out")


async def test_the_rules_of_the_built_in_tools_hold(project: Path) -> None:
    rules = Permissions("allow", [PermissionRule("Bash", "rm *", "deny"), PermissionRule("Write", "*", "ask")])
    ground = Ground(Scope.workspace(project), permissions=rules)
    try:
        with pytest.raises(PolicyDenied):
            await ground.run("rm a.txt")
        with pytest.raises(PolicyDenied, match="nobody to ask"):
            await ground.remove(path(project, "a.txt"))
    finally:
        await ground.close()
    assert (project / "a.txt").exists()


async def test_a_command_past_its_time_is_ended_with_what_it_printed(ground: Ground) -> None:
    ran = await ground.run("echo begun; sleep 278.25", timeout=1)
    assert ran.timed_out and ran.stdout == b"begun\n"


async def test_a_command_that_prints_too_much_is_ended_or_cut(ground: Ground) -> None:
    ended = await ground.run("yes", ends=True)
    assert ended.is_cut and ended.exit_code is None
    cut = await ground.run("head -c 11000000 /dev/zero")
    assert cut.is_cut and cut.exit_code == 0 and len(cut.stdout) == 10 * 1024 * 1024


async def test_a_closed_ground_says_so(ground: Ground, project: Path) -> None:
    await ground.read_bytes(path(project, "a.txt"))
    await ground.close()
    with pytest.raises(InvalidArgument, match="is closed"):
        await ground.read_bytes(path(project, "a.txt"))


async def test_first_uses_at_once_share_one_session(project: Path) -> None:
    ground = Ground(Scope.workspace(project))
    read = [ground.read_bytes(path(project, "a.txt")) for _ in range(5)]
    assert set(await asyncio.gather(*read)) == {b"one\n"}
    await ground.close()


def test_the_tools_of_a_framework_are_its_own(project: Path) -> None:
    with pytest.raises(TypeError, match="the framework brings the tools"):
        Ground(Scope.workspace(project), builtin=())
