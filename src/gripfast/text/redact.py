"""Replaces secret values in text by their names: `«API_KEY»`. Pure: which values are secret is said by the caller."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote, urlsplit

SHORTEST = 8
_SENSITIVE = re.compile(r"KEY\Z|TOKEN\Z|SECRET|PASS|CREDENTIAL", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*\Z")


def secrets_in(variables: Mapping[str, str]) -> dict[str, str]:
    """The secrets among some variables, by name: those with a telling name, and passwords inside URLs."""
    found: dict[str, str] = {}
    for name, value in variables.items():
        if _SENSITIVE.search(name) and len(value) >= SHORTEST:
            found[name] = value
        elif "://" in value and len(password := _password(value)) >= SHORTEST:
            found[name] = password
    return found


def _password(url: str) -> str:
    try:
        return unquote(urlsplit(url).password or "")
    except ValueError:
        return ""


def assignments(text: str) -> dict[str, str]:
    """The variables of an `.env` file: `NAME=value`, `export NAME="value"`."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _ASSIGNMENT.match(line)
        if match:
            found[match[1]] = _unquoted(match[2])
    return found


def _unquoted(value: str) -> str:
    if value[:1] in ("'", '"'):
        end = value.find(value[0], 1)
        return value[1:end] if end > 0 else value[1:]
    return value.split(" #")[0].rstrip()


class Redactor:
    """Replaces values by their names, in plain, base64, URL and JSON form. Where none is found, it costs a search."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names: dict[bytes, bytes] = {}
        for name, value in secrets.items():
            for form in _forms(value):
                self._names.setdefault(form, f"«{name}»".encode())
        self.longest = max(map(len, self._names), default=0)
        forms = sorted(self._names, key=len, reverse=True)
        self._search = re.compile(b"|".join(map(re.escape, forms))) if forms else None
        self._placeholders = tuple(f"«{name}»" for name in secrets)

    def __call__(self, text: str) -> str:
        if self._search is None:
            return text
        data = text.encode("utf-8", "surrogatepass")
        done = self.bytes(data)
        return text if done is data else done.decode("utf-8", "surrogatepass")

    def bytes(self, data: bytes) -> bytes:
        """The same for bytes; the very object that was given where nothing is found."""
        if self._search is None or self._search.search(data) is None:
            return data
        return self._search.sub(self._name, data)

    def _name(self, match: re.Match[bytes]) -> bytes:
        return self._names[match[0]]

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """What of a stream can be passed on, redacted, and what must wait: a value may begin in its end."""
        if self._search is None:
            return data, b""
        limit, at = max(0, len(data) - self.longest + 1), 0
        done: list[bytes] = []
        for match in self._search.finditer(data):
            if match.start() >= limit:
                break
            done += [data[at : match.start()], self._name(match)]
            at = match.end()
        cut = max(at, limit)
        return b"".join((*done, data[at:cut])), data[cut:]

    def placeholder_in(self, text: str) -> str | None:
        """The first name of a secret, as it is written in its place, that a text has."""
        return next((name for name in self._placeholders if name in text), None)


def _forms(value: str) -> Iterator[bytes]:
    """The ways in which a value is written, none shorter than the shortest secret."""
    data = value.encode("utf-8", "surrogatepass")
    texts = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    texts |= {text.replace("/", "\\/") for text in texts}
    for escaped in {quote(data, safe=""), quote_plus(data), quote(data)}:
        texts |= {escaped, re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), escaped)}
    yield data
    yield from (text.encode("utf-8", "surrogatepass") for text in sorted(texts))
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield _inner(encode(bytes(shift) + data), shift, len(data))


def _inner(encoded: bytes, shift: int, size: int) -> bytes:
    """The characters of a base64 text that hold nothing but the value."""
    return encoded[-(-shift * 8 // 6) : (shift + size) * 8 // 6]
