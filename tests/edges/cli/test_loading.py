"""What is loaded is set aside from the collector, and the collector runs again afterwards."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest

from gripfast.edges.cli.loading import loading


@pytest.fixture(autouse=True)
def thaw() -> Generator[None]:
    yield
    gc.unfreeze()


def test_the_collector_rests_while_something_is_loaded() -> None:
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_there_is_not_searched_again() -> None:
    before = gc.get_freeze_count()
    with loading():
        kept: list[list[int]] = [[] for _ in range(1000)]
    assert gc.get_freeze_count() >= before + len(kept)


def test_the_collector_runs_again_after_a_failed_import() -> None:
    with pytest.raises(ModuleNotFoundError), loading():
        raise ModuleNotFoundError("mcp")
    assert gc.isenabled()
