"""The settings of a session as a command line gives them, and the sessions opened from them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from gripfast.builtin import tools as tool_list
from gripfast.builtin.config import (
    Config,
    RuleChoice,
    add_rule,
    load_config,
    refuse_unknown_tools,
    rules_by_name,
)
from gripfast.builtin.rulesets import IN_WORDS
from gripfast.builtin.session import WorkspaceSession, described, open_session
from gripfast.builtin.state import State
from gripfast.call.cache import Store
from gripfast.call.hooks import AskCallback
from gripfast.call.rules import Permissions
from gripfast.edges.profiles import pick
from gripfast.errors import InvalidArgument, ToolError
from gripfast.framework.context import LOGGER, Factory
from gripfast.framework.definition import Tool, ToolDefinitionError
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope, WideRoot
from gripfast.host.program.load import load_module
from gripfast.host.program.own import own_code_beneath
from gripfast.host.shell.network import NetworkSetting, parse_network
from gripfast.host.shell.sandbox import choose
from gripfast.records import dataclass
from gripfast.text.escape import escaped


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Roots, tools, rules and configuration file. Opens any number of sessions, each with its own state."""

    roots: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = field(default_factory=lambda: tool_list.TOOLS)
    permissions: Permissions | None = None
    config_file: str | None = None
    rules: str | None = None
    remember: bool = False
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    answer_within: float | None = None
    network: str | None = None
    read_only: bool = False
    store: str | None = None

    def session(
        self,
        roots: Sequence[str] = (),
        *,
        ask: AskCallback | None = None,
        overrides: Mapping[str, Factory] | None = None,
        saved_state: str | None = None,
        logger: logging.Logger | None = None,
        id: str | None = None,
        outputs: Store | None = None,
    ) -> tuple[WorkspaceSession, State]:
        """Opens a session confined to the settings' roots, else to `roots`, else to the current directory.

        `/` and the home directory are accepted only from the settings' own roots (`--root`). `saved_state` is the
        dump of an earlier session's state; `outputs` is where outputs are stored, if not where the settings say.
        Raises ToolError for a root or a configuration that can't be used.
        """
        config = self.config(roots)
        for note in config.ignored:
            (logger or LOGGER).warning("ignored: %s", escaped(note))
        state = State.load(saved_state or "", require_read=config.require_read)
        fs = ScopedFs(self._scope(roots, config), encoding=config.encoding)
        session = open_session(
            fs,
            builtin=self.tools,
            permissions=self.permissions or config.permissions,
            cache=outputs or config.store,
            require_read=config.require_read,
            sandbox=config.sandbox,
            env=config.env,
            sockets=config.sockets,
            network=config.network,
            max_output=config.max_output,
            record=config.record or False,
            hide_secrets=config.hide_secrets,
            ask=ask,
            place=state.place,
            rules=config.rules if self.permissions is None else "",
            remember=partial(add_rule, self.config_file, config.rules) if self.remember else None,
            overrides={**state.overrides(), **(overrides or {})},
            logger=logger,
            id=id,
        )
        return session, state

    def answering(self) -> tuple[float | None, bool]:
        """In how many seconds a call has to answer (None: by client), and whether the desktop shows questions."""
        config = load_config(self.config_file)
        chosen = config.answer_within if self.answer_within is None else self.answer_within
        return chosen, config.notify

    def files(self) -> ScopedFs:
        """The files of the settings' roots, without a session. Raises ToolError for a root that can't be used."""
        return ScopedFs(self._scope((), self.config()))

    def fault(self) -> str | None:
        """Why no call could be served now, without names of this machine; None if one could. Blocks."""
        try:
            config = self.config()
            self._scope((), config)
        except ToolError:
            return "a root or a configuration file can't be used"
        try:
            if config.store is not None:
                from gripfast.host.stores.redis_sessions import RedisSessions  # noqa: PLC0415 - few servers share a store

                RedisSessions(config.store).ping()
        except ToolError as fault:
            return fault.message
        return None

    def described(self, *, asks: bool = False) -> list[Tool]:
        """The tools with their descriptions as a session shows them, to a client that can ask a person (`asks`) or
        not. Probes the sandbox: call it in a thread."""
        config = load_config(self.config_file, rules=self._choice())
        asks = asks and (self.permissions or config.permissions) is not None
        return described(
            self.tools, config.sandbox, config.rules, asks=asks, network=parse_network(self._reach(config))
        )

    def rules_in_words(self) -> str:
        """Which rules hold, for a person."""
        name = self.config().rules
        return f"{name}: {IN_WORDS[name]}" if name in IN_WORDS else name or "none: every tool runs"

    def only_reading(self) -> SessionSettings:
        """The same without the tools that may change something, and with no place that may be written."""
        reading = tuple(tool for tool in self.tools if tool.traits.effect == "read")
        return replace(self, tools=reading, read_only=True)

    def own_code_in_reach(self) -> str | None:
        """Where this program's code is, if a command could change it: in a served directory, without a sandbox."""
        try:
            found = [own_code_beneath(root.real) for root in self._scope(()).roots]
            place = next(filter(None, found), None)
            if place is None or not any(tool.traits.effect == "run" for tool in self.tools):
                return None
            return None if choose(self.config().sandbox).confines else place
        except ToolError:  # the client may name another root; a session says what is wrong with this one
            return None

    def working_directory(self) -> str:
        """The directory where relative paths start. Raises ToolError for a root that can't be used."""
        return self._scope(()).roots[0].given

    def config(self, roots: Sequence[str] = ()) -> Config:
        """Loads the configuration. Raises ToolError if it can't be read or has a rule about an unknown tool."""
        config = load_config(self.config_file, [root.real for root in self._scope(roots).roots], self._choice())
        config = replace(config, network=self._reach(config), store=self.store or config.store)
        if config.store is not None:
            from gripfast.host.stores.redis_link import check_address  # noqa: PLC0415 - few servers share a store

            check_address(config.store)
        refuse_unknown_tools(
            config.permissions, [tool.name for tool in (*tool_list.TOOLS, *tool_list.EXTRA_TOOLS, *self.tools)]
        )
        return config

    def _reach(self, config: Config) -> NetworkSetting:
        """The network of the command line, else of the configuration; a workspace's `off` stays."""
        if self.network is None or (config.network == "off" and self.network != "off"):
            return config.network
        return self.network if self.network in ("on", "off") else self.network.split(",")

    def _choice(self) -> RuleChoice:
        known = {tool.name for tool in (*tool_list.TOOLS, *tool_list.EXTRA_TOOLS)}
        own = [tool.name for tool in self.tools if tool.name not in known and tool.traits.effect is None]
        return rules_by_name(self.rules, runs=any(tool.traits.effect == "run" for tool in self.tools), own_tools=own)

    def _scope(self, roots: Sequence[str], config: Config | None = None) -> Scope:
        named = self.roots or tuple(roots) or (".",)
        limits = config or Config()
        try:
            write = (*named, *limits.writable, *self.writable)
            read = (*write, *limits.readable, *self.readable)
            return Scope(read, () if self.read_only else write, limits.deny, limits.protect, wide=bool(self.roots))
        except WideRoot as fault:
            raise WideRoot(fault.root, "with --root") from None


