"""Where the program starts: what can be answered at once is, before the rest is loaded."""

from __future__ import annotations

import importlib
import sys

from gripfast.edges import early, pages


def run() -> None:
    """The command `gripfast`."""
    arguments = sys.argv[1:]
    if pages.is_page(arguments):
        pages.show(arguments, _commands)
    else:
        early.answer(arguments)
        _commands()


def _commands() -> None:
    importlib.import_module("gripfast.host.program.ending").this_process_is_ours()
    importlib.import_module("gripfast.edges.cli").main(prog_name="gripfast")
