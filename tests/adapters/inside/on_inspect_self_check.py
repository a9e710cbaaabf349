"""Inspect's own checks for sandboxes, as they are. docs/adapters/suites.md has the exceptions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from inspect_ai.util._sandbox.self_check import *  # noqa: F403 - the checks are collected from here

from gripfast.adapters.inspect import GripfastSandbox

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox_env() -> AsyncIterator[GripfastSandbox]:
    environments = await GripfastSandbox.sample_init("checks", None, {})
    yield environments["default"].as_type(GripfastSandbox)
    await GripfastSandbox.sample_cleanup("checks", None, environments, interrupted=False)
