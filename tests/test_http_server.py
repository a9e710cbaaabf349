"""The server that tests start leaves nothing behind, also if it can't be used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import http_server

STAYS = """
import os, sys, time
open(sys.argv[-1], "w").write(str(os.getpid()))
print("no address here; Ctrl-C", file=sys.stderr, flush=True)
time.sleep(600)
"""


def test_a_server_that_cant_be_used_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SERVE", [sys.executable, "-c", STAYS])
    with pytest.raises(IndexError):
        http_server.Server(tmp_path, tmp_path, str(tmp_path / "pid"))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text(encoding="ascii")), 0)
