"""Who may call over HTTP, and with which settings: one token file, read again when it changes."""

from __future__ import annotations

import hmac
from collections.abc import AsyncGenerator, Sequence
from dataclasses import field, replace

import anyio
from anyio import to_thread

from gripfast.builtin.tools import TOOLS
from gripfast.edges.profiles import pick
from gripfast.edges.settings import SessionSettings
from gripfast.errors import InvalidArgument, ToolError
from gripfast.framework.context import LOGGER
from gripfast.framework.definition import Tool
from gripfast.host.program.token_file import Token, TokenFile
from gripfast.records import dataclass
from gripfast.text.escape import escaped

SIGNING_IN = 16
"""How many people with access tokens a server counts on; each gets such a share of it."""
LOOK_EVERY = 1.0
"""Seconds between two looks at the token file. A change counts when it is the same at two looks."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One owner of tokens."""

    settings: SessionSettings
    tokens: frozenset[str] = field(repr=False)


class People:
    """The owners of tokens by name. Without tokens, everybody is `anyone`."""

    def __init__(self, settings: SessionSettings, tokens: Sequence[Token] = (), *, signing_in: bool = False) -> None:
        """`signing_in`: others come with access tokens of an authorization server."""
        self._base = settings
        self._people: dict[str, Owner] = {}
        self._signing_in = signing_in
        self.open_to_all = not tokens and not signing_in
        self.replace(tokens)

    def __len__(self) -> int:
        return len(self._people)

    @property
    def expected(self) -> int:
        """How many the server is divided among."""
        return len(self) + (SIGNING_IN if self._signing_in else 0)

    def owner(self, given: str) -> str | None:
        """Whose token this is. Every token is compared, in constant time."""
        sent = given.encode()
        found = [name for name, one in self._people.items() for token in one.tokens if _same(token, sent)]
        return found[0] if found else None

    def settings_of(self, owner: str) -> SessionSettings:
        known = self._people.get(owner)
        return self._base if known is None else known.settings

    def all_settings(self) -> list[SessionSettings]:
        """Every settings that some session may have."""
        own = [one.settings for one in self._people.values()]
        return [self._base, *(settings for settings in own if settings is not self._base)]

    def replace(self, tokens: Sequence[Token]) -> set[str]:
        """Takes new tokens instead of the old ones, or raises InvalidArgument and keeps the old ones. Returns whose
        sessions must end: those who lost a token, or for whom something else holds now."""
        fresh: dict[str, Owner] = {}
        for token in tokens:
            known = fresh.get(token.name)
            settings = known.settings if known else personal(self._base, token)
            fresh[token.name] = Owner(settings, frozenset({token.token, *(known.tokens if known else ())}))
        old, self._people = self._people, fresh
        return {name for name, one in old.items() if not _goes_on(one, fresh.get(name))}


def _same(token: str, sent: bytes) -> bool:
    return hmac.compare_digest(token.encode(), sent)


def _goes_on(before: Owner, now: Owner | None) -> bool:
    return now is not None and before.tokens <= now.tokens and before.settings == now.settings


def personal(base: SessionSettings, token: Token) -> SessionSettings:
    """The server's settings with the choices of one line. Raises InvalidArgument if they can't be used."""
    if not any(token.choices):
        return base
    try:
        settings = replace(base, tools=_tools(base, token), rules=token.rules or base.rules)
        if token.roots:
            settings = replace(settings, roots=token.roots)
        if token.readonly:
            settings = settings.only_reading()
        settings.config()
        if (place := settings.own_code_in_reach()) is not None and base.own_code_in_reach() is None:
            raise InvalidArgument(f"this server's own code is in {place}, where its commands could change it")
    except ToolError as fault:
        raise InvalidArgument(f"{token.place} of the token file ({token.name}): {fault.message}") from None
    return settings


def _tools(base: SessionSettings, token: Token) -> tuple[Tool, ...]:
    """The tools of a line's profile, and the server's own ones beside them."""
    profile = token.profile or ("read-only" if token.readonly else None)
    if profile is None:
        return base.tools
    builtin = {tool.name for tool in TOOLS}
    own = [tool for tool in base.tools if tool.name not in builtin]
    return tuple(pick([*TOOLS, *own], profile, always=own))


class TokenWatch:
    """Looks whether the token file changed, every second and when asked to."""

    def __init__(self, file: TokenFile) -> None:
        self._file = file
        self._asked = anyio.Event()
        self._seen = file.taken

    def ask(self) -> None:
        """Reads the file at once, changed or not."""
        self._asked.set()

    async def changes(self) -> AsyncGenerator[Sequence[Token]]:
        """What the file has, each time it changed and can be used. Runs until it is cancelled."""
        while True:
            with anyio.move_on_after(LOOK_EVERY):
                await self._asked.wait()
            asked, self._asked = self._asked.is_set(), anyio.Event()
            if asked or await to_thread.run_sync(self._changed):
                try:
                    yield await to_thread.run_sync(self._file.read)
                except InvalidArgument as fault:
                    LOGGER.error("the tokens stay as they were: %s", escaped(fault.message))

    def _changed(self) -> bool:
        """Whether the file is another than the one taken last, and is no longer being written."""
        now = self._file.stamp()
        settled, self._seen = now == self._seen, now
        return settled and now != self._file.taken
