"""pydantic-ai's own conformance suite for workspace backends, as it is."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from pydantic_ai.workspaces import WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from gripfast import Scope
from gripfast.adapters.pydantic_ai import ScopeWorkspace, attach, workspace


class TestWorkspace(WorkspaceBackendSuite):
    @pytest.fixture
    async def opened(self) -> AsyncIterator[list[ScopeWorkspace]]:
        """What a test opens, closed after it."""
        kept: list[ScopeWorkspace] = []
        yield kept
        for one in kept:
            await one.close()

    @pytest.fixture
    def fresh_backend(self, tmp_path: Path, opened: list[ScopeWorkspace]) -> Callable[[], ScopeWorkspace]:
        def fresh() -> ScopeWorkspace:
            place = tmp_path / f"work-{len(opened)}"
            place.mkdir()
            opened.append(workspace(Scope.workspace(place)))
            return opened[-1]

        return fresh

    @pytest.fixture
    def backend(self, fresh_backend: Callable[[], ScopeWorkspace]) -> ScopeWorkspace:
        return fresh_backend()

    @pytest.fixture
    def attach_backend(self, opened: list[ScopeWorkspace]) -> Callable[[WorkspaceRef], ScopeWorkspace]:
        def attached(ref: WorkspaceRef) -> ScopeWorkspace:
            opened.append(attach(ref, permissions=None))
            return opened[-1]

        return attached

    @pytest.fixture
    def destroy_environment(self) -> Callable[[ScopeWorkspace], Awaitable[None]]:
        async def destroy(backend: ScopeWorkspace) -> None:
            shutil.rmtree(await backend.working_dir())

        return destroy
