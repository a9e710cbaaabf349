"""The store of sessions in Redis, for every server that reaches it. Needs the extra `redis`, loaded on first use.

    gripfast:1:session:ID   hash: owner, hello, fence, busy          all of a session expire together
    gripfast:1:state:ID     hash: the fields of its state
    gripfast:1:lines:ID     list: the lines of its record, which stay when it ends
    gripfast:1:recorded     sorted set: the sessions with lines, as ID and root, by their last use
    gripfast:1:lease:ID     the server that runs its calls; expires by itself if that server is gone
    gripfast:1:mail:ID      list: messages for that server
    gripfast:1:of:OWNER     sorted set: the owner's sessions by their last use
    gripfast:1:up:SERVER    a server that runs; expires by itself
    gripfast:1:once:NAME    hash: a value that is taken once
    gripfast:1:epoch        made once: a Redis that has another one was emptied

What must happen as a whole is one script on the server. Values are read as text or JSON, never run.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import cast

from gripfast.host.stores.redis_link import RedisLink
from gripfast.host.stores.sessions import (
    LEASE_SECONDS,
    MOST_FIELDS,
    MOST_LINES,
    MOST_MESSAGES,
    MOST_RECORDED,
    SESSION_SECONDS,
    Busy,
    Found,
    Lease,
    Leased,
    Recorded,
    accepted,
    busy_with,
    stored_name,
    text_bytes,
    unfinished,
)

# KEYS: session, lease, state, of
# ARGV: id, owner, holder, doing, lease in ms, life in ms, known fence, new, most fields
_LEASE = """
if ARGV[8] == '1' and redis.call('HSETNX', KEYS[1], 'owner', ARGV[2]) == 1 then
  redis.call('HSET', KEYS[1], 'hello', '')
end
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[2] then return {'unknown'} end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[3] then return {'busy', holder} end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[5])
local before = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0') or 0
local known = tonumber(ARGV[7])
local busy = redis.call('HGET', KEYS[1], 'busy') or ''
local fields = {}
if known < before and redis.call('HLEN', KEYS[3]) <= tonumber(ARGV[9]) then
  fields = redis.call('HGETALL', KEYS[3])
end
local fence = math.max(before, known) + 1
redis.call('HSET', KEYS[1], 'fence', fence, 'busy', ARGV[3] .. '\\n' .. ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('ZADD', KEYS[4], redis.call('TIME')[1], ARGV[1])
redis.call('PEXPIRE', KEYS[4], ARGV[6])
return {'leased', fence, busy, known < before and 'new' or known > before and 'behind' or 'known', fields}
"""
# KEYS: session, lease, mail.  ARGV: holder, fence, lease in ms
_RENEW = """
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[2] then return {'lost'} end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then return {'lost'} end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
local mail = redis.call('LRANGE', KEYS[3], 0, -1)
if #mail > 0 then redis.call('DEL', KEYS[3]) end
return {'held', mail}
"""
# KEYS: session, lease, state, lines, mail, recorded
# ARGV: holder, fence, release, life in ms, most lines, how many fields are set and removed, id and root,
#       most recorded, what stays busy; then the fields and the lines.
# Returns what is recorded beyond the most, in a list after 1
_SAVE = """
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[2] then return {0} end
local at = 11
for _ = 1, tonumber(ARGV[6]) do
  redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1])
  at = at + 2
end
for _ = 1, tonumber(ARGV[7]) do
  redis.call('HDEL', KEYS[3], ARGV[at])
  at = at + 1
end
local gone = {}
if at <= #ARGV then
  for number = at, #ARGV do redis.call('RPUSH', KEYS[4], ARGV[number]) end
  redis.call('LTRIM', KEYS[4], -tonumber(ARGV[5]), -1)
  redis.call('ZADD', KEYS[6], redis.call('TIME')[1], ARGV[8])
  redis.call('PEXPIRE', KEYS[6], ARGV[4])
  local surplus = redis.call('ZCARD', KEYS[6]) - tonumber(ARGV[9])
  if surplus > 0 then
    gone = redis.call('ZRANGE', KEYS[6], 0, surplus - 1)
    redis.call('ZREMRANGEBYRANK', KEYS[6], 0, surplus - 1)
  end
