"""What every queue of questions does, over files and over a real Redis: one answer for one question, used once."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cache_stores import RedisServer, running_redis
from gripfast.errors import Internal, InvalidArgument
from gripfast.host.questions.everywhere import EverywhereQueue, questions_in
from gripfast.host.questions.question import AnsweredBefore, Asking, NoQuestion, Questions, Verdict, wait_for_change
from gripfast.host.questions.queue import QuestionQueue
from gripfast.host.questions.redis_questions import RedisQuestions, sealing_key
from gripfast.host.stores.redis_sessions import RedisSessions

ASKING = Asking(
    "s1", "/work", "Bash", "no rule matches it", "command: rm -rf x", {"always": "exactly this call"}, call="c1"
)
HANG = 60.0
Open = Callable[[], Questions]


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    yield from running_redis(password="a password")


@pytest.fixture(params=["files", "redis"])
def open_queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens queues on the same questions, as several servers and terminals would."""
    made: list[Questions] = []
    server: RedisServer | None = request.getfixturevalue("redis") if request.param == "redis" else None
    if server is not None:
        announce(server)

    def opened() -> Questions:
        queue: Questions = QuestionQueue(tmp_path / "state" / "questions")
        if server is not None:
            queue = RedisQuestions(server.url, "build1:8765 ab12")
        made.append(queue)
        return queue

    yield opened
    for queue in made:
        queue.close()


def announce(server: RedisServer) -> None:
    server.command("flushall")
    store = RedisSessions(server.url, lease=600)
    store.announce("build1:8765 ab12")
    store.close()


@pytest.fixture
def queue(open_queue: Open) -> Questions:
    return open_queue()


def test_a_question_waits_for_everybody_until_it_is_answered_once(queue: Questions, open_queue: Open) -> None:
    asked, other = queue.ask(ASKING), open_queue()
    assert other.waiting() == [asked] == [other.find(asked.id)]
    assert queue.answered(asked.id) is None
    other.answer(asked.id, "no", by="page", because="not today")
    answer = queue.answered(asked.id)
    assert answer is not None
    assert (answer.verdict, answer.by, answer.because) == ("no", "page", "not today")
    assert queue.waiting() == other.waiting() == []
    with pytest.raises(AnsweredBefore):
        other.answer(asked.id, "yes", by="terminal")
    with pytest.raises(AnsweredBefore):
        other.find(asked.id)
    assert queue.answered(asked.id) == answer


def test_questions_are_listed_in_their_order_under_numbers_of_their_own(queue: Questions, open_queue: Open) -> None:
    other = open_queue()
    ids = [one.ask(ASKING).id for _ in range(6) for one in (queue, other)]
    assert len(set(ids)) == 12
    assert [question.id for question in queue.waiting()] == ids


@pytest.mark.parametrize("id", ["Q9", "S9", "", "Q", "S", "S0", "S01", "7", "../Q1", "S1\n", "S" + "9" * 50, "S*"])
def test_an_unknown_id_is_refused(queue: Questions, id: str) -> None:
    queue.ask(ASKING)
    with pytest.raises(NoQuestion):
        queue.answer(id, "yes", by="terminal")


def test_an_answer_is_only_as_wide_as_the_question_offers(queue: Questions) -> None:
    asked = queue.ask(ASKING)
    with pytest.raises(InvalidArgument):
        queue.answer(asked.id, "remember", by="terminal")
    queue.answer(asked.id, "always", by="terminal")


def test_a_withdrawn_question_is_over(queue: Questions, open_queue: Open) -> None:
    asked = queue.ask(ASKING)
    assert queue.withdraw(asked.id, "the call was cancelled") is None
    assert queue.waiting() == []
    with pytest.raises(NoQuestion, match="the call was cancelled"):
        open_queue().answer(asked.id, "yes", by="terminal")


def test_withdrawing_an_answered_question_gives_the_answer(queue: Questions) -> None:
    asked = queue.ask(ASKING)
    queue.answer(asked.id, "yes", by="terminal")
    answer = queue.withdraw(asked.id, "too late")
    assert answer is not None
    assert answer.verdict == "yes"


def test_a_question_that_nobody_answered_in_time_is_over(queue: Questions) -> None:
    asked = queue.ask(ASKING, seconds=-1)
    assert queue.waiting() == []
    with pytest.raises(NoQuestion, match="in time"):
        queue.answer(asked.id, "yes", by="terminal")


