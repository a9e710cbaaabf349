"""What a start of the program learns about the built-in tools, kept so that the next loads only the tool it calls.

Everything here is taken from the tools themselves. `host/program/ready.py` keeps it for as long as the code is the
same; a process that has none loads all tools, as always.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, Literal, Union, cast, get_args, get_origin

from gripfast.builtin import keys
from gripfast.builtin import tools as tool_list
from gripfast.framework.definition import Parts, Tool, Traits, invocation
from gripfast.framework.depends import DependencyKey
from gripfast.framework.plain import PlainArgument, PlainArguments
from gripfast.host.files.paths import WorkPath
from gripfast.host.shell.sandbox import Sandbox, choose, take_as_tried

_MAKERS = {"path": WorkPath.parse}
_KINDS: Mapping[object, str] = {str: "string", int: "integer", bool: "boolean", WorkPath: "path"}
_KEYS: dict[str, DependencyKey[Any]] = {one.id: one for one in vars(keys).values() if isinstance(one, DependencyKey)}
# What a list of tools is asked for. The functions in Traits are not kept: a tool that is called is always loaded.
TRAITS = tuple(field.name for field in fields(Traits) if field.name not in ("preview", "joins", "refuses"))


def kept_text() -> str:
    """What is kept of all tools, and the sandbox that works here."""
    found = choose()
    sandbox = asdict(found) if found.confines and not found.faults else None
    lists = {name: [_stored_form(file) for file in files] for name, files in tool_list.files().items()}
    return json.dumps({"tools": lists, "sandbox": sandbox})


def _stored_form(file: str) -> dict[str, Any]:
    tool = tool_list.load(file)
    traits = {name: getattr(tool.traits, name) for name in TRAITS}
    return {"file": file, "name": tool.name, "description": tool.description, "traits": traits, "plain": _plain(tool)}


def _plain(tool: Tool) -> dict[str, Any] | None:
    """The arguments of a tool, if all are plain, and what else it takes to run it."""
    model: Any = getattr(tool.arguments, "model", None)
    arguments = [] if model is None else [_argument(name, field) for name, field in model.model_fields.items()]
    needs = tool.parts.needs
    if not arguments or None in arguments or any(_KEYS.get(key.id) is not key for key in needs.values()):
        return None
    ids = {name: key.id for name, key in needs.items()}
    return {"arguments": arguments, "needs": ids, "context": tool.parts.context, "parameters": tool.parts.parameters}


def _argument(name: str, field: Any) -> dict[str, Any] | None:
    """None for an argument that `PlainArgument` can't describe."""
    options = [one for one in _options(field.annotation) if one is not type(None)]
    nullable = len(options) < len(_options(field.annotation))
    limits = {key: value for one in field.metadata for key, value in asdict(one).items()}
    choices = get_args(options[0]) if len(options) == 1 and get_origin(options[0]) is Literal else None
    kind = "string" if choices and all(type(one) is str for one in choices) else _KINDS.get(options[0])
    required = field.is_required()
    default = None if required else field.default
    is_plain = len(options) == 1 and kind is not None and limits.keys() <= {"ge", "le"} and default is not ...
    if not is_plain or not isinstance(default, (str, int, bool, types.NoneType)) or field.default_factory:
        return None
    found = PlainArgument(
        name,
        field.alias or name,
        kind or "",
        required,
        default,
        nullable,
        limits.get("ge"),
        limits.get("le"),
        choices,
    )
    return asdict(found)


def _options(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def use(text: str, called: str) -> bool:
    """Lists the tools as they were kept, and loads only the one that is `called`. Returns whether there is such a
    tool."""
    read: dict[str, Any] = json.loads(text)
    kept: dict[str, list[dict[str, Any]]] = read["tools"]
    if all(one["name"] != called for tools in kept.values() for one in tools):
        return False
    made = {one["file"]: _tool(one, called) for tools in kept.values() for one in tools}
    tool_list.use({name: tuple(made[one["file"]] for one in tools) for name, tools in kept.items()})
    if read["sandbox"] is not None and _runs_nothing(next(one for one in made.values() if one.name == called)):
        take_as_tried(Sandbox(**dict(_as_tuples(read["sandbox"]))))
    return True


def _runs_nothing(tool: Tool) -> bool:
    """Whether no command can run in a process that calls only this tool."""
    return tool.traits.effect in ("read", "write") and keys.SHELL not in tool.parts.needs.values()


def _tool(kept: Mapping[str, Any], called: str) -> Tool:
    if kept["name"] == called:
        tool = tool_list.load(kept["file"])
        return tool if kept["plain"] is None else quick(tool, kept["plain"])
    traits = Traits(**dict(_as_tuples(kept["traits"])))
    return Tool(kept["name"], kept["description"], traits, lambda: tool_list.load(kept["file"]).parts)


def _as_tuples(traits: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in traits.items():
        yield name, tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def quick(tool: Tool, plain: Mapping[str, Any]) -> Tool:
    """The tool with arguments that are read without pydantic."""
    arguments = [PlainArgument(**one) for one in plain["arguments"]]
    needs = {name: _KEYS[id] for name, id in plain["needs"].items()}
    parts = Parts(
        plain["parameters"],
        PlainArguments(arguments, _MAKERS, lambda: tool.arguments),
        needs,
        invocation(cast("Callable[..., Any]", tool.function), plain["context"], spread=True),
        plain["context"],
    )
    return tool.with_parts(lambda: parts)
