"""What commands print: configuration, names and other programs' words may be in it, so nothing acts on a terminal."""

from __future__ import annotations

import json
from typing import Any

import click

from gripfast.text.escape import visible, visible_json


def say(text: str = "", *, mark: str = "", err: bool = False, nl: bool = True) -> None:
    """Print a message. `mark` stands before it and is ours: it may be coloured."""
    click.echo(mark + visible(text), err=err, nl=nl)


def say_json(value: Any, indent: int | None = None) -> None:
    """Print a value as JSON, whose characters that may not be shown are JSON escapes."""
    click.echo(visible_json(json.dumps(value, ensure_ascii=False, indent=indent)))
