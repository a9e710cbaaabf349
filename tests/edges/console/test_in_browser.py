"""The console in a real browser. Skipped where there is none."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cache_stores import running_redis
from console_link import console_link
from fleet_servers import Person
from fleet_servers import Server as FleetServer
from gripfast.host.questions.queue import Asking, QuestionQueue
from gripfast.host.record.calls import RecordedCall
from gripfast.host.record.elsewhere import line_for_others
from gripfast.host.record.shelf import make_session_directory
from gripfast.host.stores.redis_sessions import RedisSessions
from gripfast.host.stores.sessions import Leased, stored_name

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 90_000  # milliseconds; a hang, not a measure
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
HOSTILE = "<img src=x onerror=document.title='broken'>.txt"

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]


@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    """One for this module. Not for the session: while Playwright runs, other tests can't start an event loop."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not everywhere

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def browser(chromium: Browser) -> Generator[Browser]:
    """Without windows, cookies or storage of an earlier test: each page is opened in a context of its own."""
    yield chromium
    for context in chromium.contexts:
        context.close()


@contextmanager
def console(project: Path, port: int = 0, *options: str, **environment: str) -> Generator[str]:
    command = [sys.executable, "-P", "-m", "gripfast", "console", "--port", str(port), *options]
    env = {**os.environ, **environment}
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True, env=env) as started:
        assert started.stderr is not None
        try:
            yield console_link(started.stderr.readline())
        finally:
            started.terminate()


def called(project: Path, tool: str, arguments: str) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "gripfast",
        "call",
        tool,
        arguments,
        "--session",
        "demo",
        "--rules",
        "none",
    ]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)


def opened(browser: Browser, link: str, **options: Any) -> tuple[Page, list[str]]:
    page = browser.new_context(viewport={"width": 1400, "height": 900}, **options).new_page()
    page.set_default_timeout(PATIENCE)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
    page.goto(link)
    page.locator("#questions").wait_for(state="attached")  # the link answers with a page that leads to the console
    return page, faults


def pictured(page: Page, name: str) -> None:
    """Keeps a picture where GRIPFAST_PICTURES names a directory."""
    if os.environ.get("GRIPFAST_PICTURES"):
        page.screenshot(path=Path(os.environ["GRIPFAST_PICTURES"]) / f"{name}.png", animations="disabled")


def test_the_link_is_not_on_the_browsers_command_line(project: Path, browser: Browser, tmp_path: Path) -> None:
    given, programs = tmp_path / "given", tmp_path / "bin"
    programs.mkdir()
    os.mkfifo(given)
    (programs / "xdg-open").write_text(f'#!/bin/sh\necho "$@" > {given}\n')
    (programs / "xdg-open").chmod(0o755)
    with console(project, 0, "--open", PATH=f"{programs}:{os.environ['PATH']}") as link:
        file = Path(given.read_text().strip())
        assert link.partition("key=")[2] and link not in str(file)
        assert file.stat().st_mode & 0o777 == 0o600
        page, _ = opened(browser, file.as_uri())  # arrives at the console: the cookie was sent along
        assert page.url.startswith(link.partition("?")[0])
    assert not file.exists()


