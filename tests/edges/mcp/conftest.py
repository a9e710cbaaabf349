"""A project to serve, in both protocol generations, and an issuer of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from authorization_server import AuthorizationServer


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    return root


@pytest.fixture(params=["legacy", "2026-07-28"])
def generation(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def issuer() -> Iterator[AuthorizationServer]:
    from authorization_server import AuthorizationServer  # noqa: PLC0415 - makes keys

    with AuthorizationServer() as server:
        yield server
