"""`holdfast tools`: what there is, for people and for providers."""

from __future__ import annotations

import json
from typing import cast

import click

from holdfast.edges.cli.options import Opening, opening_options
from holdfast.tool.providers import FORMS, Form


@click.command()
@opening_options
@click.option("--format", "form", type=click.Choice(["text", *FORMS]), default="text", show_default=True)
def tools(opened: Opening, form: str) -> None:
    """List the tools, or print their definitions as a provider's API takes them."""
    session = opened.session()
    if form != "text":
        click.echo(json.dumps(session.definitions(cast("Form", form)), ensure_ascii=False, indent=2))
        return
    for tool in session.tools.values():
        click.echo(f"{tool.name}  {tool.description}")
