"""`gripfast clean`: empties the caches that commands fill."""

from __future__ import annotations

import click

from gripfast.edges.cli.say import say
from gripfast.host.shell.caches import caches_folder, caches_size, clear_caches


@click.command(short_help="Empty the caches of package managers that ran in the sandbox.")
def clean() -> None:
    """Empty the caches that package managers and compilers filled inside the sandbox. Your own are left alone."""
    size = caches_size()
    clear_caches()
    say(f"removed {size / 1024**2:.1f} MB from {caches_folder()}")
