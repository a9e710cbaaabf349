"""A project to serve, in both protocol generations."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    return root


@pytest.fixture(params=["legacy", "2026-07-28"])
def generation(request: pytest.FixtureRequest) -> str:
    return request.param
