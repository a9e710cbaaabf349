"""GRIPFAST_WITHOUT takes features of the kernel away, so that Linux tries what other systems have to do without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import get_args

import anyio
import pytest

from attacks.shell import fresh_mark, gone
from gripfast.errors import InvalidArgument
from gripfast.host.kernel.features import SWITCH, Feature, may_use, switched_off


def gripfast(without: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from gripfast.edges.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, SWITCH: without},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )


def findings(without: str, cwd: Path) -> dict[str, str]:
    done = gripfast(without, "doctor", "--json", cwd=cwd)
    return {finding["what"]: finding["words"] for finding in json.loads(done.stdout)}


def test_without_openat2_files_are_reached_by_a_walk(tmp_path: Path) -> None:
    assert findings("openat2", tmp_path)["files"].startswith("one directory at a time")


def test_without_namespaces_and_landlock_there_is_no_sandbox_and_the_reason_is_told(tmp_path: Path) -> None:
    words = findings("landlock,namespaces", tmp_path)["Bash sandbox"]
    assert words.startswith("none:")
    if sys.platform == "linux":
        assert "bwrap: switched off by GRIPFAST_WITHOUT" in words
        assert "landlock: switched off by GRIPFAST_WITHOUT" in words


def test_without_a_subreaper_what_a_command_leaves_still_ends_with_the_session(tmp_path: Path) -> None:
    mark = fresh_mark()
    left = json.dumps({"command": f"sleep 987.{mark} & echo $!"})
    done = gripfast("subreaper,namespaces,landlock", "call", "Bash", left, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 1
    assert anyio.run(partial(gone, mark)) == []


def test_every_feature_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, " ".join(get_args(Feature)))
    assert not any(may_use(feature) for feature in get_args(Feature))


def test_commas_and_spaces_separate_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "openat2, inotify landlock")
    assert switched_off() == {"openat2", "inotify", "landlock"}


def test_a_name_that_is_no_feature_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "openat2,openat3")
    with pytest.raises(InvalidArgument, match=r"GRIPFAST_WITHOUT names `openat3`.* openat2"):
        may_use("openat2")
