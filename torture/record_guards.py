"""The guards of the record and of changes of several files. torture/cuts.py says how a guard is named."""

from __future__ import annotations

from torture.cuts import Guard, always, call, condition, drop, never, part, skip, value

TRANSACTION = "tests/host/record/test_transaction.py"
TOGETHER = "tests/host/record/test_together.py"
RECORD = "tests/builtin/test_record.py"
BAD_DAYS = "tests/builtin/test_record_bad_days.py"
PATCH = "tests/builtin/test_apply_patch.py"

RECORD_GUARDS: tuple[Guard, ...] = (
    # --- other names of a file ---
    Guard(
        "files are compared after a command",
        "host/files/watch.py::Watch.since",
        never("after_command"),
        f"{RECORD} -k by_another_name_of_a_file",
    ),
    Guard(
        "an undo compares all files first",
        "host/record/undo.py::undo",
        value("all", by="False"),
        f"{RECORD} -k undo_finds",
    ),
    Guard(
        "a write whose time was put back is told",
        "host/files/changes.py::_kind",
        drop("contents"),
        f"{RECORD} -k time_is_put_back",
    ),
    # --- changes as a whole ---
    Guard(
        "a path is what it must be before it is changed",
        "host/record/transaction.py::Transaction.prepare",
        skip("_require", "!looks"),
        f"{TRANSACTION} -k between_plan",
    ),
    Guard(
        "a file changed a moment ago is read again",
        "host/record/transaction.py::Looks.add",
        drop("_RACY_NS"),
        f"{TRANSACTION} -k moment_ago",
    ),
    Guard(
        "a look knows the times that can't be set back",
        "host/record/transaction.py::_look",
        drop("st_ctime_ns"),
        f"{TRANSACTION} -k was_compared",
    ),
    Guard(
        "whatever fails, what was done is taken back",
        "host/record/transaction.py::Transaction.commit",
        skip("_apply", "inverse"),
        f"{TOGETHER} -k fchmod",
    ),
    Guard(
        "what a killed process had begun is taken back",
        "host/record/transaction.py::_taken_back",
        skip("_apply", "inverse"),
        f"{TRANSACTION} -k 'killed or person'",
    ),
    Guard(
        "the journal of a process that lives is left alone",
        "host/record/transaction.py::_sweep_unfinished",
        skip("flock"),
        f"{TRANSACTION} -k never_finished",
    ),
    Guard(
        "a journal that is just being written is left alone",
        "host/record/transaction.py::_sweep_unfinished",
        always("_YOUNG"),
        f"{TRANSACTION} -k never_finished",
    ),
    Guard(
        "a transaction writes no protected name",
        "host/files/named_entry.py::writable_entry",
        skip("refuse_unwritable", "!close"),
        f"{TRANSACTION} -k protected_name_is_refused",
    ),
    Guard(
        "an undo goes through no link",
        "host/files/named_entry.py::_descend",
        part("O_NOFOLLOW", by="0"),
        f"{RECORD} -k through_a_link",
    ),
    # --- undo ---
    Guard(
        "what somebody else changed since is not overwritten",
        "host/record/undo.py::_UndoPlan._conflict",
        never("after", "now"),
        f"{BAD_DAYS} -k right_after",
    ),
    Guard(
        "a directory with somebody else's file stays",
        "host/record/undo.py::_UndoPlan._keep_full_directories",
        never("left"),
        f"{RECORD} -k somebody_changed_since",
    ),
    Guard(
        "what is saved while the look after a command goes on is not the command's",
        "host/record/cover.py::Cover.deltas",
        never("goes_on"),
        f"{BAD_DAYS} -k look_after",
    ),
    Guard(
        "what another call wrote meanwhile is not the command's",
        "host/record/record.py::CallEntry.command_changed",
        call("own_part", by="$0"),
        f"{RECORD} -k 'another_call_writes'",
    ),
    # --- patches ---
    Guard(
        "a context that fits several places is refused",
        "patch/placing.py::_chosen",
        condition("len", "starts", by="not starts"),
        "tests/patch/test_plan.py",
    ),
    Guard(
        "a patch moves and deletes no link",
        "builtin/patching.py::_PatchedWorkspace._places_of",
        never("is_link"),
        f"{PATCH} -k link",
    ),
    Guard(
        "a patch that fails in one part writes nothing",
        "builtin/patching.py::apply_patch_text",
        skip("_failed"),
        f"{PATCH} -k leaves_the_tree",
    ),
    Guard(
        "a protected name in a patch is asked about",
        "builtin/session.py::_needs_a_person",
        never("lifted"),
        f"{PATCH} -k protected_names_are_asked",
    ),
    Guard(
        "what configures git is no question",
        "host/files/closed_places.py::ClosedPlaces.protected",
        part("_never", by="()"),
        f"{PATCH} -k configures_git",
    ),
)
