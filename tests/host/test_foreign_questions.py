"""Foreign questions: of another user, of another session, of a store with another password. No answer reaches them,
and theirs reaches nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cache_stores import RedisServer, running_redis
from gripfast.edges.cli import main
from gripfast.host.questions.question import Asking, NoQuestion, Questions, QueuedQuestion
from gripfast.host.questions.queue import QuestionQueue
from gripfast.host.questions.redis_questions import RedisQuestions
from gripfast.host.stores.redis_sessions import RedisSessions

ASKING = Asking("s1", "/work", "Bash", "no rule matches it", "command: rm -rf x", call="c1")
SERVER, OTHER = "build1:8765 ab12", "build2:8765 cd34"
SOMEBODY = 12_345


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QuestionQueue:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return QuestionQueue()


def refuses(queue: Questions, asked: QueuedQuestion) -> bool:
    """Whether a queue neither lists nor finds a question, nor takes an answer to it."""
    with pytest.raises(NoQuestion):
        queue.find(asked.id)
    with pytest.raises(NoQuestion):
        queue.answer(asked.id, "yes", by="terminal")
    return asked not in queue.waiting() and asked not in queue.pending(asked.session, asked.call)


# --- of another user ---


def given_to_somebody(queue: QuestionQueue, *names: str) -> None:
    for name in names:
        os.chown(queue.directory / name, SOMEBODY, -1)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


@as_root
def test_a_foreign_users_question_is_neither_shown_nor_answered(queue: QuestionQueue) -> None:
    own, foreign = queue.ask(ASKING), queue.ask(ASKING)
    given_to_somebody(queue, f"{foreign.id}.json")
    assert queue.waiting() == [own]
    assert refuses(queue, foreign)
    assert not (queue.directory / f"{foreign.id}.answer").exists()
    assert CliRunner().invoke(main, ["approve", foreign.id]).exit_code == 1


@as_root
def test_a_foreign_users_answer_is_never_a_yes(queue: QuestionQueue) -> None:
    asked = queue.ask(ASKING)
    queue.answer(asked.id, "yes", by="terminal")
    given_to_somebody(queue, f"{asked.id}.answer")
    answer = queue.answered(asked.id)
    assert answer is not None and answer.is_over
    assert queue.pending("s1", "c1") == []


def test_what_another_user_left_here_is_not_ours(queue: QuestionQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as above, also where nobody is root: we are the other user."""
    asked, answered = queue.ask(ASKING), queue.ask(ASKING)
    queue.answer(answered.id, "yes", by="terminal")
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    assert refuses(queue, asked)
    answer = queue.answered(answered.id)
    assert answer is not None and answer.is_over


def test_another_state_directory_has_other_questions(
    queue: QuestionQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = queue.ask(ASKING)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    assert refuses(QuestionQueue(), asked)
    assert CliRunner().invoke(main, ["approve", asked.id]).exit_code == 1
    assert queue.waiting() == [asked]


def test_a_link_to_a_question_elsewhere_is_not_one(queue: QuestionQueue, tmp_path: Path) -> None:
    asked = queue.ask(ASKING)
    text = (queue.directory / f"{asked.id}.json").read_text(encoding="utf-8")
    (tmp_path / "theirs.json").write_text(text.replace('"id": "Q1"', '"id": "Q7"'), encoding="utf-8")
    os.symlink(tmp_path / "theirs.json", queue.directory / "Q7.json")
    assert refuses(queue, replace(asked, id="Q7"))
    assert queue.waiting() == [asked]


@pytest.mark.parametrize("name", ["Q7", "../Q7", "Q7/../Q8"])
def test_a_copy_of_a_question_under_another_name_is_not_one(queue: QuestionQueue, name: str) -> None:
    asked = queue.ask(ASKING)
    text = (queue.directory / f"{asked.id}.json").read_text(encoding="utf-8")
    (queue.directory / "Q7").mkdir()
    own_name = text.replace('"id": "Q1"', f'"id": "{name}"') if "/" in name else text
    (queue.directory / f"{name}.json").write_text(own_name, encoding="utf-8")
    assert refuses(queue, replace(asked, id=name))
    assert queue.waiting() == [asked]


# --- of another session ---


def test_a_foreign_sessions_answer_is_for_its_own_call_only(queue: QuestionQueue) -> None:
    ours, theirs = queue.ask(ASKING), queue.ask(replace(ASKING, session="s2", root="/elsewhere"))
    queue.answer(theirs.id, "yes", by="terminal")
    assert queue.answered(ours.id) is None
    assert queue.pending("s1", "c1") == [ours]
    assert queue.pending("s2", "c1") == [theirs]


# --- of a store with another password ---


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    yield from running_redis(password="ours")


@pytest.fixture
def two(redis: RedisServer) -> Iterator[tuple[RedisQuestions, RedisQuestions]]:
    """The questions of two servers in one Redis, which they enter with passwords of their own."""
    redis.command("flushall")
    redis.command("acl", "setuser", "them", "on", ">theirs", "~*", "&*", "+@all")
    urls = (redis.url, redis.url.replace("://:ours@", "://them:theirs@"))
    made = [RedisQuestions(url, name) for url, name in zip(urls, (SERVER, OTHER), strict=True)]
    for url, name in zip(urls, (SERVER, OTHER), strict=True):
        store = RedisSessions(url, lease=600)
        store.announce(name)
        store.close()
    yield made[0], made[1]
    for one in made:
        one.close()


def test_a_foreign_servers_question_is_neither_shown_nor_answered(
    two: tuple[RedisQuestions, RedisQuestions], queue: QuestionQueue
) -> None:
    ours, theirs = two
    asked = ours.ask(ASKING)
    assert refuses(theirs, asked)
    assert theirs.foreign == 1
    assert ours.waiting() == [asked] and ours.answered(asked.id) is None
    assert CliRunner().invoke(main, ["approve", asked.id]).exit_code == 1  # without the store it is unknown


def test_a_foreign_servers_answer_is_never_a_yes(
    two: tuple[RedisQuestions, RedisQuestions], redis: RedisServer
) -> None:
    ours, theirs = two
    asked, other = ours.ask(ASKING), theirs.ask(ASKING)
    theirs.answer(other.id, "yes", by="terminal")
    for field in ("answer", "answer_seal"):
        value = redis.command("hget", f"gripfast:1:question:{other.id}", field).decode().rstrip("\n")
        redis.command("hset", f"gripfast:1:question:{asked.id}", field, value)
    answer = ours.answered(asked.id)
    assert answer is not None and answer.is_over
    assert ours.pending("s1", "c1") == []