def read_settings(
    roots: Iterable[str] = (),
    extra: Iterable[str] = (),
    profile: str | None = None,
    names: Sequence[str] = (),
    config_file: str | None = None,
    rules: str | None = None,
    remember: bool = False,
    writable: Iterable[str] = (),
    readable: Iterable[str] = (),
    network: str | None = None,
) -> SessionSettings:
    """Settings from the options of a command line. Raises ToolError for an unknown profile, tool, module or file."""
    more = [tool for spec in extra for tool in tools_in(spec)]
    _refuse_two_of_a_name([*tool_list.TOOLS, *tool_list.EXTRA_TOOLS, *more])
    bare = SessionSettings(tuple(roots), config_file=config_file)
    chosen = profile or (None if names else load_config(config_file).profile)
    known = [*tool_list.TOOLS, *(tool_list.EXTRA_TOOLS if names else ()), *more]
    tools = tuple(pick(known, chosen, names, always=more))
    if network is not None and network not in ("on", "off"):
        parse_network(network.split(","))
    return SessionSettings(
        bare.roots,
        tools,
        config_file=config_file,
        rules=rules,
        remember=remember,
        writable=tuple(writable),
        readable=tuple(readable),
        network=network,
    )


def tools_in(spec: str) -> list[Tool]:
    """Every Tool at the top level of a module or file. Raises ToolError if there is none or one can't be defined."""
    try:
        found = [value for value in vars(load_module(spec)).values() if isinstance(value, Tool)]
    except ToolDefinitionError as fault:
        raise InvalidArgument(f"{spec}: {fault}") from None
    if not found:
        raise InvalidArgument(f"{spec} has no tool at its top level; define one with @tool")
    return list({id(tool): tool for tool in found}.values())


def _refuse_two_of_a_name(tools: Iterable[Tool]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise InvalidArgument(f"two tools are named `{tool.name}`; give yours another name")
        seen.add(tool.name)
