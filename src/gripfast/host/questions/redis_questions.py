"""Questions in a Redis: asked by any server, listed and answered wherever that Redis is known.

    gripfast:1:question:S7      hash: question, seal, answer, answer_seal, taken     expires a day after its end
    gripfast:1:questions        sorted set: those without an answer, by the time they were asked
    gripfast:1:asked:DIGEST     set: the questions of one session about one call
    gripfast:1:question-number  the last number
    gripfast:1:question-stamp   counts the changes

Whoever answers lets commands run, and a command may reach the Redis. So questions and answers are sealed with a key
that is made from the password in the address: what has no valid seal does not count, and an answer counts only for
the question as it was asked. Without a password there is no key, and questions stay on their machine. Times are those
of the Redis.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit

from gripfast.errors import InvalidArgument
from gripfast.host.questions.question import (
    LIFETIME,
    OVER,
    Asking,
    Channel,
    NoQuestion,
    QueuedAnswer,
    QueuedQuestion,
    Verdict,
    answer_in,
    fields_of,
    no_such_question,
    question_in,
    refuse_answered,
    refuse_unoffered,
)
from gripfast.host.stores.redis_link import RedisLink
from gripfast.host.stores.sessions import stored_name
from gripfast.records import dataclass

_ID = re.compile(r"S[1-9][0-9]{0,11}\Z")
_LARGEST_NUMBER = 10**12 - 1
_KEEP_CLOSED = 86_400  # seconds
_MOST_LISTED = 1000
_LARGEST = 8 << 20

# KEYS: number.  ARGV: the largest number that this server knows, and the largest that an id may have. What can't be
# ours (1e300, nan) does not count
_NUMBER = """
local last = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
if not (last >= 0 and last < tonumber(ARGV[2])) then last = 0 end
local number = math.max(math.floor(last), tonumber(ARGV[1])) + 1
redis.call('SET', KEYS[1], string.format('%.0f', number))
local now = redis.call('TIME')
return {number, now[1] .. '.' .. string.format('%06d', now[2])}
"""
# KEYS: question, questions, asked, stamp.  ARGV: id, question, seal, seconds to keep
_PUT = """
if redis.call('HSETNX', KEYS[1], 'question', ARGV[2]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'seal', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
local now = redis.call('TIME')[1]
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[4])
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[4])
redis.call('SADD', KEYS[3], ARGV[1])
redis.call('EXPIRE', KEYS[3], ARGV[4])
redis.call('INCR', KEYS[4])
return 1
"""
# KEYS: question, questions, stamp.  ARGV: id, answer, seal
_SETTLE = """
if redis.call('HEXISTS', KEYS[1], 'question') == 0 then return 0 end
if redis.call('HSETNX', KEYS[1], 'answer', ARGV[2]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'answer_seal', ARGV[3])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('INCR', KEYS[3])
return 1
"""
# KEYS: questions.  Returns the time and what each has; nothing for a key of another type, which is not ours
_READ = """
local found = {redis.call('TIME')[1]}
for number, key in ipairs(KEYS) do
  local row = redis.pcall('HMGET', key, 'question', 'seal', 'answer', 'answer_seal', 'taken')
  found[number + 1] = row.err and {} or row
