"""What every adapter says the same way: names, definitions and results as plain data."""

from __future__ import annotations

import keyword
import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model

from gripfast.call.run import Session
from gripfast.framework.definition import Tool
from gripfast.messages import DocumentPart, ImagePart, Part, TextPart, ToolMessage


def identifiers(session: Session) -> dict[str, Tool]:
    """The tools under names that are Python identifiers, for frameworks that need them."""
    named: dict[str, Tool] = {}
    for tool in session.tools.values():
        name = re.sub(r"\W", "_", tool.name)
        name = f"{name}_" if keyword.iskeyword(name) else name
        if name in named:
            both = f"`{tool.name}` and `{named[name].name}`"
            raise ValueError(f"{both} would both be `{name}` here; open the session with one of them")
        named[name] = tool
    return named


def chosen(session: Session, only: Iterable[str] | None) -> list[Tool]:
    """The tools to hand over: all of the session's, or those named, which must exist."""
    if only is None:
        return list(session.tools.values())
    return [session.find(name) for name in only]


def parts_of(message: ToolMessage) -> tuple[Part, ...]:
    return (TextPart(message.content),) if isinstance(message.content, str) else message.content


def base64_of(part: ImagePart | DocumentPart) -> str:
    return b64encode(part.data).decode("ascii")


def data_url(part: ImagePart | DocumentPart) -> str:
    return f"data:{part.media_type};base64,{base64_of(part)}"


def facts(message: ToolMessage) -> dict[str, Any]:
    """What the program may want to know of a message and the model need not."""
    whole = message.to_dict()
    return {**{key: whole[key] for key in ("name", "is_error", "output_ref", "error")}, "done": message.done}


def parameter_names(tool: Tool) -> dict[str, str]:
    """The arguments of a tool under names that are Python identifiers, and what each is really called."""
    named: dict[str, str] = {}
    for original in tool.definition.parameters.get("properties", {}):
        name = re.sub(r"\W", "_", original).strip("_") or "argument"
        while name in named or keyword.iskeyword(name) or not name.isidentifier():
            name = f"{name}_" if name.isidentifier() else f"_{name}"
        named[name] = original
    return named


def argument_model(tool: Tool) -> type[BaseModel]:
    """A model with a tool's own schema that takes any arguments as they are, for frameworks that want one and would
    validate with it: the session does that."""

    def own(schema: dict[str, Any]) -> None:
        schema.clear()
        schema.update(tool.definition.parameters)

    name = re.sub(r"\W", "_", tool.name)
    return create_model(f"{name}Arguments", __config__=ConfigDict(extra="allow", json_schema_extra=own))