def test_calls_of_other_servers_are_beside_those_of_this_machine(project: Path, browser: Browser) -> None:
    called(project, "Write", '{"file_path": "a.txt", "content": "one"}')
    (file,) = (Path(os.environ["XDG_STATE_HOME"]) / "gripfast" / "record").glob("*/*/calls.jsonl")
    key = "a session that both know"
    file.parent.rename(file.parent.parent / stored_name(key))  # the only session here
    for redis in running_redis(password="of the store"):
        store = RedisSessions(redis.url)
        there = RecordedCall(1, 1.0, "Edit", f'{{"file_path": "{HOSTILE}"}}').to_json()
        held = store.lease(key, "ann", "one", "Read", new=True)
        assert isinstance(held, Leased)
        assert store.save(held.lease, {}, [line_for_others(there, f"{HOSTILE} x")], root=str(project), release=True)
        with console(project, 0, "--store", redis.url) as link:
            page, faults = opened(browser, link)
            row = page.locator("#rows tr", has_text="1@").first
            row.wait_for()
            assert page.locator("#rows tr").count() == 2
            row.click()
            page.locator("#detail .answer", has_text="are on server").wait_for()
            assert page.locator("#detail").get_by_role("button", name="Undo").count() == 0
            assert row.locator("input").count() == 0
            page.keyboard.press("k")  # to the newer one, which is here
            page.locator("#detail h2", has_text="#1 Write").wait_for()
            assert page.locator("#detail").get_by_role("button", name="Undo").count() == 1
            assert (page.title(), faults) == ("gripfast console", [])
        store.close()


def test_watch_approve_and_undo(project: Path, browser: Browser) -> None:
    called(project, "Write", '{"file_path": "app/main.py", "content": "def main():\\n    return 42\\n"}')
    with console(project) as link:
        page, faults = opened(browser, link)
        page.locator("#rows tr").click()
        page.locator("#detail pre.field", has_text="def main():\n    return 42\n").wait_for()
        called(project, "Edit", '{"file_path": "app/main.py", "old_string": "42", "new_string": "43"}')
        page.locator('#rows tr[data-number="2"]').click()  # came by itself
        page.locator("#detail .line.added", has_text="return 43").wait_for()
        page.get_by_role("button", name="Side by side").click()
        page.locator("#detail .diff.side").wait_for()
        pictured(page, "console")

        waiting = answered_question(project)
        question = page.get_by_role("article", name="Question Q1")
        question.wait_for()
        assert "git push" in question.inner_text()
        pictured(page, "console-question")
        question.get_by_role("button", name="Approve", exact=True).click()
        assert waiting() == "yes"
        question.wait_for(state="detached")

        page.keyboard.press("u")
        page.get_by_role("heading", name="Would take back call 2").wait_for()
        assert "43" in (project / "app/main.py").read_text()
        page.get_by_role("button", name="Undo now").click()
        page.get_by_role("heading", name="Took back call 2").wait_for()
        assert "42" in (project / "app/main.py").read_text()
        assert faults == []


