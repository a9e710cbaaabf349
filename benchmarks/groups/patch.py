"""Patches: what all or nothing costs, beside writing the same files one by one."""

from __future__ import annotations

import difflib
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.harness import Run, in_turns, seconds, tell
from gripfast import Scope, ScopedFs
from gripfast.builtin.patching import PatchText, apply_patch_text
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath

GROUP = "Patches"
FILES, CHUNKS = 50, 2
_LINES = 200


def measure(run: Run) -> None:
    before = os.environ.get("XDG_STATE_HOME")
    with tempfile.TemporaryDirectory(prefix="gripfast-bench-") as place:
        os.environ["XDG_STATE_HOME"] = f"{place}/state"
        try:
            run.step(GROUP, "a patch", lambda: _patch(run, Path(place)))
        finally:
            os.environ.pop("XDG_STATE_HOME") if before is None else os.environ.update(XDG_STATE_HOME=before)


def _patch(run: Run, place: Path) -> None:
    roots = [place / name for name in ("patched", "written", "git")]
    for root in roots:
        for number in range(FILES):
            path = root / f"d{number % 10}" / f"f{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_content(number, 0))
    patched, written, other = (_Files(ScopedFs(Scope.workspace(root))) for root in roots)
    writing = "writing each file atomically"
    sides = {
        "gripfast": partial(seconds, patched.patch),
        writing: partial(seconds, written.write),
        "git apply": partial(_git_apply, other, roots[2]),
    }
    turns = in_turns(sides, 5 if run.quick else 25, warm=1)
    notes = {"git apply": "not synced to the disk: after a power failure files may be empty"}
    name = f"a patch of {FILES * CHUNKS} hunks over {FILES} files"
    tell(run, GROUP, name, turns, {writing: 3.0}, note="all or nothing, also after a kill", notes=notes)


def _git_apply(files: _Files, root: Path) -> float:
    data = files.diff().encode()
    return seconds(lambda: subprocess.run(["git", "apply", "-"], cwd=root, input=data, check=True))


def _content(number: int, version: int) -> str:
    lines = [f"value_{line} = {number}" for line in range(_LINES)]
    lines[_LINES // 4] = f"first = {version}"
    lines[-5] = f"second = {version}"
    return "\n".join(lines) + "\n"


class _Files:
    def __init__(self, fs: ScopedFs) -> None:
        self._fs = fs
        self._version = 0
        self._reads = ReadLog(required=False)
        self._paths = [f"d{number % 10}/f{number}.py" for number in range(FILES)]

    def patch(self) -> None:
        old, self._version = self._version, self._version + 1
        hunks = [
            f"*** Update File: {path}\n@@\n-first = {old}\n+first = {self._version}\n"
            f"@@\n-second = {old}\n+second = {self._version}\n"
            for path in self._paths
        ]
        text = "*** Begin Patch\n" + "".join(hunks) + "*** End Patch\n"
        apply_patch_text(self._fs, PatchText.parse(text), reads=self._reads)

    def write(self) -> None:
        self._version += 1
        for number, path in enumerate(self._paths):
            self._fs.write(WorkPath.parse(path), _content(number, self._version), reads=self._reads)

    def diff(self) -> str:
        """The next change as git takes it."""
        old, self._version = self._version, self._version + 1
        return "".join(
            line
            for number, path in enumerate(self._paths)
            for line in difflib.unified_diff(
                _content(number, old).splitlines(keepends=True),
                _content(number, self._version).splitlines(keepends=True),
                f"a/{path}",
                f"b/{path}",
            )
        )
