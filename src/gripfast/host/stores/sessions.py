"""What servers share about sessions: who began one, its state, and which server runs its calls now.

A session's state is a set of small fields. A server changes it only while it has the session's lease. Each lease has
a number that grows, its fence: what a server saves under an old fence is refused, so one that was away for too long
can't overwrite the work of the server that took over. Times are measured by the store, not by the servers.

Methods block and are called from worker threads. They raise only `ToolError`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

from gripfast.records import dataclass

LEASE_SECONDS = 10.0
"""How long a server may be silent before another may go on with its sessions."""
SESSION_SECONDS = 7 * 24 * 3600.0
"""How long a session is stored after its last call."""
MOST_FIELDS = 12_000
LARGEST_FIELD = 64 * 1024
MOST_LINES = 1000
"""Lines of a session's record that are stored for other servers, the newest."""
MOST_RECORDED = 2000
"""Sessions whose lines are stored, those used last."""
MOST_MESSAGES = 256


@dataclass(frozen=True, slots=True)
class Found:
    """A session as it was begun: whose it is, and the request that began it."""

    owner: str
    hello: bytes
    holder: str
    """Which server runs its calls at this moment; empty if none does."""


@dataclass(frozen=True, slots=True)
class Lease:
    session: str
    holder: str
    fence: int


@dataclass(frozen=True, slots=True)
class Leased:
    """`fields` is the state, None if it is what the fence that was known left. `unfinished` names a server and a call
    that never gave the lease back. `is_behind`: the store knows less than the server that took the lease, because it
    has lost something."""

    lease: Lease
    fields: Mapping[str, bytes] | None
    unfinished: tuple[str, str] | None = None
    is_behind: bool = False


@dataclass(frozen=True, slots=True)
class Busy:
    """Another server has the lease."""

    holder: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A session whose calls other servers may see: the name that its record has, its root, and its last use."""

    session: str
    root: str
    used: float


class SessionStore(Protocol):
    def epoch(self) -> str:
        """Names this store's life. Another epoch means that everything was lost in between."""
        ...

    def begin(self, session: str, owner: str, hello: bytes, *, most: int) -> None:
        """Stores a new session. Of more than `most` of an owner, the least recently used ones are removed."""
        ...

    def find(self, session: str) -> Found | None: ...

    def end(self, session: str) -> None:
        """Removes a session and all that is known of it."""
        ...

    def lease(
        self, session: str, owner: str, holder: str, doing: str, *, known: int = 0, new: bool = False
    ) -> Leased | Busy | None:
        """Takes the lease of a session. `known` is the fence under which this server saved last. None for a session
        that its owner has not stored; with `new` it is begun instead."""
        ...

    def renew(self, lease: Lease) -> list[bytes] | None:
        """Keeps a lease. Returns the messages for its holder, None if the lease was lost."""
        ...

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
        """Changes fields (None removes one) and adds lines of the record of a session in `root`, all or nothing.
        False if somebody else had the lease since: nothing is saved then. `release` gives the lease back;
        `unfinished` then names a call that was cut short, as if the lease had not been given back."""
        ...

    def send(self, session: str, message: bytes) -> None:
        """Leaves a message for the server that runs the session's calls."""
        ...

    def recorded(self) -> list[Recorded]:
        """The sessions of which there are lines, those used last first. They stay when a session ends."""
        ...

    def lines(self, session: str) -> list[bytes]:
        """The newest lines of the session that is recorded under this name, the oldest of them first."""
        ...

    def put(self, name: str, value: bytes, seconds: float) -> None:
        """Stores a value for so many seconds, to be taken once."""
        ...

    def take(self, name: str) -> tuple[bytes, float] | None:
        """The value and its age in seconds; nobody else gets it."""
        ...

    def announce(self, server: str) -> None:
        """Says that a server runs; to be repeated well within `LEASE_SECONDS`."""
        ...

    def is_up(self, server: str) -> bool:
        """Whether a server has announced itself and is not known to be gone."""
        ...

    def ping(self) -> None:
        """Raises ToolError if the store does not answer."""
        ...

    def close(self) -> None: ...


def stored_name(key: str) -> str:
    """The name under which something is stored: the key can't be read from it."""
    return hashlib.sha256(text_bytes(key)).hexdigest()[:32]


def text_bytes(text: str) -> bytes:
    """A text as it is stored; names of files may have bytes that are not text."""
    return text.encode("utf-8", "surrogatepass")


def accepted(fields: Mapping[str, bytes]) -> dict[str, bytes]:
    """The fields that may be ours, by their sizes."""
    small = {name: value for name, value in fields.items() if len(value) <= LARGEST_FIELD and len(name) <= 8192}
    return small if len(small) <= MOST_FIELDS else {}


def busy_with(holder: str, doing: str) -> str:
    """What a lease says about the server that has it and the call that it runs."""
    return f"{holder}\n{doing}"


def unfinished(busy: str, holder: str) -> tuple[str, str] | None:
    """A server and its call, as a lease that was not given back names them; None if it was this server's own."""
    server, _, doing = busy.partition("\n")
    return (server, doing) if server and server != holder else None
