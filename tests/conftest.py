"""Fixtures that all tests share."""

from __future__ import annotations

import os
import tempfile

import pytest

# Sessions opened by the edges are recorded: not in the state directory of whoever runs the tests.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="gripfast-tests-")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
