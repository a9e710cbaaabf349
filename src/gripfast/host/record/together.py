"""Changes several files together: all of them or none, even under kill -9, with or without a record."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path

from gripfast.errors import Internal, Unavailable
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import HASHED_BYTES, ReadLog, digest_of
from gripfast.host.files.witness import WITNESS, Replacement
from gripfast.host.files.writing import CurrentFile
from gripfast.host.program.places import private_directory
from gripfast.host.record.contents import Contents
from gripfast.host.record.shelf import journals_directory, make_workspace_directory
from gripfast.host.record.states import ABSENT, PathState, file_state
from gripfast.host.record.transaction import Step, Transaction, recover
from gripfast.records import dataclass
from gripfast.text.below import is_below

_ROOM = 1 << 62
_HELD = "held"
_UNLOCKED, _YOUNG = ".new", 60.0  # seconds


@dataclass(frozen=True, slots=True)
class NewContent:
    """What a file becomes: `data` is None where it is removed, `mode` None where it is as of any new file.
    `lifted`: its name is protected, and a person has allowed this."""

    real: str
    before: CurrentFile | None
    data: bytes | None
    mode: int | None = None
    lifted: bool = False


def change_together(
    fs: ScopedFs, files: Sequence[NewContent], *, reads: ReadLog, last_word: Callable[[], None] | None = None
) -> None:
    """Does all of it or, if anything fails, nothing. Raises Conflict if a file is not what it was when it was read.

    `last_word` is called when all is ready and nothing done: what it raises stops the change.
    """
    committed = False
    try:
        with _private_store(fs.roots[0]) as store:
            usual = _usual_mode(store)
            files = [one if one.mode is not None else replace(one, mode=usual) for one in files]
            with Transaction(fs, store, journals_directory(fs.roots[0])) as change:
                change.prepare([_step(store, one) for one in files])
                if last_word is not None:
                    last_word()
                witness = WITNESS.get()
                if witness is not None:
                    witness.replacing(*map(_replacement, files))
                change.commit()
                committed = True
                _take_notes(reads, files)
                if witness is not None:
                    witness.replaced(*_with_directories(files, change.steps))
    except OSError as error:
        if not committed:  # afterwards only locks are given back and what is needed no more is removed
            raise Internal(f"nothing was changed: {error.strerror or error}") from error


def _step(store: Contents, one: NewContent) -> Step:
    before = ABSENT if one.before is None else file_state(one.before.data, one.before.mode)
    if one.data is None:
        return Step(one.real, before, ABSENT, one.lifted)
    return Step(one.real, before, PathState("file", one.mode or 0, store.put(one.data), len(one.data)), one.lifted)


def _replacement(one: NewContent) -> Replacement:
    before = one.before
    return Replacement(
        one.real, before.data if before else None, before.mode if before else 0, one.data, one.mode or 0
    )


def _with_directories(files: Sequence[NewContent], steps: Sequence[Step]) -> list[Replacement]:
    """What was done, each directory that was made with the first file in it."""
    made = sorted(step.path for step in steps if step.after.kind == "directory" and step.before.kind == "absent")
    done: list[Replacement] = []
    for one in files:
        above = tuple(path for path in made if one.data is not None and is_below(one.real, path))
        made = [path for path in made if path not in above]
        done.append(replace(_replacement(one), made=above))
    return done


def _take_notes(reads: ReadLog, files: Sequence[NewContent]) -> None:
    """The session knows what it has just written."""
    for one in files:
        if one.data is None:
            reads.forget(one.real)
            continue
        with contextlib.suppress(OSError):
            digest = digest_of(one.data) if len(one.data) <= HASHED_BYTES else None
            reads.record(one.real, os.lstat(one.real), digest)


# --- where the contents are meanwhile ---


@contextlib.contextmanager
def _private_store(root: str) -> Generator[Contents]:
    """A store for one change. It is gone afterwards, unless this process is."""
    try:
        above = private_directory(make_workspace_directory(root) / "changes")
        _sweep(above)
        directory = above / secrets.token_hex(8)
        fresh = private_directory(directory.with_suffix(_UNLOCKED))
        held = os.open(fresh / _HELD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        fcntl.flock(held, fcntl.LOCK_EX)
        os.rename(fresh, directory)
    except (OSError, RuntimeError) as error:
        raise Unavailable(
            f"several files are changed as a whole only with a private directory, and there is none "
            f"({getattr(error, 'strerror', None) or error}); set XDG_STATE_HOME to one that can be written"
        ) from None
    try:
        yield Contents(directory, _ROOM)
    finally:
        os.close(held)
        if not _is_needed(directory):
            shutil.rmtree(directory, ignore_errors=True)


def _usual_mode(store: Contents) -> int:
    """The mode that a new file of this process gets."""
    return stat.S_IMODE(os.lstat(store.directory / _HELD).st_mode)


def _is_needed(directory: Path) -> bool:
    """Whether a change that was begun and not ended needs these contents."""
    name = directory.name.encode()
    for journal in (directory.parent.parent / "journals").glob("*.json"):
        with contextlib.suppress(OSError):
            if name in journal.read_bytes():
                return True
    return False


def _sweep(above: Path) -> None:
    """Removes what processes that were killed left, once nothing refers to it."""
    for directory in above.iterdir():
        with contextlib.suppress(OSError), open(directory / _HELD, "rb") as held:
            fcntl.flock(held.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_young = time.time() - os.fstat(held.fileno()).st_mtime < _YOUNG
            if not (directory.suffix == _UNLOCKED and is_young) and not _is_needed(directory):
                shutil.rmtree(directory, ignore_errors=True)


def recover_changes(fs: ScopedFs) -> list[str]:
    """Takes back what processes that are gone had begun in this workspace. Returns the paths concerned."""
    try:
        return recover(fs, journals_directory(fs.roots[0]))
    except (OSError, RuntimeError):  # no home, or none that can be read
        return []


__all__ = ["NewContent", "change_together", "recover_changes"]
