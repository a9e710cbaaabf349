"""The command line."""

from gripfast.edges.cli.main import main

__all__ = ["main"]
