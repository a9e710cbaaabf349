"""Dependency injection: made when needed, replaced by id, closed in reverse, never in the model's hands."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Annotated, Any

import anyio
import pytest

from gripfast.call.run import Session
from gripfast.errors import InvalidArgument, NotFound, ToolError
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import Tool, ToolDefinitionError, tool
from gripfast.framework.depends import DependencyKey, Depends
from gripfast.messages import JsonResult, TextResult

pytestmark = pytest.mark.anyio


class Log(list[str]):
    """What happened, in order."""


async def run(one: Tool, arguments: Any = None, **words: Any) -> str:
    result = await one.execute_raw(arguments, ToolContext(**words))
    assert isinstance(result, (TextResult, JsonResult))
    return result.text


def plain() -> str:
    return "plain"


async def later() -> str:
    await anyio.sleep(0)
    return "later"


def generated() -> Generator[str]:
    yield "generated"


async def generated_later() -> AsyncGenerator[str]:
    yield "generated later"


@contextmanager
def managed() -> Generator[str]:
    yield "managed"


@asynccontextmanager
async def managed_later() -> AsyncGenerator[str]:
    yield "managed later"


def returns_manager() -> Any:
    return managed()


async def returns_manager_later() -> Any:
    return managed_later()


class Connection:
    def __enter__(self) -> str:
        return "entered"

    def __exit__(self, *_: object) -> None: ...


class Session2:
    async def __aenter__(self) -> str:
        return "entered later"

    async def __aexit__(self, *_: object) -> None: ...


class Factory:
    def __call__(self) -> str:
        return "called"


@pytest.mark.parametrize(
    ("create", "value"),
    [
        (plain, "plain"),
        (later, "later"),
        (generated, "generated"),
        (generated_later, "generated later"),
        (managed, "managed"),
        (managed_later, "managed later"),
        (partial(managed), "managed"),
        (returns_manager, "managed"),
        (returns_manager_later, "managed later"),
        (Connection, "entered"),
        (Session2, "entered later"),
        (Factory(), "called"),
        (partial(plain), "plain"),
        (str, ""),
        (lambda: "lambda", "lambda"),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__) if callable(value) else "",
)
async def test_a_dependency_may_be_made_in_any_way(create: Any, value: str) -> None:
    key = DependencyKey("it", create)

    @tool
    async def gets(it: Annotated[str, Depends(key)]) -> str:
        """Gets it."""
        return it

    @tool
    def gets_too(it: Annotated[str, Depends(create)]) -> str:
        """Gets it by its factory."""
        return it

    assert await run(gets) == await run(gets_too) == value


async def test_what_a_plain_function_returns_is_not_entered() -> None:
    lock = threading.Lock()

    @tool
    async def holds(it: Annotated[Any, Depends(lambda: lock)]) -> str:
        """Holds a lock."""
        return str(it.locked())

    assert await run(holds) == "False"


def traced(log: Log) -> tuple[DependencyKey[str], DependencyKey[str]]:
    """A dependency that needs another; both write down when they open and close, and why."""

    def under() -> Generator[str]:
        log.append("open under")
        try:
            yield "under"
        except BaseException as error:
            log.append(f"under saw {type(error).__name__}")
            raise
        finally:
            log.append("close under")

    UNDER = DependencyKey("under", under)

    async def over(it: Annotated[str, Depends(UNDER)]) -> AsyncGenerator[str]:
        log.append("open over")
        try:
            yield f"over {it}"
        finally:
            await anyio.sleep(0)
            log.append("close over")

    return UNDER, DependencyKey("over", over)


async def test_dependencies_need_each_other_and_are_closed_in_reverse_once() -> None:
    log = Log()
    UNDER, OVER = traced(log)

    @tool
    async def uses(one: Annotated[str, Depends(OVER)], two: Annotated[str, Depends(UNDER)]) -> str:
        """Uses both."""
        log.append("run")
        return f"{one}, {two}"

    assert await run(uses) == "over under, under"
    assert log == ["open under", "open over", "run", "close over", "close under"]


async def test_they_are_closed_in_reverse_when_the_tool_fails_and_see_why() -> None:
    log = Log()
    UNDER, OVER = traced(log)

    @tool
    def fails(one: Annotated[str, Depends(OVER)], two: Annotated[str, Depends(UNDER)]) -> str:
        """Fails."""
        raise NotFound("no such thing")

    with pytest.raises(NotFound):
        await run(fails)
    assert log == ["open under", "open over", "close over", "under saw NotFound", "close under"]


async def test_they_are_closed_in_reverse_when_the_call_is_cancelled_also_if_that_takes_awaiting() -> None:
    log = Log()
    _, OVER = traced(log)
    started = anyio.Event()

    @tool
    async def waits(one: Annotated[str, Depends(OVER)]) -> str:
        """Waits."""
        started.set()
        await anyio.sleep_forever()
        return one

    async with anyio.create_task_group() as group:
        group.start_soon(run, waits)
        await started.wait()
        group.cancel_scope.cancel()
    assert log == ["open under", "open over", "close over", "under saw CancelledError", "close under"]


async def test_what_closes_after_a_cancelled_call_can_tell() -> None:
    seen: list[bool] = []
    started = anyio.Event()

    def watches(ctx: ToolContext) -> Generator[str]:
        seen.append(ctx.cancelled)
        try:
            yield "x"
        finally:
            seen.append(ctx.cancelled)

    @tool
    async def waits(it: Annotated[str, Depends(watches)]) -> str:
        """Waits."""
        started.set()
        await anyio.sleep_forever()
        return it

    async with anyio.create_task_group() as group:
        group.start_soon(run, waits)
        await started.wait()
        group.cancel_scope.cancel()
    assert seen == [False, True]


async def test_what_was_opened_is_closed_when_a_later_dependency_fails() -> None:
    log = Log()
    UNDER, _ = traced(log)

    def broken() -> str:
        raise NotFound("no database")

    @tool
    async def uses(one: Annotated[str, Depends(UNDER)], two: Annotated[str, Depends(broken)]) -> str:
        """Uses both."""
        raise AssertionError

    with pytest.raises(NotFound, match="no database"):
        await run(uses)
    assert log == ["open under", "under saw NotFound", "close under"]


async def test_a_generator_that_swallows_the_error_does_not_hide_it() -> None:
    def swallows() -> Generator[str]:
        with suppress(NotFound):
            yield "x"

    @tool
    async def fails(it: Annotated[str, Depends(swallows)]) -> str:
        """Fails."""
        raise NotFound("gone")

    with pytest.raises(NotFound, match="gone"):
        await run(fails)


async def test_a_failure_to_close_is_a_failure_of_the_call() -> None:
    def commits() -> Generator[str]:
        yield "x"
        raise OSError("disk full: /secret/path")

    @tool
    async def writes(it: Annotated[str, Depends(commits)]) -> str:
        """Writes."""
        return it

    with pytest.raises(ToolError) as caught:
        await run(writes)
    assert caught.value.code == "INTERNAL"
    assert "/secret" not in caught.value.message


async def test_one_value_a_call_and_another_for_the_next_call_with_the_same_context() -> None:
    count = iter(range(10))
    log = Log()

    def number() -> Generator[int]:
        n = next(count)
        yield n
        log.append(f"closed {n}")

    KEY = DependencyKey("n", number)

    def needs(n: Annotated[int, Depends(KEY)]) -> int:
        return n

    @tool
    async def same(a: Annotated[int, Depends(KEY)], b: Annotated[int, Depends(needs)], ctx: ToolContext) -> list[int]:
        """All the same."""
        assert log == [f"closed {n}" for n in range(a)]
        return [a, b, await ctx.resolve(KEY), ctx.deps["n"]]

    ctx = ToolContext()
    for n in range(3):
        result = await same.execute_raw("{}", ctx)
        assert isinstance(result, JsonResult)
        assert result.value == [n] * 4
    assert ctx.deps == {}


async def test_calls_at_the_same_time_with_one_context_have_their_own_values() -> None:
    count = iter(range(10))
    KEY = DependencyKey("n", lambda: next(count))
    both = anyio.Event()
    seen: list[int] = []

    @tool
    async def meets(n: Annotated[int, Depends(KEY)], ctx: ToolContext) -> list[int]:
        """Meets the other."""
        seen.append(n)
        if len(seen) == 2:
            both.set()
        await both.wait()
        return [n, await ctx.resolve(KEY), ctx.deps["n"]]

    ctx, answers = ToolContext(), list[Any]()

    async def one() -> None:
        answers.append(await meets.execute_raw("{}", ctx))

    async with anyio.create_task_group() as group:
        group.start_soon(one)
        group.start_soon(one)
    assert sorted(answer.value for answer in answers) == [[0, 0, 0], [1, 1, 1]]


async def test_asked_for_at_the_same_time_it_is_made_once() -> None:
    made: list[int] = []

    async def slow() -> int:
        made.append(1)
        await anyio.sleep(0.01)
        return len(made)

    KEY = DependencyKey("slow", slow, scope="session")

    @tool
    async def uses(n: Annotated[int, Depends(KEY)]) -> int:
        """Uses it."""
        return n

    async with Session([uses]) as session:
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(session.call, "uses")
        assert (await session.call("uses")).content == "1"
    assert made == [1]


async def test_a_failed_making_is_tried_again_by_whoever_asks_next() -> None:
    made: list[int] = []

    async def flaky() -> int:
        made.append(1)
        await anyio.sleep(0)
        if len(made) == 1:
            raise NotFound("not yet")
        return len(made)

    KEY = DependencyKey("flaky", flaky, scope="session")

    @tool
    async def uses(n: Annotated[int, Depends(KEY)]) -> int:
        """Uses it."""
        return n

    contents: list[Any] = []
    async with Session([uses]) as session:

        async def call() -> None:
            contents.append((await session.call("uses")).content)

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            group.start_soon(call)
    assert sorted(contents) == ["2", "Error executing tool: NOT_FOUND: not yet"]


async def test_a_session_dependency_lives_for_the_session() -> None:
    log = Log()

    def opened() -> Generator[str]:
        log.append("open")
        yield "it"
        log.append("close")

    KEY = DependencyKey("it", opened, scope="session")

    @tool
    async def uses(it: Annotated[str, Depends(KEY)]) -> str:
        """Uses it."""
        return it

    async with Session([uses]) as session:
        await session.call("uses")
        await session.call("uses")
        assert log == ["open"]
    assert log == ["open", "close"]
    message = await session.call("uses")
    assert message.content == "Error executing tool: INTERNAL: the session is closed; open a new one"
    assert log == ["open", "close"]


async def test_without_a_session_a_session_dependency_lives_for_the_call() -> None:
    log = Log()

    def opened() -> Generator[str]:
        log.append("open")
        yield "it"
        log.append("close")

    @tool
    async def uses(it: Annotated[str, Depends(DependencyKey("it", opened, scope="session"))]) -> str:
        """Uses it."""
        return it

    await run(uses)
    assert log == ["open", "close"]


DB = DependencyKey("db", lambda: "real")


def through(db: Annotated[str, Depends(DB)]) -> str:
    return f"through {db}"


@tool
async def queries(ctx: ToolContext, db: Annotated[str, Depends(DB)], deep: Annotated[str, Depends(through)]) -> str:
    """Queries."""
    return f"{db}, {deep}, {await ctx.resolve(DB)}"


async def test_overrides_replace_by_id_in_everything_that_runs() -> None:
    assert await run(queries) == "real, through real, real"
    assert await run(queries, overrides={"db": lambda: "fake"}) == "fake, through fake, fake"
    assert await run(queries, overrides={"through": lambda: "short"}) == "real, short, real"
    async with Session([queries], overrides={"db": lambda: "fake"}) as session:
        assert (await session.call("queries")).content == "fake, through fake, fake"


async def test_an_override_may_be_anything_a_create_may_be() -> None:
    log = Log()

    async def fake(ctx: ToolContext) -> AsyncGenerator[str]:
        yield type(ctx).__name__
        log.append("closed")

    assert await run(queries, overrides={"db": fake}) == "ToolContext, through ToolContext, ToolContext"
    assert log == ["closed"]


async def test_ready_values_are_given_by_deps_and_come_first() -> None:
    given = {"db": "given"}
    assert await run(queries, deps=given, overrides={"db": lambda: "x"}) == "given, through given, given"
    assert given == {"db": "given"}


async def test_a_bound_tool_uses_what_it_was_given_unless_overridden() -> None:
    bound = queries.bind({"db": lambda: "bound"})
    assert await run(bound) == "bound, through bound, bound"
    assert await run(bound, overrides={"db": lambda: "fake"}) == "fake, through fake, fake"
    assert await run(queries) == "real, through real, real"


def test_an_override_that_can_not_be_called_is_refused_at_once() -> None:
    def wants(path: str) -> str:
        return path

    with pytest.raises(
        TypeError, match="override `db` must be a callable, not str; to pass a ready value, use deps="
    ):
        ToolContext(overrides={"db": "value"})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="override `db` can't be called: parameter `path` has no default"):
        Session([queries], overrides={"db": wants})


async def test_an_override_that_needs_itself_fails_the_call_and_does_not_hang() -> None:
    def again(db: Annotated[str, Depends(DB)]) -> str:
        return db

    with anyio.fail_after(20), pytest.raises(ToolError, match="INTERNAL"):
        await run(queries, overrides={"db": again})


def test_a_cycle_is_an_error_when_the_tool_is_defined() -> None:
    def first(x: Annotated[int, Depends(lambda: None)]) -> int:
        return x

    def second(x: Annotated[int, Depends(first)]) -> int:
        return x

    first.__annotations__["x"] = Annotated[int, Depends(second)]

    def turns(x: Annotated[int, Depends(first)], y: Annotated[int, Depends(second)]) -> int:
        """Turns."""
        return x + y

    with pytest.raises(ToolDefinitionError, match="dependency cycle: first -> second -> first"):
        tool(turns)


def test_what_a_dependency_can_not_get_is_an_error_when_the_tool_is_defined() -> None:
    def wants(path: str, other: int = 1, *more: int) -> str:
        return path

    def lost(it: Nowhere) -> str:  # pyright: ignore  # noqa: F821
        return ""

    ONE = DependencyKey("one", lambda: 1)

    def holds(one: Annotated[int, Depends(ONE)]) -> int:
        return one

    def uses(
        a: Annotated[str, Depends(wants)],
        b: Annotated[str, Depends(lost)],  # pyright: ignore[reportUnknownArgumentType]
        c: Annotated[int, Depends(DependencyKey("long", holds, scope="session"))],
    ) -> str:
        """Uses."""
        return a

    with pytest.raises(ToolDefinitionError) as caught:
        tool(uses)
    assert caught.value.faults == [
        "dependency `wants`: parameter `path` has no default and no Depends",
        "dependency `lost`: parameter `it`: name 'Nowhere' is not defined",
        "dependency `long` lives for the session but needs `one`, which lives for one call",
    ]


def test_depends_written_where_nothing_would_be_injected_is_an_error() -> None:
    def by_default(a: str = Depends(DB)) -> str:  # type: ignore[assignment]
        """Like another framework."""
        return a

    def inside(a: Annotated[str, Depends(DB)] | None) -> str:
        """Inside a union."""
        return a or ""

    for function in (by_default, inside):
        with pytest.raises(ToolDefinitionError, match=r"`a`: write it as Annotated\[<type>, Depends"):
            tool(function)


async def test_the_model_can_not_set_an_injected_parameter() -> None:
    assert queries.definition.parameters["properties"] == {}
    for name in ("db", "ctx", "deep", "self", "injected"):
        with pytest.raises(InvalidArgument, match=f"`{name}`: no such argument"):
            await run(queries, {name: "mine"})


async def test_resolving_works_only_while_the_tool_runs() -> None:
    kept: list[ToolContext] = []

    @tool
    async def keeps(ctx: ToolContext) -> str:
        """Keeps its context."""
        kept.append(ctx)
        return "kept"

    await run(keeps)
    with pytest.raises(RuntimeError, match="`db` was requested after the call had ended"):
        await kept[0].resolve(DB)
    with pytest.raises(RuntimeError, match="while a tool runs"):
        await ToolContext().resolve(DB)


async def test_a_sync_tool_resolves_from_its_thread() -> None:
    @tool
    def resolves(ctx: ToolContext) -> str:
        """Resolves."""
        return anyio.from_thread.run(ctx.resolve, DB)

    assert await run(resolves) == "real"


async def test_factories_of_a_session_that_is_gone_are_forgotten() -> None:
    class Big:
        pass

    async def session_with(big: Big) -> None:
        async with Session([queries], overrides={"db": lambda: f"{type(big).__name__}"}) as session:
            assert (await session.call("queries")).content == "Big, through Big, Big"

    big = Big()
    gone = weakref.ref(big)
    await session_with(big)
    del big
    gc.collect()
    assert gone() is None