end
return found
"""
# KEYS: question
_TAKE = "if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end return redis.call('HSETNX', KEYS[1], 'taken', '1')"


NO_PASSWORD = (
    "questions are not shared: the store's address has no password, so a command could answer its own question"
)


def sealing_key(url: str) -> bytes | None:
    """The key that seals questions in a Redis, from the password in its address; None if that has none."""
    parts = urlsplit(url)
    named = parse_qs(parts.query).get("password", [""])[0]
    password = named or unquote(parts.password or "")
    return hashlib.sha256(b"gripfast questions\0" + password.encode()).digest() if password else None


@dataclass(frozen=True, slots=True)
class _StoredQuestion:
    """A question as Redis has it, if its seal is valid."""

    question: QueuedQuestion
    text: bytes
    answer: QueuedAnswer | None
    is_taken: bool
    is_late: bool


class RedisQuestions:
    """The questions of all servers with the same Redis. Its methods raise only ToolError."""

    is_local = False

    def __init__(self, url: str, owner: str = "", *, timeout: float = 2.0) -> None:
        """`owner` is the server that asks, under the name that it announces. Raises InvalidArgument for an address
        without a password."""
        key = sealing_key(url)
        if key is None:
            raise InvalidArgument(NO_PASSWORD)
        self._key = key
        self._link = RedisLink(url, what="the shared queue of questions", timeout=timeout)
        self._owner = owner
        self._own: dict[str, tuple[bytes, Asking]] = {}
        self._largest = 0
        self.foreign = 0
        """How many questions of the last list had no valid seal."""

    # --- for those who show questions ---

    def waiting(self) -> list[QueuedQuestion]:
        with self._link.talk() as redis:
            members = cast("list[bytes]", redis.zrange(f"{self._link.prefix}questions", 0, _MOST_LISTED - 1))
        ids = _ids_in(members)
        found = self._read_all(ids)
        self.foreign = sum(one is None for one in found)
        open_ones = [one.question for one in found if one and one.answer is None and not one.is_late]
        up = self._up({question.owner for question in open_ones})
        return [question for question in open_ones if question.owner in up]

    def find(self, id: str) -> QueuedQuestion:
        return self._find(id).question

    def _find(self, id: str) -> _StoredQuestion:
        stored = self._read(id) if _ID.match(id) else None
        if stored is None:
            raise no_such_question(id)
        refuse_answered(id, stored.answer)
        if stored.is_late:
            raise NoQuestion(f"{id} is over: nobody answered it in time")
        if not self._up({stored.question.owner}):
            raise NoQuestion(f"{id} is over: its server is gone")
        return stored

    def answer(self, id: str, verdict: Verdict, *, by: Channel, because: str = "") -> QueuedQuestion:
        stored = self._find(id)
        refuse_unoffered(stored.question, verdict)
        if not self._settle(stored, QueuedAnswer(verdict, by, because, time.time())):
            again = self._read(id)
            refuse_answered(id, again and again.answer)
            raise NoQuestion(f"{id} is over")
        return stored.question

    def stamp(self) -> object:
        with self._link.talk() as redis:
            return redis.get(f"{self._link.prefix}question-stamp")

    # --- for those who ask ---

    def ask(self, asking: Asking, *, seconds: float = LIFETIME) -> QueuedQuestion:
        while True:
            number, now = self._link.run(
                _NUMBER, [f"{self._link.prefix}question-number"], [self._largest, _LARGEST_NUMBER]
            )
            self._largest = int(number)
            question = QueuedQuestion.of(
                asking,
                f"S{self._largest}",
                asked_at=float(now),
                seconds=seconds,
                owner=self._owner,
                server=self._owner.partition(" ")[0],
            )
            text = json.dumps(fields_of(question)).encode()
            if self._put(question.id, text, asking):
                self._own[question.id] = (text, asking)
                return question

    def prepare(self) -> None:
        """There is nothing to prepare."""

    def answered(self, id: str) -> QueuedAnswer | None:
        """The answer; None if there is none yet. A question of this server that Redis has lost is stored again."""
        stored = self._read(id)
        if stored is None and id in self._own:
            self._put(id, *self._own[id])
        return stored.answer if stored else None

    def pending(self, session: str, call: str) -> list[QueuedQuestion]:
        with self._link.talk() as redis:
            members = cast("set[bytes]", redis.smembers(self._asked(session, call)))
        found = [one for one in self._read_all(_ids_in(members)[-_MOST_LISTED:]) if one and not one.is_taken]
        own = [one for one in found if (one.question.session, one.question.call) == (session, call)]
        up = self._up({one.question.owner for one in own})
        return [one.question for one in own if _is_usable(one, one.question.owner in up)]

    def take(self, id: str) -> bool:
        is_first = bool(self._link.run(_TAKE, [self._name("question", id)]))
        self._own.pop(id, None)
        return is_first

    def withdraw(self, id: str, why: str) -> QueuedAnswer | None:
        self._own.pop(id, None)
        stored = self._read(id)
        if stored is None or stored.answer is not None:
            return stored and stored.answer
        if self._settle(stored, QueuedAnswer(OVER, "", why, time.time())):
            return None
        again = self._read(id)
        return again and again.answer

    def close(self) -> None:
        self._link.close()

    # --- what is stored ---

    def _read(self, id: str) -> _StoredQuestion | None:
        return self._read_all([id])[0]

    def _read_all(self, ids: Sequence[str]) -> list[_StoredQuestion | None]:
        """What Redis has of these questions; None for one that is not there or not ours."""
        now, *rows = self._link.run(_READ, [self._name("question", id) for id in ids]) if ids else (0,)
        return [self._stored(id, row, int(now)) if row else None for id, row in zip(ids, rows, strict=True)]

    def _stored(self, id: str, row: list[bytes | None], now: int) -> _StoredQuestion | None:
        text, seal, answer, answer_seal, taken = row
        if text is None or len(text) > _LARGEST or not hmac.compare_digest(self._seal(text), seal or b""):
            return None
        question = question_in(json.loads(text), id)
        if question is None:
            return None
        found = None if answer is None else self._answer(text, answer, answer_seal)
        return _StoredQuestion(question, text, found, taken is not None, now >= question.expires_at)

    def _answer(self, question: bytes, answer: bytes, seal: bytes | None) -> QueuedAnswer:
        if not hmac.compare_digest(self._seal(question, answer), seal or b""):
            return QueuedAnswer(OVER, "", "its answer was not written by gripfast", 0.0)
        return answer_in(json.loads(answer))

    def _seal(self, *parts: bytes) -> bytes:
        digests = b"".join(hashlib.sha256(part).digest() for part in parts)
        return hmac.new(self._key, digests, hashlib.sha256).hexdigest().encode()

    def _put(self, id: str, text: bytes, asking: Asking) -> bool:
        keys = [self._name("question", id), f"{self._link.prefix}questions", self._asked(asking.session, asking.call)]
        arguments = [id, text, self._seal(text), int(LIFETIME) + _KEEP_CLOSED]
        return bool(self._link.run(_PUT, [*keys, f"{self._link.prefix}question-stamp"], arguments))

    def _settle(self, stored: _StoredQuestion, answer: QueuedAnswer) -> bool:
        """Stores an answer to the question as it was read, unless there is one."""
        id, text = stored.question.id, json.dumps(fields_of(answer)).encode()
        names = [
            self._name("question", id),
            *(f"{self._link.prefix}{name}" for name in ("questions", "question-stamp")),
        ]
        return bool(self._link.run(_SETTLE, names, [id, text, self._seal(stored.text, text)]))

    def _up(self, owners: set[str]) -> set[str]:
        """Which of the servers have announced themselves and are not known to be gone."""
        names = sorted(owners)
        with self._link.talk() as redis, redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.exists(self._name("up", stored_name(name)))
            return {name for name, is_up in zip(names, pipe.execute(), strict=True) if is_up}

    def _asked(self, session: str, call: str) -> str:
        return self._name("asked", stored_name(f"{session}\0{call}"))

    def _name(self, kind: str, id: str) -> str:
        return f"{self._link.prefix}{kind}:{id}"


def _ids_in(members: Iterable[bytes]) -> list[str]:
    ids = [id for member in members if _ID.match(id := member.decode("ascii", "replace"))]
    return sorted(ids, key=lambda id: int(id[1:]))


def _is_usable(stored: _StoredQuestion, is_up: bool) -> bool:
    return is_up and not stored.is_late if stored.answer is None else not stored.answer.is_over
