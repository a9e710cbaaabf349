"""Real clients that can't ask: a question is answered from another terminal, and a long command is not cut off."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from console_link import console_link
from gripfast.host.questions.queue import QuestionQueue
from peers.around import GRIPFAST
from peers.test_claude_code import run_claude
from peers.test_codex import APPROVED, run_codex
from peers.test_gemini import run_gemini
from peers.test_opencode import run_opencode
from scripted_model import Script, scripted_model

ASKS = '[permissions]\ndefault_action = "ask"\n'
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LONG = "echo run >> runs; sleep 90; echo finished"


def codex(model: Script, project: Path, home: Path) -> None:
    (home / "codex").mkdir()
    run_codex(model, home / "codex", project, ["--root", str(project)], *APPROVED)


def claude(model: Script, project: Path, home: Path) -> None:
    run_claude(model, project, home, [name for name, _ in model.calls])


Client = tuple[str, Callable[[Script, Path, Path], None]]
CLIENTS: dict[str, Client] = {
    "codex": ("mcp__gripfast.", codex),
    "claude": ("mcp__gripfast__", claude),
    "opencode": ("gripfast_", run_opencode),
    "gemini": ("mcp_gripfast_", run_gemini),
}


def approve_first(home: Path, codes: list[int]) -> None:
    """Waits for a question, then answers it as a person at another terminal would."""
    queue = QuestionQueue(home / ".local" / "state" / "gripfast" / "questions")
    until = time.monotonic() + 200
    while not (waiting := queue.waiting()):
        if time.monotonic() > until:
            return
        time.sleep(0.05)
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    codes += [subprocess.run([*GRIPFAST, "approve", waiting[0].id], env=env, check=False).returncode]


def approve_on_page(home: Path, codes: list[int]) -> None:
    """Opens the console in a browser, and presses Approve as soon as a question is there."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not everywhere

    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with (
        subprocess.Popen([*GRIPFAST, "console"], env=env, cwd=home, stderr=subprocess.PIPE, text=True) as console,
        sync_playwright() as playwright,
    ):
        assert console.stderr is not None
        link = console_link(console.stderr.readline())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            page = browser.new_page()
            page.goto(link)
            page.get_by_role("button", name="Approve", exact=True).click(timeout=200_000)
            page.locator("article.question").wait_for(state="detached")
            codes.append(0)
        finally:
            browser.close()
            console.terminate()


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("name", CLIENTS)
def test_a_question_is_answered_from_the_page(project: Path, tmp_path: Path, name: str) -> None:
    pytest.importorskip("playwright")
    answered_by(approve_on_page, project, tmp_path, name)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_question_is_answered_from_another_terminal(project: Path, tmp_path: Path, name: str) -> None:
    answered_by(approve_first, project, tmp_path, name)


def answered_by(answer: Callable[[Path, list[int]], None], project: Path, tmp_path: Path, name: str) -> None:
    """A client calls Bash under rules that ask, and somebody says yes elsewhere: the command runs once."""
    prefix, play = CLIENTS[name]
    own = tmp_path / ".config" / "gripfast" / "gripfast.toml"
    own.parent.mkdir(parents=True)
    own.write_text(ASKS, encoding="utf-8")
    codes: list[int] = []
    person = threading.Thread(target=answer, args=(tmp_path, codes))
    person.start()
    with scripted_model((f"{prefix}Bash", {"command": "echo run >> runs; echo approved-and-run"})) as model:
        play(model, project, tmp_path)
    person.join()
    assert codes == [0], model.results
    assert "approved-and-run" in str(model.results[0])
    assert (project / "runs").read_text(encoding="utf-8") == "run\n"


@pytest.mark.skipif("GRIPFAST_LONG" not in os.environ, reason="takes 100 seconds each; set GRIPFAST_LONG to run it")
@pytest.mark.parametrize("name", ["codex", "claude", "opencode"])
def test_a_command_of_90_seconds_is_answered_and_runs_once(project: Path, tmp_path: Path, name: str) -> None:
    prefix, play = CLIENTS[name]
    call = (f"{prefix}Bash", {"command": LONG})
    with scripted_model(call, call, (f"{prefix}BashOutput", {"bash_id": "bash_1", "offset": 0})) as model:
        play(model, project, tmp_path)
    first, second, shown = map(str, model.results)
    assert "goes on in the background as bash_1" in first
    assert "it was not run again" in second and "finished" in second
    assert "finished" in shown and "exit code 0" in shown
    assert (project / "runs").read_text(encoding="utf-8") == "run\n"
