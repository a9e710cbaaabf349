"""langchain-tests' tests for deepagents' sandboxes, as they are; docs/adapters/suites.md has the exceptions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_tests.integration_tests import SandboxIntegrationTests

from gripfast import Scope
from gripfast.adapters.deepagents import ScopeBackend, backend


class TestSandbox(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScopeBackend]:
        opened = backend(Scope.workspace(tmp_path_factory.mktemp("work")))
        yield opened
        opened.close()
