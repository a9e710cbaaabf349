"""`holdfast tools`: what there is, for people and for providers, and what it costs."""

from __future__ import annotations

import json
import sys
from typing import cast

import click

from holdfast.builtin.session import TOOLS
from holdfast.edges.cli.options import Opening, opening_options
from holdfast.edges.cli.screen import console_for
from holdfast.edges.profiles import PROFILES, pick, price, price_of
from holdfast.edges.reference import markdown
from holdfast.tool.definition import Tool
from holdfast.tool.providers import FORMS, Form, definitions


@click.command(short_help="List the tools, what they cost, or their definitions for an API.")
@opening_options
@click.option("--format", "form", type=click.Choice(["text", "markdown", *FORMS]), default="text", show_default=True)
@click.option("--cost", is_flag=True, help="About how many tokens each tool and each profile costs a model.")
def tools(opened: Opening, form: str, cost: bool) -> None:
    """List the tools, or print their definitions as a provider's API takes them.

    \b
    holdfast tools
    holdfast tools --cost
    holdfast tools --profile agent --format anthropic > tools.json
    """
    if cost:
        _rows([(tool.name, str(price_of(tool))) for tool in opened.tools], ("tool", "tokens"))
        click.echo()
        rows = [(name, str(len(chosen)), str(price(chosen))) for name in PROFILES for chosen in [pick(TOOLS, name)]]
        _rows(rows, ("profile", "tools", "tokens"))
    elif form == "markdown":
        click.echo(markdown(opened.tools), nl=False)
    elif form == "text":
        _rows([(tool.name, _first_sentence(tool)) for tool in opened.tools], ("tool", "what it does"))
    else:
        click.echo(json.dumps(definitions(opened.tools, cast("Form", form)), ensure_ascii=False, indent=2))


def _first_sentence(tool: Tool) -> str:
    line = " ".join(tool.description.split())
    return line.split(". ")[0].rstrip(".") + "."


def _rows(rows: list[tuple[str, ...]], heads: tuple[str, ...]) -> None:
    """A table on a terminal; in a pipe, tabs."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(row))
        return
    from rich.table import Table  # noqa: PLC0415 - loaded only when a person is looking

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(heads):
        number = rows and rows[0][place].isdigit()
        table.add_column(head, justify="right" if number else "left", style="cyan" if place == 0 else "")
    for row in rows:
        table.add_row(*row)
    console_for(sys.stdout).print(table)
