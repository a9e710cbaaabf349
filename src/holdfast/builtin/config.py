"""The configuration as one typed record: what files say, checked whole, before anything starts.

The user's own file may widen and narrow; a file inside the workspace may only narrow, because the workspace may be
hostile. What such a file asks for beyond that is ignored and named in `Config.ignored`.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.call.decision import Action, PermissionRule
from holdfast.call.rules import Permissions
from holdfast.call.rulesets import RULE_SETS, rule_set
from holdfast.call.shell.options import Program, check_program
from holdfast.errors import InvalidArgument
from holdfast.host.config import ConfigText, config_texts
from holdfast.host.patterns import Patterns
from holdfast.host.scope import PROTECTED
from holdfast.host.text import checked_encoding

Sandbox: TypeAlias = Literal["auto", "require", "off"]
_SANDBOX_STRICTNESS = ("off", "auto", "require")


@dataclass(frozen=True, slots=True)
class Config:
    """What a session is opened with. Every field has the value that holds when nobody says anything."""

    permissions: Permissions | None = None
    deny: tuple[str, ...] = ()
    protect: tuple[str, ...] = PROTECTED
    encoding: str | None = None
    sandbox: Sandbox = "auto"
    env: tuple[str, ...] = ()
    cache: str | None = None
    require_read: bool = True
    profile: str | None = None
    files: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def load_config(named: str | None = None, roots: Iterable[str] = ()) -> Config:
    """The user's file (or the one `named`), narrowed by those in the roots. Raises InvalidArgument with the place."""
    config = Config()
    for text in config_texts(named, roots):
        said = _parsed(text)
        config = _with(config, said, text.path) if text.trusted else _narrowed(config, said, text.path)
        config = replace(config, files=(*config.files, text.path))
    return config


def parse_config(text: str, path: str = "holdfast.toml") -> Config:
    """A trusted text alone."""
    return _with(Config(), _parsed(ConfigText(path, text, True)), path)


def refuse_unknown_tools(permissions: Permissions | None, known: Iterable[str]) -> None:
    """A rule about a tool that is not there would be open by mistake: `tool = "Bsh"`."""
    names = {name.lower(): name for name in known}
    for layer in () if permissions is None else (permissions, *permissions.narrowed_by):
        for rule in layer.rules:
            name = rule.tool.lower()
            if rule.source and name != "*" and not name.startswith("effect:") and name not in names:
                near = difflib.get_close_matches(name, names, 1)
                hint = f"did you mean `{names[near[0]]}`?" if near else f"there are {', '.join(names.values())}"
                raise InvalidArgument(f"{rule.source}: no tool named `{rule.tool}`; {hint}")


# What a file may say, as pydantic models; an unknown key is an error.


class _Table(BaseModel):
    # Most sessions have no file: its models are built for the first.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class _Rule(_Table):
    tool: str
    pattern: str = "*"
    action: Action
    examples: list[str] = []
    counterexamples: list[str] = []
    any_options: bool = False


class _Permissions(_Table):
    default_action: Action | None = None
    rule_set: str | None = None
    inside_only: bool | None = None
    rule: list[_Rule] = []


class _Program(_Table):
    options: list[str] = []
    operands: str = "paths"
    after: list[str] = []
    instead: list[str] = []
    style: str = "gnu"


class _File(_Table):
    permissions: _Permissions | None = None
    programs: dict[str, _Program] = {}
    deny: list[str] | None = None
    protect: list[str] | None = None
    encoding: str | None = None
    sandbox: Sandbox | None = None
    env: list[str] | None = None
    cache: str | None = None
    require_read: bool | None = None
    profile: str | None = Field(default=None, min_length=1)


def _parsed(source: ConfigText) -> _File:
    try:
        return _File.model_validate(tomllib.loads(source.text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"{source.path}: not TOML: {error}") from None
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors(include_url=False))
        raise InvalidArgument(f"{source.path}: {faults}") from None
    except RecursionError:
        raise InvalidArgument(f"{source.path}: nested too deeply") from None


def _fault(fault: Mapping[str, Any]) -> str:
    place = _place(fault["loc"])
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(fault["loc"][-1]), _known_keys(fault["loc"]), 1)
        hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(_known_keys(fault['loc']))}"
        return f"{place}: unknown key; {hint}"
    given = "" if fault["type"] == "missing" else f", not {fault['input']!r}"
    return f"{place}: {str(fault['msg'])[:1].lower()}{fault['msg'][1:]}{given}"


def _place(steps: tuple[str | int, ...]) -> str:
    """`permissions.rule[2].action`, counted from 1 as people do."""
    shown = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in steps)
    return f"`{shown.removeprefix('.')}`"


def _known_keys(steps: tuple[str | int, ...]) -> list[str]:
    match steps[:-1]:
        case ("permissions",):
            table: type[_Table] = _Permissions
        case ("permissions", "rule", _):
            table = _Rule
        case ("programs", _):
            table = _Program
        case _:
            table = _File
    return list(table.model_fields)


# What the user's own file says.


