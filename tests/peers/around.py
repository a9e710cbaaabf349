"""Where the installed peers are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PEERS = ROOT / ".cache" / "peers"
GRIPFAST = [sys.executable, "-m", "gripfast"]


def package(name: str) -> Path:
    """The directory of an installed npm package; skips the test if it is not installed."""
    found = PEERS / "node_modules" / name
    if not found.exists():
        pytest.skip(f"npm package {name} is not installed")
    return found


def node() -> str:
    found = PEERS / "node_modules" / "node" / "bin" / "node"
    if not found.exists():
        pytest.skip("npm package node is not installed")
    return str(found)
