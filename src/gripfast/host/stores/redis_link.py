"""The connection to a Redis. Needs the extra `redis`, loaded on first use.

An address is a URL of the redis library (`redis://`, `rediss://`, `unix://`), or, with TLS as `rediss+`:

    redis+sentinel://[USER:PASSWORD@]HOST:PORT,HOST:PORT/SERVICE/0     the master that the sentinels name
    redis+cluster://[USER:PASSWORD@]HOST:PORT                          a cluster; all keys are in one slot of it
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from gripfast.errors import Internal, InvalidArgument

_KINDS = ("sentinel", "cluster")
_SCHEMES = (
    "redis://",
    "rediss://",
    "unix://",
    *(f"{base}+{kind}://" for kind in _KINDS for base in ("redis", "rediss")),
)
FULL = "Redis is full"
FOREIGN = "Redis has a value that gripfast did not write"
_PAUSE = 5.0  # seconds without a new attempt after Redis could not be reached


def check_address(url: str) -> None:
    """Raises InvalidArgument for what can't be an address of a Redis; does not repeat it, since it may have a
    password."""
    scheme, there, _ = url.partition("://")
    base, _, kind = scheme.partition("+")
    if not there or base not in ("redis", "rediss", "unix") or kind not in ("", *(_KINDS if base != "unix" else ())):
        raise InvalidArgument(f"the address of the store begins with none of {', '.join(_SCHEMES)}")
    try:
        if kind == "sentinel":
            _sentinels_in(url)
    except ValueError as fault:
        raise InvalidArgument(f"the address of the store: {fault}") from None


class RedisLink:
    """Connects on first use: making one can't fail. Failures are reported as those of `what`, without an address."""

    def __init__(self, url: str, *, what: str, timeout: float = 5.0) -> None:
        self._url = url
        self._what = what
        self._timeout = timeout
        self._connected: Any = None
        self._down_until, self._why = 0.0, ""
        self._scripts: dict[str, Any] = {}
        self.prefix = "{gripfast}:1:" if _kind_of(url) == "cluster" else "gripfast:1:"

    @contextmanager
    def talk(self) -> Generator[Any, None, None]:
        """A connection; failures in words that name no address. After one, calls fail at once for a while."""
        if time.monotonic() < self._down_until:
            raise Internal(f"{self._what} failed: {self._why}", retriable=True)
        faults = self._faults()
        try:
            yield self._client()
        except (faults.ConnectionError, faults.TimeoutError) as fault:
            self._down_until, self._why = time.monotonic() + _PAUSE, _unreachable(fault, faults)
            raise Internal(f"{self._what} failed: {self._why}", retriable=True) from fault
        except (ValueError, KeyError, TypeError) as fault:
            raise Internal(f"{self._what} failed: {FOREIGN}") from fault
        except (faults.RedisError, faults.RedisClusterException) as fault:
            raise Internal(f"{self._what} failed: {_answer_text(str(fault))}") from fault

    def run(self, source: str, keys: Sequence[str], arguments: Sequence[Any] = ()) -> Any:
        """Runs a script on the server, as a whole."""
        with self.talk() as redis:
            script = self._scripts.get(source)
            if script is None:
                script = self._scripts[source] = redis.register_script(source)
            return script(keys=keys, args=arguments, client=redis)

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    def _client(self) -> Any:
        if self._connected is None:
            try:
                self._connected = _connect(self._url, self._timeout)
            except ValueError as fault:
                raise Internal(f"{self._what}'s address is not a Redis URL; write redis://HOST:PORT/0") from fault
        return self._connected

    def _faults(self) -> Any:
        try:
            from redis import exceptions  # noqa: PLC0415 - an extra, 0.2 s to import
        except ImportError as fault:
            raise Internal(f"{self._what} needs the extra `redis`: pip install 'gripfast[redis]'") from fault
        return exceptions


def _unreachable(fault: Exception, faults: Any) -> str:
    if isinstance(fault, faults.TimeoutError):
        return "Redis does not answer"
    if not isinstance(fault, faults.AuthenticationError):
        return "Redis can't be reached"
    is_missing = any(words in str(fault) for words in ("NOAUTH", "Authentication required", "already authenticated"))
    return "Redis requires a password" if is_missing else "Redis refused the password"


def _answer_text(text: str) -> str:
    """What Redis answered, without the commands that it was sent."""
    text = text.rpartition("caused error: ")[2]
    if "OOM " in text or "maxmemory" in text:
        return FULL
    if text.startswith("WRONGTYPE "):
        return FOREIGN
    return "Redis requires a password" if "NOAUTH" in text else f"Redis says {text[:200]}"


def _kind_of(url: str) -> str:
    """What comes after the `+` in the scheme."""
    return url.partition("://")[0].partition("+")[2]


def _connect(url: str, timeout: float) -> Any:
    import redis  # noqa: PLC0415 - an extra, 0.2 s to import
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.retry import Retry  # noqa: PLC0415

    options: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    kind = _kind_of(url)
    plain = url.replace(f"+{kind}://", "://", 1)
    if kind == "cluster":
        return cast(Any, redis.RedisCluster).from_url(plain, **options)
    options["retry"] = Retry(NoBackoff(), 1)  # a pooled connection may be stale; a server that is gone is gone
    if kind == "sentinel":
        return _by_sentinel(plain, options)
    if kind:
        raise ValueError(f"no such kind of Redis: {kind}")
    return cast(Any, redis.Redis).from_url(plain, **options)


def _by_sentinel(url: str, options: dict[str, Any]) -> Any:
    from redis.sentinel import Sentinel  # noqa: PLC0415 - an extra

    nodes, service, access = _sentinels_in(url)
    if url.startswith("rediss"):
        options = {**options, "ssl": True}
    sentinel = cast(Any, Sentinel)(nodes, sentinel_kwargs=options)
    return sentinel.master_for(service, **options, **access)


def _sentinels_in(url: str) -> tuple[list[tuple[str, int]], str, dict[str, Any]]:
    """Where the sentinels are, the name of the service, and how to log in there. Raises ValueError."""
    place, _, path = url.partition("://")[2].partition("/")
    login, _, hosts = place.rpartition("@")
    user, _, password = login.partition(":")
    service, _, number = path.partition("/")
    nodes = [(one.hostname or "", one.port or 26379) for one in (urlsplit(f"//{host}") for host in hosts.split(","))]
    if not service or not all(host for host, _ in nodes) or not (number or "0").isdigit():
        raise ValueError("an address of sentinels is redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/0")
    access = {"username": unquote(user) or None, "password": unquote(password) or None, "db": int(number or 0)}
    return nodes, service, access
