"""Files that are part of this program and not code."""

from __future__ import annotations

from importlib import resources


def packaged_files(package: str, folder: str) -> dict[str, bytes]:
    """The files in a folder of a package, by name."""
    found = resources.files(package).joinpath(folder)
    return {entry.name: entry.read_bytes() for entry in found.iterdir() if entry.is_file()}
