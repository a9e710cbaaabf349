"""A faster import of the MCP SDK.

On import the SDK builds validators for every message of every protocol version, which takes a fifth of the server's
start. A connection speaks one version and uses few messages, so here pydantic builds each validator at its first use.
"""

from __future__ import annotations

import importlib
from typing import Any


def defer_sdk_validators() -> None:
    """Must be called before the first import of `mcp`. Does nothing if the SDK has no such base class."""
    try:
        wire: Any = importlib.import_module("mcp_types._wire_base")
        wire.WireModel.model_config["defer_build"] = True
    except (ImportError, AttributeError):
        return
