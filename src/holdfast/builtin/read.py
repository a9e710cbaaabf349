"""Read: a numbered window of a text file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.builtin.keys import FS
from holdfast.host.fs import ScopedFs
from holdfast.host.paths import WorkPath
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends


@tool(name="Read", title="Read a file", effect="read", subject="file_path", output="bounded")
def read(
    file_path: Annotated[WorkPath, Field(description="Absolute, or relative to the workspace.")],
    offset: Annotated[int, Field(description="Lines to skip; negative counts from the end.")] = 0,
    limit: Annotated[int, Field(description="Lines to return.", ge=1)] = 2000,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
) -> str:
    """Reads a file and numbers its lines from 1."""
    lines = fs.read_bytes(file_path).decode().splitlines()
    start = offset if offset >= 0 else max(0, len(lines) + offset)
    return "\n".join(f"{n:6d}\t{line}" for n, line in enumerate(lines[start : start + limit], start + 1))
