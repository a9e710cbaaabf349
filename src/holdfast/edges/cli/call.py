"""`holdfast call`: one call from the shell."""

from __future__ import annotations

import json
import sys

import anyio
import click

from holdfast.edges.cli.options import root_option, session_of, with_option
from holdfast.messages import ToolMessage


@click.command()
@click.argument("tool")
@click.argument("arguments", default="{}", metavar="[JSON | -]")
@root_option
@with_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole message as JSON.")
def call(tool: str, arguments: str, roots: tuple[str, ...], extra: tuple[str, ...], as_json: bool) -> None:
    """Call TOOL with a JSON object; `-` reads it from standard input.

    \b
    holdfast call Read '{"file_path": "README.md", "limit": 20}'
    echo '{"file_path": "README.md"}' | holdfast call Read - --json
    """
    if arguments == "-":
        arguments = sys.stdin.read()
    message = anyio.run(_call, tool, arguments, roots, extra)
    if as_json:
        click.echo(json.dumps(message.to_dict(), ensure_ascii=False))
    else:
        click.echo(message.text, err=message.is_error)
    sys.exit(1 if message.is_error else 0)


async def _call(tool: str, arguments: str, roots: tuple[str, ...], extra: tuple[str, ...]) -> ToolMessage:
    async with session_of(roots, extra) as session:
        return await session.call(tool, arguments)
