"""Named sessions: their state is saved between processes."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gripfast.call.hooks import AskCallback
from gripfast.call.run import Session
from gripfast.edges.settings import SessionSettings
from gripfast.errors import InvalidArgument
from gripfast.host.stores.state_file import StateFile

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"


@asynccontextmanager
async def named_session(
    settings: SessionSettings, name: str | None, *, ask: AskCallback | None
) -> AsyncGenerator[Session]:
    """A session; with a name, one that continues the last session of that name in the same directory.

    Processes that use the same name take turns. A state that can't be read back is dropped without an error.
    """
    if name is None:
        async with settings.session(ask=ask)[0] as session:
            yield session
        return
    if not re.match(_NAME, name):
        raise InvalidArgument(
            f"{name!r} can't be the name of a session; use letters, digits, `.`, `_` and `-`, at most 64"
        )
    with StateFile(name, place=settings.working_directory()) as file:
        session, state = settings.session(ask=ask, saved_state=file.read(), id=file.id)
        async with session:
            yield session
            file.write(state.dump())