def answered_question(project: Path) -> Callable[[], str]:
    """Asks; what is returned waits for the answer's verdict."""
    queue = QuestionQueue()
    shown = f"Bash wants to run. it reaches beyond this machine\ncommand: git push\nworking directory: {project}"
    asked = queue.ask(
        Asking("demo", str(project), "Bash", "it reaches beyond", shown, {"always": "exactly this call"})
    )

    def verdict() -> str:
        stopped = threading.Event()
        for _ in range(PATIENCE // 50):
            answer = queue.answered(asked.id)
            if answer is not None:
                return answer.verdict
            stopped.wait(0.05)
        raise TimeoutError

    return verdict


def test_hostile_names_and_contents_stay_text(project: Path, browser: Browser) -> None:
    script = "<script>document.title='broken'</script>"
    (project / HOSTILE).write_text("")
    called(project, "Bash", f'{{"command": "cat *; echo \\"{script}\\" | tee -- *.txt"}}')
    with console(project) as link:
        page, faults = opened(browser, link)
        page.locator("#rows tr").first.click()
        page.locator("#detail pre.answer", has_text=script).wait_for()
        page.locator("#detail li", has_text=HOSTILE).wait_for()
        assert page.title() == "gripfast console"
        assert page.locator("#detail img").count() == 0
        assert faults == []


EVIL = "<img src=x onerror=document.title=1>"
EVERYWHERE = """
import shlex, sys, anyio
from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope
from gripfast.host.questions.queue import Asking, QuestionQueue

async def serve(root, evil):
    scope = Scope.workspace(root)
    async with open_session(scope, record=True, sandbox="off", id=f"one{evil}") as session:
        quoted, name = shlex.quote(evil), f"{evil}.txt"
        await session.call("Write", {"file_path": name, "content": f"{evil}\\n"})
        await session.call("Write", {"file_path": f"2{name}", "content": f"{evil}\\n"})
        printed = f"printf '\\\\033[31m%s\\\\033[0m\\\\n' {quoted}"
        await session.call("Bash", {"command": f"{printed}; echo {quoted} | tee -a ./*.txt"})
        await session.call("write_todos", {"todos": [{"content": evil}]})
        await session.call("Bash", {"command": f"{printed}; sleep 600", "run_in_background": True})
        entry = session.record.begin("9", f"Tool{evil}", "{}")
        entry.decided(f"denied: the user said no: {evil}")
        entry.end()
        widths = {"always": f"this {evil}"}
        shown, diff = f"command: {evil}", f"--- {evil}\\n+++ {evil}\\n@@ -1 +1 @@\\n-{evil}\\n+'{evil}'"
        asking = Asking(f"one{evil}", root, f"Bash{evil}", evil, f"{shown}\\n{diff}", widths, diff, f"client{evil}")
        QuestionQueue().ask(asking)
        print("ready", flush=True)
        await anyio.sleep(600)

anyio.run(serve, *sys.argv[1:])
"""


def test_whatever_is_shown_is_text(project: Path, browser: Browser) -> None:
    """Each place of the page that shows something from a workspace, from a command, a client or a person."""
    root = project / f"shop{EVIL}"
    root.mkdir()
    with server(root, EVIL, EVERYWHERE), console(project) as link:
        page, faults = opened(browser, link)

        def shows(*places: str) -> None:
            for place in places:
                page.locator(place, has_text=EVIL).first.wait_for()
                assert EVIL in page.locator(place, has_text=EVIL).first.inner_text(), place

        question = "article.question"
        shows(f"{question} h3", f"{question} pre", f"{question} .covers", f"{question} .diff .added")
        shows("#sessions .root", "#shells h3 code", "#shells .covers", "#shells pre .t-red")
        shows("#rows .tool", "#rows .what", "#rows .decision", "#todos li")
        page.locator("#numbers text", has_text="Tool<img").first.wait_for()
        page.locator('#rows tr[data-number="3"]').click()
        shows("#detail pre", "#detail pre.answer .t-red", "#detail li", "#detail .line.added", "#detail .line.head")
        page.get_by_role("button", name="Side by side").click()
        shows("#detail .side .added")
        page.get_by_role("button", name="Undo", exact=True).click()
        shows("#undo li")
        (root / f"{EVIL}.txt").write_text("somebody else's")
        page.get_by_role("button", name="Undo now").click()
        page.get_by_role("heading", name="Left alone").wait_for()
        shows("#undo li")
        page.get_by_role("button", name="Close", exact=True).last.click()
        page.locator('#rows tr[data-number="6"]').click()
        shows("#detail h2", "#detail dd")
        page.route("**/console/api/answer", lambda route: route.fulfill(status=409, body=json.dumps({"error": EVIL})))
        page.get_by_role("button", name="Deny").click()
        shows("#fault-text")
        assert page.locator("img").count() == 1  # our own
        assert (page.title(), faults) == ("(1) gripfast console", [])


def test_a_page_survives_its_server_and_a_second_tab_sees_the_same(project: Path, browser: Browser) -> None:
    called(project, "Write", '{"file_path": "a.txt", "content": "one\\n"}')
    with console(project) as link:
        port = int(link.split(":")[2].split("/")[0])
        page, _ = opened(browser, link)
        page.locator("#rows tr").wait_for()
        other = page.context.new_page()
        other.goto(f"http://127.0.0.1:{port}/console")
        other.locator("#rows tr").wait_for(timeout=PATIENCE)
    page.locator("#state.gone", has_text="the server is gone").wait_for()
    answered_question(project)
    with console(project, port) as link:
        page.locator("#state", has_text="the console was started again; open the new link").wait_for()
        assert page.locator("article.question").count() == 0  # its old secret opens nothing
        page.goto(link)
        page.get_by_role("article", name="Question Q1").wait_for()
        page.locator("#state.live").wait_for()
        page.locator("#rows tr").wait_for()


def test_ten_thousand_calls_are_shown(project: Path, browser: Browser) -> None:
    directory = make_session_directory(str(project), "many")
    lines = [f'{{"record":1,"session":"many","roots":["{project}"]}}']
    lines += [
        json.dumps(RecordedCall(number, 1.79e9 + number, "Read", '{"path":"a"}', "allowed", 1.5, 100, 25).to_json())
        for number in range(1, 10_001)
    ]
    (directory / "calls.jsonl").write_text("\n".join(lines) + "\n")
    with console(project) as link:
        page, faults = opened(browser, link)
        page.get_by_role("heading", name="Calls (10,000)").wait_for()
        assert page.locator("#rows tr").count() == 300
        for name in (
            "Calls over time: 10,000",
            "Tokens of answers over time: 250,000",
            "Tokens by tool: Read 250,000",
        ):
            page.get_by_role("img", name=name).wait_for()
        page.get_by_role("img", name=re.compile(r"^Slowest calls, ms: #\d+ Read 2 ms, ")).wait_for()
        page.get_by_role("button", name="Show older calls").click()
        assert page.locator("#rows tr").count() == 600
        page.locator("#filter").fill("nothing like this")
        page.locator("#rows tr").first.wait_for(state="detached")
        assert faults == []


def test_a_question_is_seen_and_answered_by_keys(project: Path, browser: Browser) -> None:
    called(project, "Bash", '{"command": "seq 500"}')
    with console(project) as link:
        page, faults = opened(browser, link)
        other = page.context.new_page()
        other.goto(page.url)
        page.locator("#rows tr").click()
        page.locator("#detail pre.answer").wait_for()
        first, second = answered_question(project), answered_question(project)
        page.get_by_role("button", name="2 questions wait").wait_for()
        assert page.title() == "(2) gripfast console"
        page.keyboard.press("q")
        assert focused(page) == "Question Q1"
        page.keyboard.press("y")
        assert first() == "yes"
        page.get_by_role("article", name="Question Q1").wait_for(state="detached")
        assert focused(page) == "Question Q2"
        page.get_by_label("Reason to deny Q2").fill("not yet")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Deny").click()
        assert second() == "no"
        assert because("Q2") == "not yet"
        other.locator("#questions").wait_for(state="hidden", timeout=PATIENCE)
        assert page.title() == other.title() == "gripfast console"
        assert faults == []


def test_a_question_that_is_longer_than_its_box_says_so_until_its_end_was_seen(
    project: Path, browser: Browser
) -> None:
    diff = "--- a.txt\n+++ a.txt\n@@ -0,0 +1,200 @@\n" + "\n".join(f"+line {number}" for number in range(200))
    shown = "Bash wants to run\ncommand: " + "echo harmless; " * 500 + "rm -rf everything"
    QuestionQueue().ask(Asking("demo", str(project), "Bash", "why", f"{shown}\n{diff}", {}, diff))
    answered_question(project)
    with console(project) as link:
        page, faults = opened(browser, link)
        long, short = (page.get_by_role("article", name=f"Question Q{number}") for number in (1, 2))
        notes = long.locator(".more")
        notes.first.wait_for()
        notes.last.wait_for()
        for box, note in ((long.locator("pre"), notes.first), (long.locator(".diff"), notes.last)):
            box.evaluate("box => { box.scrollTop = box.scrollHeight; }")
            note.wait_for(state="hidden")
        assert short.locator(".more:visible").count() == 0
        assert faults == []


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.getAttribute('aria-label')")


def because(id: str) -> str:
    answer = QuestionQueue().answered(id)
    assert answer is not None
    return answer.because


def test_an_answer_that_did_not_count_is_said_until_it_was_read(project: Path, browser: Browser) -> None:
    answered_question(project)
    with console(project) as link:
        page, _ = opened(browser, link)
        told = json.dumps({"error": "Q1 was answered before"})
        page.route("**/console/api/answer", lambda route: route.fulfill(status=409, body=told))
        page.get_by_role("button", name="Approve", exact=True).click()
        page.get_by_role("alert").get_by_text("Q1 was answered before").wait_for()
        called(project, "Glob", '{"pattern": "*"}')
        page.locator("#rows tr").wait_for()  # a look later it is still there
        page.get_by_role("button", name="Dismiss").click()
        page.get_by_role("alert").wait_for(state="hidden")


def test_a_question_whose_answer_is_on_its_way_takes_no_second_one(project: Path, browser: Browser) -> None:
    queue = QuestionQueue()
    answers: list[Route] = []
    for shown in ("touch one", "touch two"):
        queue.ask(Asking("demo", str(project), "Bash", "why", shown, {}))

    with console(project) as link:
        page, _ = opened(browser, link)
        page.route("**/console/api/answer", lambda route: answers.append(route))
        page.locator("article.question").nth(1).wait_for()
        first, second = page.locator("article.question").all()
        page.keyboard.press("q")
        page.keyboard.press("y")
        page.wait_for_function("document.querySelector('article.question').inert")
        page.keyboard.press("q")  # the second one: nothing waits in the first
        page.keyboard.press("n")
        page.wait_for_function("[...document.querySelectorAll('article.question')].every((one) => one.inert)")
        for key in "qyn":
            page.keyboard.press(key)
        answered = [json.loads(route.request.post_data or "")["id"] for route in answers]
        assert len(answered) == 2
        assert set(answered) == {first.get_attribute("data-id"), second.get_attribute("data-id")}
        for route in answers:
            route.continue_()
        page.locator("#questions").wait_for(state="hidden")


def test_calls_are_read_and_undone_by_keys(project: Path, browser: Browser) -> None:
    for number in (1, 2, 3):
        called(project, "Write", f'{{"file_path": "{number}.txt", "content": "{number}"}}')
    called(project, "Bash", json.dumps({"command": "printf '\\033[1;31mred\\033[0m <b>\\n'; echo x > a.txt"}))
    with console(project) as link:
        page, faults = opened(browser, link)
        page.locator("#rows tr").first.wait_for()
        page.keyboard.press("j")
        page.locator("#detail pre.answer .t-bold.t-red", has_text="red").wait_for()
        assert page.locator("#detail pre.answer").inner_text() == "red <b>\n[files: created a.txt]"
        assert focused(page).startswith("Open call 4: Bash")
        page.keyboard.press("ArrowDown")
        page.get_by_role("heading", name="#3 Write").wait_for()
        page.keyboard.press("x")
        page.keyboard.press("j")
        page.get_by_role("heading", name="#2 Write").wait_for()
        page.keyboard.press("x")
        page.keyboard.press("Enter")
        page.locator("#detail:focus").wait_for()
        page.keyboard.press("Escape")
        page.locator("#detail").wait_for(state="hidden")
        assert focused(page).startswith("Open call 2: Write")
        page.keyboard.press("u")
        page.get_by_role("heading", name="Would take back call 2, 3").wait_for()
        page.get_by_role("button", name="Undo now").click()
        page.get_by_role("heading", name="Took back call 2, 3").wait_for()
        assert sorted(file.name for file in project.iterdir()) == ["1.txt", "a.txt"]
        assert faults == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 360)])
