"""Approvals: many questions, answers that race with each other and with retries, and servers that are killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import anyio

from gripfast import OutputCache, Permissions, Session, tool
from gripfast.call.hooks import Answered, Question
from gripfast.call.rules import rules_hook
from gripfast.call.run import run_call
from gripfast.clock import monotonic
from gripfast.edges.approvals import Approvals
from gripfast.errors import ToolError
from gripfast.host.questions.queue import QuestionQueue, Verdict
from gripfast.messages import ToolCall
from torture.trial import Outcome, Torment

_AT_ONCE = 8


def run(torment: Torment) -> None:
    _races(torment)
    _crashes(torment)


# --- answers that race ---


def _races(torment: Torment) -> None:
    tried = torment.times(1_000, 24)
    queue = QuestionQueue(torment.room("races") / "state" / "questions")
    ran, ended = Counter[str](), threading.Event()
    threads = [
        threading.Thread(target=_answer_all, args=(queue, random.Random(f"{torment.seed}:{number}"), ended))
        for number in range(3)
    ]
    for thread in threads:
        thread.start()
    try:
        outcomes = anyio.run(_callers, queue, tried, ran)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    twice = [line for line, count in ran.items() if count > 1]
    said = _verdicts(queue)
    unapproved = [line for line in ran if said.get(line) != "yes"]
    lost = [line for line, text in outcomes.items() if (said.get(line) == "yes") != text.startswith("ran ")]
    name = "answers that race with retries"
    for promise, bad in (("runs once", twice), ("runs only if approved", unapproved), ("is told the answer", lost)):
        torment.tell(Outcome(name, f"a call {promise}", tried, len(bad), ", ".join(bad[:1])))


def _answer_all(queue: QuestionQueue, dice: random.Random, ended: threading.Event) -> None:
    """Answers whatever waits, in any order, at the same time as others do."""
    while not ended.is_set():
        for question in sorted(queue.waiting(), key=lambda _: dice.random()):
            verdict: Verdict = "yes" if int(question.id[1:]) % 3 else "no"
            try:
                queue.answer(question.id, verdict, by="terminal")
            except ToolError:
                continue
        time.sleep(0.001)


def _verdicts(queue: QuestionQueue) -> dict[str, str]:
    """The answer to the question about each line."""
    found: dict[str, str] = {}
    for file in queue.directory.glob("Q*.json"):
        question = json.loads(file.read_text(encoding="utf-8"))
        answer = queue.answered(question["id"])
        line = question["shown"].split("line: ")[1].split("\n")[0]
        found[line] = "nothing" if answer is None else answer.verdict
    return found


async def _callers(queue: QuestionQueue, tried: int, ran: Counter[str]) -> dict[str, str]:
    """Callers that give up quickly and call again, until each has its answer."""

    @tool(effect="run", subject="line")
    def launch(line: str) -> str:
        """Launches."""
        ran[line] += 1
        return f"ran {line}"

    approvals = Approvals("torture", "/", queue=queue)
    outcomes: dict[str, str] = {}
    rules = rules_hook(Permissions("ask"), lambda subject: (str(subject),))
    async with Session([launch], before=[rules], cache=OutputCache()) as session:

        async def caller(lines: list[str]) -> None:
            for line in lines:
                text = "WAITING_FOR_APPROVAL"
                while "WAITING_FOR_APPROVAL" in text:
                    call = ToolCall("1", "launch", {"line": line})
                    text = (await run_call(session, call, ask=ask)).text
                outcomes[line] = text

        async def ask(question: Question) -> Answered:
            return await approvals.ask(question, monotonic() + random.choice((0.0, 0.002, 0.02)))

        lines = [f"job-{number}" for number in range(tried)]
        async with anyio.create_task_group() as group:
            for number in range(_AT_ONCE):
                group.start_soon(caller, lines[number::_AT_ONCE])
    return outcomes


# --- servers that are killed ---


def _crashes(torment: Torment) -> None:
    tried, dice = torment.times(100, 3), torment.dice("crashes")
    room = torment.room("crashes")
    queue, log = QuestionQueue(room / "state" / "questions"), room / "log"
    for _ in range(tried):
        _one_crash(queue, log, dice)
    lines = log.read_text(encoding="utf-8").split() if log.exists() else []
    twice = [line for line, count in Counter(lines).items() if count > 1]
    said = _verdicts(queue)
    unapproved = [line for line in lines if said.get(line) != "yes"]
    torment.tell(Outcome("servers killed while questions wait", "a call runs once", tried, len(twice)))
    promise = "a call runs only if approved, and no question outlives its server"
    torment.tell(
        Outcome("servers killed while questions wait", promise, tried, len(unapproved) + len(queue.waiting()))
    )


def _one_crash(queue: QuestionQueue, log: Path, dice: random.Random) -> None:
    """A server asks, is answered, and is killed at any moment."""
    server = subprocess.Popen([sys.executable, "-m", "torture.approvals", str(queue.directory), str(log)])
    ended = threading.Event()
    answering = threading.Thread(target=_answer_all, args=(queue, random.Random(dice.random()), ended))
    answering.start()
    until = time.monotonic() + 60
    while not queue.waiting() and server.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(dice.random() * 0.05)
    server.kill()
    server.wait()
    ended.set()
    answering.join()


async def _serve(queue: QuestionQueue, log: Path) -> None:
    @tool(effect="run", subject="line")
    def launch(line: str) -> str:
        """Launches."""
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        return f"ran {line}"

    approvals = Approvals("torture", "/", queue=queue)
    rules = rules_hook(Permissions("ask"), lambda subject: (str(subject),))
    async with Session([launch], before=[rules], cache=OutputCache()) as session:

        async def ask(question: Question) -> Answered:
            return await approvals.ask(question, monotonic() + 0.005)

        number = 0
        while True:
            line, text = f"{os.getpid()}-{number}", "WAITING_FOR_APPROVAL"
            while "WAITING_FOR_APPROVAL" in text:
                text = (await run_call(session, ToolCall("1", "launch", {"line": line}), ask=ask)).text
            number += 1


if __name__ == "__main__":
    anyio.run(_serve, QuestionQueue(Path(sys.argv[1])), Path(sys.argv[2]))
