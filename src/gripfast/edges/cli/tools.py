"""`gripfast tools`: lists the tools, their definitions for a provider's API, and their cost in tokens."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import cast

import click

from gripfast.builtin.tools import TOOLS
from gripfast.edges.cli.options import SessionSettings, as_usage_errors, session_options
from gripfast.edges.cli.say import say, say_json
from gripfast.edges.cli.screen import console_for
from gripfast.edges.cli.shell_complete import complete_tool
from gripfast.edges.profiles import PROFILES, pick, price, price_of
from gripfast.edges.reference import markdown, usage_of
from gripfast.framework.definition import Tool
from gripfast.framework.providers import PROVIDER_FORMS, ProviderForm, definitions
from gripfast.text.escape import escaped


@click.command(short_help="List the tools, what they cost, or their definitions for an API.")
@session_options
@click.argument("named", nargs=-1, metavar="[NAME]...", shell_complete=complete_tool)
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", *PROVIDER_FORMS]), default="text", show_default=True
)
@click.option("--cost", is_flag=True, help="Show about how many tokens each tool and each profile costs.")
def tools(settings: SessionSettings, named: tuple[str, ...], form: str, cost: bool) -> None:
    """List the tools, show one with its arguments, or print definitions as a provider's API takes them.

    \b
    gripfast tools
    gripfast tools Grep
    gripfast tools --cost
    gripfast tools --profile agent --format anthropic > tools.json
    """
    if named:
        with as_usage_errors():
            settings = replace(settings, tools=tuple(pick(settings.tools, names=named)))
    if named and form == "text" and not cost:
        say("\n\n".join(usage_of(tool) for tool in settings.tools))
    elif cost:
        _rows([(tool.name, str(price_of(tool))) for tool in settings.tools], ("tool", "tokens, estimated"))
        say()
        rows = [(name, str(len(chosen)), str(price(chosen))) for name in PROFILES for chosen in [pick(TOOLS, name)]]
        _rows(rows, ("profile", "tools", "tokens, estimated"))
    elif form == "markdown":
        say(markdown(settings.tools), nl=False)
    elif form == "text":
        _rows([(tool.name, _first_sentence(tool)) for tool in settings.tools], ("tool", "what it does"))
    else:
        say_json(definitions(settings.tools, cast("ProviderForm", form)), indent=2)


def _first_sentence(tool: Tool) -> str:
    line = " ".join(tool.description.split())
    return line.split(". ")[0].rstrip(".") + "."


def _rows(rows: list[tuple[str, ...]], heads: tuple[str, ...]) -> None:
    """A table on a terminal; in a pipe, tabs."""
    if not sys.stdout.isatty():
        for row in rows:
            say("\t".join(row))
        return
    from rich.table import Table  # noqa: PLC0415 - loaded only when a person is looking

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(heads):
        number = rows and rows[0][place].isdigit()
        table.add_column(head, justify="right" if number else "left", style="cyan" if place == 0 else "")
    for row in rows:
        table.add_row(*map(escaped, row))
    console_for(sys.stdout).print(table)
