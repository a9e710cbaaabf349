"""Background shells and todos on the page: of every session, live, and ended from there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from tests.edges.console.asking import CHANGE, shown

from gripfast.builtin.session import open_session
from gripfast.call.run import Session
from gripfast.host.files.scope import Scope
from gripfast.host.shell.board import TAIL, RunningShells, tidy
from gripfast.text.terminal import plain

pytestmark = pytest.mark.anyio

PATIENCE = 60  # seconds; a hang, not a measure
ENDLESS = "printf '\\033[31mred\\033[0m <b>\\n'; while :; do sleep 0.05; done"
SERVER = """
import sys, anyio
from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope

async def serve():
    async with open_session(Scope.workspace(sys.argv[1]), record=True, sandbox="off", id="other") as session:
        await session.call("Bash", {"command": "echo here; sleep 600", "run_in_background": True})
        print("ready", flush=True)
        await anyio.sleep(600)

anyio.run(serve)
"""


async def started(session: Session, command: str) -> None:
    answer = await session.call("Bash", {"command": command, "run_in_background": True})
    assert not answer.is_error, answer.text


async def until(page: httpx2.AsyncClient, what: str, fits: Callable[[Any], object], **parameters: Any) -> Any:
    """What the page shows, as soon as it fits."""
    with anyio.fail_after(PATIENCE):
        while not fits(found := await shown(page, what, **parameters)):
            await anyio.sleep(0.05)
    return found


async def test_a_background_shell_is_shown_while_it_prints(page: httpx2.AsyncClient, session: Session) -> None:
    assert await shown(page, "running") == []
    await started(session, ENDLESS)
    (shell,) = await shown(page, "running")
    assert (shell["name"], shell["session"], shell["ended_at"]) == ("bash_1", "one", None)
    assert shell["command"] == ENDLESS
    output = await until(page, "output", lambda found: found["size"], id=shell["id"])
    assert output["runs"] == [["red", "red"], [" <b>\n", ""]]


async def test_a_shell_is_ended_from_the_page_and_the_model_is_told(
    page: httpx2.AsyncClient, session: Session, state: Path
) -> None:
    await started(session, ENDLESS)
    (shell,) = await shown(page, "running")
    body = {"id": shell["id"]}
    assert (await page.post("/console/api/end", json=body)).status_code == 403
    other = {"origin": "http://evil.example"}
    assert (await page.post("/console/api/end", json=body, headers=other)).status_code == 403
    (still,) = await shown(page, "running")
    assert still["ended_at"] is None
    assert not list((state / "gripfast/running").glob("*.end"))

    assert (await page.post("/console/api/end", json=body, headers=CHANGE)).json() == {"ending": "bash_1"}
    (ended,) = await until(page, "running", lambda found: found[0]["ended_at"])
    assert ended["how"] == "stopped"
    assert "the user ended it" in (await session.call("BashOutput", {"bash_id": "bash_1"})).text
    assert (await page.post("/console/api/end", json=body, headers=CHANGE)).status_code == 422


async def test_a_shell_that_ends_by_itself_says_how(page: httpx2.AsyncClient, session: Session) -> None:
    await started(session, "echo the last words; exit 3")
    (ended,) = await until(page, "running", lambda found: found[0]["ended_at"])
    assert ended["how"] == "exit code 3"
    assert (await shown(page, "output", id=ended["id"]))["runs"] == [["the last words\n", ""]]


async def test_a_large_output_is_shown_by_its_end(page: httpx2.AsyncClient, session: Session) -> None:
    await started(session, "seq 100000; printf 'é%.0s' $(seq 40000); echo; echo the end")
    (ended,) = await until(page, "running", lambda found: found[0]["ended_at"])
    output = await shown(page, "output", id=ended["id"])
    ((text, _),) = output["runs"]
    assert output["left_out"]
    assert len(text.encode()) <= TAIL
    assert text.endswith("the end\n")
    assert "\ufffd" not in text


@pytest.mark.parametrize("id", ["", "..", "../questions/Q1", "x" * 5000, "0123456789abcdef-bash_1", "a\0b"])
async def test_an_unknown_shell_is_said(page: httpx2.AsyncClient, session: Session, id: str) -> None:
    await started(session, "sleep 600")
    assert (await shown(page, "output", id=id))["runs"] == []
    answer = await page.post("/console/api/end", json={"id": id}, headers=CHANGE)
    assert (answer.status_code, answer.json()) == (422, {"error": "this shell has ended"})


async def test_nothing_stays_when_the_session_ends(page: httpx2.AsyncClient, project: Path, state: Path) -> None:
    async with open_session(Scope.workspace(project), record=True, sandbox="off", id="short") as session:
        await started(session, "sleep 600")
        assert len(await shown(page, "running")) == 1
    assert await shown(page, "running") == []
    assert [path.name for path in (state / "gripfast/running").glob("*-bash_*")] == []


SECRET = "s3cr3t-and-long-enough-1234"


@pytest.fixture
async def hiding(project: Path) -> AsyncGenerator[Session]:
    """A session that knows a secret."""
    (project / ".env").write_text(f"API_TOKEN={SECRET}\n")
    options: dict[str, Any] = {"record": True, "sandbox": "off", "hide_secrets": True}
    async with open_session(Scope.workspace(project), **options) as session:
        yield session


async def test_secrets_are_not_copied(hiding: Session, page: httpx2.AsyncClient) -> None:
    await started(hiding, f"echo {SECRET}")
    (ended,) = await until(page, "running", lambda found: found[0]["ended_at"])
    text = str(await shown(page, "output", id=ended["id"])) + ended["command"]
    assert "s3cr3t" not in text
    assert "API_TOKEN" in text


@pytest.mark.parametrize("each", ["\\033[31m", "\\033[38;2;255;100;20m", "\\033]0;title\\007", "\\033(B"])
async def test_a_secret_with_colours_inside_is_not_shown(
    hiding: Session, page: httpx2.AsyncClient, state: Path, each: str
) -> None:
    await started(hiding, f"printf '{each.join(SECRET)}\\033[0m\\n'")
    (ended,) = await until(page, "running", lambda found: found[0]["ended_at"])
    output = await shown(page, "output", id=ended["id"])
    assert "".join(text for text, _ in output["runs"]) == "«API_TOKEN»\n"
    (copied,) = (state / "gripfast/running").glob("*.out")
    assert "s3cr3t-and-long" not in plain(copied.read_text())


@pytest.mark.parametrize("between", ["", "\\033[31m"])
async def test_a_secret_of_which_a_part_has_come_is_shown_to_nobody(
    hiding: Session, page: httpx2.AsyncClient, project: Path, between: str
) -> None:
    first, second = SECRET[:12], SECRET[12:]
    waits = "touch said; while [ ! -e go ]; do sleep 0.02; done"
    await started(hiding, f"printf 'a key: {first}{between}'; {waits}; printf '{second}\\nmore'; sleep 600")
    with anyio.fail_after(PATIENCE):
        while not (project / "said").exists():
            await anyio.sleep(0.01)
    (shell,) = await shown(page, "running")
    output = await until(page, "output", lambda found: found["runs"], id=shell["id"])
    assert output["runs"] == [["a key: ", ""]]
    answer = await hiding.call("BashOutput", {"bash_id": "bash_1"})
    assert answer.text.startswith("a key: \n[bash_1 is running")
    (project / "go").touch()
    output = await until(page, "output", lambda found: "more" in str(found["runs"]), id=shell["id"])
    assert "".join(text for text, _ in output["runs"]) == "a key: «API_TOKEN»\nmore"
    answer = await hiding.call("BashOutput", {"bash_id": "bash_1", "wait_ms": PATIENCE * 1000})
    assert answer.text.startswith("«API_TOKEN»\nmore")


async def test_the_last_words_of_a_shell_are_shown_even_if_a_secret_begins_like_them(
    hiding: Session, page: httpx2.AsyncClient
) -> None:
    await started(hiding, "printf 'it ends with s3c'")
    (ended,) = await until(page, "running", lambda found: found[0]["ended_at"])
    assert (await shown(page, "output", id=ended["id"]))["runs"] == [["it ends with s3c", ""]]


@pytest.fixture
def other(project: Path) -> Generator[subprocess.Popen[str]]:
    """Another process with a session and a background shell."""
    command = [sys.executable, "-P", "-c", SERVER, str(project)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


async def test_shells_of_another_process_are_shown_until_it_dies(
    page: httpx2.AsyncClient, other: subprocess.Popen[str], state: Path
) -> None:
    assert other.stdout is not None
    assert await anyio.to_thread.run_sync(other.stdout.readline) == "ready\n"
    (shell,) = await shown(page, "running")
    assert shell["session"] == "other"
    await until(page, "output", lambda found: found["runs"] == [["here\n", ""]], id=shell["id"])
    other.kill()
    await anyio.to_thread.run_sync(other.wait)
    assert await shown(page, "running") == []
    answer = await page.post("/console/api/end", json={"id": shell["id"]}, headers=CHANGE)
    assert answer.status_code == 422
    tidy()
    assert [path.name for path in (state / "gripfast/running").iterdir() if path.name != "looked"] == []


async def test_a_shell_of_another_process_is_ended(page: httpx2.AsyncClient, other: subprocess.Popen[str]) -> None:
    assert other.stdout is not None
    assert await anyio.to_thread.run_sync(other.stdout.readline) == "ready\n"
    (shell,) = await shown(page, "running")
    assert (await page.post("/console/api/end", json={"id": shell["id"]}, headers=CHANGE)).status_code == 200
    await until(page, "running", lambda found: found[0]["how"] == "stopped")


async def test_an_unusable_state_directory_hides_shells_and_breaks_none(project: Path, state: Path) -> None:
    async with open_session(Scope.workspace(project), record=True, sandbox="off") as session:
        (state / "gripfast" / "running").write_text("in the way")
        await started(session, "echo fine")
        answer = await session.call("BashOutput", {"bash_id": "bash_1", "wait_ms": PATIENCE * 1000})
    assert answer.text.startswith("fine")
    assert RunningShells().all() == []


async def test_the_plan_of_a_session_is_shown(page: httpx2.AsyncClient, session: Session) -> None:
    todos = [{"content": "read <it>", "status": "in_progress"}, {"content": "write it"}]
    await session.call("write_todos", {"todos": todos})
    (found,) = await shown(page, "sessions")
    rows = await shown(page, "calls", place=found["place"])
    assert rows["todos"] == 1
    assert await shown(page, "todos", place=found["place"]) == [
        {"content": "read <it>", "status": "in_progress"},
        {"content": "write it", "status": "pending"},
    ]
    await session.call("write_todos", {"todos": "no list"})
    assert (await shown(page, "calls", place=found["place"]))["todos"] == 1
