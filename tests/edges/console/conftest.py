"""A console without a browser, and a session that it shows."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest
from tests.edges.console.asking import HOST

from gripfast.builtin.session import open_session
from gripfast.call.run import Session
from gripfast.edges.console.access import ConsoleAccess
from gripfast.edges.console.app import console_app
from gripfast.edges.console.data import ConsoleData
from gripfast.host.files.scope import Scope


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
async def session(project: Path) -> AsyncGenerator[Session]:
    async with open_session(Scope.workspace(project), record=True, sandbox="off", id="one") as opened:
        yield opened


@pytest.fixture
def access() -> ConsoleAccess:
    return ConsoleAccess((HOST, "localhost:4321"))


@pytest.fixture
async def stranger(access: ConsoleAccess) -> AsyncGenerator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(console_app(access, ConsoleData()))
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
        yield client


@pytest.fixture
async def page(stranger: httpx2.AsyncClient, access: ConsoleAccess) -> httpx2.AsyncClient:
    opened = await stranger.get(access.link())
    assert opened.status_code == 200
    stranger.headers["x-gripfast-console"] = opened.headers["refresh"].partition("!")[2]
    return stranger
