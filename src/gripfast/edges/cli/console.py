"""`gripfast console`: a page that shows what agents do, and takes your answers."""

from __future__ import annotations

import importlib
import sys
import webbrowser
from contextlib import ExitStack
from urllib.parse import quote

import anyio
import click

from gripfast.edges.cli.loading import loading
from gripfast.edges.cli.options import as_usage_errors
from gripfast.edges.cli.say import say
from gripfast.edges.cli.store import chosen_store, store_option
from gripfast.host.kernel.prctl import hide_process
from gripfast.host.program.net import Address, listen
from gripfast.host.questions.page import hidden_link, page_at


@click.command(short_help="Watch all sessions in a browser, approve and undo there.")
@click.option("--port", default=0, metavar="N", help="The port on loopback; by default any free one.")
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
@click.option("--config", "config_file", metavar="FILE", help="Your configuration.")
@store_option
def console(port: int, opens: bool, config_file: str | None, store: str | None) -> None:
    """Show a page with the calls of all your sessions on this machine, live, whichever client started them.

    Questions that wait for you are on top, with what would run and its diff. Every call opens to its arguments, its
    answer and what it changed, and can be undone. The page is on loopback only; the link that is printed works once.

    \b
    gripfast console --open
    gripfast console --port 8766
    """
    hide_process()
    try:
        with loading():
            app = importlib.import_module("gripfast.edges.console.app")
            serving = importlib.import_module("gripfast.edges.console.serving")
    except ModuleNotFoundError as missing:
        raise click.ClickException(f"{missing}; install it with: pip install 'gripfast[mcp]'") from None
    with as_usage_errors():
        listening, address = listen(Address("127.0.0.1", port))
        access = app.ConsoleAccess(serving.hosts_of(address))
        data = app.ConsoleData(config_file, chosen_store(config_file, store))
        served = app.for_people(app.console_app(access, data))
    link = access.link()
    with ExitStack() as until_the_end:
        say(f"the console is at {for_reader(link, until_the_end)}", err=True)
        say("  the link works once; for another, start the console again\n  press Ctrl-C to stop", err=True)
        if opens:
            _open(until_the_end.enter_context(hidden_link(link)))
        until_the_end.enter_context(page_at(str(address)))
        anyio.run(serving.serve_console, served, listening)


def for_reader(link: str, until_the_end: ExitStack) -> str:
    """The link as it may be printed: in a log, a command could read it and use it first, so there it is the address
    of a file that commands can't read."""
    return link if sys.stderr.isatty() else f"file://{quote(until_the_end.enter_context(hidden_link(link)))}"


def _open(path: str) -> None:
    """Opens a file in the user's browser."""
    if click.launch(path) != 0:
        webbrowser.open(f"file://{quote(path)}")
