"""`holdfast`: the commands and what they share."""

from __future__ import annotations

import importlib

import click

from holdfast.edges.cli.loading import loading

# Each command is loaded when it is used: what `serve` does not need does not slow its start.
_COMMANDS = {
    "call": "holdfast.edges.cli.call",
    "tools": "holdfast.edges.cli.tools",
    "serve": "holdfast.edges.cli.serve",
    "check": "holdfast.edges.cli.check",
    "doctor": "holdfast.edges.cli.doctor",
    "init": "holdfast.edges.cli.init",
    "completion": "holdfast.edges.cli.shell_complete",
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


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="holdfast")
def main() -> None:
    """Tools for LLM coding agents, held inside one scope.

    \b
    holdfast call Read '{"file_path": "README.md"}'   try a tool
    holdfast tools                                    see them all
    holdfast serve                                    serve them to an MCP client on stdio
    holdfast init claude --write                      tell your client about it
    holdfast doctor                                   what this machine offers
    """
