"""The dependencies of the built-in tools, by name. A tool of your own may use the same ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from holdfast.builtin.person import Nobody, Person
from holdfast.builtin.todos import Todos
from holdfast.call.cache import OutputCache
from holdfast.errors import Internal
from holdfast.host.fs import ScopedFs
from holdfast.host.guard import ReadLog
from holdfast.host.process import Shells
from holdfast.tool.depends import DependencyKey, Depends


def _no_scope() -> ScopedFs:
    raise Internal("this tool needs a scope: run it in open_session(Scope.workspace(...)) or builtin_tools(fs)")


FS: DependencyKey[ScopedFs] = DependencyKey("fs", _no_scope, scope="session")
PERSON: DependencyKey[Person] = DependencyKey("person", Nobody)
READS: DependencyKey[ReadLog] = DependencyKey("reads", ReadLog, scope="session")
CACHE: DependencyKey[OutputCache] = DependencyKey("cache", OutputCache, scope="session")
TODOS: DependencyKey[Todos] = DependencyKey("todos", Todos, scope="session")


async def _shells(fs: Annotated[ScopedFs, Depends(FS)]) -> AsyncGenerator[Shells, None]:
    async with Shells(fs.scope) as shells:
        yield shells


SHELL: DependencyKey[Shells] = DependencyKey("shell", _shells, scope="session")
