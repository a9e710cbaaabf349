"""A lighter import of the SDK.

It makes validators for every message of every protocol version when it is imported, though a connection speaks one
version and few of its messages; that is a fifth of its start. pydantic can make each at its first use instead.
"""

from __future__ import annotations

import importlib
from typing import Any


def lighten_sdk() -> None:
    """Before the first import of `mcp`. Where the SDK is laid out in another way, it does nothing."""
    try:
        wire: Any = importlib.import_module("mcp_types._wire_base")
        wire.WireModel.model_config["defer_build"] = True
    except (ImportError, AttributeError):
        return