def test_nothing_is_wider_than_the_screen(project: Path, browser: Browser, scheme: Any, width: int) -> None:
    long = "a/" * 60 + "x" * 100
    called(project, "Write", json.dumps({"file_path": "w" * 200, "content": "z" * 3000 + "\n"}))
    called(project, "Bash", json.dumps({"command": f"echo {long} {'y' * 3000}"}))
    answered_question(project / long)
    with console(project) as link:
        page, faults = opened(browser, link, color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        page.get_by_role("article", name="Question Q1").wait_for()
        for number in (1, 2):
            page.locator(f'#rows tr[data-number="{number}"]').click()
            page.get_by_role("heading", name=f"#{number} ").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.keyboard.press("Escape")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground))) < 200) == (scheme == "dark")
        assert faults == []


SERVER = """
import sys, anyio
from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope

async def serve():
    async with open_session(Scope.workspace(sys.argv[1]), record=True, sandbox="off", id="building") as session:
        todos = [{"content": "Find out why the build is slow", "status": "completed"},
                 {"content": "Build in watch mode", "status": "in_progress"}, {"content": "Write it down"}]
        await session.call("write_todos", {"todos": todos})
        await session.call("Bash", {"command": sys.argv[2], "run_in_background": True})
        print("ready", flush=True)
        await anyio.sleep(600)

anyio.run(serve)
"""
COMMAND = "printf '\\033[1;32mbuilt\\033[0m in 41 ms <script>\\n'; while :; do sleep 0.1; echo again; done"


