"""`gripfast approvals`, `approve` and `deny`: questions that wait for a person, answered from any terminal."""

from __future__ import annotations

import sys

import click

from gripfast.clock import monotonic, utc_now
from gripfast.edges.cli.say import say, say_json
from gripfast.edges.cli.store import store_options
from gripfast.errors import ToolError
from gripfast.host.program.terminal_keys import END, NextKey, keys
from gripfast.host.questions.everywhere import EverywhereQueue, questions_in
from gripfast.host.questions.question import AnsweredBefore, Questions, QueuedQuestion, Verdict, wait_for_change
from gripfast.text.escape import escaped

OVER = 1
ANSWERED_BEFORE = 3
_LOOK_SECONDS = 0.1
_LOOK_ANYWAY_SECONDS = 2.0  # a server that was killed changes nothing in the queue
_DIFF_LINES = 30
_VERDICTS: dict[str, Verdict] = {
    "y": "yes",
    "a": "always",
    "w": "always_leading",
    "r": "remember",
    "n": "no",
}


@click.command(short_help="List the questions of agents that wait for you; answer them live with --watch.")
@click.option("--watch", is_flag=True, help="Show questions as they come, and take a key for each.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the questions as a JSON list; with --watch at each change."
)
@store_options
def approvals(watch: bool, as_json: bool, store: str | None) -> None:
    """List the questions that wait for an answer, of all sessions of yours on this machine. With a shared store, also
    those of all servers that use it; their ids begin with S.

    A rule with the action `ask` asks the person at the client. Where the client can't ask, the call waits here.
    What is shown is exactly what will run.

    \b
    gripfast approvals             list them
    gripfast approvals --watch     keys: y yes, a always in this session, n no, d the whole diff, s later, q quit
    gripfast approve Q7            yes, this once
    gripfast approve Q7 --always   yes, and the same again in that session without a question
    gripfast deny Q7 --because "use the staging server"
    """
    queue, note = questions_in(store)
    if note:
        say(note, err=True)
    if not watch:
        _list(queue.waiting(), as_json)
        _say_note(queue)
    elif as_json or not sys.stdin.isatty():
        _print_changes(queue, as_json)
    else:
        with keys() as next_key:
            ApprovalScreen(queue, next_key).run()


@click.command(short_help="Answer a waiting question with yes.")
@click.argument("id")
@click.option("--always", is_flag=True, help="Also whatever the question says `always` covers, in that session.")
@store_options
def approve(id: str, always: bool, store: str | None) -> None:
    """Let the call of question ID run, once. It runs when its caller waits for it or calls again.

    Exit code 0: the answer counted. 1: there is no such question, or it is over. 3: it was answered before.
    """
    _answer(store, id, "always" if always else "yes")


@click.command(short_help="Answer a waiting question with no.")
@click.argument("id")
@click.option("--because", default="", metavar="TEXT", help="Why; the agent reads it.")
@store_options
def deny(id: str, because: str, store: str | None) -> None:
    """Refuse the call of question ID.

    Exit code 0: the answer counted. 1: there is no such question, or it is over. 3: it was answered before.
    """
    _answer(store, id, "no", because)


def _answer(store: str | None, id: str, verdict: Verdict, because: str = "") -> None:
    queue, note = questions_in(store)
    if note and id.startswith("S"):
        raise click.ClickException(note)
    try:
        question = queue.answer(id, verdict, by="terminal", because=because)
    except AnsweredBefore as fault:
        say(f"Error: {fault.message}", err=True)
        sys.exit(ANSWERED_BEFORE)
    except ToolError as fault:
        raise click.ClickException(fault.message) from None
    except OSError as fault:
        raise click.ClickException(f"the answer can't be written: {fault.strerror}") from None
    say(f"{id}: {verdict} to {question.tool} in {question.root}")


def _say_note(queue: Questions) -> None:
    if isinstance(queue, EverywhereQueue) and queue.note:
        say(queue.note, err=True)


def _list(questions: list[QueuedQuestion], as_json: bool) -> None:
    if as_json:
        say_json([question.to_json() for question in questions])
        return
    for question in questions:
        _show(question, whole=True)
    if not questions:
        say("no question waits")


