"""`gripfast`: the command line and its commands."""

from __future__ import annotations

import importlib
from typing import Any

import click
from click.shell_completion import CompletionItem

from gripfast.edges.cli.loading import loading
from gripfast.text.escape import visible

_HERE = "gripfast.edges.cli"
# Where each command is, and what it does in a line. A command is imported when it is used: `serve` does not wait for
# what it does not need, and the list of commands needs none of them.
_COMMANDS = {
    "call": (f"{_HERE}.call", "Call a tool with a JSON object."),
    "tools": (f"{_HERE}.tools", "List the tools, what they cost, or their definitions for an API."),
    "serve": (f"{_HERE}.serve", "Serve the tools over MCP, on stdio or HTTP."),
    "console": (f"{_HERE}.console", "Watch all sessions in a browser, approve and undo there."),
    "approvals": (
        f"{_HERE}.approvals",
        "List the questions of agents that wait for you; answer them live with --watch.",
    ),
    "approve": (f"{_HERE}.approvals", "Answer a waiting question with yes."),
    "deny": (f"{_HERE}.approvals", "Answer a waiting question with no."),
    "log": (f"{_HERE}.log", "Show what the calls of a session did."),
    "diff": (f"{_HERE}.diff", "Show what calls changed."),
    "undo": (f"{_HERE}.undo", "Take back what calls changed."),
    "check": (f"{_HERE}.check", "Say which rule decides a call, and why."),
    "doctor": (f"{_HERE}.doctor", "Show what protects files and commands on this machine."),
    "init": (f"{_HERE}.init", "Print or write the configuration of an MCP client."),
    "quarantine": (f"{_HERE}.quarantine", "List, show or release what commands made that other programs would run."),
    "clean": (f"{_HERE}.clean", "Empty the caches of package managers that ran in the sandbox."),
    "completion": (f"{_HERE}.shell_complete", "Print the line that enables completion in your SHELL."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        with loading():
            return getattr(importlib.import_module(_COMMANDS[cmd_name][0]), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in _COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, without importing them."""
        found = [
            CompletionItem(name, help=what) for name, (_, what) in _COMMANDS.items() if name.startswith(incomplete)
        ]
        return found or super().shell_complete(ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        """As click does, but what click will print is escaped: it may quote a file of a hostile workspace."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise click.UsageError(visible(error.format_message()), error.ctx) from None
        except click.ClickException as error:
            raise click.ClickException(visible(error.format_message())) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="gripfast")
def main() -> None:
    """Tools for LLM coding agents, confined to the directories you choose.

    \b
    gripfast call Read '{"file_path": "README.md"}'   try a tool
    gripfast tools                                    list the tools
    gripfast serve                                    serve the tools to an MCP client on stdio
    gripfast init claude --write                      add the server to your client
    gripfast doctor                                   check what protects this machine
    """
