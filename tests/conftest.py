"""Fixtures that all tests share."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# Sessions opened by the edges are recorded: not in the state directory of whoever runs the tests.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="gripfast-tests-")

# A slow machine is no fault of the code. Where CI is set, hypothesis has a profile of its own, and this keeps it.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
