"""The Redis store of outputs: one cache for many machines. Needs the extra `redis`, loaded on first use.

    gripfast:1:out:REF      hash: session, blob, size, created, card     lives twice the TTL, so that expired is known
    gripfast:1:blob:NAME    hash: chunk number -> bytes                  a window moves its chunks, not the output
    gripfast:1:same:SHA256  the blob with that content
    gripfast:1:ages, :sizes what the collector needs: when a blob was last stored, and its size

What is being written expires in an hour, so a writer that is killed leaves nothing for long.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar, cast

from gripfast.errors import Internal, ToolError
from gripfast.host.search.line_search import LineSearch, Query, check_pattern
from gripfast.host.stores.collector import Collector
from gripfast.host.stores.redis_link import FULL, RedisLink
from gripfast.host.stores.store import QUOTA, TTL, expired_ref, unknown_ref
from gripfast.records import dataclass

T = TypeVar("T")
_CHUNK = 256 * 1024
_BATCH = 8  # chunks sent or asked for at once
_ROOM = 4 * _CHUNK * _BATCH  # bytes of outputs that are removed when Redis is full
_UNFINISHED = 3600  # seconds
_REF = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class StoredChunks:
    id: str
    size: int
    card: bytes
    blob: str


class RedisStore:
    """Outputs in a Redis, for every machine that reaches it. Connects on first use: making one can't fail."""

    def __init__(
        self,
        url: str,
        *,
        quota: int = QUOTA,
        ttl: float = TTL,
        timeout: float = 5.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._link = RedisLink(url, what="the output cache", timeout=timeout)
        self._prefix = self._link.prefix
        self._quota = quota
        self._ttl = ttl
        self._now = now
        self._collector = Collector(self.collect, every=300.0, or_bytes=quota // 16)

    def ping(self) -> None:
        """Raises ToolError if Redis does not answer."""
        with self._link.talk() as redis:
            redis.ping()

    def writer(self, session: str) -> ChunkWriter:
        return ChunkWriter(self, session, self._quota)

    def find(self, session: str, ref_id: str) -> StoredChunks:
        if not _REF.fullmatch(ref_id):
            raise unknown_ref(ref_id)
        with self._link.talk() as redis:
            facts = cast(dict[bytes, bytes], redis.hgetall(f"{self._prefix}out:{ref_id}"))
            if facts.get(b"session") != session.encode("utf-8", "surrogatepass"):
                raise unknown_ref(ref_id)
            blob = facts[b"blob"].decode()
            there = redis.exists(self._blob(blob))
            created, size = float(facts[b"created"]), int(facts[b"size"])
            found = StoredChunks(ref_id, max(0, size), facts[b"card"], blob)
        if not there or not created + self._ttl >= self._now():  # also if it is not a number
            raise expired_ref(ref_id, self._ttl)
        return found

    def read(self, stored: StoredChunks, start: int, size: int) -> bytes:
        return b"".join(self._parts(stored, start, min(start + size, stored.size)))

    def search(
        self,
        stored: StoredChunks,
        pattern: str,
        *,
        size: int,
        longest_line: int,
        regex: bool,
        before: int,
        after: int,
        max_matches: int,
    ) -> LineSearch:
        check_pattern(pattern)
        query = Query(pattern, regex, before, after, max_matches)
        return LineSearch(query, lambda start: self._parts(stored, start, size))

    def collect(self) -> None:
        """Remove blobs that are too old, and the oldest of what is too much."""
        with self._link.talk() as redis:
            with redis.pipeline(transaction=True) as pipe:  # one moment's picture: others collect beside us
                sizes, ages = (
                    pipe.hgetall(f"{self._prefix}sizes")
                    .zrange(f"{self._prefix}ages", 0, -1, withscores=True)
                    .execute()
                )
            total = sum(map(int, sizes.values()))
            for name, stored_at in ages:
                if stored_at + self._ttl >= self._now() and total <= self._quota:
                    break
                total -= int(sizes.get(name, 0))
                self._remove(redis, name.decode())

    def close(self) -> None:
        self._collector.close()
        self._link.close()

    # -- called by ChunkWriter

    def put_chunks(self, blob: str, first: int, chunks: list[bytes]) -> None:
        self._with_room(lambda: self._put_chunks(blob, first, chunks))

    def _with_room(self, write: Callable[[], T]) -> T:
        """Writes; if Redis is full, once more after the oldest outputs were removed."""
        try:
            return write()
        except Internal as fault:
            if not fault.message.endswith(FULL) or not self._make_room():
                raise
        return write()

    def _make_room(self) -> bool:
        """Removes the oldest outputs, a few batches of chunks. False if there are none."""
        with self._link.talk() as redis:
            sizes = redis.hgetall(f"{self._prefix}sizes")
            freed = 0
            for name in redis.zrange(f"{self._prefix}ages", 0, -1):
                if freed >= _ROOM:
                    break
                freed += int(sizes.get(name, 0))
                redis.delete(self._blob(name.decode()))  # at once; `unlink` would free it later
                self._remove(redis, name.decode())
            return freed > 0

    def _put_chunks(self, blob: str, first: int, chunks: list[bytes]) -> None:
        with self._link.talk() as redis, redis.pipeline(transaction=False) as pipe:
            for number, chunk in enumerate(chunks, first):
                pipe.hset(self._blob(blob), number, chunk)
            pipe.expire(self._blob(blob), _UNFINISHED)
            pipe.execute()

    def get_chunks(self, blob: str, first: int, last: int) -> list[bytes | None]:
        with self._link.talk() as redis:
            return cast("list[bytes | None]", redis.hmget(self._blob(blob), list(range(first, last + 1))))

    def commit(self, session: str, blob: str, digest: str, size: int, card: bytes) -> str:
        """Point to the blob that has this content already, else to this one."""
        ref = self._with_room(lambda: self._commit(session, blob, digest, size, card))
        self._collector.added(size)
        return ref

    def _commit(self, session: str, blob: str, digest: str, size: int, card: bytes) -> str:
        with self._link.talk() as redis:
            if redis.hlen(self._blob(blob)) != -(-size // _CHUNK):
                raise Internal("the output cache's Redis lost a part of the output")
            kept = self._twin(redis, digest) or blob
            ref = secrets.token_hex(8)
            with redis.pipeline(transaction=True) as pipe:
                self._file(pipe, session, kept, digest, size, card, ref)
                pipe.execute()
            if kept != blob:
                redis.unlink(self._blob(blob))
        return ref

    def drop(self, blob: str) -> None:
        with suppress(ToolError), self._link.talk() as redis:
            redis.unlink(self._blob(blob))

    def _blob(self, name: str) -> str:
        return f"{self._prefix}blob:{name}"

    def _file(self, pipe: Any, session: str, blob: str, digest: str, size: int, card: bytes, ref: str) -> None:
        seconds = max(1, int(self._ttl))
        output = {"session": session.encode("utf-8", "surrogatepass"), "blob": blob, "size": size, "card": card}
        pipe.hset(f"{self._prefix}out:{ref}", mapping=output | {"created": repr(self._now())})
        pipe.expire(f"{self._prefix}out:{ref}", 2 * seconds)
        pipe.expire(self._blob(blob), seconds)
        pipe.set(f"{self._prefix}same:{digest}", blob, ex=seconds)
        pipe.zadd(f"{self._prefix}ages", {blob: self._now()})
        pipe.hset(f"{self._prefix}sizes", blob, size)

    def _twin(self, redis: Any, digest: str) -> str | None:
        name = redis.get(f"{self._prefix}same:{digest}")
        return name.decode() if name and redis.exists(self._blob(name.decode())) else None

    def _remove(self, redis: Any, blob: str) -> None:
        with redis.pipeline(transaction=True) as pipe:
            pipe.unlink(self._blob(blob)).zrem(f"{self._prefix}ages", blob).hdel(
                f"{self._prefix}sizes", blob
            ).execute()

    def _parts(self, stored: StoredChunks, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            first = start // _CHUNK
            last = min((end - 1) // _CHUNK, first + _BATCH - 1)
            for number, chunk in enumerate(self.get_chunks(stored.blob, first, last), first):
                if chunk is None:
                    raise expired_ref(stored.id, self._ttl)
                at = number * _CHUNK
                yield chunk[max(0, start - at) : end - at]
            start = (last + 1) * _CHUNK


class ChunkWriter:
    """An output on its way in, chunk by chunk under a name that nobody knows yet."""

    def __init__(self, store: RedisStore, session: str, quota: int) -> None:
        self._store = store
        self._session = session
        self._quota = quota
        self._blob = secrets.token_hex(16)
        self._digest = hashlib.sha256()
        self._held = bytearray()
        self._sent = 0
        self._size = 0
        self._open = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._size += len(data)
        if self._size > self._quota:
            raise Internal(f"the output cache holds no more than {self._quota} bytes")
        self._digest.update(data)
        with memoryview(data) as rest:
            for at in range(0, len(rest), _CHUNK * _BATCH):
                self._held += rest[at : at + _CHUNK * _BATCH]
                self._send(len(self._held) // _CHUNK)

    def read(self, start: int, size: int) -> bytes:
        stored = StoredChunks("", self._sent * _CHUNK, b"", self._blob)
        sent = self._store.read(stored, start, size) if start < stored.size else b""
        held = max(0, start - stored.size)
        return sent + bytes(self._held[held : held + size - len(sent)])

    def commit(self, card: bytes) -> str:
        self._send(-(-len(self._held) // _CHUNK))
        ref = self._store.commit(self._session, self._blob, self._digest.hexdigest(), self._size, card)
        self._open = False
        return ref

    def abandon(self) -> None:
        if self._open:
            self._open = False
            self._store.drop(self._blob)

    def _send(self, chunks: int) -> None:
        if chunks:
            ready = [bytes(self._held[at * _CHUNK : (at + 1) * _CHUNK]) for at in range(chunks)]
            self._store.put_chunks(self._blob, self._sent, ready)
            del self._held[: chunks * _CHUNK]
            self._sent += chunks
