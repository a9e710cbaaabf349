"""A running tool: its context, its thread, its cancellation, and whatever it raises."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
import time
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from gripfast.call.run import Session
from gripfast.errors import Cancelled, Conflict, Internal, NotFound, ToolError
from gripfast.framework import definition
from gripfast.framework.context import LOGGER, Progress, ToolContext
from gripfast.framework.definition import Tool, tool
from gripfast.messages import TextResult

pytestmark = pytest.mark.anyio


async def run(one: Tool, ctx: ToolContext | None = None) -> Any:
    result = await one.execute_raw("{}", ctx or ToolContext())
    assert isinstance(result, TextResult)
    return result.text


async def test_every_field_of_a_context_is_optional() -> None:
    ctx = ToolContext()
    assert ctx.cancelled is False
    assert ctx.logger is LOGGER
    assert ctx.deps == {}
    assert ctx.now().tzinfo is UTC
    assert await ctx.report_progress(1) is None


async def test_a_tool_gets_the_clock_the_logger_and_the_deps_of_its_context() -> None:
    logger, moment = logging.getLogger("mine"), datetime(2024, 2, 29, tzinfo=UTC)
    seen: list[Any] = []

    @tool
    async def looks(ctx: ToolContext) -> str:
        """Looks."""
        seen.extend([ctx.logger, ctx.now(), ctx.deps, ctx.cancelled])
        return ""

    await run(looks, ToolContext(logger=logger, now=lambda: moment, deps={"a": 1}))
    assert seen == [logger, moment, {"a": 1}, False]


async def test_progress_is_told_in_order_on_the_loop_also_from_a_thread_and_before_the_answer() -> None:
    told: list[tuple[Progress, bool]] = []
    here = threading.get_ident()

    def listen(progress: Progress) -> None:
        told.append((progress, threading.get_ident() == here))

    @tool
    def counts(ctx: ToolContext) -> str:
        """Counts."""
        for n in range(3):
            ctx.report_progress(n, 3, f"step {n}")
        return "done"

    @tool
    async def counts_too(ctx: ToolContext) -> str:
        """Counts."""
        for n in range(3):
            await ctx.report_progress(n, 3, f"step {n}")
        return "done"

    expected = [(Progress(n, 3, f"step {n}"), True) for n in range(3)]
    async with Session([counts, counts_too]) as session:
        for name in ("counts", "counts_too"):
            assert (await session.call(name, progress=listen)).content == "done"
            assert told == expected
            told.clear()
    await run(counts, ToolContext(progress=listen))
    assert told == expected


async def test_a_sync_tool_runs_in_a_worker_thread_and_an_async_one_on_the_loop() -> None:
    threads: dict[str, int] = {}

    @tool
    def beside() -> str:
        """Beside."""
        threads["beside"] = threading.get_ident()
        return ""

    @tool
    async def here() -> str:
        """Here."""
        threads["here"] = threading.get_ident()
        return ""

    await run(beside)
    await run(here)
    assert threads["here"] == threading.get_ident() != threads["beside"]


async def test_a_hundred_slow_sync_tools_do_not_keep_another_call_waiting() -> None:
    release = threading.Event()
    waiting = threading.Semaphore(0)

    @tool
    def slow() -> str:
        """Waits."""
        waiting.release()
        assert release.wait(60)
        return "slow"

    @tool
    def quick() -> str:
        """Does not."""
        return "quick"

    @tool
    async def quick_too() -> str:
        """Does not."""
        return "quick"

    answers: list[Any] = []
    async with Session([slow, quick, quick_too]) as session:

        async def one() -> None:
            answers.append((await session.call("slow")).content)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(one)
                for _ in range(100):
                    while not waiting.acquire(blocking=False):
                        await anyio.sleep(0.001)
                try:
                    assert (await session.call("quick")).content == "quick"
                    assert (await session.call("quick_too")).content == "quick"
                    assert answers == []
                finally:
                    release.set()
    assert answers == ["slow"] * 100


async def test_cancelling_reaches_an_async_tool_at_its_next_await() -> None:
    seen: list[Any] = []
    started = anyio.Event()

    @tool
    async def waits(ctx: ToolContext) -> str:
        """Waits."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("stopped")
        return ""

    async with anyio.create_task_group() as group:
        group.start_soon(run, waits)
        await started.wait()
        group.cancel_scope.cancel()
    assert seen == ["stopped"]


@pytest.mark.parametrize("native", [True, False])
async def test_cancelling_tells_a_sync_tool_which_is_waited_for_while_it_stops(native: bool) -> None:
    seen: list[str] = []
    started = threading.Event()

    @tool
    def loops(ctx: ToolContext) -> str:
        """Loops."""
        started.set()
        for _ in range(6000):
            if ctx.cancelled:
                seen.append("noticed")
                ctx.check_cancelled()
            time.sleep(0.01)
        raise AssertionError

    async def call() -> None:
        try:
            await run(loops)
        finally:
            seen.append("ended")

    async def until_started() -> None:
        while not started.is_set():
            await anyio.sleep(0.001)

    with anyio.fail_after(60):
        if native:
            task = asyncio.create_task(call())
            await until_started()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await until_started()
                group.cancel_scope.cancel()
    assert seen == ["noticed", "ended"]


