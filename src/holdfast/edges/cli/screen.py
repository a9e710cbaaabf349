"""What people see on a terminal. In a pipe everything is plain, and rich is not even loaded."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread
import click

from holdfast.call.hooks import Answer, AskCallback, Question
from holdfast.host.terminal import visible
from holdfast.messages import ToolMessage
from holdfast.tool.context import Progress

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 1.0
"""Seconds before a person is told what they are waiting for."""

_asking = threading.Lock()
"""Held while a question stands on the terminal: nothing else is written there, least of all over it."""


def show(message: ToolMessage, face: str | None = None) -> None:
    """`face` is the field of a JSON answer that a person reads; the other fields follow on a line of their own."""
    stream = sys.stderr if message.is_error else sys.stdout
    if not stream.isatty():
        # As it is: click would take escapes out.
        click.echo(message.text, err=message.is_error, color=True, nl=not message.text.endswith("\n"))
    elif message.is_error:
        click.secho(visible(message.text), fg="red", err=True)
    else:
        _colourful(message.text, face)


def _colourful(text: str, face: str | None) -> None:
    value = _as_json(text)
    if face and isinstance(value, dict):
        rest = cast("dict[str, Any]", value)
        _lines(str(rest.pop(face, "")))
        click.secho(visible(json.dumps(rest, ensure_ascii=False)), dim=True)
    elif value is not None:
        _json(value)
    else:
        _lines(text)


def _json(value: Any) -> None:
    from rich.highlighter import JSONHighlighter  # noqa: PLC0415 - loaded only when a person is looking

    laid_out = visible(json.dumps(value, indent=2, ensure_ascii=False))
    console_for(sys.stdout).print(JSONHighlighter()(laid_out), soft_wrap=True)


def _lines(text: str) -> None:
    from rich.text import Text  # noqa: PLC0415 - loaded only when a person is looking

    shown = Text(visible(text))
    shown.highlight_regex(r"(?m)^ *\d+\t", "dim")
    shown.highlight_regex(r"(?m)^\+(?!\+\+).*$", "green")
    shown.highlight_regex(r"(?m)^-(?!--).*$", "red")
    shown.highlight_regex(r"(?m)^\[.*\]$", "italic dim")
    console_for(sys.stdout).print(shown, soft_wrap=True, end="" if text.endswith("\n") else "\n")


def console_for(stream: Any) -> Console:
    from rich.console import Console  # noqa: PLC0415 - loaded only when a person is looking

    return Console(file=stream, highlight=False, markup=False)


def _as_json(text: str) -> Any:
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


@contextmanager
def waiting(tool: str) -> Generator[Callable[[Progress], None]]:
    """Tells a person at the terminal what is going on, once a call takes more than a moment."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    line = _Line(tool)
    try:
        yield line.report
    finally:
        line.end()


class _Line:
    """One line on standard error, written by a timer and wiped when the call ends."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._said = "working"
        self._seconds = 0.0
        self._lock = threading.Lock()
        self._ended = False
        self._timer = self._later()

    def _later(self) -> threading.Timer:
        timer = threading.Timer(PATIENCE, self._tick)
        timer.daemon = True
        timer.start()
        return timer

    def report(self, progress: Progress) -> None:
        share = f"{progress.progress / progress.total:.0%} " if progress.total else ""
        self._said = f"{share}{progress.message or 'working'}"

    def _tick(self) -> None:
        with self._lock:
            if self._ended:
                return
            self._timer = self._later()
            if not _asking.acquire(blocking=False):
                return
            self._seconds += PATIENCE
            click.echo(f"\r\x1b[K{self._tool}: {self._said} ({self._seconds:.0f} s)", nl=False, err=True)
            _asking.release()

    def end(self) -> None:
        with self._lock:
            self._ended = True
            self._timer.cancel()
            if self._seconds:
                click.echo("\r\x1b[K", nl=False, err=True)


def asker() -> AskCallback | None:
    """Somebody to ask, if somebody is at the terminal."""
    return _ask if sys.stdin.isatty() and sys.stderr.isatty() else None


async def _ask(question: Question) -> Answer:
    return await anyio.to_thread.run_sync(_prompt, question, abandon_on_cancel=True)


def _prompt(question: Question) -> Answer:
    with _asking:
        return _answered(question)


def _answered(question: Question) -> Answer:
    click.echo("\r\x1b[K", nl=False, err=True)
    first, *others = question.shown().split("\n")
    click.secho(first, fg="yellow", err=True)
    for line in others:
        click.echo(f"  {line}", err=True)
    choices = "y/a/n" if question.may_remember else "y/n"
    words = "yes, always, no" if question.may_remember else "yes, no"
    answer = click.prompt(f"Run it? {choices} ({words})", default="n", show_default=False, err=True)
    if question.may_remember and answer.strip().lower() in ("a", "always"):
        return "always"
    return answer.strip().lower() in ("y", "yes")
