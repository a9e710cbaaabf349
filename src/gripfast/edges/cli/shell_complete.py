"""Shell completion of tool names."""

from __future__ import annotations

import click

from gripfast.builtin import tools as tool_list
from gripfast.edges.cli.say import say

SHELLS = ("bash", "zsh", "fish")


def complete_tool(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return [tool.name for tool in tool_list.TOOLS if tool.name.lower().startswith(begun.lower())]


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the line that enables completion in your SHELL.

    \b
    gripfast completion bash >> ~/.bashrc
    """
    line = f"_GRIPFAST_COMPLETE={shell}_source gripfast"
    say(f"{line} | source" if shell == "fish" else f'eval "$({line})"')
