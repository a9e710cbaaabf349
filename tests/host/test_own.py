"""What this program runs, by its places."""

from __future__ import annotations

import os
from pathlib import Path

import gripfast
from gripfast.host.program.own import own_places


def test_the_directory_that_the_package_is_imported_from_is_our_own() -> None:
    """In a checkout it is the source directory: a `sitecustomize.py` put there runs at the next start."""
    imported_from = os.path.realpath(Path(gripfast.__file__).parents[1])
    assert imported_from in {place.path for place in own_places()}
