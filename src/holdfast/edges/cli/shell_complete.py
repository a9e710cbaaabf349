"""Completion of tool names in the shell."""

from __future__ import annotations

import click

from holdfast.builtin.session import TOOLS

SHELLS = ("bash", "zsh", "fish")


def complete_tool(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return [tool.name for tool in TOOLS if tool.name.lower().startswith(begun.lower())]


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the line that turns on completion in your SHELL.

    \b
    holdfast completion bash >> ~/.bashrc
    """
    line = f"_HOLDFAST_COMPLETE={shell}_source holdfast"
    click.echo(f"{line} | source" if shell == "fish" else f'eval "$({line})"')
