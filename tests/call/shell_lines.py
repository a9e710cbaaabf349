"""Reads the shell lines in tests/call/lines: one per line, as `json` if it can't be written plainly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

FOLDER = Path(__file__).parent / "lines"
FAMILIES = sorted(path.stem for path in (FOLDER / "attacks").glob("*.txt"))


def lines_of(name: str) -> list[str]:
    return list(_read(FOLDER / f"{name}.txt"))


def attacks(family: str) -> list[str]:
    return lines_of(f"attacks/{family}")


def _read(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("# ") or not line:
            continue
        yield _decoded(json.loads(line[5:])) if line.startswith("json ") else line


def _decoded(value: Any) -> str:
    """A text, or a list of texts, each followed by a repeat count."""
    if isinstance(value, str):
        return value
    pieces = cast("list[Any]", value)
    return "".join(text * times for text, times in zip(pieces[::2], pieces[1::2], strict=False)) + (
        pieces[-1] if len(pieces) % 2 else ""
    )
