"""What a command line says about a session, and the session it opens."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.builtin.config import Config, load_config, refuse_unknown_tools
from holdfast.builtin.session import TOOLS, described, open_session
from holdfast.builtin.state import State
from holdfast.call.hooks import AskCallback
from holdfast.call.rules import Permissions
from holdfast.call.run import Session
from holdfast.edges.profiles import pick
from holdfast.errors import InvalidArgument, ToolError
from holdfast.host.fs import ScopedFs
from holdfast.host.load import load_module
from holdfast.host.scope import Scope
from holdfast.tool.context import LOGGER, Factory
from holdfast.tool.definition import Tool, ToolDefinitionError


@dataclass(frozen=True, slots=True)
class Opening:
    """Named roots, tools, rules. Opens as many sessions as are asked for, each with a state of its own."""

    roots: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = TOOLS
    permissions: Permissions | None = None
    config_file: str | None = None

    def session(
        self,
        roots: Sequence[str] = (),
        *,
        ask: AskCallback | None = None,
        overrides: Mapping[str, Factory] | None = None,
        kept: str | None = None,
        logger: logging.Logger | None = None,
        id: str | None = None,
    ) -> tuple[Session, State]:
        """Held inside the named roots, else inside `roots`, else inside the current directory.

        Only who names a root may take `/` or the home directory. `kept` is what another session's state was dumped
        as. Raises ToolError for a root that can't be one, or a configuration that can't be read.
        """
        config = self.config(roots)
        for note in config.ignored:
            (logger or LOGGER).warning("ignored: %s", note)
        state = State.load(kept or "", require_read=config.require_read)
        fs = ScopedFs(self._scope(roots, config), encoding=config.encoding)
        session = open_session(
            fs,
            builtin=self.tools,
            permissions=self.permissions or config.permissions,
            cache=config.cache,
            require_read=config.require_read,
            sandbox=config.sandbox,
            env=config.env,
            ask=ask,
            overrides={**state.overrides(fs, config.sandbox, config.env), **(overrides or {})},
            logger=logger,
            id=id,
        )
        return session, state

    def described(self) -> list[Tool]:
        """The tools with the words a session of ours gives them. Tries the sandbox out: call it in a thread."""
        return described(self.tools, load_config(self.config_file).sandbox)

    def place(self) -> str:
        """The directory where relative paths start. Raises ToolError for a root that can't be one."""
        return self._scope(()).roots[0].given

    def config(self, roots: Sequence[str] = ()) -> Config:
        """Raises ToolError for one that can't be read, or has rules about tools that are not there."""
        config = load_config(self.config_file, [root.real for root in self._scope(roots).roots])
        refuse_unknown_tools(config.permissions, [tool.name for tool in (*TOOLS, *self.tools)])
        return config

    def _scope(self, roots: Sequence[str], config: Config | None = None) -> Scope:
        named = self.roots or tuple(roots) or (".",)
        said = config or Config()
        try:
            return Scope.workspace(*named, wide=bool(self.roots), deny=said.deny, protect=said.protect)
        except ToolError as fault:
            words = fault.message.replace("say so (wide=True)", "say so with --root")
            raise ToolError(fault.code, words) from None


def opening(
    roots: Iterable[str] = (),
    extra: Iterable[str] = (),
    profile: str | None = None,
    names: Sequence[str] = (),
    config_file: str | None = None,
) -> Opening:
    """Raises ToolError for a profile, tool, module or configuration that is not there."""
    more = [tool for spec in extra for tool in tools_in(spec)]
    _refuse_two_of_a_name([*TOOLS, *more])
    bare = Opening(tuple(roots), config_file=config_file)
    chosen = profile or (None if names else load_config(config_file).profile)
    return Opening(bare.roots, tuple(pick([*TOOLS, *more], chosen, names, always=more)), None, config_file)


def tools_in(spec: str) -> list[Tool]:
    """Every Tool that a module or file has at its top level. Raises ToolError if there is none, or a bad one."""
    try:
        found = [value for value in vars(load_module(spec)).values() if isinstance(value, Tool)]
    except ToolDefinitionError as fault:
        raise InvalidArgument(f"{spec}: {fault}") from None
    if not found:
        raise InvalidArgument(f"{spec} has no tool at its top level; make one with @tool")
    return list({id(tool): tool for tool in found}.values())


def _refuse_two_of_a_name(tools: Iterable[Tool]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise InvalidArgument(f"two tools are named `{tool.name}`; give yours another name")
        seen.add(tool.name)
