"""Arguments: what models send and clearly mean is taken; what isn't clear is refused, all faults at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from gripfast.errors import InvalidArgument
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import Tool, define_tool, tool
from gripfast.messages import JsonResult

pytestmark = pytest.mark.anyio


class Todo(BaseModel):
    content: str
    status: Literal["pending", "done"] = "pending"
    priority: int = 3


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    names: list[str] = []


@dataclass
class Place:
    x: int
    y: int = 0


class Words(TypedDict, total=False):
    many: int


@tool
async def take(
    path: str = "p",
    n: int = 1,
    ratio: float = 0.5,
    deep: bool = False,
    maybe: str | None = None,
    unset: int | None = 7,
    todos: list[Todo] = [],  # noqa: B006
    tags: dict[str, int] = {},  # noqa: B006
    either: int | list[int] = 1,
    mixed: int | str = 1,
    pick: Literal[1, 2, "three"] = 1,
    pair: tuple[int, bool] = (1, True),
    pet: Annotated[Cat | Dog | None, Field(discriminator="kind")] = None,
    place: Place | None = None,
    words: Words | None = None,
    day: date | None = None,
    anything: Any = None,
) -> Any:
    """Takes everything."""
    return {name: value for name, value in locals().items() if value != DEFAULTS.get(name, ...)}


DEFAULTS: dict[str, Any] = {
    "path": "p",
    "n": 1,
    "ratio": 0.5,
    "deep": False,
    "maybe": None,
    "unset": 7,
    "todos": [],
    "tags": {},
    "either": 1,
    "mixed": 1,
    "pick": 1,
    "pair": (1, True),
    "pet": None,
    "place": None,
    "words": None,
    "day": None,
    "anything": None,
}


async def taken(arguments: Any, one: Tool = take) -> dict[str, Any]:
    result = await one.execute_raw(arguments, ToolContext())
    assert isinstance(result, JsonResult)
    return result.value


async def refused(arguments: Any, one: Tool = take) -> str:
    with pytest.raises(InvalidArgument) as caught:
        await one.execute_raw(arguments, ToolContext())
    assert caught.value.code == "INVALID_ARGUMENT"
    return caught.value.message


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"n": "100"}, {"n": 100}),
        ({"n": 100.0}, {"n": 100}),
        ({"ratio": "2.5"}, {"ratio": 2.5}),
        ({"ratio": 2}, {"ratio": 2.0}),
        ({"deep": "true"}, {"deep": True}),
        ({"unset": None}, {"unset": None}),
        ({"maybe": None}, {}),
        ({"n": None, "ratio": None, "deep": None, "todos": None, "pick": None, "pair": None}, {}),
        ({"todos": '[{"content": "a"}]'}, {"todos": [Todo(content="a")]}),
        ({"todos": ['{"content": "a"}']}, {"todos": [Todo(content="a")]}),
        ({"todos": [{"content": "a", "priority": None}]}, {"todos": [Todo(content="a")]}),
        ({"todos": [{"content": "a", "priority": "2"}]}, {"todos": [Todo(content="a", priority=2)]}),
        ({"tags": '{"a": "1"}'}, {"tags": {"a": 1}}),
        ({"either": "[1, 2]"}, {"either": [1, 2]}),
        ({"either": "5"}, {"either": 5}),
        ({"mixed": "5"}, {"mixed": "5"}),
        ({"path": "[1]"}, {"path": "[1]"}),
        ({"path": "null"}, {"path": "null"}),
        ({"pick": "2"}, {"pick": 2}),
        ({"pair": '["2", "false"]'}, {"pair": (2, False)}),
        ({"pet": '{"kind": "dog", "names": "[\\"rex\\"]"}'}, {"pet": Dog(kind="dog", names=["rex"])}),
        ({"pet": {"kind": "cat", "lives": None}}, {"pet": Cat(kind="cat")}),
        ({"place": '{"x": "1"}'}, {"place": Place(1)}),
        ({"words": {"many": None}}, {"words": {}}),
        ({"day": "2024-02-29"}, {"day": date(2024, 2, 29)}),
        ({"anything": "[1]"}, {"anything": "[1]"}),
        ({"anything": {"a": None, "b": "1"}}, {"anything": {"a": None, "b": "1"}}),
    ],
    ids=str,
)
async def test_what_is_clearly_meant_is_taken(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    assert await taken(sent) == meant


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"n": True}, "`n`: must be an integer, not true"),
        ({"ratio": False}, "`ratio`: must be a number, not false"),
        ({"mixed": True}, "`mixed`: must be an integer or a string, not true"),
        ({"todos": [{"content": "a", "priority": True}]}, "`todos[0].priority`: must be an integer, not true"),
        ({"n": 2.5}, "`n`: must be an integer, not 2.5"),
        ({"n": "2.5"}, '`n`: must be an integer, not "2.5"'),
        ({"n": "ten"}, '`n`: must be an integer, not "ten"'),
        ({"n": ""}, '`n`: must be an integer, not ""'),
        ({"ratio": "nan"}, '`ratio`: must be a number, not "nan"'),
        ({"ratio": "-Infinity"}, '`ratio`: must be a number, not "-Infinity"'),
        ({"deep": "perhaps"}, '`deep`: must be true or false, not "perhaps"'),
        ({"path": 100}, "`path`: must be a string, not 100"),
        ({"path": None}, None),
        ({"tags": {"a": None}}, "`tags.a`: must be an integer, not null"),
        ({"either": [None]}, "`either[0]`: must be an integer, not null"),
        ({"either": "abc"}, '`either`: must be an integer or an array, not "abc"'),
        ({"either": '{"a": 1}'}, '`either`: must be an integer or an array, not "{\\"a\\": 1}"'),
        ({"todos": "[1"}, '`todos`: must be an array, not "[1"'),
        ({"todos": "[NaN]"}, '`todos`: must be an array, not "[NaN]"'),
        ({"todos": '[{"content": 5}]'}, "`todos[0].content`: must be a string, not 5"),
        ({"todos": [7]}, "`todos[0]`: must be an object, not 7"),
        ({"pick": 3}, "`pick`: must be 1, 2 or 'three', not 3"),
        ({"todos": [{"content": "a", "status": "x"}]}, "`todos[0].status`: must be 'pending' or 'done', not \"x\""),
        ({"place": {"x": 1, "z": 2}}, "`place.z`: no such argument, use one of x, y"),
        ({"words": {"mnay": 2}}, "`words.mnay`: no such argument, did you mean `many`?"),
    ],
    ids=str,
)
async def test_what_is_not_clear_is_refused_in_the_callers_terms(sent: dict[str, Any], told: str | None) -> None:
    if told is None:  # null for an argument with a default: it was not given
        assert await taken(sent) == {}
    else:
        assert await refused(sent) == told


async def test_null_for_a_required_argument_is_refused() -> None:
    @tool
    def needs(path: str) -> str:
        """Needs a path."""
        return path

    assert await refused('{"path": null}', needs) == "`path`: must be a string, not null"
    assert await refused("{}", needs) == "`path`: required"


async def test_an_unknown_argument_is_refused_with_the_near_name() -> None:
    assert await refused({"paht": "x"}) == "`paht`: no such argument, did you mean `path`?"
    told = await refused({"todos": [{"contnet": "a"}]})
    assert told == (
        "2 problems: `todos[0].content`: required; `todos[0].contnet`: no such argument, did you mean `content`?"
    )
    assert (await refused({"zzzzz": 1})).startswith("`zzzzz`: no such argument, use one of path, n, ")


async def test_a_tool_without_arguments_says_so() -> None:
    @tool
    def nothing() -> list[int]:
        """Takes nothing."""
        return [1]

    assert await refused({"a": 1}, nothing) == "`a`: no such argument, it takes no arguments"
    nothings: list[Any] = [None, "", "  ", "{}", "null", b"", {}]
    for empty in nothings:
        assert await taken(empty, nothing) == [1]


async def test_all_faults_of_a_call_are_reported_together() -> None:
    with pytest.raises(InvalidArgument) as caught:
        await take.execute_raw({"n": "x", "deep": 7, "zzzzz": 1, "todos": [{}]}, ToolContext())
    assert caught.value.message.startswith("4 problems: ")
    assert [fault["argument"] for fault in caught.value.details["errors"]] == [
        "n",
        "deep",
        "todos[0].content",
        "zzzzz",
    ]
    assert caught.value.retriable is False


async def test_what_needs_no_mending_is_left_alone_beside_what_does() -> None:
    @tool
    def both(it: str | list[int], n: int) -> Any:
        """Both."""
        return [it, n]

    assert await taken({"it": "[1]", "n": "5"}, both) == ["[1]", 5]
    assert await taken({"unset": None, "n": "5"}) == {"unset": None, "n": 5}


async def test_a_mended_value_does_not_hide_another_fault() -> None:
    told = await refused({"todos": '[{"content": "a"}]', "n": None, "ratio": "x"})
    assert told == '`ratio`: must be a number, not "x"'


async def test_a_thousand_faults_and_a_huge_name_stay_a_short_message() -> None:
    told = await refused({"todos": [{}] * 1000, "x" * 100_000: 1, "path": ["y" * 100_000]})
    assert told.startswith("1002 problems: ")
    assert told.endswith("and 982 more")
    assert len(told) < 4000


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("not json", "not valid JSON (expected ident at line 1 column 2)"),
        ("{", "not valid JSON (EOF while parsing an object at line 1 column 1)"),
        ('{"n": 1} x', "not valid JSON (trailing characters"),
        (b"\xff\xfe", "not valid JSON"),
        (b'{"path": "\xff"}', "not valid JSON"),
        ("[1]", "must be a JSON object, not [1]"),
        ('"n"', 'must be a JSON object, not "n"'),
        ("17", "must be a JSON object, not 17"),
        ('{"anything": ' + "[" * 100_000 + "]" * 100_000 + "}", "recursion limit exceeded"),
        ("[" * 100_000, "recursion limit exceeded"),
        ('{"anything": NaN}', "NaN and Infinity are not JSON"),
        ('{"anything": [-Infinity]}', "NaN and Infinity are not JSON"),
        ('{"n": ' + "9" * 5000 + "}", "number out of range"),
        ('{"anything": ' + "9" * 5000 + "}", "number out of range"),
        ('{"path": "\\ud800"}', "not valid JSON"),
        ('{"path": "\ud800"}', "lone surrogate at character 10"),
        ({"path": "\ud800"}, "not JSON"),
        ({"anything": float("nan")}, "NaN and Infinity are not JSON"),
        ({"anything": object()}, "not JSON"),
    ],
    ids=lambda value: str(value)[:30].encode("ascii", "replace").decode(),
)
async def test_what_is_not_a_json_object_is_refused_and_the_tool_goes_on(raw: Any, told: str) -> None:
    message = await refused(raw)
    assert told in message
    assert len(message) < 300
    assert await taken('{"n": 5}') == {"n": 5}


async def test_python_data_nested_too_deep_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert "not JSON" in await refused({"anything": deep})
    loop: dict[str, Any] = {}
    loop["anything"] = loop
    assert "not JSON" in await refused(loop)


async def test_the_words_nan_and_infinity_inside_text_are_text() -> None:
    assert await taken('{"path": "NaN, Infinity"}') == {"path": "NaN, Infinity"}


async def test_a_big_integer_within_reason_is_an_integer() -> None:
    assert await taken('{"n": ' + "9" * 60 + "}") == {"n": int("9" * 60)}


async def test_what_a_models_own_check_says_is_told_as_it_is() -> None:
    class Range(BaseModel):
        low: int = 0
        high: int = 9

        @model_validator(mode="after")
        def ordered(self) -> Range:
            if self.low > self.high:
                raise ValueError("low must not be above high")
            return self

    one = define_tool(name="x", description="X.", input=Range, execute=lambda it: it)  # pyright: ignore
    assert await refused({"low": 10}, one) == "low must not be above high"

    def even(value: Any) -> Any:
        if value == 3:
            raise ValueError("3 is odd; give an even number")
        return value

    @tool
    def wants(n: Annotated[int, BeforeValidator(even)]) -> int:
        """Wants."""
        return n

    assert await refused({"n": 3}, wants) == "`n`: 3 is odd; give an even number"


async def test_a_nested_model_that_takes_more_names_still_does() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        a: int = 1

    @tool
    def holds(it: Open, other: int = 1) -> Any:
        """Holds."""
        return it.model_extra

    assert await taken({"it": {"b": 2}}, holds) == {"b": 2}
    assert await refused({"it": {}, "othre": 2}, holds) == "`othre`: no such argument, did you mean `other`?"

    class Holder(BaseModel):
        it: Open
        other: int = 1

    def extra(input: Holder) -> Any:
        return input.it.model_extra

    defined = define_tool(name="x", description="X.", input=Holder, execute=extra)
    assert await taken({"it": {"b": 2}}, defined) == {"b": 2}
    assert await refused({"it": {}, "othre": 2}, defined) == "`othre`: no such argument, did you mean `other`?"


async def test_a_recursive_model_is_mended_all_the_way_down() -> None:
    class Node(BaseModel):
        n: int = 0
        below: list[Node] = []

    @tool
    def tree(root: Node) -> Any:
        """A tree."""
        return root.model_dump()

    sent = {"root": {"below": [{"below": '[{"n": "3", "below": null}]'}]}}
    assert await taken(sent, tree) == {
        "n": 0,
        "below": [{"n": 0, "below": [{"n": 3, "below": []}]}],
    }
    assert await refused({"root": {"below": [{"nn": 1}]}}, tree) == (
        "`root.below[0].nn`: no such argument, did you mean `n`?"
    )