@contextmanager
def server(project: Path, word: str, script: str = "") -> Generator[None]:
    """A session in another process, with a plan and a background shell. `word` is its command."""
    words = [sys.executable, "-P", "-c", script or SERVER, str(project), word]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            assert started.stdout.readline() == "ready\n"
            yield
        finally:
            started.kill()


def test_background_shells_are_shown_live_and_ended(project: Path, browser: Browser) -> None:
    with server(project, COMMAND), console(project) as link:
        page, faults = opened(browser, link)
        shell = page.get_by_role("article", name="Shell bash_1")
        shell.locator("pre .t-bold.t-green", has_text="built").wait_for()
        shell.locator("pre", has_text="again\nagain\n").wait_for()  # live
        page.locator("#todos li.in_progress", has_text="Build in watch mode").wait_for()
        page.locator("#quota-text", has_text="MB").wait_for()
        pictured(page, "console-running")
        shell.get_by_role("button", name="End bash_1").click()
        shell.get_by_text("stopped").wait_for()
        assert shell.get_by_role("button", name="End bash_1").count() == 0
        assert faults == []


def test_a_shell_is_ended_by_keys(project: Path, browser: Browser) -> None:
    with server(project, COMMAND), console(project) as link:
        page, _ = opened(browser, link)
        shell = page.get_by_role("article", name="Shell bash_1")
        shell.wait_for()
        page.keyboard.press("r")
        page.keyboard.press("e")
        shell.get_by_text("stopped").wait_for()


