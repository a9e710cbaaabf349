"""The trial of three servers behind nginx, in small."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from torture.fleet import attempt


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_sessions_go_on_while_servers_and_redis_end_and_come_back(tmp_path: Path) -> None:
    found = attempt(tmp_path, 80, 8, random.Random(1))
    assert found.counts["calls"] == 80
    assert not found.wrong
    assert not found.lost
