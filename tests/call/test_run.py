"""One call from door to door: found, validated, run, answered; nothing a call does breaks another one."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Annotated, Any

import anyio
import pytest

from gripfast.call.run import Session, run_call
from gripfast.errors import NotFound, PolicyDenied, ToolError
from gripfast.framework.definition import tool
from gripfast.framework.depends import DependencyKey, Depends
from gripfast.messages import ImagePart, TextPart, ToolCall

pytestmark = pytest.mark.anyio


@tool
async def echo(text: str = "", times: int = 1) -> str:
    """Says it again."""
    return text * times


@tool(name="Read")
def read(file_path: str) -> str:
    """Reads."""
    raise NotFound(f"no file {file_path}; did you mean a.txt?", details={"near": ["a.txt"]})


@tool
async def picture() -> list[Any]:
    """Shows."""
    return [TextPart("a picture"), ImagePart(b"\x89PNG", "image/png")]


@tool
async def table() -> dict[str, Any]:
    """Gives JSON."""
    return {"zeta": 1, "alpha": "é"}


@tool(ends=True)
async def finish(fail: bool = False) -> str:
    """Ends."""
    if fail:
        raise NotFound("not yet")
    return "finished"


@tool
async def breaks() -> str:
    """Breaks."""
    raise ZeroDivisionError("/home/me")


def session(**words: Any) -> Session:
    return Session([echo, read, picture, table, finish, breaks], **words)


async def test_an_answer_names_its_call_and_its_tool() -> None:
    message = await session().call("echo", {"text": "a"}, id="call-7")
    assert (message.tool_call_id, message.name, message.content) == ("call-7", "echo", "a")
    assert (message.is_error, message.error, message.output_ref, message.done) == (False, None, None, False)


async def test_arguments_may_be_an_object_json_text_bytes_or_nothing() -> None:
    here = session()
    for arguments in ({"text": "a"}, '{"text": "a"}', b'{"text": "a"}'):
        assert (await here.call("echo", arguments)).content == "a"
    assert (await here.call("echo")).content == ""
    assert (await run_call(here, ToolCall("1", "echo"))).content == ""


async def test_calls_without_an_id_get_ids_of_their_own() -> None:
    here = session()
    ids = {(await here.call("echo")).tool_call_id for _ in range(3)}
    assert len(ids) == 3


async def test_text_json_and_parts_become_content() -> None:
    here = session()
    assert (await here.call("table")).content == '{"zeta":1,"alpha":"é"}'
    message = await here.call("picture")
    assert message.content == (TextPart("a picture"), ImagePart(b"\x89PNG", "image/png"))
    assert message.text == "a picture\n[image image/png, 4 bytes]"


async def test_a_failure_is_an_answer_with_its_code_and_its_message() -> None:
    message = await session().call("Read", {"file_path": "b.txt"})
    assert message.is_error
    assert message.content == "Error executing tool: NOT_FOUND: no file b.txt; did you mean a.txt?"
    assert isinstance(message.error, NotFound)
    assert message.error.details == {"near": ["a.txt"]}


async def test_a_refusal_reads_as_a_refusal_whoever_raises_it() -> None:
    for error in (PolicyDenied("not today"), ToolError("POLICY_DENIED", "not today")):

        @tool
        async def refuses(it: Annotated[Any, Depends(lambda: error)]) -> str:
            """Refuses."""
            raise it

        message = await Session([refuses]).call("refuses")
        assert message.content == "Permission denied: not today"


async def test_an_unknown_tool_is_told_with_the_near_names() -> None:
    here = session()
    for wrong, right in (("read", "`Read`"), ("ehco", "`echo`"), ("READ", "`Read`")):
        message = await here.call(wrong)
        assert message.error is not None
        assert message.error.code == "TOOL_NOT_FOUND"
        assert right in message.error.message
    far = await here.call("x" * 10_000)
    assert far.content == (
        "Error executing tool: TOOL_NOT_FOUND: no tool named `" + "x" * 80 + "`; "
        "use one of echo, Read, picture, table, finish, breaks"
    )
    assert (await Session([]).call("a")).text.endswith("this session has no tools")


async def test_a_fault_nobody_meant_is_internal_and_leaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    mine = logging.getLogger("mine")
    with caplog.at_level(logging.ERROR, "mine"):
        message = await session(logger=mine).call("breaks")
    assert message.content == (
        "Error executing tool: INTERNAL: `breaks` failed with ZeroDivisionError; the log has the traceback"
    )
    assert [record.name for record in caplog.records] == ["mine"]
    assert "/home/me" in caplog.text


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"text": NaN}',
        '{"times": ' + "9" * 5000 + "}",
        '{"text": "\\ud800"}',
        '{"text": "\ud800"}',
        b"\xff",
        '{"text": 1, "times": "x", "more": 1}',
    ],
    ids=lambda bad: str(bad)[:20].encode("ascii", "replace").decode(),
)
async def test_bad_arguments_are_an_answer_and_the_session_goes_on(bad: Any) -> None:
    here = session()
    message = await here.call("echo", bad)
    assert message.is_error
    assert message.error is not None
    assert message.error.code == "INVALID_ARGUMENT"
    message.text.encode()
    assert (await here.call("echo", {"text": "on"})).content == "on"


async def test_an_error_message_with_half_a_surrogate_can_be_sent() -> None:
    @tool
    async def odd() -> str:
        """Names a file of odd bytes."""
        raise NotFound("no file \udcff")

    message = await Session([odd]).call("odd")
    assert message.content == "Error executing tool: NOT_FOUND: no file \ufffd"
    json.dumps(message.to_dict(), ensure_ascii=False).encode()


class Unforeseen(BaseException):
    pass


FAULTS = [
    ValueError("x"),
    SystemExit(3),
    Unforeseen("x"),
    asyncio.CancelledError(),
    RecursionError("x"),
    MemoryError(),
    StopIteration(),
    BaseExceptionGroup("several", [ValueError("x"), Unforeseen("y")]),
    NotFound("meant"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("where", ["tool", "thread", "dependency", "before", "after", "output"])
async def test_a_call_never_raises_whatever_breaks_on_its_way(where: str, fault: BaseException) -> None:
    def fails(*_: object) -> Any:
        raise fault

    def needed() -> str:
        return fails() if where == "dependency" else "needed"

    @tool
    async def sound(value: Annotated[str, Depends(DependencyKey("needed", needed))]) -> Any:
        """Works unless it is told not to."""
        return fails() if where == "tool" else _Unprintable(fault) if where == "output" else value

    @tool
    def in_a_thread() -> str:
        """Breaks beside the loop."""
        return fails()

    hooks: dict[str, Any] = {where: [fails]} if where in ("before", "after") else {}
    made = Session([sound, in_a_thread], **hooks)
    answer = await run_call(made, ToolCall("1", "in_a_thread" if where == "thread" else "sound", "{}"))
    assert answer.is_error
    assert answer.error is not None


class _Unprintable:
    """A value that can't be put into an answer."""

    def __init__(self, fault: BaseException) -> None:
        self.fault = fault

    def model_dump(self, **_: object) -> Any:
        raise self.fault