RULES = """
[permissions]
default_action = "allow"
[[permissions.rule]]
tool = "Bash"
pattern = "touch *"
action = "ask"
"""


class Agent:
    """A client that can't ask, of a server over HTTP."""

    def __init__(self, port: int) -> None:
        self._port, self._person = port, Person().begin(port)
        self._pool = ThreadPoolExecutor(1)

    def call(self, tool: str, **arguments: Any) -> Future[str]:
        """Begins a call. Its text comes when it is answered."""
        return self._pool.submit(lambda: self._person.call(self._port, tool, **arguments).text)

    def bash(self, command: str, **arguments: Any) -> Future[str]:
        return self.call("Bash", command=command, **arguments)


@pytest.fixture
def served(project: Path, tmp_path: Path) -> Generator[FleetServer]:
    """A server over HTTP, which has the page at /console."""
    (tmp_path / "rules.toml").write_text(RULES, encoding="utf-8")
    started = FleetServer(project, tmp_path / "state", None, "--config", str(tmp_path / "rules.toml"))
    try:
        yield started
    finally:
        started.end()


def test_the_page_of_a_server_over_http_by_mouse(project: Path, browser: Browser, served: FleetServer) -> None:
    agent = Agent(served.port)
    page, faults = opened(browser, served.link)
    agent.call("Write", file_path="a.txt", content="one\n").result(60)
    agent.bash("echo b > b.txt; echo c > c.txt").result(60)
    page.locator('#rows tr[data-number="2"]').click()
    page.locator("#detail li", has_text="b.txt").get_by_role("button", name="Undo this path").click()
    page.locator("#undo li", has_text="b.txt").wait_for()
    assert "c.txt" not in page.locator("#undo").inner_text() and (project / "b.txt").exists()
    page.get_by_role("button", name="Undo now").click()
    page.get_by_role("heading", name="Took back call 2").wait_for()
    assert sorted(file.name for file in project.iterdir()) == ["a.txt", "c.txt"]
    page.locator("#undo").get_by_role("button", name="Close").click()

    denied = agent.bash("touch denied")
    page.get_by_role("article").get_by_placeholder("reason").fill("not on Fridays")
    page.get_by_role("button", name="Deny").click()
    assert "the user said no: not on Fridays" in denied.result(60)
    approved = agent.bash("touch approved")
    page.get_by_role("button", name="Approve", exact=True).click()
    approved.result(60)
    always = agent.bash("touch always")
    page.get_by_role("button", name="Always", exact=True).click()
    always.result(60)
    agent.bash("touch always").result(60)  # nobody is asked again
    assert sorted(file.name for file in project.iterdir()) == ["a.txt", "always", "approved", "c.txt"]

    agent.bash("echo up; sleep 600", run_in_background=True).result(60)
    shell = page.get_by_role("article", name="Shell bash_1")
    shell.locator("pre", has_text="up").wait_for()
    shell.get_by_role("button", name="End bash_1").click()
    shell.get_by_text("stopped").wait_for()
    assert "stopped" in agent.call("BashOutput", bash_id="bash_1").result(60)
    assert faults == []


