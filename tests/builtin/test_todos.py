"""write_todos keeps the plan, done ends the task; both through the session's own door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gripfast.builtin.session import open_session
from gripfast.builtin.todos import Change, Status, Todos
from gripfast.call.run import Session
from gripfast.errors import InvalidArgument
from gripfast.host.files.scope import Scope

STATUSES: list[Status] = ["pending", "in_progress", "completed", "cancelled"]


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    async with open_session(Scope.workspace(str(tmp_path))) as session:
        yield session


async def write(session: Session, *todos: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = await session.call("write_todos", {"todos": list(todos), **more})
    assert not message.is_error, message.text
    return json.loads(message.text)


async def refused(session: Session, *todos: dict[str, Any], **more: Any) -> str:
    message = await session.call("write_todos", {"todos": list(todos), **more})
    assert message.error is not None, message.text
    assert message.error.code == "INVALID_ARGUMENT"
    return message.text


@pytest.mark.anyio
async def test_new_todos_get_short_ids_and_the_answer_is_the_whole_list(session: Session) -> None:
    answer = await write(session, {"content": "Read the  code,\nall of it"}, {"content": "Fix it", "priority": 1})
    assert answer == {
        "todos": [
            {"id": "read-the-code-all", "content": "Read the code, all of it", "status": "pending", "priority": 3},
            {"id": "fix-it", "content": "Fix it", "status": "pending", "priority": 1},
        ],
        "summary": "2 pending",
    }


@pytest.mark.anyio
async def test_merging_updates_by_id_adds_the_rest_and_loses_nothing(session: Session) -> None:
    await write(session, {"content": "one"}, {"content": "two", "priority": 5}, {"content": "three"})
    answer = await write(session, {"id": "two", "status": "completed"}, {"content": "two"})
    assert [(todo["id"], todo["status"], todo["priority"]) for todo in answer["todos"]] == [
        ("one", "pending", 3),
        ("two", "completed", 5),
        ("three", "pending", 3),
        ("two-2", "pending", 3),
    ]


@pytest.mark.anyio
async def test_replacing_starts_anew_in_the_order_given(session: Session) -> None:
    await write(session, {"content": "one"}, {"content": "two", "priority": 1})
    answer = await write(session, {"content": "new"}, {"id": "two"}, {"id": "own-id", "content": "x"}, mode="replace")
    assert [(todo["id"], todo["content"], todo["priority"]) for todo in answer["todos"]] == [
        ("new", "new", 3),
        ("two", "two", 1),
        ("own-id", "x", 3),
    ]
    assert (await write(session, mode="replace"))["summary"] == "no todos"


@pytest.mark.anyio
async def test_ids_of_ones_own_are_taken_for_a_first_list(session: Session) -> None:
    answer = await write(session, {"id": "1", "content": "one"}, {"id": "2", "content": "two"})
    assert [todo["id"] for todo in answer["todos"]] == ["1", "2"]


@pytest.mark.anyio
async def test_an_unknown_id_lists_the_known_ones_and_changes_nothing(session: Session) -> None:
    await write(session, {"content": "one"}, {"content": "two"})
    words = await refused(session, {"id": "one", "status": "completed"}, {"id": "tow", "status": "completed"})
    assert "no todo has the id `tow`; there are `one`, `two`" in words
    assert (await write(session))["summary"] == "2 pending"


@pytest.mark.anyio
async def test_only_one_is_in_progress(session: Session) -> None:
    await write(session, {"content": "one", "status": "in_progress"})
    words = await refused(session, {"content": "two", "status": "in_progress"})
    assert "only one todo may be in_progress, not `one`, `two`" in words
    answer = await write(session, {"content": "two", "status": "in_progress"}, {"id": "one", "status": "completed"})
    assert answer["summary"] == "1 in progress, 1 completed"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "todo",
    [
        {},
        {"content": ""},
        {"content": " \n "},
        {"status": "pending"},
        {"content": "x", "status": "later"},
        {"content": "x", "priority": 0},
        {"content": "x", "priority": 6},
        {"content": "x", "id": "no spaces"},
        {"content": "x", "id": ""},
        {"content": "x", "id": "x" * 33},
        {"content": "x", "id": "../x"},
        {"content": "x" * 401},
        {"content": "x", "state": "pending"},
        "x",
    ],
    ids=str,
)
async def test_a_todo_that_is_none_is_refused(session: Session, todo: Any) -> None:
    await refused(session, todo)


@pytest.mark.anyio
async def test_an_id_given_twice_and_a_list_too_long_are_refused(session: Session) -> None:
    assert "todos[1], which has no id, is new" in await refused(session, {"content": "x"}, {"status": "pending"})
    assert "given twice" in await refused(session, {"id": "a", "content": "x"}, {"id": "a", "content": "y"})
    await write(session, *({"content": f"step {n}"} for n in range(100)))
    assert "101 todos are more than 100" in await refused(session, {"content": "one more"})


@pytest.mark.anyio
async def test_done_ends_the_task_and_names_what_is_unfinished(session: Session) -> None:
    await write(session, {"content": "one"}, {"content": "two", "status": "in_progress"})
    await write(session, {"id": "one", "status": "cancelled"})
    assert not session.finished
    message = await session.call("done", {"message": "It works."})
    assert (message.content, message.done) == ("Done: It works.\nUnfinished todos: two (in_progress)", True)
    assert session.finished


@pytest.mark.anyio
async def test_done_without_a_word_or_a_plan(session: Session) -> None:
    message = await session.call("done", {})
    assert (message.content, message.done, message.is_error) == ("Done.", True, False)


@pytest.mark.anyio
async def test_a_refused_done_ends_nothing(session: Session) -> None:
    message = await session.call("done", {"massage": "x"})
    assert message.is_error
    assert not message.done
    assert not session.finished


@pytest.mark.anyio
async def test_the_plan_belongs_to_one_session(session: Session, tmp_path: Path) -> None:
    await write(session, {"content": "one"})
    async with open_session(Scope.workspace(str(tmp_path))) as other:
        assert (await write(other))["todos"] == []


CHANGE = st.builds(
    Change,
    id=st.sampled_from([None, None, "a", "b", "step", "step-2"]),
    content=st.sampled_from([None, "step", "step one", "計画", "b"]),
    status=st.sampled_from([None, *STATUSES]),
    priority=st.sampled_from([None, 1, 5]),
)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.booleans(), st.lists(CHANGE, max_size=5)), max_size=6))
def test_whatever_is_said_the_plan_stays_sound(calls: list[tuple[bool, list[Change]]]) -> None:
    plan = Todos()
    for merging, changes in calls:
        before = plan.items
        try:
            after = plan.merge(changes) if merging else plan.replace(changes)
        except InvalidArgument:
            assert plan.items == before
            continue
        assert plan.items == after
        ids = [todo.id for todo in after]
        assert len(ids) == len(set(ids))
        assert all(todo.content for todo in after)
        assert sum(todo.status == "in_progress" for todo in after) <= 1
        if merging:
            assert ids[: len(before)] == [todo.id for todo in before]
        else:
            assert len(after) == len(changes)
