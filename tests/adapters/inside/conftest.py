"""What the tests inside a framework's environment share. Expected failures come from the table in the docs."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gripfast import Ask, Scope, Session, open_session

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (\w+) \| `(\w+)` \| (always|as root) \| (.+) \|$", re.MULTILINE)
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da6364f80f00010501012718e3660000"
    "000049454e44ae426082"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    table = (ROOT / "docs" / "adapters" / "suites.md").read_text(encoding="utf-8")
    expected = {(suite, test): (when, why) for suite, test, when, why in ROW.findall(table)}
    for item in items:
        suite = item.path.stem.removeprefix("on_").split("_")[0]
        when, why = expected.get((suite, getattr(item, "originalname", item.name)), ("", ""))
        if when == "always" or (when == "as root" and os.geteuid() == 0):
            item.add_marker(pytest.mark.xfail(reason=why))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (root / "dot.png").write_bytes(PICTURE)
    return root


def _asks_before_writing(call: object, tool: object, arguments: object) -> Ask | None:
    return Ask("writing needs a yes", token="writing") if tool.traits.effect == "write" else None


@pytest.fixture
async def session(project: Path) -> AsyncIterator[Session]:
    """A session whose rules ask before anything is written, with nobody of its own to ask."""
    async with open_session(Scope.workspace(project), before=[_asks_before_writing]) as opened:
        yield opened


@pytest.fixture
def is_running() -> Callable[[str], bool]:
    """Whether a process on this machine has a word in its command line."""

    def running(word: str) -> bool:
        for place in Path("/proc").iterdir():
            try:
                if place.name.isdigit() and word in (place / "cmdline").read_bytes().decode(errors="replace"):
                    return True
            except OSError:
                continue
        return False

    return running
