"""Applies a patch in a scope: all files are read and the whole is planned, then everything is done together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gripfast.errors import Conflict, InvalidArgument, SandboxViolation, ToolError, error_like
from gripfast.framework.subjects import Subjects
from gripfast.host.files.diff import unified, whole_splice
from gripfast.host.files.encodings import Text, TextForm, text_of
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.writing import CurrentFile
from gripfast.host.record.together import NewContent, change_together
from gripfast.patch.grammar import Hunk, Patch, parse
from gripfast.patch.plan import Failure, PatchPlan, PlannedFile, plan
from gripfast.records import dataclass
from gripfast.text.match import Splice

_EXPLAINED = 10  # failures that are shown in full; of any others only the first line


class PatchText(Subjects):
    """The text of a patch, read once, and its paths."""

    __slots__ = ("patch", "paths", "text")

    def __init__(self, text: str, patch: Patch, paths: Mapping[str, WorkPath]) -> None:
        self.text = text
        self.patch = patch
        self.paths = dict(paths)

    @classmethod
    def parse(cls, text: str) -> PatchText:
        """Raises InvalidArgument for a text that is not a patch, or that has an impossible path."""
        patch = parse(text)
        return cls(text, patch, {path: WorkPath.parse(path) for path in patch.paths()})

    def parts(self) -> Sequence[WorkPath]:
        return tuple(self.paths.values())

    def with_parts(self, parts: Sequence[object]) -> PatchText:
        placed = {path: part for path, part in zip(self.paths, parts, strict=True) if isinstance(part, WorkPath)}
        return PatchText(self.text, self.patch, placed)

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            _validated, core_schema.str_schema(), serialization=core_schema.plain_serializer_function_ser_schema(str)
        )


def _validated(text: str) -> PatchText:
    try:
        return PatchText.parse(text)
    except InvalidArgument as fault:
        raise PydanticCustomError("patch", "{fault}", {"fault": fault.message}) from None


@dataclass(frozen=True, slots=True)
class PatchedFile:
    """What a patch does to one file: `A`dded, `M`odified, `D`eleted or `R`enamed, how many lines it adds and removes,
    and the rows of its diff."""

    kind: str
    path: str
    added: int
    removed: int
    moved_from: str | None = None
    rows: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = self.path if self.moved_from is None else f"{self.moved_from} -> {self.path}"
        return f"{self.kind} {name} +{self.added} -{self.removed}"


@dataclass(frozen=True, slots=True)
class PatchResult:
    """What a patch did, or with `dry_run` would do. `tolerated` names what was forgiven to find the places."""

    files: tuple[PatchedFile, ...]
    tolerated: tuple[str, ...] = ()


def apply_patch_text(
    fs: ScopedFs,
    given: PatchText,
    *,
    reads: ReadLog,
    dry_run: bool = False,
    last_word: Callable[[], None] | None = None,
) -> PatchResult:
    """All of a patch or, if any hunk fails, nothing. Raises ToolError, which names every hunk that fails."""
    workspace = _PatchedWorkspace(fs, given, reads)
    planned = workspace.plan()
    if not planned.failures:
        workspace.encode(planned)
    if planned.failures:
        raise _failed(planned.failures)
    if not dry_run and workspace.changes:
        try:
            change_together(fs, workspace.changes, reads=reads, last_word=last_word)
        except Conflict as error:
            raise workspace.conflict(planned, error) from None
    tolerated = (*given.patch.tolerated, *planned.tolerated)
    return PatchResult(tuple(workspace.patched), tuple(dict.fromkeys(tolerated)))


class _Old:
    """A file as it is on the disk."""

    def __init__(self, current: CurrentFile, encoding: str | None, shown: str) -> None:
        self.current = current
        self._encoding, self.shown = encoding, shown

    @cached_property
    def text(self) -> Text:
        return text_of(self.current.data, self._encoding, self.shown)

    def body(self) -> bytes:
        return self.text.body


class _PatchedWorkspace:
    """The files of one patch."""

    def __init__(self, fs: ScopedFs, given: PatchText, reads: ReadLog) -> None:
        self._fs, self._given, self._reads = fs, given, reads
        self._judged: dict[str, WorkPath] = {}
        self._old: dict[str, _Old] = {}
        self.changes: list[NewContent] = []
        self.patched: list[PatchedFile] = []

    # --- planning ---

    def plan(self) -> PatchPlan:
        failures: list[Failure] = []
        places: dict[str, str] = {}
        for hunk in self._given.patch.hunks:
            try:
                places |= self._places_of(hunk)
            except ToolError as error:
                failures.append(Failure(hunk, hunk.line, error))
        refused = {failure.hunk.number for failure in failures}
        left = tuple(hunk for hunk in self._given.patch.hunks if hunk.number not in refused)
        planned = plan(Patch(left), places, self._read)
        failures += [self._with_near(one, planned.files.get(places[one.hunk.path])) for one in planned.failures]
        planned.failures[:] = sorted(failures, key=lambda failure: failure.line)
        return planned

    def _with_near(self, failure: Failure, file: PlannedFile | None) -> Failure:
        """For a file that was never there, the error with near names."""
        if failure.error.code != "NOT_FOUND" or file is None or file.exists or file.hunks:
            return failure
        return replace(failure, error=self._fs.not_found(self._given.paths[failure.hunk.path]))

    def _places_of(self, hunk: Hunk) -> dict[str, str]:
        """Where the paths of a hunk lead, if they may be written."""
        places: dict[str, str] = {}
        for path in (hunk.path, hunk.move_to):
            if path is None:
                continue
            judged = self._fs.judged(self._given.paths[path], written=True)
            places[path] = judged.judged or ""
            self._judged[places[path]] = judged
        leaves = hunk.kind == "delete" or hunk.move_to is not None
        source = self._given.paths[hunk.path]
        if leaves and self._fs.is_link(source):
            raise SandboxViolation(
                f"`{self._fs.show(source)}` is a symbolic link; a patch changes the file it leads to, but neither "
                "moves nor deletes the link: use a command"
            )
        return places

    def _read(self, place: str) -> _Old | None:
        current = self._fs.current(self._judged[place], reads=self._reads)
        if current is None:
            return None
        old = self._old[place] = _Old(current, self._fs.encoding, self._fs.show_real(place))
        return old

    # --- the outcome ---

    def encode(self, planned: PatchPlan) -> None:
        """The bytes of every file as it will be; text that a file's encoding can't represent is a failure as well."""
        sources = {file.moved_from for file in planned.files.values() if file.exists}
        for place, file in planned.files.items():
            try:
                self._encode(place, file)
                if not file.exists and place in self._old and place not in sources:
                    self.patched.append(_deleted(self._old[place]))
            except ToolError as error:
                hunk = next(one for one in self._given.patch.hunks if one.number == file.hunks[-1])
                planned.failures.append(Failure(hunk, hunk.line, error))

    def _encode(self, place: str, file: PlannedFile) -> None:
        disk, origin = self._old.get(place), file.origin if isinstance(file.origin, _Old) else None
        before = None if disk is None else disk.current
        if not file.exists:
            if before is not None:
                self.changes.append(NewContent(place, before, None, lifted=self._judged[place].lifted))
            return
        form = origin.text.form if origin and file.body is not None else TextForm(self._fs.encoding or "utf-8")
        shown = self._fs.show_real(place)
        data = form.bytes_of(file.body, shown) if file.body is not None else origin.current.data if origin else b""
        mode = origin.current.mode if origin else None
        if before is None or (data, mode) != (before.data, before.mode):
            self.changes.append(NewContent(place, before, data, mode, self._judged[place].lifted))
        self._tell(shown, file, disk, origin)

    def _tell(self, shown: str, file: PlannedFile, disk: _Old | None, origin: _Old | None) -> None:
        old = origin if file.moved_from is not None else disk
        rows: list[str] = []
        if file.body is not None:
            body = old.body() if old is not None else b""
            splices = file.splices if file.splices is not None and old is origin else _whole(body, file.body)
            rows = unified(body, splices, shown, created=old is None)
        added, removed = (sum(row.startswith(sign) for row in rows[2:]) for sign in "+-")
        kind = "R" if file.moved_from is not None else "A" if disk is None else "M"
        source = None if file.moved_from is None else self._fs.show_real(file.moved_from)
        self.patched.append(PatchedFile(kind, shown, added, removed, source, tuple(rows)))

    def conflict(self, planned: PatchPlan, error: Conflict) -> Conflict:
        """The same error, with the hunk whose file it is about."""
        place = str(error.details.get("path", ""))
        file = planned.files.get(place)
        if file is None:
            return Conflict(f"{error.message}; nothing was written", retriable=error.retriable)
        hunk = next(one for one in self._given.patch.hunks if one.number == file.hunks[-1])
        shown = self._fs.show_real(place)
        return Conflict(
            f"{hunk}: `{shown}` was changed by somebody else while the patch was applied, so nothing was written; "
            "read it again, then redo this"
        )


def _deleted(old: _Old) -> PatchedFile:
    data = old.current.data
    return PatchedFile("D", old.shown, 0, data.count(b"\n") + (data[-1:] not in (b"", b"\n")))


def _whole(before: bytes, after: bytes) -> list[Splice]:
    if not before:
        return [Splice(0, 0, after)] if after else []
    return [whole_splice(before, after)] if before != after else []


def _failed(failures: Sequence[Failure]) -> ToolError:
    """Every failure in one error, with the code of the first."""
    first = failures[0].error
    texts = [str(failure) for failure in failures]
    shown = [*texts[:_EXPLAINED], *(text.split("\n")[0] for text in texts[_EXPLAINED:])]
    details = [
        {"hunk": one.hunk.number, "line": one.line, "code": one.error.code, **one.error.details} for one in failures
    ]
    count = f"{len(failures)} parts of the patch" if len(failures) > 1 else "a part of the patch"
    message = "\n".join([f"{count} can't be applied, so nothing was written:", *(f"- {text}" for text in shown)])
    retriable = all(one.error.retriable for one in failures)
    return error_like(first, message, retriable=retriable, details={"failures": details})
