"""The configuration as one typed record, checked before anything starts.

The user's own file may allow more or less; a file inside the workspace may only restrict, because the workspace may
be hostile. Whatever else such a file asks for is ignored, and listed in `Config.ignored`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from gripfast.builtin.rulesets import RULE_SETS, rule_set
from gripfast.call.decision import PermissionRule
from gripfast.call.rules import Permissions
from gripfast.errors import InvalidArgument
from gripfast.host.files.encodings import checked_encoding
from gripfast.host.files.patterns import Patterns
from gripfast.host.files.scope import PROTECTED
from gripfast.host.program.config import ConfigText, config_texts, own_config_path
from gripfast.host.program.userfile import read_user_file, write_user_file
from gripfast.host.record.shelf import RecordOptions
from gripfast.host.shell.network import NetworkSetting, parse_network
from gripfast.host.shell.sandbox import SandboxMode, choose
from gripfast.host.shell.shared import MAX_OUTPUT
from gripfast.records import dataclass
from gripfast.text.near import did_you_mean

if TYPE_CHECKING:
    from gripfast.builtin.config_tables import FileTable, PermissionsTable, ProgramTable, RecordTable, RuleTable
    from gripfast.call.shell.options import Program

_SANDBOX_STRICTNESS = ("off", "auto", "require")


_RECORD = RecordOptions()


@dataclass(frozen=True, slots=True)
class Config:
    """What a session is opened with. The defaults apply if there is no file."""

    permissions: Permissions | None = None
    deny: tuple[str, ...] = ()
    protect: tuple[str, ...] = PROTECTED
    encoding: str | None = None
    sandbox: SandboxMode = "auto"
    env: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    network: NetworkSetting = "on"
    max_output: int = MAX_OUTPUT
    store: str | None = None
    require_read: bool = True
    profile: str | None = None
    rules: str = ""  # the name of the rules that hold: a ready-made set, `your own`, or nothing
    record: RecordOptions | None = _RECORD
    hide_secrets: bool = True
    answer_within: float | None = None  # seconds; None: by client
    notify: bool = False  # whether the desktop shows a notification about a waiting question
    files: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


RuleChoice: TypeAlias = Callable[[Config], Config]
"""Chooses the rules when the user's own file is read, and before the workspace's narrow them."""


def load_config(named: str | None = None, roots: Iterable[str] = (), rules: RuleChoice | None = None) -> Config:
    """The user's file (or the one `named`), narrowed by those in the roots. Raises InvalidArgument with the place."""
    config = Config()
    texts = config_texts(named, roots)
    for text in texts:
        if text.trusted:
            config = replace(_with(config, _parsed(text), text.path), files=(*config.files, text.path))
    config = config if rules is None else rules(config)
    for text in texts:
        if not text.trusted:
            config = replace(_narrowed(config, _parsed(text), text.path), files=(*config.files, text.path))
    return config


def rules_by_name(name: str | None, *, runs: bool, own_tools: Iterable[str] = ()) -> RuleChoice:
    """The rules of the set `name` (`none` for none) after the user's own; without a name those of the user's file,
    else the default: `trusted` where commands are sandboxed or there are none (`runs`), `workspace` where they are
    not. By default the tools that the user has added (`own_tools`) run: adding them allows that."""
    if name is not None and name != NO_RULES and name not in RULE_SETS:
        raise InvalidArgument(f"no rules named {name!r}; use one of {', '.join((*RULE_SETS, NO_RULES))}")

    def chosen(config: Config) -> Config:
        if name == NO_RULES:
            return replace(config, permissions=None, rules="")
        if name is None and config.permissions is not None:
            return config
        by_default = "workspace" if runs and not choose(config.sandbox).confines else "trusted"
        taken = name or by_default
        own = [] if config.permissions is None else [rule for rule in config.permissions.rules if rule.source]
        added = [] if name else [PermissionRule(tool, "*", "allow") for tool in own_tools]
        base = rule_set(taken)
        programs = base.programs if config.permissions is None else config.permissions.programs
        return replace(
            config, permissions=replace(base, rules=[*own, *added, *base.rules], programs=programs), rules=taken
        )

    return chosen