def _with(config: Config, said: _File, path: str) -> Config:
    programs = _programs(said, path)
    permissions = config.permissions
    if said.permissions is not None:
        permissions = _permissions(said.permissions, programs, path)
    elif programs:
        raise InvalidArgument(f"{path}: `programs` has no effect without [permissions]")
    return replace(
        config,
        permissions=permissions,
        deny=_patterns(said.deny, "deny", path) or (),
        protect=config.protect if said.protect is None else _patterns(said.protect, "protect", path),
        encoding=_encoding(said.encoding, path),
        sandbox=said.sandbox or config.sandbox,
        env=_names(said.env, path),
        cache=said.cache,
        require_read=config.require_read if said.require_read is None else said.require_read,
        profile=said.profile,
    )


def _permissions(said: _Permissions, programs: Mapping[str, Program], path: str) -> Permissions:
    """The file's rules come first, then those of the ready-made set it names."""
    rules = [_rule(rule, at, path) for at, rule in enumerate(said.rule, 1)]
    if said.rule_set is None:
        if said.default_action is None:
            raise InvalidArgument(f"{path}: [permissions] needs `default_action` (allow, ask or deny) or `rule_set`")
        return Permissions(said.default_action, rules, inside_only=bool(said.inside_only), programs=programs)
    base = _known_set(said.rule_set, path)
    return Permissions(
        said.default_action or base.default_action,
        [*rules, *base.rules],
        inside_only=base.inside_only if said.inside_only is None else said.inside_only,
        programs=programs,
    )


def _known_set(name: str, path: str) -> Permissions:
    if name not in RULE_SETS:
        raise InvalidArgument(f"{path}: `permissions.rule_set`: {name!r}; use one of {', '.join(RULE_SETS)}")
    return rule_set(name)


def _rule(said: _Rule, at: int, path: str) -> PermissionRule:
    try:
        return PermissionRule(
            said.tool,
            said.pattern,
            said.action,
            tuple(said.examples),
            tuple(said.counterexamples),
            said.any_options,
            f"{path}, rule {at}",
        )
    except ValueError as fault:
        raise InvalidArgument(f"{path}: `permissions.rule[{at}]`: {fault}") from None


def _programs(said: _File, path: str) -> dict[str, Program]:
    return {name: _program(name, table, path) for name, table in said.programs.items()}


def _program(name: str, said: _Program, path: str) -> Program:
    program = Program(" ".join(said.options), said.operands, " ".join(said.after), " ".join(said.instead), said.style)  # type: ignore[arg-type]  # check_program looks
    try:
        check_program(program)
    except ValueError as fault:
        raise InvalidArgument(f"{path}: `programs.{name}`: {fault}") from None
    if name != " ".join(name.split()) or not 1 <= len(name.split()) <= 3:
        raise InvalidArgument(f"{path}: `programs.{name}`: one to three words, as in `git fetch`")
    return program


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


# What a file inside the workspace may take away.


def _narrowed(config: Config, said: _File, path: str) -> Config:
    ignored = [f"{path}: {what}; a file in the workspace can only narrow" for what in _widening(config, said)]
    layer = None if said.permissions is None else _layer(said.permissions, path)
    _programs(said, path)  # what is ignored must still be right
    _names(said.env, path)
    return replace(
        config,
        permissions=_narrowed_permissions(config.permissions, layer),
        deny=(*config.deny, *_patterns(said.deny, "deny", path)),
        protect=(*config.protect, *_patterns(said.protect, "protect", path)),
        encoding=_encoding(said.encoding, path) or config.encoding,
        sandbox=max(config.sandbox, said.sandbox or config.sandbox, key=_strictness),
        require_read=config.require_read or bool(said.require_read),
        ignored=(*config.ignored, *ignored),
    )


def _strictness(sandbox: Sandbox) -> int:
    return _SANDBOX_STRICTNESS.index(sandbox)


def _widening(config: Config, said: _File) -> Iterable[str]:
    """Everything in the file that would give more than there is, in words."""
    for key in ("env", "cache", "profile"):
        if getattr(said, key) is not None:
            yield f"`{key}` is not taken"
    if said.programs:
        yield "`programs` is not taken"
    if said.protect == []:
        yield "`protect = []` is not taken"
    if said.require_read is False and config.require_read:
        yield "`require_read = false` is not taken"
    if said.sandbox is not None and _strictness(said.sandbox) < _strictness(config.sandbox):
        yield f'`sandbox = "{said.sandbox}"` is not taken'
    if said.permissions is not None:
        yield from _widening_rules(said.permissions)


def _widening_rules(said: _Permissions) -> Iterable[str]:
    if said.default_action == "allow":
        yield '`default_action = "allow"` is not taken'
    if said.inside_only is False:
        yield "`inside_only = false` is not taken"
    for at, rule in enumerate(said.rule, 1):
        if rule.action == "allow":
            yield f"`permissions.rule[{at}]` (allow {rule.tool} `{rule.pattern}`) is not taken"


def _layer(said: _Permissions, path: str) -> Permissions:
    """Rules that only ever take away: whatever they allow, the user's own rules must allow as well."""
    base = Permissions("allow") if said.rule_set is None else _known_set(said.rule_set, path)
    rules = [_rule(rule, at, path) for at, rule in enumerate(said.rule, 1)]
    return Permissions(
        said.default_action or base.default_action,
        [*(rule for rule in rules if rule.action != "allow"), *base.rules],
        inside_only=bool(said.inside_only) or base.inside_only,
    )


def _narrowed_permissions(permissions: Permissions | None, layer: Permissions | None) -> Permissions | None:
    if layer is None:
        return permissions
    if permissions is None:
        return layer
    return replace(permissions, narrowed_by=(*permissions.narrowed_by, layer))
