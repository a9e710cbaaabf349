"""`gripfast`: the command line and its commands."""

from __future__ import annotations

import importlib
from typing import Any

import click

from gripfast.edges.cli.loading import loading
from gripfast.text.escape import visible

# Each command is imported when it is used, so that `serve` does not wait for what it does not need.
_COMMANDS = {
    "call": "gripfast.edges.cli.call",
    "tools": "gripfast.edges.cli.tools",
    "serve": "gripfast.edges.cli.serve",
    "console": "gripfast.edges.cli.console",
    "approvals": "gripfast.edges.cli.approvals",
    "approve": "gripfast.edges.cli.approvals",
    "deny": "gripfast.edges.cli.approvals",
    "log": "gripfast.edges.cli.log",
    "diff": "gripfast.edges.cli.diff",
    "undo": "gripfast.edges.cli.undo",
    "check": "gripfast.edges.cli.check",
    "doctor": "gripfast.edges.cli.doctor",
    "init": "gripfast.edges.cli.init",
    "quarantine": "gripfast.edges.cli.quarantine",
    "clean": "gripfast.edges.cli.clean",
    "completion": "gripfast.edges.cli.shell_complete",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = _COMMANDS.get(cmd_name)
        if home is None:
            return None
        with loading():
            return getattr(importlib.import_module(home), cmd_name)

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