NO_RULES = "none"


def add_rule(named: str | None, rules: str, tool: str, pattern: str) -> None:
    """Adds a rule that allows `tool` on `pattern` to the user's file (or the one `named`), which must stay
    readable. A file without rules names the set that holds first."""
    path = named or own_config_path()
    text = read_user_file(path) or ""
    said = _parsed(ConfigText(path, text, True))
    start = "" if said.permissions is not None else f'\n[permissions]\nrule_set = "{rules}"\n'
    rule = f'tool = {_toml(tool)}\npattern = {_toml(pattern)}\naction = "allow"\nany_options = true\n'
    added = f"{text}{start}\n[[permissions.rule]]  # remembered\n{rule}"
    _with(Config(), _parsed(ConfigText(path, added, True)), path)
    write_user_file(path, added)


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


def parse_config(text: str, path: str = "gripfast.toml") -> Config:
    """The configuration in one trusted text."""
    return _with(Config(), _parsed(ConfigText(path, text, True)), path)


def refuse_unknown_tools(permissions: Permissions | None, known: Iterable[str]) -> None:
    """Refuses rules about unknown tools: a misspelt `tool = "Bsh"` would leave Bash without its rule."""
    names = {name.lower(): name for name in known}
    for layer in () if permissions is None else (permissions, *permissions.narrowed_by):
        for rule in layer.rules:
            name = rule.tool.lower()
            if rule.source and name != "*" and not name.startswith("effect:") and name not in names:
                hint = did_you_mean(name, names.values())
                raise InvalidArgument(f"{rule.source}: no tool named `{rule.tool}`; {hint}")


def _parsed(source: ConfigText) -> FileTable:
    from gripfast.builtin.config_tables import parsed  # noqa: PLC0415 - most sessions have no file

    return parsed(source)


# The user's own file.


def _with(config: Config, table: FileTable, path: str) -> Config:
    programs = _programs(table, path)
    permissions, rules = config.permissions, config.rules
    if table.permissions is not None:
        permissions = _permissions(table.permissions, programs, path)
        rules = table.permissions.rule_set or "your own"
    elif programs:
        raise InvalidArgument(f"{path}: `programs` has no effect without [permissions]")
    return replace(
        config,
        permissions=permissions,
        rules=rules,
        deny=_patterns(table.deny, "deny", path) or (),
        protect=_protect(config, table, path),
        encoding=_encoding(table.encoding, path),
        sandbox=table.sandbox or config.sandbox,
        env=_names(table.env, path),
        writable=_absolute(table.writable, "writable", path),
        readable=_absolute(table.readable, "readable", path),
        sockets=_absolute(table.sockets, "sockets", path),
        network=config.network if table.network is None else _network(table.network, path),
        max_output=table.max_output or config.max_output,
        store=table.store,
        require_read=config.require_read if table.require_read is None else table.require_read,
        profile=table.profile,
        record=config.record if table.record is None else _record(table.record, path),
        hide_secrets=table.secrets != "keep",
        answer_within=table.answer_within,
        notify=bool(table.notify),
    )


def _protect(config: Config, table: FileTable, path: str) -> tuple[str, ...]:
    """The protected names: the file's own list, else the usual one, without those that it lifts."""
    names = config.protect if table.protect is None else _patterns(table.protect, "protect", path)
    for name in table.unprotect or ():
        if name not in names:
            raise InvalidArgument(f"{path}: `unprotect`: {name!r} is not protected; {did_you_mean(name, names)}")
    return tuple(name for name in names if name not in (table.unprotect or ()))


