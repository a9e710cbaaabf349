"""Tools with every kind of definition, for tests of schemas and provider forms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from gripfast.framework.context import ToolContext
from gripfast.framework.definition import Tool, define_tool, tool
from gripfast.framework.depends import DependencyKey, Depends

SECRET = DependencyKey("secret", lambda: "s3cret")


class Level(IntEnum):
    low = 1
    high = 2


@dataclass
class Point:
    """A place."""

    x: int
    y: int = 0


class Item(BaseModel):
    """One thing to do."""

    content: Annotated[str, Field(min_length=1, description="What to do.")]
    title: str = Field("untitled", title="A title that is noise", max_length=9)
    level: Level = Level.low
    at: Point | None = None


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool = True


class Node(BaseModel):
    name: str
    children: list[Node] = []
    parent: Annotated[Node | None, Field(description="The one above.")] = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 1


@tool
def nothing() -> None:
    """Takes nothing."""


@tool
def plain(
    text: str,
    n: Annotated[int, Field(ge=0, lt=10, description="How many.")] = 0,
    ratio: Annotated[float, Field(gt=0, multiple_of=0.5)] = 0.5,
    on: bool = False,
    maybe: str | None = None,
    seven: int | None = 7,
    must: int | None = Field(),
    *,
    ctx: ToolContext,
    secret: Annotated[str, Depends(SECRET)],
) -> str:
    """Takes plain things."""
    return text + secret


@tool
def nested(
    items: Annotated[list[Item], Field(min_length=1, max_length=5)],
    item: Item,
    same: Item | None = None,
    either: Item | list[int] | str = "",
    pet: Annotated[Cat | Dog | None, Field(discriminator="kind", description="A pet.")] = None,
) -> str:
    """Takes nested things."""
    return str(items)


@tool
def odd(
    anything: Any,
    free: dict[str, Any],
    counts: dict[str, int] = {},  # noqa: B006
    pair: tuple[int, str] = (1, ""),
    unique: set[int] = set(),  # noqa: B006
    untyped: list[Any] = [],  # noqa: B006
    when: datetime | None = None,
    day: date = date(2024, 2, 29),
    path: PurePosixPath | None = None,
    maybe_pair: tuple[int, int] | None = None,
    id: UUID | None = None,
    price: Decimal = Decimal(1),
    pick: Literal[1, "two", True] = 1,
    only: Literal["this"] = "this",
    code: Annotated[str, Field(pattern="^[a-z]+$", examples=["abc"])] = "a",
    raw: bytes = b"",
) -> str:
    """Takes odd things."""
    return str(anything)


@tool
def recursive(root: Node, other: Node | None = None) -> str:
    """Takes a tree."""
    return root.name


def _execute(input: BaseModel) -> str:
    return str(input)


self_named: Tool = define_tool(name="self_named", description="Is a tree.", input=Node, execute=_execute)
opened: Tool = define_tool(name="opened", description="Takes more.", input=Open, execute=_execute)


@tool(
    title="By hand",
    effect="write",
    destructive=True,
    parameters={
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "a": {"oneOf": [{"type": "integer"}, {"type": "null"}], "default": 3},
            "b": {"allOf": [{"type": "string"}], "minLength": 2},
            "c": {"type": ["integer", "string", "null"], "const": 5},
            "d": {"type": "array"},
        },
        "required": ["b"],
        "additionalProperties": False,
    },
)
def by_hand(b: str, a: int | None = 3, c: int | str | None = 5, d: list[Any] = []) -> str:  # noqa: B006
    """Is shown as it was written."""
    return b


TOOLS: list[Tool] = [nothing, plain, nested, odd, recursive, self_named, opened, by_hand]
