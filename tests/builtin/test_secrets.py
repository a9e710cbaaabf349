"""Known secrets don't leave in answers, stored outputs or the record, and their names don't get into files."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from gripfast import ToolContext
from gripfast.builtin.config import parse_config
from gripfast.builtin.keys import ANSWER_BY
from gripfast.builtin.session import WorkspaceSession, open_session, output_cache
from gripfast.call.run import run_call
from gripfast.clock import monotonic
from gripfast.framework import definition
from gripfast.framework.context import Progress
from gripfast.host.files.scope import Scope
from gripfast.host.shell.board import RunningShells
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import ToolCall
from gripfast.text.terminal import plain

pytestmark = pytest.mark.anyio

OURS, THEIRS = "env-s3cret-value", "file/s3cret value"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DEPLOY_TOKEN", OURS)
    root = tmp_path / "ws"
    root.mkdir()
    (root / ".env").write_text(f'API_KEY="{THEIRS}"\nDEBUG=yes\n')
    (root / "a").write_text(f"{THEIRS}\n{OURS}\nrest\n")
    return root


@pytest.fixture
async def session(root: Path, tmp_path: Path) -> AsyncIterator[WorkspaceSession]:
    cache = output_cache(EmbeddedStore(tmp_path / "outputs"), "s")
    async with open_session(
        Scope.workspace(root), sandbox="off", record=True, cache=cache, hide_secrets=True
    ) as session:
        yield session


async def test_answers_have_names_instead_of_values(session: WorkspaceSession) -> None:
    text = (await session.call("Read", {"file_path": "a"})).text
    assert "«API_KEY»" in text and "«DEPLOY_TOKEN»" in text and "s3cret" not in text
    assert "s3cret" not in (await session.call("Bash", {"command": "cat a; cat a | tr -d x"})).text
    encoded = base64.b64encode(f"x{THEIRS}y".encode()).decode()
    assert "«API_KEY»" in (await session.call("Bash", {"command": f"echo {encoded}"})).text
    assert "s3cret" not in (await session.call("Read", {"file_path": f"{OURS}"})).text


async def test_the_record_and_the_board_hide_them_if_it_redacts_other_things_too(root: Path, tmp_path: Path) -> None:
    def plain(text: str) -> str:
        return text.replace("secret", "").replace("word", "***")

    async with open_session(
        Scope.workspace(root), sandbox="off", record=True, redact=plain, hide_secrets=True
    ) as session:
        command = f"echo {OURS} word; sleep 600"
        await session.call("Bash", {"command": command, "run_in_background": True})
        (call,) = session.record.calls()
        (shell,) = RunningShells().all()
    for text in (call.arguments, shell.command):
        assert "«DEPLOY_TOKEN» ***" in text and "s3cret" not in text


async def test_what_a_command_prints_a_lot_of_is_stored_without_values(
    session: WorkspaceSession, tmp_path: Path
) -> None:
    script = f"for i in $(seq 4000); do echo line $i {OURS}; done"
    message = await session.call("Bash", {"command": script})
    assert message.output_ref is not None and "s3cret" not in message.text
    window = await session.call("tool_output_cache", {"ref_id": message.output_ref.id, "offset": 2000, "limit": 3})
    assert "«DEPLOY_TOKEN»" in window.text
    stored = [file.read_bytes() for file in (tmp_path / "outputs").rglob("*") if file.is_file()]
    assert stored and not any(b"s3cret" in data for data in stored)


async def test_a_value_with_colours_inside_is_neither_answered_nor_stored(
    session: WorkspaceSession, root: Path, tmp_path: Path
) -> None:
    (root / "a").unlink()  # what files hold is kept as it is
    cut = OURS[:5] + "\\033[31m" + OURS[5:]
    short = await session.call("Bash", {"command": f"printf '{cut}\\n'"})
    assert short.text == "«DEPLOY_TOKEN»\n"
    script = f"for i in $(seq 4000); do printf 'line {cut} \\033[0m\\n'; done"
    message = await session.call("Bash", {"command": script})
    assert message.output_ref is not None and OURS not in message.text
    window = await session.call("tool_output_cache", {"ref_id": message.output_ref.id, "offset": 2000, "limit": 3})
    assert "«DEPLOY_TOKEN»" in window.text
    kept = [*(tmp_path / "outputs").rglob("*"), *(tmp_path / "state").rglob("*")]
    stored = {file: plain(file.read_text(errors="replace")) for file in kept if file.is_file()}
    assert [file for file, text in stored.items() if OURS in text] == []


async def test_a_value_that_is_cut_where_a_command_goes_on_is_answered_in_no_part(
    session: WorkspaceSession, root: Path
) -> None:
    waits = "touch said; while [ ! -e go ]; do sleep 0.02; done"
    command = f"printf 'key: {OURS[:5]}'; {waits}; echo {OURS[5:]}"
    call = ToolCall("1", "Bash", {"command": command})
    answer = await run_call(session, call, deps={ANSWER_BY.id: monotonic() + 2})
    while "said" not in os.listdir(root):
        await anyio.sleep(0.01)
    (root / "go").touch()
    shown = ""
    with anyio.fail_after(60):
        while "has ended" not in shown:
            shown += (await session.call("BashOutput", {"bash_id": "bash_1", "wait_ms": 60_000})).text
    assert OURS[:5] not in answer.text + shown
    assert "«DEPLOY_TOKEN»\n" in shown


async def test_the_record_keeps_no_part_of_a_value_where_it_cuts_an_answer(session: WorkspaceSession) -> None:
    record = session.record
    hash, _ = record.keep_answer("x" * ((1 << 16) - 5) + OURS)
    assert hash is not None
    assert (record.contents.get(hash) or b"").endswith("xx«DEPL".encode())


async def test_the_record_has_no_value_and_undo_still_gives_back_every_byte(
    session: WorkspaceSession, root: Path
) -> None:
    before = (root / "a").read_bytes()
    await session.call("Bash", {"command": f"echo {OURS} >> a"})
    assert b"s3cret" not in session.record.file.read_bytes()
    await session.undo()
    assert (root / "a").read_bytes() == before


async def test_progress_has_names_instead_of_values_and_a_value_for_the_program_is_as_it_is(root: Path) -> None:
    @definition.tool
    async def deploy(ctx: ToolContext) -> str:
        """Deploys."""
        await ctx.report_progress(1, 2, f"with {OURS}")
        await ctx.report_progress(2, 2)
        return OURS

    seen: list[Progress] = []
    async with open_session(Scope.workspace(root), tools=[deploy], sandbox="off", hide_secrets=True) as session:
        await session.call("deploy", {}, progress=seen.append)
        assert await session.value("deploy", {}) == OURS
    assert seen == [Progress(1, 2, "with «DEPLOY_TOKEN»"), Progress(2, 2, None)]


async def test_a_name_in_place_of_a_value_does_not_get_into_a_file(session: WorkspaceSession, root: Path) -> None:
    await session.call("Read", {"file_path": "a"})
    before = (root / "a").read_bytes()
    for tool, arguments in (
        ("Write", {"file_path": "a", "content": "«API_KEY»\nnew\n"}),
        ("Edit", {"file_path": "a", "old_string": "rest", "new_string": "«DEPLOY_TOKEN»"}),
    ):
        message = await session.call(tool, arguments)
        assert message.error is not None and message.error.code == "INVALID_ARGUMENT"
        assert "stands for a secret" in message.text
    assert (root / "a").read_bytes() == before
    assert not (
        await session.call("Edit", {"file_path": "a", "old_string": "rest", "new_string": "«OTHER»"})
    ).is_error


async def test_a_secret_that_is_added_later_is_known(session: WorkspaceSession, root: Path) -> None:
    await session.call("Read", {"file_path": "a"})
    (root / ".env.local").write_text("NEW_TOKEN=brand-new-one\n")
    (root / ".env.example").write_text("OLD_TOKEN=rest-of-all\n")
    assert (
        await session.call("Bash", {"command": "echo brand-new-one rest-of-all"})
    ).text == "«NEW_TOKEN» rest-of-all\n"


async def test_by_default_the_library_hides_nothing_and_the_edges_do(root: Path) -> None:
    async with open_session(Scope.workspace(root)) as session:
        assert OURS in (await session.call("Read", {"file_path": "a"})).text
    assert parse_config("").hide_secrets
    assert not parse_config('secrets = "keep"').hide_secrets


@pytest.mark.parametrize("odd", ["directory", "pipe", "link"])
async def test_a_name_like_env_that_is_no_file_stops_no_call(odd: str, tmp_path: Path) -> None:
    place = tmp_path / "ws"
    place.mkdir()
    (place / "a").write_text("text\n")
    {"directory": place.joinpath(".env").mkdir, "pipe": lambda: os.mkfifo(place / ".env"),
     "link": lambda: place.joinpath(".env").symlink_to("/")}[odd]()  # fmt: skip
    async with open_session(Scope.workspace(place), hide_secrets=True) as session:
        assert "text" in (await session.call("Read", {"file_path": "a"})).text
