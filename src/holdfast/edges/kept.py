"""Sessions that outlive a process: what one remembers is kept under a name between calls."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from holdfast.call.hooks import AskCallback
from holdfast.call.run import Session
from holdfast.edges.opening import Opening
from holdfast.errors import InvalidArgument
from holdfast.host.kept import StateFile

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


@asynccontextmanager
async def kept_session(opened: Opening, name: str | None, *, ask: AskCallback | None) -> AsyncGenerator[Session]:
    """A session; with a name, one that goes on where the last of that name and place has ended.

    Two processes with one name take turns. What can't be read back is forgotten, not a failure.
    """
    if name is None:
        async with opened.session(ask=ask)[0] as session:
            yield session
        return
    if not _NAME.match(name):
        raise InvalidArgument(f"{name!r} can't name a session; use letters, digits, `.`, `_` and `-`")
    with StateFile(name, place=opened.place()) as file:
        session, state = opened.session(ask=ask, kept=file.read(), id=file.id)
        async with session:
            yield session
            file.write(state.dump())