def _network(setting: NetworkSetting, path: str) -> NetworkSetting:
    try:
        parse_network(setting)
    except InvalidArgument as fault:
        raise InvalidArgument(f"{path}: {fault.message}") from None
    return setting


def _permissions(table: PermissionsTable, programs: Mapping[str, Program], path: str) -> Permissions:
    """The file's rules come first, then those of the rule set it names."""
    rules = [_rule(rule, at, path) for at, rule in enumerate(table.rule, 1)]
    if table.rule_set is None:
        if table.default_action is None:
            raise InvalidArgument(f"{path}: [permissions] needs `default_action` (allow, ask or deny) or `rule_set`")
        return Permissions(table.default_action, rules, inside_only=bool(table.inside_only), programs=programs)
    base = _known_set(table.rule_set, path)
    return Permissions(
        table.default_action or base.default_action,
        [*rules, *base.rules],
        inside_only=base.inside_only if table.inside_only is None else table.inside_only,
        unknown_reads=base.unknown_reads,
        remark="" if table.default_action else base.remark,
        programs=programs,
    )


def _known_set(name: str, path: str) -> Permissions:
    if name not in RULE_SETS:
        raise InvalidArgument(f"{path}: `permissions.rule_set`: {name!r}; use one of {', '.join(RULE_SETS)}")
    return rule_set(name)


def _rule(table: RuleTable, at: int, path: str) -> PermissionRule:
    try:
        return PermissionRule(
            table.tool,
            table.pattern,
            table.action,
            tuple(table.examples),
            tuple(table.counterexamples),
            table.any_options,
            f"{path}, rule {at}",
        )
    except ValueError as fault:
        raise InvalidArgument(f"{path}: `permissions.rule[{at}]`: {fault}") from None


def _programs(table: FileTable, path: str) -> dict[str, Program]:
    return {name: _program(name, table, path) for name, table in table.programs.items()}


def _program(name: str, table: ProgramTable, path: str) -> Program:
    from gripfast.call.shell.options import Program, check_program  # noqa: PLC0415 - most sessions have no file

    options, after, instead = (" ".join(words) for words in (table.options, table.after, table.instead))
    program = Program(options, table.operands, after, instead, table.style)  # pyright: ignore[reportArgumentType] - checked below
    try:
        check_program(program)
    except ValueError as fault:
        raise InvalidArgument(f"{path}: `programs.{name}`: {fault}") from None
    if name != " ".join(name.split()) or not 1 <= len(name.split()) <= 3:
        raise InvalidArgument(f"{path}: `programs.{name}`: one to three words, as in `git fetch`")
    return program


_UNITS = {"": 1, "b": 1, "kib": 1024, "mib": 1024**2, "gib": 1024**3, "kb": 1000, "mb": 1000**2, "gb": 1000**3}


def _record(table: RecordTable, path: str) -> RecordOptions | None:
    quota, largest = _bytes(table.quota, "quota", path), _bytes(table.largest_file, "largest_file", path)
    return RecordOptions(quota, table.days, largest) if table.on else None


