"""Where a URL of git leads on this machine: a push to a repository there runs its hooks."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import urllib.parse
from collections.abc import Iterator, Sequence
from functools import lru_cache

from gripfast.host.files.gitconfig import urls_in
from gripfast.host.files.gitdirs import git_file_text, is_inside_repository, worktree_directories
from gripfast.host.kernel.regular import beginning_of
from gripfast.text.below import is_below

_LARGEST_CONFIG = 1024 * 1024
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SSH = frozenset({"ssh", "git+ssh", "ssh+git"})
# What is there differs from process to process, so what we see says nothing about what git will see.
_OF_PROCESSES = ("/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr")
_LOOPBACK_NAMES = frozenset({"localhost", "ip6-localhost", "ip6-loopback", "localhost6"})


def leads_astray(url: str, config: str, unseen: Sequence[str]) -> bool:
    """Whether git would follow a URL of this configuration to a place on this machine where nobody judges hooks.
    `unseen`: directories that commands write and nobody looks through."""
    places = places_of(url, config)
    return places is None or any(is_unjudged(place, unseen) for place in places)


def is_unjudged(place: str, unseen: Sequence[str]) -> bool:
    """Whether a path leads to where nobody looks for hooks and settings."""
    if is_below(os.path.normpath(f"/{place.lstrip('/')}"), *_OF_PROCESSES):
        return True
    real = os.path.realpath(place)
    return is_below(real, *unseen, *_OF_PROCESSES) or is_inside_repository(real) or git_file_text(real) != ""


def places_here(config: str) -> Iterator[str]:
    """The places on this machine where the remotes of a configuration are, as far as it names paths."""
    try:
        found = os.stat(config)
    except OSError:
        return iter(())
    urls = _paths_in(config, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return (place for url in urls for place in places_of(url, config) or ())


@lru_cache(maxsize=512)
def _paths_in(config: str, _stamp: tuple[int, ...]) -> tuple[str, ...]:
    text = os.fsdecode(beginning_of(config, _LARGEST_CONFIG) or b"")
    return tuple(url for url in dict.fromkeys(urls_in(text)) if _is_path(url))


def _is_path(url: str) -> bool:
    scheme = _SCHEME.match(url)
    return not _scp_like(url) if scheme is None else scheme[1].lower() == "file"


def places_of(url: str, config: str) -> list[str] | None:
    """The places on this machine that a URL may mean to git; None: nobody can tell. Most mean none.

    As git's `parse_connect_url` and `enter_repo` do: `x` may be `x.git`, a file `x` may name another directory.
    """
    if "\0" in url:
        return None
    scheme = _SCHEME.match(url)
    if scheme is None:
        return list(_ended(_scp_like(url) or _from_bases(os.path.expanduser(url), config)))
    rest = url[scheme.end() :]
    if scheme[1].lower() == "file":
        # Git passes over a host, whatever it says, and decodes percent signs.
        return list(_ended([rest])) if rest.startswith("/") and "%" not in rest else None
    host, slash, path = urllib.parse.unquote(rest).partition("/")
    if scheme[1].lower() in _SSH:
        return list(_ended(_over_ssh(f"{slash}{path}")))
    return list(_ended([f"/{path}"])) if _is_this_machine(host) else []


def _scp_like(url: str) -> list[str]:
    """`host:path`, unless a slash comes first; the path begins in a home directory."""
    host, colon, path = url.partition("]:" if url.startswith("[") else ":")
    return _over_ssh(path) if colon and "/" not in host else []


def _over_ssh(path: str) -> list[str]:
    """A path on another machine, judged as one here: nobody keeps repositories where commands here write."""
    home = os.path.expanduser("~")
    spelled = path.removeprefix("/") if path.startswith("/~") else path
    return [os.path.join(home, os.path.expanduser(spelled)), os.path.join("/", path)]


def _from_bases(path: str, config: str) -> list[str]:
    return [path] if os.path.isabs(path) else [os.path.join(base, path) for base in _bases(config)]


def _bases(config: str) -> Iterator[str]:
    """Where git may be when it follows a relative path of a configuration: in a worktree, or in a bare repository."""
    owner = os.path.dirname(config)
    if os.path.basename(config) == ".gitmodules":
        yield owner
        return
    found = list(worktree_directories(owner))
    yield from found
    if os.path.basename(owner) == ".git":
        yield os.path.dirname(owner)
    elif not found:
        yield from (owner, os.path.dirname(owner))


def _ended(places: Sequence[str]) -> Iterator[str]:
    for place in places:
        yield from (place, f"{place.rstrip('/')}.git")


def _is_this_machine(host: str) -> bool:
    """Whether a host of a URL is a loopback address or a name of this machine."""
    name = host.rpartition("@")[2].lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    name = name.rstrip(".")
    if name in _LOOPBACK_NAMES or name.endswith(".localhost") or name in (own := socket.gethostname().lower(), ""):
        return True
    if own.startswith(f"{name}."):
        return True
    try:
        address = ipaddress.ip_address(socket.inet_ntoa(socket.inet_aton(name)) if ":" not in name else name)
    except (OSError, ValueError):
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_unspecified
