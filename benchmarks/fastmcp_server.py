"""A minimal fastmcp server that reads a file."""

from __future__ import annotations

import sys
from pathlib import Path

from fastmcp import FastMCP

ROOT = Path(sys.argv[1])
server = FastMCP("minimal")


@server.tool
def Read(file_path: str) -> str:
    """Reads a file."""
    return (ROOT / file_path).read_text(encoding="utf-8")


server.run(show_banner=False)