def test_the_page_of_a_server_over_http_by_keys(project: Path, browser: Browser, served: FleetServer) -> None:
    agent = Agent(served.port)
    page, faults = opened(browser, served.link)
    keys = page.keyboard
    agent.call("Write", file_path="a.txt", content="one\n").result(60)
    page.locator("#rows tr").wait_for()
    keys.press("j")
    page.locator("#detail .line.added", has_text="one").wait_for()
    keys.press("u")
    page.get_by_role("heading", name="Would take back call 1").wait_for()
    assert (project / "a.txt").exists()
    keys.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Undo now"
    keys.press("Enter")
    page.get_by_role("heading", name="Took back call 1").wait_for()
    assert not (project / "a.txt").exists()
    keys.press("Escape")
    page.locator("#undo").wait_for(state="hidden")

    denied = agent.bash("touch denied")
    page.get_by_role("article", name="Question").wait_for()
    keys.press("q")
    while focused(page) != "Reason to deny Q1":
        keys.press("Tab")
    keys.type("not on Fridays")
    keys.press("Enter")
    assert "the user said no: not on Fridays" in denied.result(60)
    for number, key, name in ((2, "y", "approved"), (3, "a", "always")):
        called = agent.bash(f"touch {name}")
        page.get_by_role("article", name=f"Question Q{number}").wait_for()
        keys.press("q")
        keys.press(key)
        called.result(60)
    agent.bash("touch always").result(60)
    assert sorted(file.name for file in project.iterdir()) == ["always", "approved"]

    agent.bash("sleep 600", run_in_background=True).result(60)
    shell = page.get_by_role("article", name="Shell bash_1")
    shell.wait_for()
    keys.press("r")
    keys.press("e")
    shell.get_by_text("stopped").wait_for()
    assert faults == []
