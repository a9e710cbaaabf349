"""`holdfast`: the commands and what they share."""

from __future__ import annotations

import click

from holdfast.edges.cli.call import call
from holdfast.edges.cli.check import check
from holdfast.edges.cli.init import init
from holdfast.edges.cli.serve import serve
from holdfast.edges.cli.shell_complete import completion
from holdfast.edges.cli.tools import tools


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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


for command in (call, tools, serve, check, init, completion):
    main.add_command(command)