async def test_a_hundred_calls_at_once_each_get_their_own_answer() -> None:
    both: list[str] = []

    @tool
    async def waits(n: int) -> int:
        """Waits for all the others."""
        both.append("")
        while len(both) < 100:
            await anyio.sleep(0)
        if n % 3 == 0:
            raise ValueError(n)
        return n

    calls = [ToolCall(f"id-{n}", "waits", {"n": n}) for n in range(100)]
    with anyio.fail_after(60):
        messages = await Session([waits]).call_all(calls)
    assert [message.tool_call_id for message in messages] == [call.id for call in calls]
    for n, message in enumerate(messages):
        assert message.is_error == (n % 3 == 0)
        assert message.is_error or message.content == str(n)


async def test_a_cancelled_call_ends_and_the_others_go_on() -> None:
    started, release = anyio.Event(), anyio.Event()

    @tool
    async def waits(forever: bool) -> str:
        """Waits."""
        if forever:
            started.set()
            await anyio.sleep_forever()
        await release.wait()
        return "done"

    here = Session([waits])
    lost = asyncio.create_task(here.call("waits", {"forever": True}))
    kept = asyncio.create_task(here.call("waits", {"forever": False}))
    await started.wait()
    lost.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lost
    release.set()
    assert (await kept).content == "done"
    assert (await here.call("waits", {"forever": False})).content == "done"


async def test_only_a_success_of_a_tool_that_ends_finishes_the_session() -> None:
    here = session()
    assert not here.finished
    failed = await here.call("finish", {"fail": True})
    assert (failed.is_error, failed.done, here.finished) == (True, False, False)
    ended = await here.call("finish")
    assert (ended.content, ended.done, here.finished) == ("finished", True, True)
    assert (await here.call("echo")).done is False
    assert here.finished


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools are named `echo`"):
        Session([echo, echo])


async def test_closing_twice_is_closing_once() -> None:
    async with session() as here:
        await here.call("echo")
    await here.close()


async def test_a_long_output_is_fitted_and_a_short_one_is_not() -> None:
    here = session()
    assert (await here.call("echo", {"text": "a\n", "times": 10})).content == "a\n" * 10
    long = await here.call("echo", {"text": "line\n", "times": 100_000})
    assert len(long.text.encode()) < 70_000
    assert long.text.startswith("line\nline\n")


async def test_the_name_of_an_unknown_tool_is_told_on_one_line_without_controls() -> None:
    message = await session().call("Nope\n[exit code 0]\x1b[31m\u202e")
    assert "`Nope\\n[exit code 0]\\x1b[31m\\u202e`" in message.text and "\n" not in message.text