def _bytes(size: str | int, key: str, path: str) -> int:
    """A size as a number of bytes, or as text with a unit."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", str(size).lower())
    if found is None or found[2] not in _UNITS:
        raise InvalidArgument(f'{path}: `record.{key}`: {size!r} is not a size; write bytes, or "2 GiB"')
    return int(found[1]) * _UNITS[found[2]]


def _patterns(texts: list[str] | None, key: str, path: str) -> tuple[str, ...]:
    try:
        return Patterns(texts or ()).texts
    except InvalidArgument as fault:
        raise InvalidArgument(f"{path}: `{key}`: {fault.message}") from None


def _encoding(name: str | None, path: str) -> str | None:
    try:
        return checked_encoding(name)
    except InvalidArgument as fault:
        raise InvalidArgument(f"{path}: `encoding`: {fault.message}") from None


def _names(names: list[str] | None, path: str) -> tuple[str, ...]:
    for name in names or ():
        if not name.replace("*", "x").replace("?", "x").isidentifier():
            raise InvalidArgument(f"{path}: `env`: {name!r} is not a variable's name")
    return tuple(names or ())


def _absolute(names: list[str] | None, key: str, path: str) -> tuple[str, ...]:
    """Places outside the workspace: a relative one would mean another in every workspace."""
    for name in names or ():
        if not name.startswith(("/", "~")) or "\0" in name:
            raise InvalidArgument(f"{path}: `{key}`: {name!r} is not absolute; begin it with `/` or `~`")
    return tuple(names or ())


# A file inside the workspace.


def _narrowed(config: Config, table: FileTable, path: str) -> Config:
    ignored = [
        f"{path}: {what}; a file in the workspace can only narrow the configuration"
        for what in _widening(config, table)
    ]
    layer = None if table.permissions is None else _layer(table.permissions, path)
    _programs(table, path)  # what is ignored must still be valid
    _names(table.env, path)
    return replace(
        config,
        permissions=_narrowed_permissions(config.permissions, layer),
        deny=(*config.deny, *_patterns(table.deny, "deny", path)),
        protect=(*config.protect, *_patterns(table.protect, "protect", path)),
        encoding=_encoding(table.encoding, path) or config.encoding,
        sandbox=max(config.sandbox, table.sandbox or config.sandbox, key=_strictness),
        network="off" if table.network == "off" else config.network,
        require_read=config.require_read or bool(table.require_read),
        ignored=(*config.ignored, *ignored),
    )


def _strictness(sandbox: SandboxMode) -> int:
    return _SANDBOX_STRICTNESS.index(sandbox)


_USERS_ONLY = (
    *("env", "store", "profile", "unprotect", "writable", "readable", "sockets", "record", "secrets"),
    *("answer_within", "max_output", "notify"),
)


def _widening(config: Config, table: FileTable) -> Iterable[str]:
    """Everything in the file that would allow more than before, as text."""
    for key in _USERS_ONLY:
        if getattr(table, key) is not None:
            yield f"`{key}` is ignored"
    if table.network not in (None, "off"):
        yield "`network` is ignored"
    if table.programs:
        yield "`programs` is ignored"
    if table.protect == []:
        yield "`protect = []` is ignored"
    if table.require_read is False and config.require_read:
        yield "`require_read = false` is ignored"
    if table.sandbox is not None and _strictness(table.sandbox) < _strictness(config.sandbox):
        yield f'`sandbox = "{table.sandbox}"` is ignored'
    if table.permissions is not None:
        yield from _widening_rules(table.permissions)


def _widening_rules(table: PermissionsTable) -> Iterable[str]:
    if table.default_action == "allow":
        yield '`default_action = "allow"` is ignored'
    if table.inside_only is False:
        yield "`inside_only = false` is ignored"
    for at, rule in enumerate(table.rule, 1):
        if rule.action == "allow":
            yield f"`permissions.rule[{at}]` (allow {rule.tool} `{rule.pattern}`) is ignored"


def _layer(table: PermissionsTable, path: str) -> Permissions:
    """Rules that can only restrict: whatever they allow, the user's own rules must allow as well."""
    base = Permissions("allow") if table.rule_set is None else _known_set(table.rule_set, path)
    rules = [_rule(rule, at, path) for at, rule in enumerate(table.rule, 1)]
    return Permissions(
        table.default_action or base.default_action,
        [*(rule for rule in rules if rule.action != "allow"), *base.rules],
        inside_only=bool(table.inside_only) or base.inside_only,
    )


def _narrowed_permissions(permissions: Permissions | None, layer: Permissions | None) -> Permissions | None:
    if layer is None:
        return permissions
    if permissions is None:
        return layer
    return replace(permissions, narrowed_by=(*permissions.narrowed_by, layer))
