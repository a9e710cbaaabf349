"""The dependencies of the built-in tools, by name. Your own tools may use them too."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Annotated

from gripfast.builtin.person import Nobody, Person
from gripfast.builtin.todos import Todos
from gripfast.call.cache import OutputCache
from gripfast.errors import Internal
from gripfast.framework.depends import DependencyKey, Depends
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.watch import Watch

if TYPE_CHECKING:
    from gripfast.builtin.outlining import Outlines
    from gripfast.host.record.record import Record
    from gripfast.host.shell.background import Background
    from gripfast.host.shell.shells import Shells


def _no_scope() -> ScopedFs:
    raise Internal("this tool needs a scope: use open_session(Scope.workspace(...)) or builtin_tools(fs)")


FS: DependencyKey[ScopedFs] = DependencyKey("fs", _no_scope, scope="session")
PERSON: DependencyKey[Person] = DependencyKey("person", Nobody)
ANSWER_BY: DependencyKey[float | None] = DependencyKey("answer_by", lambda: None)
"""When a call has to answer, by the monotonic clock, because its client would give up soon after; None: any time."""
JOINED: DependencyKey[Background | None] = DependencyKey("joined", lambda: None)
"""The shell that a call waits for without a question, because the same command was approved when it began."""
READS: DependencyKey[ReadLog] = DependencyKey("reads", ReadLog, scope="session")
CACHE: DependencyKey[OutputCache] = DependencyKey("cache", OutputCache, scope="session")
RECORD: DependencyKey[Record | None] = DependencyKey("record", lambda: None, scope="session")
TODOS: DependencyKey[Todos] = DependencyKey("todos", Todos, scope="session")


async def _shells(fs: Annotated[ScopedFs, Depends(FS)]) -> AsyncGenerator[Shells, None]:
    from gripfast.host.shell.shells import Shells  # noqa: PLC0415 - loaded with the first command

    async with Shells(fs.scope) as shells:
        yield shells


SHELL: DependencyKey[Shells] = DependencyKey("shell", _shells, scope="session")


def _outlines() -> Generator[Outlines, None, None]:
    from gripfast.builtin.outlining import ENGINE, Outlines  # noqa: PLC0415 - loaded with the first outline
    from gripfast.host.program.worker import Workers  # noqa: PLC0415 - the same

    with Workers(ENGINE) as workers:
        yield Outlines(workers)


OUTLINES: DependencyKey[Outlines] = DependencyKey("outlines", _outlines, scope="session")


def _no_tools() -> frozenset[str]:
    return frozenset()


OFFERED: DependencyKey[frozenset[str]] = DependencyKey("offered", _no_tools, scope="session")
"""The names of the tools in a session, and of their rarer arguments as `Tool.argument`, if the definition shows them:
a tool points only to what is there."""


def watch_of(fs: ScopedFs) -> Watch:
    """A watch over what may be written; set up in the background."""
    return Watch([directory.real for directory in fs.scope.write])


def _watch(fs: Annotated[ScopedFs, Depends(FS)]) -> Generator[Watch, None]:
    watch = watch_of(fs)
    try:
        yield watch
    finally:
        watch.close()


WATCH: DependencyKey[Watch] = DependencyKey("watch", _watch, scope="session")
