"""`gripfast doctor`: what protects files and commands on this machine, and what is missing."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import click

from gripfast.builtin.config import load_config
from gripfast.edges.cli.say import say, say_json
from gripfast.edges.settings import read_settings
from gripfast.errors import ToolError
from gripfast.host.files.beneath import chosen_strategy
from gripfast.host.program.own import own_code_beneath
from gripfast.host.program.places import private_directory, state_directory
from gripfast.host.search.ripgrep import find_rg
from gripfast.host.shell.caches import caches_folder, caches_size
from gripfast.host.shell.network import parse_network
from gripfast.host.shell.quarantine import quarantined
from gripfast.host.shell.sandbox import choose, within_network
from gripfast.host.stores.store import cache_directory
from gripfast.records import dataclass

_MARKS = {"good": ("✓", "green"), "fair": ("!", "yellow"), "bad": ("✗", "red")}
_EXTRAS = {  # by package: the extra that brings it, and its use
    "mcp": ("mcp", "gripfast serve"),
    "redis": ("redis", "a shared output cache"),
    "pypdf": ("pdf", "reading PDF files"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    state: Literal["good", "fair", "bad"]
    words: str


@click.command(short_help="Show what protects files and commands on this machine.")
@click.option(
    "--root",
    default=".",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="The workspace; default: the current directory.",
)
@click.option("--config", "config_file", metavar="FILE", help="Your configuration.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(root: str, config_file: str | None, as_json: bool) -> None:
    """Show what protects files and commands on this machine, and what could be improved.

    Exits with 1 if something required does not work.
    """
    findings = list(_examined(root, config_file))
    if as_json:
        say_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            mark, colour = _MARKS[finding.state]
            say(f" {finding.what:<16} {finding.words}", mark=click.style(mark, fg=colour))
    sys.exit(1 if any(finding.state == "bad" for finding in findings) else 0)


def _examined(root: str, config_file: str | None) -> Iterator[Finding]:
    system = f"{platform.system()} {platform.release()}"
    yield Finding("gripfast", "good", f"{version('gripfast')} on Python {platform.python_version()}, {system}")
    yield _own_code(root)
    yield _tried("files", _confinement)
    yield _tried("ripgrep", lambda: Finding("ripgrep", "good", find_rg()))
    yield _sandbox()
    yield _tried("network", lambda: _network(root, config_file))
    yield _tried("caches", _caches)
    yield _tried("quarantine", _quarantine)
    yield _tried("outputs", lambda: Finding("outputs", "good", f"stored in {private_directory(cache_directory())}"))
    yield _tried("state", lambda: Finding("state", "good", f"stored in {private_directory(state_directory())}"))
    yield _tried("configuration", lambda: _configured(root, config_file))
    yield from _store(root, config_file)
    yield _tried("rules", lambda: _rules(root, config_file))
    for package, (extra, use) in _EXTRAS.items():
        yield _extra(package, extra, use)


def _rules(root: str, config_file: str | None) -> Finding:
    return Finding("rules", "good", read_settings([root], config_file=config_file).rules_in_words())


def _own_code(root: str) -> Finding:
    place = own_code_beneath(root)
    if place is None:
        return Finding("its own code", "good", "outside this directory")
    if choose().confines:
        return Finding("its own code", "good", f"in {place}, inside this directory: no tool may change it")
    words = f"in {place}, inside this directory, and no sandbox works here that could keep a command from changing it"
    return Finding("its own code", "fair", f"{words}; install it elsewhere, for example with pipx")


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
        "openat2": "openat2: the kernel keeps paths inside the root",
        "walk": "one directory at a time: safe, but slower than openat2, which this kernel lacks",
    }
    return Finding("files", "good" if strategy == "openat2" else "fair", words[strategy])


def _sandbox() -> Finding:
    found = choose()
    why = f" ({'; '.join(found.faults)})" if found.faults else ""
    return Finding(
        "Bash sandbox",
        "good" if found.hides_denied else "fair",
        found.description.removeprefix("sandbox ") + why,
    )


def _network(root: str, config_file: str | None) -> Finding:
    config = load_config(config_file, [root])
    network = parse_network(config.network)
    within_network(choose(config.sandbox), network)
    words = network.description.removeprefix("network ")
    return Finding(
        "network", "good", f"{words}; `network` in the configuration limits commands to a list of hosts, or to none"
    )


def _caches() -> Finding:
    return Finding(
        "caches", "good", f"{caches_size() / 1024**2:.0f} MB in {caches_folder()}; gripfast clean empties it"
    )


def _quarantine() -> Finding:
    count = len(quarantined())
    words = f"{count} items; gripfast quarantine lists them" if count else "nothing in it"
    return Finding("quarantine", "fair" if count else "good", words)


def _configured(root: str, config_file: str | None) -> Finding:
    config = load_config(config_file, [root])
    words = ", ".join(config.files) or "none: the defaults apply"
    ignored = f"; ignored: {'; '.join(config.ignored)}" if config.ignored else ""
    return Finding("configuration", "fair" if config.ignored else "good", words + ignored)


def _store(root: str, config_file: str | None) -> Iterator[Finding]:
    """The store that servers share, if the configuration names one."""
    try:
        store = load_config(config_file, [root]).store
    except ToolError:
        return  # the line about the configuration says so
    if store is not None:
        from gripfast.host.stores.redis_sessions import RedisSessions  # noqa: PLC0415 - few servers share a store

        def look() -> Finding:
            RedisSessions(store).ping()
            return Finding("store", "good", "the shared Redis answers")

        yield _tried("store", look)


def _extra(package: str, extra: str, use: str) -> Finding:
    try:
        return Finding(package, "good", f"{version(package)}, for {use}")
    except PackageNotFoundError:
        return Finding(package, "fair", f"not installed; needed for {use}: pip install 'gripfast[{extra}]'")
