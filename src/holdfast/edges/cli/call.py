"""`holdfast call`: one call from the shell."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout

import anyio
import click

from holdfast.edges.cli import screen
from holdfast.edges.cli.options import Opening, opening_options, told_as_usage
from holdfast.edges.cli.shell_complete import complete_tool
from holdfast.edges.kept import kept_session
from holdfast.host.process import hide_process
from holdfast.messages import ToolMessage


@click.command(short_help="Call a tool with a JSON object.")
@click.argument("tool", shell_complete=complete_tool)
@click.argument("arguments", default="{}", metavar="[JSON | -]")
@opening_options
@click.option("--session", "name", metavar="NAME", help="Go on where calls with the same NAME have left off.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole message as JSON.")
def call(tool: str, arguments: str, opened: Opening, name: str | None, as_json: bool) -> None:
    """Call TOOL with a JSON object; `-` reads it from standard input.

    The content goes to standard output, an error to standard error with exit code 1. `--session` keeps what was
    read, the todos, the working directory and cached outputs from one call to the next; what runs in the background
    ends with its call.

    \b
    holdfast call Read '{"file_path": "README.md", "limit": 20}'
    holdfast call Grep '{"pattern": "TODO", "output_mode": "content"}' | less
    echo '{"file_path": "README.md"}' | holdfast call Read - --json
    holdfast call Read '{"file_path": "a.py"}' --session fix
    holdfast call Edit '{"file_path": "a.py", "old_string": "x", "new_string": "y"}' --session fix
    """
    if arguments == "-":
        arguments = sys.stdin.read()
    hide_process()
    with told_as_usage(), redirect_stdout(sys.stderr):  # what a tool prints is not its answer
        message, face = anyio.run(_call, tool, arguments, opened, name)
    if as_json:
        click.echo(json.dumps(message.to_dict(), ensure_ascii=False))
    else:
        screen.show(message, face)
        if name is None and message.error is not None and message.error.code == "NOT_READ":
            click.echo("Each call is a session of its own: give both calls the same --session NAME", err=True)
    sys.exit(1 if message.is_error else 0)


async def _call(tool: str, arguments: str, opened: Opening, name: str | None) -> tuple[ToolMessage, str | None]:
    async with kept_session(opened, name, ask=screen.asker()) as session:
        with screen.waiting(tool) as progress:
            message = await session.call(tool, arguments, progress=progress)
        found = session.tools.get(tool)
        return message, found and found.traits.face
