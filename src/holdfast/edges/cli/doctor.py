"""`holdfast doctor`: what this machine offers, and what is missing."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import click

from holdfast.builtin.config import load_config
from holdfast.errors import ToolError
from holdfast.host.beneath import chosen_strategy
from holdfast.host.places import own_code_beneath, private_directory, state_directory
from holdfast.host.sandbox import choose
from holdfast.host.search import find_rg
from holdfast.host.store import cache_directory

_MARKS = {"good": ("✓", "green"), "fair": ("!", "yellow"), "bad": ("✗", "red")}
_EXTRAS = {"mcp": "holdfast serve", "redis": "a shared output cache", "pypdf": "reading PDF files"}


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    state: Literal["good", "fair", "bad"]
    words: str


@click.command(short_help="What protects files and commands on this machine.")
@click.option("--config", "config_file", metavar="FILE", help="Your configuration.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(config_file: str | None, as_json: bool) -> None:
    """Look at this machine: what protects files and commands here, and what would be better.

    Exits 1 if something that is needed does not work.
    """
    findings = list(_examined(config_file))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False))
    else:
        for finding in findings:
            mark, colour = _MARKS[finding.state]
            click.echo(f"{click.style(mark, fg=colour)} {finding.what:<16} {finding.words}")
    sys.exit(1 if any(finding.state == "bad" for finding in findings) else 0)


def _examined(config_file: str | None) -> Iterator[Finding]:
    system = f"{platform.system()} {platform.release()}"
    yield Finding("holdfast", "good", f"{version('holdfast')} on Python {platform.python_version()}, {system}")
    yield _own_code()
    yield _tried("files", _confinement)
    yield _tried("ripgrep", lambda: Finding("ripgrep", "good", find_rg()))
    yield _sandbox()
    yield _tried("outputs", lambda: Finding("outputs", "good", f"kept in {private_directory(cache_directory())}"))
    yield _tried("state", lambda: Finding("state", "good", f"kept in {private_directory(state_directory())}"))
    yield _tried("configuration", lambda: _configured(config_file))
    for package, use in _EXTRAS.items():
        yield _extra(package, use)


def _own_code() -> Finding:
    place = own_code_beneath(".")
    if place is None:
        return Finding("its own code", "good", "outside this directory")
    words = (
        f"in {place}, inside this directory: an agent that works here could change it, and it runs unconfined at the"
    )
    return Finding("its own code", "fair", f"{words} next start; install it elsewhere, as with `pipx install`")


def _tried(what: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except ToolError as fault:
        return Finding(what, "bad", fault.message)
    except OSError as fault:
        return Finding(what, "bad", str(fault))


def _confinement() -> Finding:
    strategy = chosen_strategy()
    words = {
        "openat2": "openat2: the kernel resolves paths beneath the root",
        "walk": "a walk of descriptors: safe, and slower than openat2, which is not here",
    }
    return Finding("files", "good" if strategy == "openat2" else "fair", words[strategy])


def _sandbox() -> Finding:
    found = choose()
    why = f" ({'; '.join(found.faults)})" if found.faults else ""
    return Finding(
        "Bash sandbox", "good" if found.level == "bwrap" else "fair", found.words.removeprefix("sandbox ") + why
    )


def _configured(config_file: str | None) -> Finding:
    config = load_config(config_file, ["."])
    words = ", ".join(config.files) or "none: the defaults hold, and every tool may run"
    ignored = f"; ignored: {'; '.join(config.ignored)}" if config.ignored else ""
    return Finding("configuration", "fair" if config.ignored else "good", words + ignored)


def _extra(package: str, use: str) -> Finding:
    try:
        return Finding(package, "good", f"{version(package)}, for {use}")
    except PackageNotFoundError:
        return Finding(package, "fair", f"not installed; {use} needs it: pip install 'holdfast[all]'")
