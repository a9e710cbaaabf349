"""Where configuration files are, and their text: the user's, the one named, and those inside the workspace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from gripfast.errors import InvalidArgument
from gripfast.host.kernel.regular import read_regular
from gripfast.host.program.own import in_use
from gripfast.records import dataclass

NAME = "gripfast.toml"
WORKSPACE_NAME = ".gripfast.toml"
LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ConfigText:
    """One file as it was read. `trusted` is false inside the workspace, which may be hostile."""

    path: str
    text: str
    trusted: bool


def config_texts(
    named: str | None, roots: Iterable[str], environment: Mapping[str, str] | None = None
) -> list[ConfigText]:
    """The file `named`, or else the user's own; then those of the roots. An unreadable one raises InvalidArgument."""
    own = named or _users_own(os.environ if environment is None else environment)
    texts = [] if own is None else [ConfigText(own, _text(own, follow=True), True)]
    for text in texts:
        secret = "@" in text.text or "password=" in text.text  # the address of a shared store may contain one
        in_use(text.path, secret=secret)
    for root in roots:
        path = os.path.join(root, WORKSPACE_NAME)
        if os.path.lexists(path) and not _same(path, own):
            texts.append(ConfigText(path, _text(path, follow=False), False))
    return texts


def own_config_path() -> str:
    """The user's own file, which may not exist yet. Raises InvalidArgument if there is no home directory."""
    found = _users_own(os.environ)
    if found is not None:
        return found
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".config")
    if not os.path.isabs(folder):
        raise InvalidArgument("there is no home directory to keep a configuration in; name one with --config")
    return os.path.join(folder, "gripfast", NAME)


def _same(path: str, own: str | None) -> bool:
    return own is not None and os.path.exists(own) and os.path.realpath(path) == os.path.realpath(own)


def _users_own(environment: Mapping[str, str]) -> str | None:
    """`gripfast/gripfast.toml` or `gripfast.toml` in the config directory; not both."""
    folder = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):
        home = environment.get("HOME", "")
        if not os.path.isabs(home):
            return None
        folder = os.path.join(home, ".config")
    found = [
        path for path in (os.path.join(folder, "gripfast", NAME), os.path.join(folder, NAME)) if os.path.lexists(path)
    ]
    if len(found) > 1:
        raise InvalidArgument(f"two configurations: {found[0]} and {found[1]}; keep one")
    return found[0] if found else None


def _text(path: str, *, follow: bool) -> str:
    try:
        data = read_regular(path, LARGEST + 1, follow=follow)
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror}") from None
    if len(data) > LARGEST:
        raise InvalidArgument(f"{path}: over {LARGEST} bytes, which no configuration needs")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path}: not UTF-8 (byte {error.start})") from None
