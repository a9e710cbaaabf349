"""What a command line says about a session, and the session it opens."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.builtin.session import TOOLS, open_session
from holdfast.call.hooks import AskCallback
from holdfast.call.rules import Permissions
from holdfast.call.run import Session
from holdfast.edges.profiles import pick
from holdfast.host.load import load_module
from holdfast.host.scope import Scope
from holdfast.tool.context import Factory
from holdfast.tool.definition import Tool


@dataclass(frozen=True, slots=True)
class Opening:
    """Named roots, tools, rules. Opens as many sessions as are asked for, each with a state of its own."""

    roots: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = TOOLS
    permissions: Permissions | None = None

    def session(
        self,
        roots: Sequence[str] = (),
        *,
        ask: AskCallback | None = None,
        overrides: Mapping[str, Factory] | None = None,
        logger: logging.Logger | None = None,
        id: str | None = None,
    ) -> Session:
        """Held inside the named roots, else inside `roots`, else inside the current directory.

        Only who names a root may take `/` or the home directory. Raises ToolError for a root that can't be one.
        """
        return open_session(
            self._scope(roots),
            builtin=self.tools,
            permissions=self.permissions,
            ask=ask,
            overrides=overrides,
            logger=logger,
            id=id,
        )

    def place(self) -> str:
        """The directory where relative paths start. Raises ToolError for a root that can't be one."""
        return self._scope(()).roots[0].given

    def _scope(self, roots: Sequence[str]) -> Scope:
        return Scope.workspace(*self.roots, wide=True) if self.roots else Scope.workspace(*(roots or (".",)))


def opening(
    roots: Iterable[str] = (), extra: Iterable[str] = (), profile: str | None = None, names: Sequence[str] = ()
) -> Opening:
    """Raises InvalidArgument for a profile, tool or module that is not there."""
    more = [tool for spec in extra for tool in tools_in(spec)]
    return Opening(tuple(roots), tuple(pick([*TOOLS, *more], profile, names, always=more)))


def tools_in(spec: str) -> list[Tool]:
    """Every Tool that a module or file defines at its top level."""
    return [value for value in vars(load_module(spec)).values() if isinstance(value, Tool)]
