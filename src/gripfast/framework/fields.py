"""`Field` of pydantic for annotations that are evaluated later: pydantic is loaded when the first one is."""

from __future__ import annotations

import importlib
from typing import Any


def Field(**options: Any) -> Any:
    """As `pydantic.Field`."""
    return importlib.import_module("pydantic").Field(**options)
