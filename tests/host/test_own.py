"""What this program runs, by its places."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import gripfast
from gripfast.host.program import own
from gripfast.host.program.config import config_texts
from gripfast.host.program.own import own_places


def test_the_directory_that_the_package_is_imported_from_is_our_own() -> None:
    """In a checkout it is the source directory: a `sitecustomize.py` put there runs at the next start."""
    imported_from = os.path.realpath(Path(gripfast.__file__).parents[1])
    assert imported_from in {place.path for place in own_places()}


@pytest.mark.parametrize(
    ("store", "is_secret"),
    [
        ("redis://:pass@host/0", True),
        ("redis+sentinel://user:pass@one:1,two:2/main/0", True),
        ("unix:///run/redis.sock?password=pass", True),
        ("redis://host/0", False),
    ],
)
def test_a_configuration_with_the_password_of_a_store_is_hidden_from_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, is_secret: bool
) -> None:
    """Who knows it may answer questions."""
    monkeypatch.setattr(own, "_given", {})
    file = tmp_path / "gripfast.toml"
    file.write_text(f'store = "{store}"\n', encoding="utf-8")
    config_texts(str(file), [])
    (found,) = [place for place in own_places() if place.path == os.path.realpath(file)]
    assert found.secret == is_secret
