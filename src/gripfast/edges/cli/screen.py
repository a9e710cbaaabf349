"""Output for a terminal. In a pipe it is plain text, and rich is not imported."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread
import click

from gripfast.call.hooks import Answer, Answered, AskCallback, Question, Width
from gripfast.framework.context import Progress
from gripfast.messages import ToolMessage
from gripfast.text.escape import escaped, visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console

PROGRESS_SECONDS = 1.0
"""How long a call may take before the terminal shows its progress."""

_asking = threading.Lock()
"""Held while a question is on the terminal, so that nothing is written over it."""


def show(message: ToolMessage, display_field: str | None = None) -> None:
    """Prints an answer. Of a JSON one, `display_field` is printed as text and the other fields on one line below."""
    stream = sys.stderr if message.is_error else sys.stdout
    if not stream.isatty():
        # Unchanged: click would strip escape sequences.
        click.echo(message.text, err=message.is_error, color=True, nl=not message.text.endswith("\n"))
    elif message.is_error:
        click.secho(visible(message.text), fg="red", err=True)
    else:
        _show_formatted(message.text, display_field)


def _show_formatted(text: str, display_field: str | None) -> None:
    value = _as_json(text)
    if display_field and isinstance(value, dict):
        rest = cast("dict[str, Any]", value)
        _lines(_drawn(rest.pop(display_field, "")))
        click.secho(visible_json(json.dumps(rest, ensure_ascii=False)), dim=True)
    elif value is not None:
        _json(value)
    else:
        _lines(text)


def _drawn(value: Any) -> str:
    """A field as text; a node with children as a tree of lines."""
    if not isinstance(value, dict):
        return str(value)
    node = cast("dict[str, Any]", value)
    return "\n".join([f"{node.get('path', '')}{_mark(node)}", *_branches(node, "")])


def _branches(node: dict[str, Any], indent: str) -> Iterator[str]:
    children: list[dict[str, Any]] = node.get("children", [])
    for child in children:
        last = child is children[-1]
        yield f"{indent}{'└── ' if last else '├── '}{child['name']}{_mark(child)}"
        yield from _branches(child, indent + ("    " if last else "│   "))


def _mark(node: dict[str, Any]) -> str:
    kind = {"directory": "/", "symlink": "@"}.get(str(node.get("kind")), "")
    return f"{kind} ..." if node.get("truncated") else kind


def _json(value: Any) -> None:
    from rich.highlighter import JSONHighlighter  # noqa: PLC0415 - loaded only when a person is looking

    laid_out = visible_json(json.dumps(value, indent=2, ensure_ascii=False))
    console_for(sys.stdout).print(JSONHighlighter()(laid_out), soft_wrap=True)


def _lines(text: str) -> None:
    from rich.text import Text  # noqa: PLC0415 - loaded only when a person is looking

    shown = Text(visible(text))
    shown.highlight_regex(r"(?m)^ *\d+\t", "dim")
    shown.highlight_regex(r"(?m)^\+(?!\+\+).*$", "green")
    shown.highlight_regex(r"(?m)^-(?!--).*$", "red")
    shown.highlight_regex(r"(?m)^\[.*\]$", "italic dim")
    shown.highlight_regex(r"(?m)(?:^(?:\S*/ )?| )… \d[^\t]*$", "dim cyan")  # what an outline folds
    shown.highlight_regex(r"(?m)^\S+ \(\d+ lines?\)$", "bold")  # a file in a map
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
    """Shows progress on the terminal once a call takes longer than a moment."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    line = _ProgressLine(tool)
    try:
        yield line.report
    finally:
        line.end()


class _ProgressLine:
    """One line on standard error, updated by a timer and erased when the call ends."""

    def __init__(self, tool: str) -> None:
        self._tool = escaped(tool)
        self._status = "working"
        self._seconds = 0.0
        self._lock = threading.Lock()
        self._ended = False
        self._timer = self._later()

    def _later(self) -> threading.Timer:
        timer = threading.Timer(PROGRESS_SECONDS, self._tick)
        timer.daemon = True
        timer.start()
        return timer

    def report(self, progress: Progress) -> None:
        share = f"{progress.progress / progress.total:.0%} " if progress.total else ""
        self._status = escaped(f"{share}{progress.message or 'working'}")

    def _tick(self) -> None:
        with self._lock:
            if self._ended:
                return
            self._timer = self._later()
            if not _asking.acquire(blocking=False):
                return
            self._seconds += PROGRESS_SECONDS
            click.echo(f"\r\x1b[K{self._tool}: {self._status} ({self._seconds:.0f} s)", nl=False, err=True)
            _asking.release()

    def end(self) -> None:
        with self._lock:
            self._ended = True
            self._timer.cancel()
            if self._seconds:
                click.echo("\r\x1b[K", nl=False, err=True)


def asker() -> AskCallback | None:
    """Asks the person at the terminal; None if there is no terminal."""
    return _ask if sys.stdin.isatty() and sys.stderr.isatty() else None


async def _ask(question: Question) -> Answered:
    diff = await question.diff()
    return Answered(await anyio.to_thread.run_sync(_prompt, question, diff, abandon_on_cancel=True), "terminal")


_LETTERS: dict[str, Width] = {"a": "always", "w": "always_leading", "r": "remember"}


_DIFF_LINES = 40


def _prompt(question: Question, diff: str) -> Answer:
    with _asking:
        return _answered(question, diff)


def _answered(question: Question, diff: str) -> Answer:
    click.echo("\r\x1b[K", nl=False, err=True)
    first, *others = question.shown().split("\n")
    click.secho(first, fg="yellow", err=True)
    for line in others:
        click.echo(f"  {line}", err=True)
    rows = diff.split("\n") if diff else []
    _show_diff(rows[:_DIFF_LINES])
    rest = len(rows) - _DIFF_LINES
    widths = question.widths()
    letters: dict[str, Width] = {letter: answer for letter, answer in _LETTERS.items() if answer in widths}
    if rest > 0:
        click.echo(f"  d: show all of the diff, {rest} more lines", err=True)
    for letter, answer in letters.items():
        click.echo(f"  {letter}: yes, and always for {widths[answer]}", err=True)
    choices = "/".join(("y", *letters, *(["d"] if rest > 0 else []), "n"))
    while True:
        text = f"Run it? {choices} (yes, no)"
        said = click.prompt(text, default="n", show_default=False, err=True).strip().lower()
        if rest <= 0 or said[:1] != "d":
            break
        _show_diff(rows)
    wider = letters.get(said[:1])
    return wider if wider is not None else said in ("y", "yes")


def _show_diff(rows: Sequence[str]) -> None:
    for row in rows:
        colour = "green" if row.startswith("+") else "red" if row.startswith("-") else None
        click.secho(f"  {row}", fg=colour, err=True)
