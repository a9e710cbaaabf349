"""A workspace on the real disk, under both strategies of confinement."""

from __future__ import annotations

from pathlib import Path

import pytest

from gripfast.host.files.beneath import Strategy, strategy_works
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope

STRATEGIES: list[Strategy] = [name for name in ("openat2", "walk") if strategy_works(name)]


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> Strategy:
    return request.param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace `ws` with one file, next to a directory `out` that is outside the scope."""
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.txt").write_text("inside\n", encoding="utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.txt").write_text("secret\n", encoding="utf-8")
    return root


@pytest.fixture
def fs(root: Path, strategy: Strategy) -> ScopedFs:
    return ScopedFs(Scope.workspace(root), strategy=strategy)


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Quarantine and caches of one test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "state"
