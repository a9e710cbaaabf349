"""The command line."""

from holdfast.edges.cli.main import main

__all__ = ["main"]