async def test_a_sync_tool_that_does_not_notice_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition, "GRACE_SECONDS", 0.05)
    started, release = threading.Event(), threading.Event()

    @tool
    def deaf() -> str:
        """Does not listen."""
        started.set()
        release.wait(60)
        return ""

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(run, deaf)
            while not started.is_set():
                await anyio.sleep(0.001)
            group.cancel_scope.cancel()
    release.set()


async def test_a_call_cancelled_before_its_thread_runs_does_not_run_and_is_not_waited_for() -> None:
    ran: list[int] = []

    @tool
    def never() -> str:
        """Never runs."""
        ran.append(1)
        return ""

    began = anyio.current_time()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await run(never)
    assert scope.cancelled_caught
    assert ran == []
    assert anyio.current_time() - began < definition.GRACE_SECONDS


async def test_cancelling_a_context_tells_every_call_that_runs_in_it() -> None:
    ctx = ToolContext()

    @tool
    async def looks(ctx: ToolContext) -> str:
        """Looks."""
        return str(ctx.cancelled)

    assert await run(looks, ctx) == "False"
    ctx.cancel()
    assert await run(looks, ctx) == "True"


async def test_cancelling_one_call_does_not_tell_another_in_the_same_context() -> None:
    ctx, started = ToolContext(), anyio.Event()

    @tool
    async def waits(ctx: ToolContext) -> str:
        """Waits."""
        started.set()
        await anyio.sleep_forever()
        return ""

    async with anyio.create_task_group() as group:
        group.start_soon(run, waits, ctx)
        await started.wait()
        group.cancel_scope.cancel()
    assert ctx.cancelled is False


class Stop(BaseException):
    """Neither an Exception nor meant to be."""


class Sly(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even my text fails")


async def cancels_its_own_work() -> None:
    task = asyncio.get_running_loop().create_task(asyncio.sleep(60))
    task.cancel()
    await task


def raising(error: BaseException) -> Tool:
    @tool(name="raises")
    async def raises() -> str:
        """Raises."""
        raise error

    return raises


@pytest.mark.parametrize(
    "error",
    [
        ValueError("/home/me/secret.txt"),
        FileNotFoundError(2, "No such file", "/home/me/secret.txt"),
        KeyError("secret"),
        SystemExit(3),
        Stop("secret"),
        Sly(),
        ExceptionGroup("secret", [ValueError("secret")]),
        ExceptionGroup("secret", [NotFound("an answer"), ValueError("secret")]),
        BaseExceptionGroup("secret", [Stop("secret")]),
        StopIteration("secret"),
        StopAsyncIteration("secret"),
        RecursionError("secret"),
        MemoryError("secret"),
        TimeoutError("secret"),
        UnicodeDecodeError("utf-8", b"secret", 0, 1, "secret"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_whatever_a_tool_raises_is_internal_logged_whole_and_told_without_a_word_of_it(
    error: BaseException, sync: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def raises_in_thread() -> str:
        """Raises."""
        raise error

    one = tool(raises_in_thread) if sync else raising(error)
    with pytest.raises(ToolError) as caught:
        await run(one)
    assert caught.value.code == "INTERNAL"
    assert "secret" not in caught.value.message
    assert "Traceback" not in caught.value.message
    assert caught.value.message.endswith("the log has the traceback")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is not None


async def test_a_tool_error_is_its_answer_and_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Conflict, match="changed") as caught:
        await run(raising(Conflict("changed", details={"path": "a"})))
    assert caught.value.details == {"path": "a"}
    assert caplog.records == []


async def test_answers_of_tasks_inside_a_tool_are_answers() -> None:
    async def fails() -> None:
        raise NotFound("no such file")

    @tool
    async def spreads() -> str:
        """Starts tasks."""
        async with anyio.create_task_group() as group:
            group.start_soon(fails)
        return ""

    with pytest.raises(NotFound, match="no such file"):
        await run(spreads)


async def test_the_cancellation_of_something_a_tool_waits_for_is_an_error_of_that_call() -> None:
    @tool
    async def waits() -> str:
        """Waits for a task that is cancelled."""
        await cancels_its_own_work()
        return ""

    with pytest.raises(Cancelled, match="`waits` waited for something that was cancelled"):
        await run(waits)


async def test_a_tool_that_limits_its_own_time_is_not_cancelled() -> None:
    @tool
    async def limits() -> str:
        """Limits itself."""
        with anyio.move_on_after(0.001):
            await anyio.sleep_forever()
        return "in time"

    assert await run(limits) == "in time"


async def test_a_keyboard_interrupt_is_the_users_and_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        await run(raising(KeyboardInterrupt()))


async def test_a_value_that_json_can_not_hold_is_an_error_that_names_its_type(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool
    async def gives() -> Any:
        """Gives an object."""
        return {"a": object()}

    with pytest.raises(Internal, match=r"`gives` returned a value that is not JSON \(dict\); the log"):
        await run(gives)
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (MemoryError(), "there is not enough memory"),
        (RuntimeError("can't start new thread"), "no more threads can be started"),
        (OSError(errno.EMFILE, "x"), "this process has as many files open as it may"),
        (OSError(errno.EAGAIN, "x"), "no more processes can be started"),
    ],
    ids=["memory", "threads", "files", "processes"],
)
async def test_a_shortage_is_told_and_may_be_tried_again(fault: Exception, words: str) -> None:
    with pytest.raises(Internal, match=words) as caught:
        await run(raising(fault))
    assert caught.value.retriable