end
for _, key in ipairs({KEYS[1], KEYS[3], KEYS[4]}) do redis.call('PEXPIRE', key, ARGV[4]) end
if ARGV[3] == '1' then
  redis.call('HSET', KEYS[1], 'busy', ARGV[10])
  if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
  redis.call('DEL', KEYS[5])
end
return {1, gone}
"""
# KEYS: session, of.  ARGV: id, owner, hello, life in ms, most
_BEGIN = """
redis.call('HSETNX', KEYS[1], 'owner', ARGV[2])
redis.call('HSETNX', KEYS[1], 'hello', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[2], redis.call('TIME')[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
local surplus = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[5])
if surplus <= 0 then return {} end
local oldest = redis.call('ZRANGE', KEYS[2], 0, surplus - 1)
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, surplus - 1)
return oldest
"""
_TAKE = """
local value = redis.call('HMGET', KEYS[1], 'value', 'at')
redis.call('DEL', KEYS[1])
local now = redis.call('TIME')
return {value[1], value[2], now[1] .. '.' .. string.format('%06d', now[2])}
"""
_PUT = """
local now = redis.call('TIME')
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'at', now[1] .. '.' .. string.format('%06d', now[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""


_ID = re.compile(r"[0-9a-f]{32}\Z")


class RedisSessions:
    """Sessions in a Redis. Connects on first use: making one can't fail."""

    def __init__(
        self, url: str, *, lease: float = LEASE_SECONDS, keep: float = SESSION_SECONDS, timeout: float = 2.0
    ) -> None:
        self._link = RedisLink(url, what="the shared store", timeout=timeout)
        self._lease = int(lease * 1000)
        self._keep = int(keep * 1000)

    def ping(self) -> None:
        with self._link.talk() as redis:
            redis.ping()

    def epoch(self) -> str:
        with self._link.talk() as redis:
            redis.setnx(f"{self._link.prefix}epoch", secrets.token_hex(8))
            return cast(bytes, redis.get(f"{self._link.prefix}epoch")).decode("ascii")

    def begin(self, session: str, owner: str, hello: bytes, *, most: int) -> None:
        id = stored_name(session)
        keys = [self._key("session", id), self._key("of", stored_name(owner))]
        for old in cast(
            "list[bytes]", self._link.run(_BEGIN, keys, [id, text_bytes(owner), hello, self._keep, most])
        ):
            self._remove(old.decode("ascii", "replace"))

    def find(self, session: str) -> Found | None:
        id = stored_name(session)
        with self._link.talk() as redis:
            with redis.pipeline(transaction=False) as pipe:
                pipe.hmget(self._key("session", id), "owner", "hello").get(self._key("lease", id))
                facts, holder = pipe.execute()
            if facts[0] is None:
                return None
            return Found(facts[0].decode("utf-8"), facts[1] or b"", (holder or b"").decode("utf-8"))

    def end(self, session: str) -> None:
        self._remove(stored_name(session))

    def lease(
        self, session: str, owner: str, holder: str, doing: str, *, known: int = 0, new: bool = False
    ) -> Leased | Busy | None:
        id = stored_name(session)
        keys = [self._key(kind, id) for kind in ("session", "lease", "state")]
        keys.append(self._key("of", stored_name(owner)))
        times = (self._lease, self._keep)
        found = self._link.run(
            _LEASE, keys, [id, text_bytes(owner), holder, doing, *times, known, int(new), MOST_FIELDS]
        )
        if found[0] == b"unknown":
            return None
        if found[0] == b"busy":
            return Busy(found[1].decode("utf-8", "replace"))
        with self._link.talk():  # what can't be read is not ours
            pairs = iter(found[4])
            fields = {name.decode("utf-8", "surrogatepass"): value for name, value in zip(pairs, pairs, strict=True)}
            lease = Lease(session, holder, int(found[1]))
        lost = unfinished(found[2].decode("utf-8", "replace"), holder)
        return Leased(lease, accepted(fields) if found[3] == b"new" else None, lost, found[3] == b"behind")

    def renew(self, lease: Lease) -> list[bytes] | None:
        id = stored_name(lease.session)
        keys = [self._key(kind, id) for kind in ("session", "lease", "mail")]
        found = self._link.run(_RENEW, keys, [lease.holder, lease.fence, self._lease])
        return None if found[0] == b"lost" else list(found[1])

    def save(
        self,
        lease: Lease,
        changes: Mapping[str, bytes | None],
        lines: Sequence[bytes] = (),
        *,
        root: str = "",
        release: bool = False,
        unfinished: str = "",
    ) -> bool:
        id = stored_name(lease.session)
        keys = [self._key(kind, id) for kind in ("session", "lease", "state", "lines", "mail")]
        written = {name: value for name, value in changes.items() if value is not None}
        removed = [text_bytes(name) for name, value in changes.items() if value is None]
        head = [lease.holder, lease.fence, int(release), self._keep, MOST_LINES, len(written), len(removed)]
        pairs = [part for name, value in written.items() for part in (text_bytes(name), value)]
        busy = busy_with(lease.holder, unfinished) if unfinished else ""
        named = [text_bytes(f"{id} {root}"), MOST_RECORDED, busy]
        arguments = [*head, *named, *pairs, *removed, *lines]
        found = self._link.run(_SAVE, [*keys, f"{self._link.prefix}recorded"], arguments)
        for old in found[1] if len(found) > 1 else ():
            self._remove_lines(old.split(b" ")[0].decode("ascii", "replace"))
        return found[0] == 1

    def send(self, session: str, message: bytes) -> None:
        key = self._key("mail", stored_name(session))
        with self._link.talk() as redis, redis.pipeline(transaction=True) as pipe:
            pipe.rpush(key, message).ltrim(key, 0, MOST_MESSAGES - 1).pexpire(key, self._lease).execute()

    def recorded(self) -> list[Recorded]:
        with self._link.talk() as redis:
            found = redis.zrevrange(f"{self._link.prefix}recorded", 0, MOST_RECORDED - 1, withscores=True)
            rows = [(member.decode("utf-8", "surrogatepass").partition(" "), used) for member, used in found]
            return [Recorded(id, root, used) for (id, _, root), used in rows if _ID.match(id) and root]

    def lines(self, session: str) -> list[bytes]:
        with self._link.talk() as redis:
            return list(redis.lrange(self._key("lines", session), -MOST_LINES, -1))

    def put(self, name: str, value: bytes, seconds: float) -> None:
        self._link.run(_PUT, [self._key("once", stored_name(name))], [value, int(seconds * 1000)])

    def take(self, name: str) -> tuple[bytes, float] | None:
        value, at, now = self._link.run(_TAKE, [self._key("once", stored_name(name))], [])
        with self._link.talk():  # a value that is not a number was not written by us
            return None if value is None or at is None else (value, max(0.0, float(now) - float(at)))

    def announce(self, server: str) -> None:
        with self._link.talk() as redis:
            redis.set(self._key("up", stored_name(server)), "1", px=self._lease)

    def is_up(self, server: str) -> bool:
        with self._link.talk() as redis:
            return bool(redis.exists(self._key("up", stored_name(server))))

    def close(self) -> None:
        self._link.close()

    def _key(self, kind: str, name: str) -> str:
        return f"{self._link.prefix}{kind}:{name}"

    def _remove(self, id: str) -> None:
        with self._link.talk() as redis:
            redis.unlink(*(self._key(kind, id) for kind in ("session", "state", "lease", "mail")))

    def _remove_lines(self, id: str) -> None:
        with self._link.talk() as redis:
            redis.unlink(self._key("lines", id))
