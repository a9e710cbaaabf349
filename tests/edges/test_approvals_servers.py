"""Questions of a session that moves between servers: whichever a call reaches, what was approved runs once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from cache_stores import RedisServer, running_redis
from gripfast import tool
from gripfast.call.cache import OutputCache
from gripfast.call.hooks import Answered, Question
from gripfast.call.rules import Permissions, rules_hook
from gripfast.call.run import Session, run_call
from gripfast.clock import monotonic
from gripfast.edges.approvals import Approvals
from gripfast.errors import ToolError
from gripfast.host.questions.question import Questions
from gripfast.host.questions.queue import QuestionQueue
from gripfast.host.questions.redis_questions import RedisQuestions
from gripfast.host.stores.redis_sessions import RedisSessions
from gripfast.messages import ToolCall

pytestmark = pytest.mark.anyio
WAITING, HANG = "WAITING_FOR_APPROVAL", 60.0


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    yield from running_redis(password="of the store")


class Fleet:
    """Servers that share a session, and what ran on any of them."""

    def __init__(self, place: Path | RedisServer) -> None:
        self._place = place
        self.ran: Counter[str] = Counter()

    def queue(self, server: str = "terminal 0") -> Questions:
        if isinstance(self._place, Path):
            return QuestionQueue(self._place / "state" / "questions")
        store = RedisSessions(self._place.url, lease=600)
        store.announce(server)
        store.close()
        return RedisQuestions(self._place.url, server)

    @asynccontextmanager
    async def server(self, name: str) -> AsyncGenerator[Server]:
        @tool(effect="run", subject="line")
        def launch(line: str) -> str:
            """Launches."""
            self.ran[line] += 1
            return f"ran {line}"

        queue = self.queue(f"{name} 12")
        rules = rules_hook(Permissions("ask"), lambda subject: (str(subject),))
        async with Session([launch], before=[rules], cache=OutputCache()) as session:
            yield Server(session, Approvals("one session", "/", queue=queue, is_shared=True))
        queue.close()


class Server:
    def __init__(self, session: Session, approvals: Approvals) -> None:
        self._session = session
        self.approvals = approvals

    async def call(self, line: str, within: float = 0.0) -> str:
        async def ask(question: Question) -> Answered:
            return await self.approvals.ask(question, monotonic() + within)

        return (await run_call(self._session, ToolCall("1", "launch", {"line": line}), ask=ask)).text


@pytest.fixture(params=["files", "redis"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Fleet:
    if request.param == "files":
        return Fleet(tmp_path)
    server: RedisServer = request.getfixturevalue("redis")
    server.command("flushall")
    return Fleet(server)


async def test_what_was_approved_runs_where_the_call_comes_and_only_there(fleet: Fleet) -> None:
    async with fleet.server("one") as one, fleet.server("two") as two:
        person = fleet.queue()
        assert WAITING in await one.call("job")
        assert WAITING in await two.call("job")
        (question,) = person.waiting()
        person.answer(question.id, "yes", by="terminal")
        assert await two.call("job") == "ran job"
        assert WAITING in await one.call("job")
        (again,) = person.waiting()
        assert again.id != question.id
        person.answer(again.id, "no", by="terminal")
        assert "the user said no" in await two.call("job")
        assert fleet.ran == {"job": 1}
        person.close()


async def test_two_servers_that_wait_for_one_answer_share_no_yes(fleet: Fleet) -> None:
    """As when one of them was away for so long that another took over."""
    async with fleet.server("one") as one, fleet.server("two") as two:
        person, answers = fleet.queue(), list[str]()
        assert WAITING in await one.call("job")

        async def wait_at(server: Server) -> None:
            answers.append(await server.call("job", HANG))

        async with anyio.create_task_group() as group:
            group.start_soon(wait_at, one)
            group.start_soon(wait_at, two)
            for verdict in ("yes", "no"):  # the one that did not get the yes has a question of its own
                with anyio.fail_after(HANG):
                    while not (waiting := person.waiting()):
                        await anyio.sleep(0.02)
                (question,) = waiting
                person.answer(question.id, verdict, by="terminal")
        ran, refused = sorted(answers, key=lambda answer: answer != "ran job")
        assert ran == "ran job" and "the user said no" in refused
        assert fleet.ran == {"job": 1}
        person.close()


async def test_a_question_that_its_server_closed_is_asked_anew_by_another(fleet: Fleet) -> None:
    async with fleet.server("one") as one, fleet.server("two") as two:
        person = fleet.queue()
        assert WAITING in await one.call("job")
        (question,) = person.waiting()
        await one.approvals.close()
        assert WAITING in await two.call("job")
        (again,) = person.waiting()
        assert again.id != question.id
        person.close()


async def test_whatever_races_each_yes_is_for_one_run(fleet: Fleet) -> None:
    dice, ended, given = random.Random(5), threading.Event(), Counter[str]()

    def person() -> None:
        queue = fleet.queue()
        while not ended.is_set():
            for question in queue.waiting():
                line = question.shown.partition("line: ")[2].split()[0]
                try:
                    verdict = "yes" if dice.random() < 0.7 else "no"
                    queue.answer(question.id, verdict, by="terminal")
                    given[line] += verdict == "yes"
                except ToolError:
                    continue
            ended.wait(0.005)
        queue.close()

    answering = threading.Thread(target=person)
    answering.start()
    try:
        async with fleet.server("one") as one, fleet.server("two") as two, fleet.server("three") as three:
            servers, outcomes = (one, two, three), dict[str, str]()

            async def caller(line: str) -> None:
                text = WAITING
                while WAITING in text:
                    text = await random.choice(servers).call(line, random.choice((0.0, 0.02, 0.3)))
                outcomes[line] = text

            with anyio.fail_after(HANG):
                async with anyio.create_task_group() as group:
                    for number in range(12):
                        group.start_soon(caller, f"job-{number}")
    finally:
        ended.set()
        answering.join()
    for line, text in outcomes.items():
        assert fleet.ran[line] == (text == f"ran {line}") <= given[line], (line, text)
