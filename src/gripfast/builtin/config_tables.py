"""The tables of a configuration file as pydantic models; an unknown key is an error. Loaded when there is a file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gripfast.call.decision import Action
from gripfast.errors import InvalidArgument
from gripfast.host.program.config import ConfigText
from gripfast.host.record.shelf import RecordOptions
from gripfast.host.shell.sandbox import SandboxMode
from gripfast.text.near import did_you_mean

_RECORD = RecordOptions()


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class RuleTable(_Table):
    tool: str
    pattern: str = "*"
    action: Action
    examples: list[str] = []
    counterexamples: list[str] = []
    any_options: bool = False


class PermissionsTable(_Table):
    default_action: Action | None = None
    rule_set: str | None = None
    inside_only: bool | None = None
    rule: list[RuleTable] = []


class ProgramTable(_Table):
    options: list[str] = []
    operands: str = "paths"
    after: list[str] = []
    instead: list[str] = []
    style: str = "gnu"


class RecordTable(_Table):
    on: bool = True
    quota: str | int = _RECORD.quota
    days: float | int = Field(default=_RECORD.days, gt=0)
    largest_file: str | int = _RECORD.largest_file


class FileTable(_Table):
    permissions: PermissionsTable | None = None
    programs: dict[str, ProgramTable] = {}
    deny: list[str] | None = None
    protect: list[str] | None = None
    unprotect: list[str] | None = None
    encoding: str | None = None
    sandbox: SandboxMode | None = None
    env: list[str] | None = None
    writable: list[str] | None = None
    readable: list[str] | None = None
    sockets: list[str] | None = None
    network: Literal["on", "off"] | list[str] | None = None
    max_output: int | None = Field(default=None, ge=1000, le=60_000)
    store: str | None = None
    require_read: bool | None = None
    profile: str | None = Field(default=None, min_length=1)
    record: RecordTable | None = None
    secrets: Literal["hide", "keep"] | None = None
    answer_within: float | int | None = Field(default=None, ge=0, le=86_400)
    notify: bool | None = None


def parsed(source: ConfigText) -> FileTable:
    try:
        return FileTable.model_validate(tomllib.loads(source.text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"{source.path}: not TOML: {error}") from None
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors(include_url=False))
        raise InvalidArgument(f"{source.path}: {faults}") from None
    except RecursionError:
        raise InvalidArgument(f"{source.path}: nested too deeply") from None


def _fault(fault: Mapping[str, Any]) -> str:
    place = _place(fault["loc"])
    if fault["loc"] == ("cache",):
        return "`cache` is now `store`, which servers also share their sessions in"
    if fault["type"] == "extra_forbidden":
        return f"{place}: unknown key; {did_you_mean(str(fault['loc'][-1]), _known_keys(fault['loc']))}"
    given = "" if fault["type"] == "missing" else f", not {fault['input']!r}"
    return f"{place}: {str(fault['msg'])[:1].lower()}{fault['msg'][1:]}{given}"


def _place(steps: tuple[str | int, ...]) -> str:
    """`permissions.rule[2].action`, counted from 1 as people do."""
    shown = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in steps)
    return f"`{shown.removeprefix('.')}`"


def _known_keys(steps: tuple[str | int, ...]) -> list[str]:
    match steps[:-1]:
        case ("permissions",):
            table: type[_Table] = PermissionsTable
        case ("permissions", "rule", _):
            table = RuleTable
        case ("programs", _):
            table = ProgramTable
        case ("record",):
            table = RecordTable
        case _:
            table = FileTable
    return list(table.model_fields)