def test_of_many_answers_at_once_exactly_one_counts(queue: Questions, open_queue: Open) -> None:
    others = [open_queue() for _ in range(6)]
    for _ in range(10):
        asked = queue.ask(ASKING)
        results: Counter[str] = Counter()
        start = threading.Barrier(6)

        def answer(one: Questions, verdict: Verdict, id: str = asked.id, start: threading.Barrier = start) -> None:
            start.wait()
            try:
                one.answer(id, verdict, by="terminal")
                results[verdict] += 1  # noqa: B023 - the threads are joined below
            except (AnsweredBefore, NoQuestion):
                return

        def withdraw(one: Questions, id: str = asked.id, start: threading.Barrier = start) -> None:
            start.wait()
            if one.withdraw(id, "over") is None:
                results["over"] += 1  # noqa: B023 - the threads are joined below

        verdicts: list[Verdict] = ["yes", "no", "always", "yes"]
        threads = [threading.Thread(target=answer, args=pair) for pair in zip(others, verdicts, strict=False)]
        threads += [threading.Thread(target=withdraw, args=(one,)) for one in others[4:]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told = queue.answered(asked.id)
        assert told is not None
        assert results == Counter({told.verdict: 1})


def test_the_stamp_differs_after_every_change(queue: Questions, open_queue: Open) -> None:
    other = open_queue()
    stamps = [other.stamp()]
    asked = queue.ask(ASKING)
    stamps.append(wait_for_change(other, stamps[-1], HANG))
    queue.answer(asked.id, "yes", by="terminal")
    stamps.append(wait_for_change(other, stamps[-1], HANG))
    assert len(set(stamps)) == 3


def test_another_server_finds_what_was_asked_about_the_same_call(queue: Questions, open_queue: Open) -> None:
    first, second = queue.ask(ASKING), queue.ask(ASKING)
    for changed in ({"session": "s2"}, {"call": "c2"}):
        queue.ask(replace(ASKING, **changed))
    other = open_queue()
    assert other.pending("s1", "c1") == [first, second]
    other.answer(first.id, "yes", by="terminal")
    other.withdraw(second.id, "over")
    assert other.pending("s1", "c1") == [first]
    assert other.take(first.id)
    assert other.pending("s1", "c1") == []


def test_an_answer_is_used_by_one_server_only(queue: Questions, open_queue: Open) -> None:
    asked = queue.ask(ASKING)
    queue.answer(asked.id, "yes", by="terminal")
    used: list[bool] = []
    threads = [threading.Thread(target=lambda: used.append(open_queue().take(asked.id))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(used) == [False] * 5 + [True]


# --- Redis ---


@pytest.fixture
def shared(redis: RedisServer) -> Iterator[RedisQuestions]:
    announce(redis)
    queue = RedisQuestions(redis.url, "build1:8765 ab12")
    yield queue
    queue.close()


def test_a_question_says_which_server_asked_it(shared: RedisQuestions) -> None:
    asked = shared.ask(ASKING)
    assert (asked.server, asked.to_json()["server"]) == ("build1:8765", "build1:8765")


def test_the_questions_of_a_server_that_is_gone_are_over_and_its_answers_stay(
    shared: RedisQuestions, redis: RedisServer
) -> None:
    asked, answered = shared.ask(ASKING), shared.ask(ASKING)
    shared.answer(answered.id, "yes", by="terminal")
    for key in redis.command("keys", "gripfast:1:up:*").decode().split():
        redis.command("del", key)
    assert shared.waiting() == []
    with pytest.raises(NoQuestion, match="server is gone"):
        shared.answer(asked.id, "yes", by="terminal")
    assert shared.pending("s1", "c1") == [answered]


def test_without_a_password_in_the_address_no_question_is_shared(redis: RedisServer) -> None:
    for url in ("redis://host:6379/0", "redis://user@host/0", "unix:///run/redis.sock", "redis+cluster://host:1"):
        assert sealing_key(url) is None
        with pytest.raises(InvalidArgument, match="no password"):
            RedisQuestions(url)
        queue, note = questions_in(url)
        assert isinstance(queue, QuestionQueue)
        assert "no password" in note
    keys = {
        sealing_key(url)
        for url in (
            "redis://:s%20cret@host:6379/0",
            "rediss://user:s%20cret@host",
            "redis+sentinel://user:s%20cret@one:1,two:2/main/0",
            "unix:///run/redis.sock?password=s%20cret",
        )
    }
    assert len(keys) == 1 and None not in keys
    assert isinstance(questions_in(redis.url)[0], EverywhereQueue)


def test_an_answer_that_a_command_forged_is_no_yes(shared: RedisQuestions, redis: RedisServer) -> None:
    """Somebody who reaches the Redis and does not know the password in the address writes to it."""
    yes = json.dumps({"verdict": "yes", "by": "terminal", "because": "", "at": 1})
    forged, replayed = shared.ask(ASKING), shared.ask(ASKING)
    redis.command("hset", f"gripfast:1:question:{forged.id}", "answer", yes, "answer_seal", "0" * 64)
    told = shared.answered(forged.id)
    assert told is not None and told.is_over
    genuine = shared.ask(ASKING)
    shared.answer(genuine.id, "yes", by="terminal")
    for field in ("answer", "answer_seal"):
        value = redis.command("hget", f"gripfast:1:question:{genuine.id}", field).decode().rstrip("\n")
        redis.command("hset", f"gripfast:1:question:{replayed.id}", field, value)
    told = shared.answered(replayed.id)
    assert told is not None and told.is_over
    assert shared.pending("s1", "c1") == [genuine]


def test_a_question_that_was_changed_after_it_was_asked_is_not_shown(
    shared: RedisQuestions, redis: RedisServer
) -> None:
    asked = shared.ask(ASKING)
    key = f"gripfast:1:question:{asked.id}"
    text = redis.command("hget", key, "question").decode().rstrip("\n")
    redis.command("hset", key, "question", text.replace("rm -rf x", "ls"))
    assert shared.waiting() == []
    everywhere, _ = questions_in(redis.url)
    assert isinstance(everywhere, EverywhereQueue)
    assert asked not in everywhere.waiting()
    assert "1 entries in the shared store were not written by gripfast" in everywhere.note
    with pytest.raises(NoQuestion):
        shared.answer(asked.id, "yes", by="terminal")


HOSTILE = {
    "another type of question": ["set", "gripfast:1:question:S9", "x"],
    "no seal": ["hset", "gripfast:1:question:S9", "question", "{}"],
    "a seal that is not ours": ["hset", "gripfast:1:question:S9", "question", "{}", "seal", "é"],
    "a pickle": ["hset", "gripfast:1:question:S9", "question", "cos\nsystem\n(S'true'\ntR.", "seal", "x"],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_foreign_values_are_passed_over(shared: RedisQuestions, redis: RedisServer, kind: str) -> None:
    asked = shared.ask(ASKING)
    redis.command(*HOSTILE[kind])
    redis.command("zadd", "gripfast:1:questions", "1", "S9", "1", "../x", "1", "S-1")
    assert shared.waiting() == [asked]
    with pytest.raises(NoQuestion):
        shared.find("S9")


@pytest.mark.parametrize("number", ["1e300", "nan", "-7", "2.5", "999999999999", "x"])
def test_a_counter_that_somebody_else_set_keeps_no_question_from_being_answered(
    shared: RedisQuestions, redis: RedisServer, number: str
) -> None:
    redis.command("set", "gripfast:1:question-number", number)
    asked = shared.ask(ASKING)
    assert shared.waiting() == [asked]
    shared.answer(asked.id, "yes", by="terminal")
    assert shared.ask(ASKING).id != asked.id


def test_a_redis_that_lost_a_question_gets_it_again_and_no_number_twice(
    shared: RedisQuestions, redis: RedisServer
) -> None:
    asked = shared.ask(ASKING)
    announce(redis)  # emptied
    assert shared.waiting() == []
    assert shared.answered(asked.id) is None
    assert shared.waiting() == [asked]
    assert shared.ask(ASKING).id == "S2"


def test_without_the_redis_questions_are_asked_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gripfast.host.stores.redis_link._PAUSE", 0.0)
    for redis in running_redis(password="another"):
        announce(redis)
        shared, local = RedisQuestions(redis.url, "build1:8765 ab12"), QuestionQueue(tmp_path / "questions")
        queue = EverywhereQueue(local, shared)
        there = queue.ask(ASKING)
        redis.kill()
        here = queue.ask(ASKING)
        assert [here.id, there.id] == ["Q1", "S1"]
        assert queue.waiting() == [here]
        assert "can't be reached; only the questions of this machine" in queue.note
        assert queue.answered(there.id) is None
        with pytest.raises(Internal, match="can't be reached"):
            queue.take(there.id)
        queue.answer(here.id, "yes", by="terminal")
        redis.start()
        announce(redis)
        deadline = time.monotonic() + HANG
        while queue.answered(there.id) is None and not shared.waiting():
            assert time.monotonic() < deadline
        assert [question.id for question in queue.waiting()] == [there.id]
        queue.answer(there.id, "yes", by="terminal")
        assert queue.take(there.id) and queue.take(here.id)
        shared.close()
