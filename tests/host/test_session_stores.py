"""What every store of sessions does, run over the embedded one and over a real Redis."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cache_stores import RedisServer, running_redis
from gripfast.errors import Internal
from gripfast.host.stores.embedded_sessions import EmbeddedSessions
from gripfast.host.stores.redis_sessions import RedisSessions
from gripfast.host.stores.sessions import (
    LARGEST_FIELD,
    LEASE_SECONDS,
    MOST_FIELDS,
    MOST_LINES,
    MOST_MESSAGES,
    SESSION_SECONDS,
    Busy,
    Found,
    Leased,
    SessionStore,
    stored_name,
)

HANG = 60.0


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    yield from running_redis()


@pytest.fixture(params=["embedded", "redis"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., SessionStore]]:
    """Opens stores on the same data, as several servers would."""
    made: list[SessionStore] = []
    server: RedisServer | None = request.getfixturevalue("redis") if request.param == "redis" else None
    if server is not None:
        server.command("flushall")

    def opened(*, lease: float = LEASE_SECONDS, keep: float = SESSION_SECONDS) -> SessionStore:
        if server is None:
            store: SessionStore = EmbeddedSessions(tmp_path, lease=lease, keep=keep)
        else:
            store = RedisSessions(server.url, lease=lease, keep=keep)
        made.append(store)
        return store

    yield opened
    for store in made:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., SessionStore]) -> SessionStore:
    made = open_store()
    made.begin("s", "ann", b"hello", most=100)
    return made


def leased(store: SessionStore, holder: str = "one", session: str = "s", owner: str = "ann", **more: Any) -> Leased:
    found = store.lease(session, owner, holder, "Read", **more)
    assert isinstance(found, Leased), found
    return found


def test_a_session_is_found_by_every_server_until_it_ends(
    store: SessionStore, open_store: Callable[..., SessionStore]
) -> None:
    other = open_store()
    assert other.find("s") == Found("ann", b"hello", "")
    assert other.find("another") is None
    store.end("s")
    assert other.find("s") is None
    assert other.lease("s", "ann", "two", "Read") is None


def test_what_one_server_saved_another_goes_on_with(
    store: SessionStore, open_store: Callable[..., SessionStore]
) -> None:
    first = leased(store)
    assert not first.fields
    assert store.save(first.lease, {"a": b"1", "b": b"\xff\x00", "é/\udc80": b"2"}, [b"line 1"], release=True)
    second = leased(open_store(), "two")
    assert second.fields == {"a": b"1", "b": b"\xff\x00", "é/\udc80": b"2"}
    assert second.lease.fence > first.lease.fence
    assert store.save(second.lease, {"a": None, "c": b"3"}, [b"line 2"], release=True)
    assert leased(store, known=first.lease.fence).fields == {"b": b"\xff\x00", "é/\udc80": b"2", "c": b"3"}


def test_servers_on_other_machines_see_the_lines_of_a_record_also_after_its_end(redis: RedisServer) -> None:
    redis.command("flushall")
    store, other = RedisSessions(redis.url), RedisSessions(redis.url)
    assert other.recorded() == []
    for number in range(3):
        held = leased(store, new=True).lease
        assert store.save(held, {}, [b"line %d" % number], root="/srv/é\udc80 x", release=True)
    store.end("s")
    (found,) = other.recorded()
    assert (found.session, found.root) == (stored_name("s"), "/srv/é\udc80 x")
    assert other.lines(found.session) == [b"line 0", b"line 1", b"line 2"]
    store.close()
    other.close()


def test_of_too_many_recorded_sessions_the_least_used_lose_their_lines(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gripfast.host.stores.redis_sessions.MOST_RECORDED", 2)
    redis.command("flushall")
    store = RedisSessions(redis.url)
    old, older = stored_name("old"), stored_name("older")
    for id, used in ((older, 1), (old, 2)):
        redis.command("zadd", "gripfast:1:recorded", f"{used}", f"{id} /r")
        redis.command("rpush", f"gripfast:1:lines:{id}", "line")
    assert store.save(leased(store, new=True).lease, {}, [b"line"], root="/r", release=True)
    assert [one.session for one in store.recorded()] == [stored_name("s"), old]
    assert [len(store.lines(id)) for id in (stored_name("s"), old, older)] == [1, 1, 0]
    store.close()


def test_a_server_that_nobody_followed_gets_no_state_again(store: SessionStore) -> None:
    first = leased(store)
    assert store.save(first.lease, {"a": b"1"}, release=True)
    assert leased(store, known=first.lease.fence).fields is None


def test_only_one_server_has_the_lease(store: SessionStore, open_store: Callable[..., SessionStore]) -> None:
    first, other = leased(store), open_store()
    assert other.lease("s", "ann", "two", "Read") == Busy("one")
    assert other.find("s") == Found("ann", b"hello", "one")
    assert store.save(first.lease, {})
    assert other.lease("s", "ann", "two", "Read") == Busy("one")
    assert store.save(first.lease, {}, release=True)
    assert leased(other, "two").unfinished is None


def test_servers_that_race_for_a_lease_have_it_one_after_the_other(open_store: Callable[..., SessionStore]) -> None:
    """Each adds one to a number that only the lease protects."""
    open_store().begin("s", "ann", b"", most=9)

    def add(store: SessionStore, name: str) -> None:
        for _ in range(20):
            while not isinstance(found := store.lease("s", "ann", name, "Read"), Leased):
                time.sleep(0.001)
            number = int((found.fields or {}).get("n", b"0"))
            assert store.save(found.lease, {"n": b"%d" % (number + 1)}, release=True)

    threads = [Thread(target=add, args=(open_store(), f"server {number}")) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert (leased(open_store()).fields or {})["n"] == b"80"


def test_the_lease_of_a_server_that_is_silent_ends_and_names_what_it_did(
    open_store: Callable[..., SessionStore],
) -> None:
    store = open_store(lease=0.2)
    store.begin("s", "ann", b"", most=9)
    lost = leased(store).lease
    deadline = time.monotonic() + HANG
    while not isinstance(found := store.lease("s", "ann", "two", "Edit"), Leased):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert found.unfinished == ("one", "Read")
    assert not store.save(lost, {"a": b"late"}, [b"late"], release=True)
    assert store.renew(lost) is None
    assert store.save(found.lease, {"b": b"2"}, release=True)
    assert leased(store, "three").fields == {"b": b"2"}
    assert store.lines(stored_name("s")) == []


def test_a_lease_that_ran_out_is_still_good_while_nobody_took_it(open_store: Callable[..., SessionStore]) -> None:
    store = open_store(lease=0.05)
    store.begin("s", "ann", b"", most=9)
    held = leased(store).lease
    time.sleep(0.1)
    assert store.renew(held) == []
    assert store.save(held, {"a": b"1"})


def test_a_server_takes_its_own_lease_again_but_not_twice(store: SessionStore) -> None:
    first = leased(store).lease
    again = leased(store)
    assert again.unfinished is None
    assert not store.save(first, {"a": b"old"})
    assert store.save(again.lease, {"a": b"new"})


def test_messages_reach_the_server_that_has_the_lease(
    store: SessionStore, open_store: Callable[..., SessionStore]
) -> None:
    held = leased(store).lease
    for number in range(3):
        open_store().send("s", b"%d" % number)
    assert store.renew(held) == [b"0", b"1", b"2"]
    assert store.renew(held) == []
    store.send("s", b"too late")
    assert store.save(held, {}, release=True)
    assert store.renew(leased(store, "two").lease) == []


def test_another_owner_has_no_part_in_a_session(store: SessionStore) -> None:
    assert store.lease("s", "bob", "one", "Read") is None
    assert store.lease("s", "bob", "one", "Read", new=True) is None
    assert leased(store, session="named", owner="bob", new=True).unfinished is None
    assert store.find("named") == Found("bob", b"", "one")


def test_of_too_many_sessions_of_an_owner_the_least_used_go(store: SessionStore) -> None:
    store.begin("bobs", "bob", b"", most=2)
    for name in ("t", "u"):
        store.begin(name, "ann", b"", most=2)
    assert [store.find(name) is not None for name in ("s", "t", "u", "bobs")] == [False, True, True, True]


def test_sessions_expire(open_store: Callable[..., SessionStore]) -> None:
    store = open_store(keep=0.1)
    store.begin("s", "ann", b"", most=9)
    assert store.save(leased(store).lease, {"a": b"1"}, [b"line"], release=True)
    deadline = time.monotonic() + HANG
    while store.find("s") is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_value_is_taken_once_and_only_in_its_time(store: SessionStore) -> None:
    store.put("question", b"which?", 60)
    assert store.take("another") is None
    value, age = store.take("question") or (b"", -1.0)
    assert (value, 0 <= age < HANG) == (b"which?", True)
    assert store.take("question") is None
    store.put("brief", b"x", 0.001)
    time.sleep(0.01)
    assert store.take("brief") is None


def test_what_is_stored_is_bounded(store: SessionStore) -> None:
    held = leased(store).lease
    assert store.save(held, {"small": b"x", "large": b"x" * (LARGEST_FIELD + 1)})
    for _ in range(MOST_MESSAGES + 5):
        store.send("s", b"x")
    assert len(store.renew(held) or []) == MOST_MESSAGES
    assert store.save(held, {}, [b"%d" % number for number in range(MOST_LINES + 5)], root="/r", release=True)
    newest = [b"%d" % number for number in range(5, MOST_LINES + 5)]
    assert store.lines(stored_name("s")) == (newest if isinstance(store, RedisSessions) else [])
    assert leased(store, "two").fields == {"small": b"x"}
    again = leased(store, "two").lease
    assert store.save(again, {f"{number}": b"" for number in range(MOST_FIELDS)}, release=True)
    assert leased(store, "three").fields == {}


def test_an_epoch_lasts_as_long_as_the_store(store: SessionStore, open_store: Callable[..., SessionStore]) -> None:
    assert store.epoch() == open_store().epoch()


def test_a_server_that_knows_more_than_an_emptied_store_goes_on(redis: RedisServer) -> None:
    redis.command("flushall")
    store = RedisSessions(redis.url)
    before = store.epoch()
    assert store.save(leased(store, new=True).lease, {"a": b"1"}, release=True)
    redis.command("flushall")
    assert store.epoch() != before
    again = leased(store, known=7, new=True)
    assert (again.fields, again.lease.fence) == (None, 8)
    store.close()


HOSTILE = {
    "another type": ["set", "gripfast:1:session:{}", "x"],
    "another type of state": ["set", "gripfast:1:state:{}", "x"],
    "a fence that is no number": ["hset", "gripfast:1:session:{}", "fence", "x"],
    "an enormous fence": ["hset", "gripfast:1:session:{}", "fence", "1e400"],
    "a pickle": ["hset", "gripfast:1:state:{}", "todos", "cos\nsystem\n(S'true'\ntR."],
    "a name that is not text": ["hset", "gripfast:1:state:{}", b"\xff\xfe".decode("latin-1"), "x"],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_foreign_values_are_an_error_in_words_or_mere_text(redis: RedisServer, kind: str) -> None:
    redis.command("flushall")
    store = RedisSessions(redis.url)
    if kind != "another type":
        assert store.save(leased(store, new=True).lease, {}, release=True)
    redis.command(*(word.format(stored_name("s")) for word in HOSTILE[kind]))
    try:
        found = store.lease("s", "ann", "two", "Read", new=True)
    except Internal as fault:
        assert fault.message == "the shared store failed: Redis has a value that gripfast did not write"
    else:
        assert isinstance(found, Leased)
    store.close()


def test_a_password_that_is_wrong_or_missing_is_told_from_a_redis_that_is_gone() -> None:
    for redis in running_redis(password="right"):
        for given, said in ((":wrong@", "Redis refused the password"), ("", "Redis requires a password")):
            store = RedisSessions(redis.url.replace(":right@", given))
            for _ in range(2):  # the second time nobody asks Redis
                with pytest.raises(Internal, match=said):
                    store.ping()
            store.close()


def test_a_redis_that_is_gone_is_told_and_used_again_when_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gripfast.host.stores.redis_link._PAUSE", 0.0)
    for redis in running_redis(keeps=True):
        store = RedisSessions(redis.url)
        held = leased(store, new=True).lease
        assert store.save(held, {"a": b"1"})
        redis.kill()
        with pytest.raises(Internal, match="Redis can't be reached"):
            store.save(held, {"a": b"2"})
        redis.start()
        assert store.save(held, {"b": b"3"}, release=True)
        assert leased(store, "two").fields == {"a": b"1", "b": b"3"}
        store.close()
