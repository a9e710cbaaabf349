"""The file of people's tokens: who may call over HTTP, and what differs for each of them.

A line is `TOKEN`, or `NAME TOKEN` with options: `profile=NAME`, `rules=NAME`, `root=DIR`, `readonly`. A file whose
name ends with `.toml`, or whose first line is a table's header, is TOML and has a table for each name. No message
quotes the file: a misplaced word may be a token.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, cast

from gripfast.errors import InvalidArgument
from gripfast.host.program.own import in_use
from gripfast.records import dataclass

SHORTEST = 16
LARGEST = 1 << 20
_NAME = re.compile(r"[\w.@+-]{1,64}")
_OPTIONS = ("profile", "rules", "root")
_SHOWN = "profile=NAME, rules=NAME, root=DIR or readonly"


@dataclass(frozen=True, slots=True)
class Token:
    """One token, whose it is, and what holds for its owner. `place` says where it stands in the file."""

    name: str
    token: str = field(repr=False)
    profile: str | None = None
    rules: str | None = None
    roots: tuple[str, ...] = ()
    readonly: bool = False
    place: str = ""

    @property
    def choices(self) -> tuple[object, ...]:
        """All that may differ from one owner to the next."""
        return self.profile, self.rules, self.roots, self.readonly


class TokenFile:
    """A token file that may change while the server runs."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.taken: object = None
        """The stamp of the file as it was read last."""
        self._was_complete = False

    def read(self) -> list[Token]:
        """Raises InvalidArgument if others can read or change the file, or if a line is wrong. A file that once ended
        with a newline and no longer does is half-written: what was cut off may be a `readonly`."""
        self.taken = self.stamp()
        text = token_text(self.path)
        found = parse_tokens(text, self.path)
        if self._was_complete and not text.endswith("\n"):
            raise InvalidArgument(f"the token file {self.path!r} ends in the middle of a line")
        self._was_complete = text.endswith("\n")
        return found

    def stamp(self) -> object:
        """Changes when the file does."""
        with contextlib.suppress(OSError):
            facts = os.stat(self.path)
            return facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size
        return None


def token_text(path: str | Path) -> str:
    """The text of a token file. Raises InvalidArgument if others can read or change it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as fault:
        raise InvalidArgument(f"the token file {str(path)!r} can't be read: {fault.strerror}") from None
    in_use(path, secret=True)
    with os.fdopen(fd, "rb") as file:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077:
            raise InvalidArgument(f"the token file {str(path)!r} is open to others; run: chmod 600 {path}")
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise InvalidArgument(f"the token file {str(path)!r} has over {LARGEST} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise InvalidArgument(f"the token file {str(path)!r}, line {line}: not UTF-8") from None


def parse_tokens(text: str, path: str = "tokens") -> list[Token]:
    """The tokens of a file's text. Raises InvalidArgument, which names the line."""
    try:
        found = _from_toml(text) if _is_toml(text, path) else _from_lines(text)
        _refuse_contradictions(found)
    except InvalidArgument as fault:
        raise InvalidArgument(f"the token file {path!r}, {fault.message}") from None
    if not found:
        raise InvalidArgument(
            f"the token file {path!r} has no token; add a line `NAME TOKEN`, the token of at least {SHORTEST} "
            "characters"
        )
    return found


def _is_toml(text: str, path: str) -> bool:
    first = next((line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")), "")
    return path.endswith(".toml") or first.startswith("[")


def _from_lines(text: str) -> list[Token]:
    lines = [line.split("#")[0].split() for line in text.split("\n")]
    return [_from_words(words, f"line {number}") for number, words in enumerate(lines, 1) if words]


def _from_words(words: list[str], place: str) -> Token:
    if len(words) == 1:
        return _checked(Token(_name_of(words[0]), words[0], place=place))
    given: dict[str, str] = {}
    for word in words[2:]:
        key, equals, value = word.partition("=")
        if word == "readonly":
            given["readonly"] = "yes"
        elif key in _OPTIONS and equals and value and key not in given:
            given[key] = value
        else:
            raise InvalidArgument(f"{place}: after NAME TOKEN only {_SHOWN} may follow, each once")
    root = given.get("root")
    return _checked(
        Token(
            words[0],
            words[1],
            given.get("profile"),
            given.get("rules"),
            (root,) if root else (),
            "readonly" in given,
            place,
        )
    )


def _name_of(token: str) -> str:
    """A name for a token without one: it depends only on the token, and does not help to guess it."""
    return f"token-{hashlib.sha256(token.encode()).hexdigest()[:8]}"


def _checked(token: Token) -> Token:
    if not _NAME.fullmatch(token.name):
        raise InvalidArgument(f"{token.place}: a name is at most 64 letters, digits and `.@+-_`")
    if len(token.token) < SHORTEST:
        raise InvalidArgument(f"{token.place}: a token has at least {SHORTEST} characters")
    if not token.token.isascii() or not token.token.isprintable() or " " in token.token:
        raise InvalidArgument(f"{token.place}: a token is ASCII without spaces")
    for root in token.roots:
        if not os.path.isabs(root):
            raise InvalidArgument(f"{token.place}: root must be an absolute path")
    return token


def _from_toml(text: str) -> list[Token]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        where = re.search(r"line \d+", str(fault))
        raise InvalidArgument(f"{where[0] if where else 'its end'}: not valid TOML") from None
    return [token for name, table in tables.items() for token in _from_table(name, table)]


def _from_table(name: str, table: object) -> list[Token]:
    place = f"[{name}]" if _NAME.fullmatch(name) else "a table"
    if not isinstance(table, dict):
        raise InvalidArgument(f"{place}: each name is a table with `token` and {', '.join((*_OPTIONS, 'readonly'))}")
    given = cast("Mapping[str, Any]", table)
    if not set(given) <= {"token", "readonly", *_OPTIONS}:
        raise InvalidArgument(f"{place}: only token, {', '.join((*_OPTIONS, 'readonly'))} are known")
    readonly, roots = given.get("readonly", False), _texts(given.get("root", []), place, "root")
    if not isinstance(readonly, bool):
        raise InvalidArgument(f"{place}: readonly is true or false")
    chosen = {key: _texts(given[key], place, key)[0] for key in ("profile", "rules") if key in given}
    base = Token(name, "", chosen.get("profile"), chosen.get("rules"), tuple(roots), readonly, place)
    tokens = _texts(given.get("token", []), place, "token")
    if not tokens:
        raise InvalidArgument(f"{place}: token is missing")
    return [_checked(replace(base, token=one)) for one in tokens]


def _texts(value: object, place: str, key: str) -> list[str]:
    found = cast("list[object]", value) if isinstance(value, list) else [value]
    if key in ("profile", "rules") and len(found) != 1:
        raise InvalidArgument(f"{place}: {key} must be one string")
    if not all(isinstance(one, str) and one for one in found):
        raise InvalidArgument(f"{place}: {key} must be a string or a list of strings")
    return cast("list[str]", found)


def _refuse_contradictions(tokens: Iterable[Token]) -> None:
    """One token has one owner, and one owner the same choices with each of their tokens."""
    owners: dict[str, Token] = {}
    seen: dict[str, Token] = {}
    for token in tokens:
        other = seen.setdefault(token.token, token)
        if other is not token:
            raise InvalidArgument(f"{token.place}: the same token as in {other.place}")
        first = owners.setdefault(token.name, token)
        if first.choices != token.choices:
            raise InvalidArgument(f"{token.place}: the options of {token.name} differ from those in {first.place}")
