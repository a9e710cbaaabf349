"""A typed function, or a model and a function, becomes a tool; what can't be one says everything that is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from enum import Enum
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from gripfast.errors import InvalidArgument
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import Tool, ToolDefinitionError, define_tool, tool
from gripfast.framework.depends import DependencyKey, Depends
from gripfast.messages import JsonResult, TextResult

if TYPE_CHECKING:
    from fractions import Fraction

pytestmark = pytest.mark.anyio

DB = DependencyKey("db", lambda: "the database")


@tool
async def greet(name: str, times: int = 2, *, loud: bool = False) -> str:
    """Greets somebody.

    This paragraph is for people, not for the model.

    Args:
        name: Whom to greet.
        times (int): How often,
            at most a few.
    Returns:
        The greeting.
    """
    return " ".join([f"hello {name}"] * times) + ("!" if loud else "")


async def text_of(one: Tool, arguments: Any = None, ctx: ToolContext | None = None) -> str:
    result = await one.execute_raw(arguments, ctx or ToolContext())
    assert isinstance(result, (TextResult, JsonResult))
    return result.text


def faults_of(function: Any, **words: Any) -> list[str]:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(**words)(function)
    return caught.value.faults


def test_a_function_gives_its_name_its_first_paragraph_and_its_parameters() -> None:
    assert (greet.name, greet.description) == ("greet", "Greets somebody.")
    assert greet.definition.name == greet.name
    assert greet.definition.description == greet.description
    assert greet.definition.parameters == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Whom to greet."},
            "times": {"type": "integer", "description": "How often, at most a few.", "default": 2},
            "loud": {"type": "boolean", "default": False},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


async def test_a_tool_is_called_with_json_text_and_fills_in_the_defaults() -> None:
    assert await text_of(greet, '{"name": "Ann"}') == "hello Ann hello Ann"
    assert await text_of(greet, {"name": "Ann", "times": 1, "loud": True}) == "hello Ann!"


async def test_define_tool_makes_a_tool_of_data_and_a_function() -> None:
    class Sum(BaseModel):
        a: int
        b: int = 1

    def add(input: Sum, ctx: ToolContext) -> int:
        assert isinstance(ctx, ToolContext)
        return input.a + input.b

    one = define_tool(name="sum", description="Adds.", input=Sum, execute=add)
    assert await text_of(one, '{"a": 2}') == "3"
    assert one.definition.parameters["additionalProperties"] is False
    with pytest.raises(InvalidArgument, match="`c`: no such argument"):
        await one.execute_raw('{"a": 2, "c": 3}', ToolContext())


async def test_execute_may_take_the_input_alone_or_an_unannotated_ctx_or_dependencies() -> None:
    class Empty(BaseModel):
        pass

    async def injected(_: Empty, *, db: Annotated[str, Depends(DB)]) -> str:
        return db

    def alone(_: Empty) -> str:
        return "alone"

    def bare(_, ctx):  # pyright: ignore
        return type(ctx).__name__  # pyright: ignore

    make = partial(define_tool, name="x", description="X.", input=Empty)
    assert await text_of(make(execute=alone)) == "alone"
    assert await text_of(make(execute=bare)) == "ToolContext"  # pyright: ignore[reportUnknownArgumentType]
    assert await text_of(make(execute=injected)) == "the database"


def test_define_tool_names_every_fault_at_once() -> None:
    def no_input(*, other: int) -> None: ...

    class Listed(RootModel[list[int]]):
        pass

    with pytest.raises(ToolDefinitionError) as caught:
        define_tool(name="bad name", description=" ", input=Listed, execute=no_input)
    assert len(caught.value.faults) == 4
    for words in ("'bad name'", "no description", "a pydantic model with fields", "as its first parameter"):
        assert words in str(caught.value)


def test_define_tool_refuses_a_parameter_that_nothing_fills() -> None:
    class Empty(BaseModel):
        pass

    def wants(input: Empty, ctx: ToolContext, path: str) -> None: ...

    with pytest.raises(ToolDefinitionError, match="execute's `path` is neither"):
        define_tool(name="x", description="X.", input=Empty, execute=wants)


def test_an_input_model_without_schema_can_not_be_a_tool() -> None:
    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        it: ToolContext

    with pytest.raises(ToolDefinitionError, match="no JSON Schema"):
        define_tool(name="x", description="X.", input=Odd, execute=lambda _: 1)  # pyright: ignore


async def test_a_model_that_says_itself_what_to_do_with_more_names_is_left_alone() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        a: int = 1

    class Ignoring(BaseModel):
        model_config = ConfigDict(extra="ignore")
        a: int = 1

    def dump(input: BaseModel) -> Any:
        return input

    one = define_tool(name="x", description="X.", input=Open, execute=dump)
    assert await text_of(one, {"b": 2}) == '{"a":1,"b":2}'
    assert one.definition.parameters["additionalProperties"] is True
    two = define_tool(name="x", description="X.", input=Ignoring, execute=dump)
    assert await text_of(two, {"b": 2}) == '{"a":1}'
    assert "additionalProperties" not in two.definition.parameters


def test_a_signature_that_can_not_be_a_tool_tells_all_its_faults() -> None:
    def wrong(bare, where: ToolDefinitionError, first: int, /, *many: int, _hidden: int, **named: Any) -> None: ...  # pyright: ignore

    def wrong2(bare, where: ToolDefinitionError, größe: int, *many: int, _hidden: int, **named: Any) -> None:  # pyright: ignore
        """Does things.

        Args:
            nobody: Is not there.
        """

    assert "`first` is positional-only" in " ".join(faults_of(wrong, description="x"))
    faults = faults_of(wrong2, name="0wrong")
    told = "; ".join(faults)
    assert len(faults) == 8, faults
    for words in (
        "name '0wrong'",
        "`bare` has no type annotation",
        "`where`: its type has no JSON Schema",
        "`größe`: providers accept only",
        "`*many`",
        "`_hidden`: this name is reserved",
        "`**named`",
        "the docstring describes `nobody`, which is not a parameter",
    ):
        assert words in told


def test_a_tool_without_words_is_refused() -> None:
    def silent(a: int) -> int:
        return a

    assert faults_of(silent) == ["no description; write a docstring that tells the model when to use it"]


def test_a_generator_is_no_tool() -> None:
    def counts() -> Iterator[int]:
        """Counts."""
        yield 1

    async def counts_later() -> AsyncIterator[int]:
        """Counts."""
        yield 1

    assert faults_of(counts) == faults_of(counts_later) == ["it is a generator; a tool must return one value"]


def test_an_annotation_that_names_nothing_is_told_with_its_parameter() -> None:
    def lost(a: Nowhere, b: int) -> None:  # pyright: ignore  # noqa: F821
        """Lost."""

    assert faults_of(lost) == ["`a`: its annotation can't be evaluated (name 'Nowhere' is not defined)"]


def test_a_return_type_only_the_type_checker_knows_is_no_fault() -> None:
    def price(a: int) -> Fraction:  # imported for type checking only
        """Gives a price."""
        raise NotImplementedError

    assert tool(price).name == "price"


def test_an_annotation_may_use_names_of_the_function_around_it() -> None:
    class Local(BaseModel):
        a: int

    def outer() -> Tool:
        class Inner(Enum):
            x = "x"
            y = "y"

        @tool
        def nested(local: Local, inner: Inner) -> str:
            """Nested."""
            return f"{local} {inner}"

        return nested

    properties = outer().definition.parameters["properties"]
    assert properties["inner"] == {"type": "string", "enum": ["x", "y"]}
    assert properties["local"]["properties"] == {"a": {"type": "integer"}}


def test_a_local_name_wins_over_a_global_one_of_the_same_name() -> None:
    class Decimal(Enum):  # the module has another one
        only = "local"

    @tool
    def shadowed(a: Decimal) -> None:
        """Takes a local type."""

    assert shadowed.definition.parameters["properties"]["a"] == {"type": "string", "enum": [Decimal.only.value]}


def test_names_of_unrelated_running_functions_are_not_taken() -> None:
    def bystander() -> list[str]:
        Stranger = int
        assert Stranger
        return defined_elsewhere()

    def defined_elsewhere() -> list[str]:
        def odd(a: Stranger) -> None:  # pyright: ignore  # noqa: F821
            """Odd."""

        return faults_of(odd)

    assert "can't be evaluated" in bystander()[0]


def test_descriptions_in_field_win_over_the_docstring() -> None:
    @tool
    def both(a: Annotated[int, Field(description="From the field.")], b: int = Field(3, ge=1)) -> None:
        """Both.

        Args:
            a: From the docstring.
            b: Only here.
        """

    properties = both.definition.parameters["properties"]
    assert properties["a"]["description"] == "From the field."
    assert properties["b"] == {"type": "integer", "description": "Only here.", "default": 3, "minimum": 1}
    assert both.definition.parameters["required"] == ["a"]


async def test_constraints_are_in_the_schema_and_are_held() -> None:
    @tool
    def held(n: Annotated[int, Field(ge=1, le=3)], s: Annotated[str, Field(pattern="^a", max_length=2)] = "a") -> str:
        """Held."""
        return f"{n}{s}"

    assert held.definition.parameters["properties"] == {
        "n": {"type": "integer", "minimum": 1, "maximum": 3},
        "s": {"type": "string", "default": "a", "maxLength": 2, "pattern": "^a"},
    }
    with pytest.raises(InvalidArgument) as caught:
        await held.execute_raw('{"n": 4, "s": "abc"}', ToolContext())
    assert "`n`: must be from 1 to 3, not 4" in caught.value.message
    assert "`s`: must have at most 2 characters" in caught.value.message


async def test_a_tool_may_hide_what_is_least_but_never_what_is_most() -> None:
    @tool(hides_minima=True)
    def held(n: Annotated[int, Field(ge=1, le=3)], m: Annotated[int, Field(ge=2)] = 2) -> str:
        """Held."""
        return f"{n}{m}"

    assert held.definition.parameters["properties"] == {
        "n": {"type": "integer", "maximum": 3},
        "m": {"type": "integer", "default": 2},
    }
    with pytest.raises(InvalidArgument) as caught:
        await held.execute_raw('{"n": 0, "m": 1}', ToolContext())
    assert caught.value.message == "2 problems: `n`: must be from 1 to 3, not 0; `m`: must be at least 2, not 1"


async def test_a_range_is_told_whole_also_inside_a_list() -> None:
    class Step(BaseModel):
        rank: Annotated[int | None, Field(ge=1, le=5)] = None

    @tool
    def steps(items: list[Step]) -> str:
        """Steps."""
        return str(len(items))

    with pytest.raises(InvalidArgument) as caught:
        await steps.execute_raw('{"items": [{"rank": 9}]}', ToolContext())
    assert caught.value.message == "`items[0].rank`: must be from 1 to 5, not 9"


async def test_an_argument_that_is_not_shown_is_accepted_and_never_offered() -> None:
    @tool
    def act(count: int = 1, max_output: int = 2) -> str:
        """Acts."""
        return f"{count} {max_output}"

    short = act.without("max_output")
    assert await short.execute_raw('{"max_output": 5}', ToolContext()) == TextResult("1 5")
    for one, offered in ((act, "did you mean `max_output`?"), (short, "use one of count")):
        with pytest.raises(InvalidArgument) as caught:
            await one.execute_raw('{"maxoutput": 5}', ToolContext())
        assert caught.value.message == f"`maxoutput`: no such argument, {offered}"


async def test_an_argument_may_have_a_name_python_has_not() -> None:
    @tool
    def grep(
        numbers: Annotated[bool, Field(alias="-n")] = True, json: int = 1, copy: int = 2, schema: int = 3
    ) -> str:
        """Greps."""
        return f"{numbers} {json} {copy} {schema}"

    assert list(grep.definition.parameters["properties"]) == ["-n", "json", "copy", "schema"]
    assert await text_of(grep, {"-n": False, "json": 7}) == "False 7 2 3"
    with pytest.raises(InvalidArgument, match="`numbers`: no such argument"):
        await grep.execute_raw({"numbers": False}, ToolContext())


async def test_a_method_a_partial_an_object_and_a_wrapped_function_can_be_tools() -> None:
    class Desk:
        def __init__(self, word: str) -> None:
            self.word = word

        def say(self, n: int) -> str:
            """Says."""
            return self.word * n

        async def __call__(self, n: int) -> str:
            """Says too."""
            return self.word * n

    def loud(function: Any) -> Any:
        @wraps(function)
        async def louder(**named: Any) -> str:
            return str(function(**named)).upper()

        return louder

    def times(n: int, word: str) -> str:
        """Times."""
        return word * n

    desk = Desk("a")
    assert await text_of(tool(desk.say), {"n": 2}) == "aa"
    assert await text_of(tool(name="desk", description="Says.")(desk), {"n": 2}) == "aa"
    assert await text_of(tool(loud(times)), {"n": 2, "word": "b"}) == "BB"
    assert "name ''" in faults_of(desk, description="x")[0]


async def test_what_a_sync_function_returns_is_awaited_if_it_can_be() -> None:
    async def later(n: int) -> str:
        return "later" * n

    @tool
    def starts(n: int) -> Any:
        """Starts."""
        return later(n)

    assert await text_of(starts, {"n": 1}) == "later"


async def test_parameters_given_by_hand_are_shown_word_for_word_and_unknown_arguments_still_refused() -> None:
    given = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}, "required": ["a"]}

    @tool(parameters=given)
    def by_hand(a: int) -> str:
        """By hand."""
        return str(a)

    assert by_hand.definition.parameters is given
    assert await text_of(by_hand, {"a": 1}) == "1"
    with pytest.raises(InvalidArgument, match="`b`: no such argument"):
        await by_hand.execute_raw({"a": 1, "b": 2}, ToolContext())


def test_parameters_given_by_hand_must_be_of_the_same_arguments() -> None:
    def by_hand(a: int) -> str:
        """By hand."""
        return str(a)

    assert faults_of(by_hand, parameters={"properties": {"b": {}}}) == [
        "parameters= has `b`, which is not an argument",
        "argument `a` is missing in parameters=",
        'parameters= must have "type": "object"',
    ]


def test_a_subject_must_be_an_argument() -> None:
    def reads(path: str) -> str:
        """Reads."""
        return path

    assert tool(subject="path")(reads).traits.subject == "path"
    assert faults_of(reads, subject="paht") == ["subject `paht` is not one of its arguments"]


def test_an_output_schema_is_that_of_the_return_type_which_must_be_an_object() -> None:
    class Answer(BaseModel):
        n: int
        more: str | None = None

    def good() -> Answer:
        """Good."""
        raise NotImplementedError

    def text() -> str:
        """Text."""
        return ""

    def untyped():  # pyright: ignore
        """Untyped."""

    shape = tool(output_schema=True)(good).traits.output_schema
    assert shape is not None
    assert shape["type"] == "object"
    assert shape["properties"]["more"] == {"type": ["string", "null"], "default": None}
    assert "a JSON object" in faults_of(text, output_schema=True)[0]
    assert "needs a return annotation" in faults_of(untyped, output_schema=True)[0]
    assert tool(good).traits.output_schema is None


def test_a_tool_can_be_bound_and_described_anew_without_changing_the_first() -> None:
    other = greet.describe("Greets.").bind({"db": lambda: 1})
    assert (other.description, greet.description) == ("Greets.", "Greets somebody.")
    assert "db" not in greet.bound
    assert {greet: 1, other: 2}[greet] == 1
