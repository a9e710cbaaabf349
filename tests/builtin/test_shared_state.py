"""The state of a session as fields: only what changed is saved, and what can't be ours is left out and said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gripfast.builtin.shared_state import SharedState
from gripfast.builtin.state import State
from gripfast.edges.settings import SessionSettings
from gripfast.host.stores.sessions import LARGEST_FIELD

pytestmark = pytest.mark.anyio


async def saved(root: Path) -> dict[str, bytes]:
    """The fields after a session has read a file and has a todo."""
    (root / "a.txt").write_text("one\n", encoding="utf-8")
    session, state = SessionSettings((str(root),), rules="none").session()
    shared = SharedState(state, session, "there 1")
    async with session:
        await session.call("Read", {"file_path": "a.txt"})
        await session.call("write_todos", {"todos": [{"id": "it", "content": "Do it"}]})
        changes = shared.changes()
        shared.saved(changes)
        assert shared.changes() == {}
        await session.call("Glob", {"pattern": "*"})
        assert shared.changes() == {}
    return {name: value for name, value in changes.items() if value is not None}


async def test_only_what_changed_is_saved_and_all_of_it_comes_back(tmp_path: Path) -> None:
    fields = await saved(tmp_path)
    assert sorted(fields) == ["head", f"read {tmp_path / 'a.txt'}", "todos"]
    session, state = SessionSettings((str(tmp_path),), rules="none").session()
    async with session:
        assert SharedState(state, session, "here 1").adopt(fields) == []
        assert [todo.content for todo in state.todos.items] == ["Do it"]
        edited = await session.call("Write", {"file_path": "a.txt", "content": "two\n"})
        assert edited.error is None, edited.text


async def test_an_edit_is_known_on_another_server_and_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    edit = {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
    session, state = SessionSettings((str(tmp_path),), rules="none").session()
    shared = SharedState(state, session, "there 1")
    async with session:
        await session.call("Read", {"file_path": "a.txt"})
        await session.call("Edit", edit)
        fields = {name: value for name, value in shared.changes().items() if value is not None}
        stored = state.dump()
    session, state = SessionSettings((str(tmp_path),), rules="none").session()
    async with session:
        assert SharedState(state, session, "here 1").adopt(fields) == []
        assert "already applied at line 1" in (await session.call("Edit", edit)).text
    assert [seen.edits for seen in State.load(stored).reads.seen()] == [seen.edits for seen in state.reads.seen()]
    assert len(state.reads.seen()[0].edits) == 1


HOSTILE = {
    "a pickle": {"todos": b"cos\nsystem\n(S'true'\ntR."},
    "nested": {"todos": b"[" * 50_000},
    "todos of another kind": {"todos": b'[{"id": 1}]'},
    "two todos in progress": {
        "todos": json.dumps(
            [{"id": id, "content": "x", "status": "in_progress", "priority": 1} for id in "ab"]
        ).encode()
    },
    "a head of another kind": {"head": b'{"version": 1}'},
    "a read outside the roots": {"read /etc/passwd": b'["",1,1,1,1,1,null,true,null]'},
    "a read of another kind": {"read a": b"[]"},
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_fields_that_cant_be_ours_are_ignored_with_a_word(tmp_path: Path, kind: str) -> None:
    assert all(len(value) <= LARGEST_FIELD for value in HOSTILE[kind].values())
    session, state = SessionSettings((str(tmp_path),), rules="none").session()
    async with session:
        notes = SharedState(state, session, "here 1").adopt(HOSTILE[kind])
        assert notes == ["[the shared store has values that gripfast did not write; they were ignored]"]
        assert (state.todos.items, state.reads.seen()) == ((), ())


async def test_a_working_directory_outside_the_roots_is_not_taken(tmp_path: Path) -> None:
    fields = await saved(tmp_path)
    head = json.loads(fields["head"]) | {"directory": "/etc"}
    session, state = SessionSettings((str(tmp_path),), rules="none").session()
    async with session:
        notes = SharedState(state, session, "here 1").adopt({"head": json.dumps(head).encode()})
        assert "working directory is the workspace's root again" in notes[0]
        assert state.place.directory() == str(tmp_path)


async def test_on_a_server_with_other_roots_nothing_counts_as_read(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    fields = await saved(one)
    session, state = SessionSettings((str(other),), rules="none").session()
    async with session:
        notes = SharedState(state, session, "here 1").adopt(fields)
        assert "with other roots" in notes[0]
        assert state.reads.seen() == ()
        assert [todo.content for todo in state.todos.items] == ["Do it"]