def _show(question: QueuedQuestion, *, whole: bool) -> None:
    age = max(0, utc_now().timestamp() - question.asked_at)
    place = f"{question.server}:{question.root}" if question.server else question.root
    asker = f"  asked by {question.asker}" if question.asker else ""  # last: a client may give itself any name
    head = f"{question.id}  {question.tool}  {age:.0f} s ago  {place}  session {question.session[:8]}"
    say(escaped(f"{head}{asker}"))
    call = question.shown.removesuffix(question.diff)
    diff = question.diff.split("\n") if question.diff else []
    cut = [] if whole or len(diff) <= _DIFF_LINES else [f"… {len(diff) - _DIFF_LINES} more lines; d shows all"]
    shown = diff[:_DIFF_LINES] if cut else diff
    for line in [*call.rstrip("\n").split("\n"), *shown, *cut]:
        say(f"    {line}")


def _print_changes(queue: Questions, as_json: bool) -> None:
    """Prints the list whenever it changes, until interrupted; for other programs."""
    shown: list[str] | None = None
    stamp = None
    while True:
        questions = queue.waiting()
        ids = [question.id for question in questions]
        if as_json and ids != shown:
            _list(questions, as_json)
        for question in questions if not as_json else []:
            if question.id not in (shown or ()):
                _show(question, whole=True)
        sys.stdout.flush()
        shown = ids
        stamp = wait_for_change(queue, stamp, _LOOK_ANYWAY_SECONDS)


class ApprovalScreen:
    """One question at a time on the terminal, and a key for it."""

    def __init__(self, queue: Questions, next_key: NextKey) -> None:
        self._queue = queue
        self._next_key = next_key
        self._later: set[str] = set()
        self._current: QueuedQuestion | None = None
        self._stamp: object = None
        self._looked = 0.0

    def run(self) -> None:
        """Until q, Ctrl-D or Ctrl-C."""
        say("waiting for questions; q quits")
        while True:
            self._look()
            key = self._next_key(_LOOK_SECONDS)
            if key in ("q", END):
                return
            if key is not None and self._current is not None:
                self._take(key.lower(), self._current)

    def _look(self) -> None:
        stamp = self._queue.stamp()
        if stamp == self._stamp and monotonic() - self._looked < _LOOK_ANYWAY_SECONDS:
            return
        self._stamp, self._looked = stamp, monotonic()
        questions = self._queue.waiting()
        ids = [question.id for question in questions]
        if self._current is not None and self._current.id not in ids:
            say(f"{self._current.id} was answered elsewhere, or is over")
            self._current = None
        if self._current is None:
            self._current = next((one for one in questions if one.id not in self._later), None)
            if self._current is not None:
                self._present(self._current, len(questions) - 1)

    def _present(self, question: QueuedQuestion, more: int) -> None:
        say()
        _show(question, whole=False)
        for letter, verdict in _VERDICTS.items():
            if verdict in question.widths:
                say(f"    {letter}: yes, and always for {question.widths[verdict]}")
        letters = [letter for letter, verdict in _VERDICTS.items() if verdict in ("yes", "no", *question.widths)]
        diff = ["d"] if question.diff else []
        say(f"Run it? {'/'.join([*letters, *diff, 's', 'q'])}{f'  ({more} more wait)' if more else ''}")

    def _take(self, key: str, question: QueuedQuestion) -> None:
        verdict = _VERDICTS.get(key)
        if key == "d" and question.diff:
            say(question.diff)
        elif key == "s":
            self._later.add(question.id)
            self._current = self._stamp = None
        elif verdict is not None and verdict in ("yes", "no", *question.widths):
            self._say_outcome(question, verdict)
            self._current = self._stamp = None

    def _say_outcome(self, question: QueuedQuestion, verdict: Verdict) -> None:
        try:
            self._queue.answer(question.id, verdict, by="terminal")
            say(f"{question.id}: {verdict}")
        except ToolError as fault:
            say(fault.message)
        except OSError as fault:
            say(f"the answer can't be written: {fault.strerror}")
