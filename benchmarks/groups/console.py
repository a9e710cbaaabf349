"""The console in Chromium: how soon it shows 10,000 calls, what that takes, and how soon it shows a new one."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Row, Run, bound
from gripfast.host.record.calls import RecordedCall
from gripfast.host.record.shelf import make_session_directory

GROUP = "Console"
CALLS = 10_000
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
PATIENCE_SECONDS = 120
# Notes in the page when the calls are there, and when each new one is.
NOTES = """
window.shownAt = {};
const look = () => {
  const rows = document.querySelectorAll("#rows tr");
  if (rows.length && !window.firstAt) requestAnimationFrame(() => { window.firstAt ||= performance.now(); });
  const newest = rows[0] && rows[0].dataset.number;
  if (newest && !window.shownAt[newest]) window.shownAt[newest] = Date.now();
};
new MutationObserver(look).observe(document, { childList: true, subtree: true });
"""


def measure(run: Run) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None or importlib.util.find_spec("playwright") is None:
        why = "there is no Chromium" if chromium is None else "playwright is not installed"
        run.add(Row(GROUP, "the page with 10,000 calls", "≤ 1 s", "not measured", "", None, why, 0.0))
        return
    with tempfile.TemporaryDirectory(prefix="gripfast-bench-") as place:
        project = Path(place) / "project"
        project.mkdir()
        os.environ["XDG_STATE_HOME"] = f"{place}/state"
        record = _recorded(project)
        with _console(project) as link, _browser(chromium) as browser:
            run.step(GROUP, "the page with 10,000 calls", lambda: _page(run, browser, link, record))
        del os.environ["XDG_STATE_HOME"]


def _recorded(project: Path) -> Path:
    directory = make_session_directory(str(project), "many")
    file = directory / "calls.jsonl"
    head = json.dumps({"record": 1, "session": "many", "roots": [str(project)]})
    file.write_text("\n".join([head, *map(_line, range(1, CALLS + 1))]) + "\n", encoding="utf-8")
    return file


def _line(number: int) -> str:
    tool, about = "Bash", {"command": f"make part-{number}"}
    began = time.time() - CALLS + number
    return json.dumps(RecordedCall(number, began, tool, json.dumps(about), "allowed", 12.5, 1000, 250).to_json())


@contextmanager
def _console(project: Path) -> Generator[str]:
    sys.path.append(str(ROOT / "tests"))
    from console_link import console_link

    command = [sys.executable, "-P", "-m", "gripfast", "console"]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        try:
            yield console_link(started.stderr.readline())
        finally:
            started.terminate()


@contextmanager
def _browser(chromium: str) -> Generator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


def _page(run: Run, browser: Any, link: str, record: Path) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.add_init_script(NOTES)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(link)
    page.get_by_role("heading", name=f"Calls ({CALLS:,})").wait_for()
    note = "its process; shared pages count in part"
    bound(run, GROUP, "memory of the page", _memory(browser) / 1e6, 150.0, "MB", note=note)
    painted: list[float] = []
    shown: list[float] = []
    for _ in range(3 if run.quick else 7):
        page.reload()
        shown.append(_once(page, "window.firstAt") / 1000)
        painted.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
    page.get_by_role("heading", name=f"Calls ({CALLS:,})").wait_for()
    bound(run, GROUP, "first paint with 10,000 calls", statistics.median(painted), 1.0, "s")
    bound(run, GROUP, "the newest of 10,000 calls shown", statistics.median(shown), 1.0, "s")
    delays = [_delay(page, record, CALLS + number + 1) for number in range(5 if run.quick else 20)]
    bound(run, GROUP, "a new call shown after it ended", statistics.median(delays), 0.3, "s", spread=_range(delays))


def _delay(page: Any, record: Path, number: int) -> float:
    ended = time.time()
    with record.open("a", encoding="utf-8") as file:
        file.write(_line(number) + "\n")
    return _once(page, f"window.shownAt[{number}]") / 1000 - ended


def _once(page: Any, expression: str) -> float:
    """A value of the page as soon as it has one. The page's policy forbids what playwright would wait with."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if value := page.evaluate(expression):
            return value
        time.sleep(0.01)
    raise TimeoutError(expression)


def _range(values: list[float]) -> str:
    low, _, high = statistics.quantiles(values, n=4)
    return f"{low:.2f} to {high:.2f}"


def _memory(browser: Any) -> int:
    """The proportional set size of the largest process that shows pages."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return max(_proportional(one["id"]) for one in found if one["type"] == "renderer")


def _proportional(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return int(re.findall(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)[0]) * 1024
