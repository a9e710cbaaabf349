"""Desktop notifications about waiting questions, on desktops that have a program for that."""

from __future__ import annotations

import contextlib
import subprocess
import threading

from gripfast.host.program.programs import find_program
from gripfast.host.questions.queue import QueuedQuestion
from gripfast.text.escape import escaped

_SECONDS = 10.0
_LONGEST = 200
_SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


def notify_desktop(question: QueuedQuestion) -> None:
    """Shows a notification with `notify-send` or `osascript`. Does nothing if both are missing or it fails."""
    title = f"gripfast: {question.id} waits for you"
    asker = f"{question.asker}: " if question.asker else ""
    text = escaped(f"{asker}{question.tool} in {question.root}: {question.reason}")[:_LONGEST]
    command = _command(title, text)
    if command:
        threading.Thread(target=_run, args=(command,), daemon=True).start()


def _command(title: str, text: str) -> list[str]:
    if program := find_program("notify-send", on_path=False):
        marked = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return [program, "--app-name=gripfast", "--", title, marked]
    if program := find_program("osascript", on_path=False):
        return [program, *(word for line in _SCRIPT for word in ("-e", line)), title, text]
    return []


def _run(command: list[str]) -> None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
