"""Replaces secret values in text by their names: `«API_KEY»`. Pure: which values are secret is said by the caller."""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping

from gripfast.text.cut import unfinished

SHORTEST = 8
_SENSITIVE = re.compile(r"KEY\Z|TOKEN\Z|SECRET|PASS|CREDENTIAL", re.IGNORECASE)
_ESCAPES = re.compile(  # those of `text/terminal.py`, in UTF-8
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]?"
    rb"|(?:\x1b[\]PX^_]|\xc2[\x9d\x90\x98\x9e\x9f])(?:[^\x07\x1b\n\xc2]|\xc2(?!\x9c))*(?:\x07|\x1b\\|\xc2\x9c)?"
    rb"|\x1b[ -/]*[0-~]?"
)
_MAY_ESCAPE = re.compile(rb"\x1b|\xc2[\x90\x98\x9b\x9d-\x9f]")
_MOST_WAITING = 1 << 16  # bytes of a stream that wait, however many escape sequences are among them
_HEAD = 4
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
        from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - loaded with the first secret

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
    """Replaces values by their names, in plain, base64, URL and JSON form, also where the escape sequences of a
    terminal are among their characters. Where none is found, it costs a search."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names: dict[bytes, bytes] = {}
        for name, value in secrets.items():
            for form in _forms(value):
                self._names.setdefault(form, f"«{name}»".encode())
        self.longest = max(map(len, self._names), default=0)
        forms = sorted(self._names, key=len, reverse=True)
        self._search = re.compile(b"|".join(map(re.escape, forms))) if forms else None
        self._placeholders = tuple(f"«{name}»" for name in secrets)
        self._by_head: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for form in forms:
            for size in range(1, _HEAD + 1):
                self._by_head[form[:size]].append(form)

    def __call__(self, text: str) -> str:
        if self._search is None:
            return text
        data = text.encode("utf-8", "surrogatepass")
        done = self.bytes(data)
        return text if done is data else done.decode("utf-8", "surrogatepass")

    def bytes(self, data: bytes) -> bytes:
        """The same for bytes; the very object that was given where nothing is found."""
        if self._search is None:
            return data
        if self._search.search(data) is not None:
            data = self._search.sub(self._name, data)
        return self._through_escapes(data, self._search)

    def _through_escapes(self, data: bytes, search: re.Pattern[bytes]) -> bytes:
        bare = _Bare(data)
        done: list[bytes] = []
        at = 0
        for match in bare.matches(search):
            start, end = bare.span(match)
            done += [data[at:start], self._name(match), *_ESCAPES.findall(data, start, end)]
            at = end
        return b"".join((*done, data[at:])) if done else data

    def _name(self, match: re.Match[bytes]) -> bytes:
        return self._names[match[0]]

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """What of a stream can be passed on, redacted, and what must wait: a value may begin in its end."""
        if self._search is None:
            return data, b""
        bare = _Bare(_whole(data))
        seen = min(bare.place(max(0, bare.size - self.longest + 1)), max(0, len(data) - self.longest + 1))
        limit = max(seen, len(data) - max(self.longest, _MOST_WAITING))
        spans = [match.span() for match in self._search.finditer(data)]
        spans += map(bare.span, bare.matches(self._search))
        ends = [end for start, end in spans if start < limit]
        cut = max([limit, *ends])
        return self.bytes(data[:cut]) if ends else data[:cut], data[cut:]

    def begun_secret(self, data: bytes) -> int:
        """How many bytes at the end may be the beginning of a value."""
        if self._search is None:
            return 0
        bare = _Bare(_whole(data))
        whole = [match.span() for match in self._search.finditer(bare.data)]
        for at in range(max(0, bare.size - self.longest + 1), bare.size):
            end = bare.data[at:]
            begins = any(form != end and form.startswith(end) for form in self._by_head.get(end[:_HEAD], ()))
            if begins and not any(first < at < last for first, last in whole):
                return len(data) - bare.place(at)
        return 0

    def placeholder_in(self, text: str) -> str | None:
        """The first name of a secret, as it is written in its place, that a text has."""
        return next((name for name in self._placeholders if name in text), None)


def _whole(data: bytes) -> bytes:
    """Without the beginning of a character at the end, which may be that of an escape sequence."""
    return data[: len(data) - unfinished(data)]


class _Bare:
    """Bytes without the escape sequences of a terminal, and where each of them was."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._starts: list[int] = []  # of what follows each sequence, without them
        self._gone: list[int] = []  # bytes of all sequences up to there
        if _MAY_ESCAPE.search(data):
            gone = 0
            for found in _ESCAPES.finditer(data):
                self._starts.append(found.start() - gone)
                gone += found.end() - found.start()
                self._gone.append(gone)
            self.data = _ESCAPES.sub(b"", data)
        self.size = len(self.data)

    def matches(self, search: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
        """What is found only without the sequences, among other things."""
        return search.finditer(self.data) if self._starts else iter(())

    def place(self, at: int) -> int:
        """Where a byte was."""
        known = bisect_right(self._starts, at)
        return at + (self._gone[known - 1] if known else 0)

    def span(self, match: re.Match[bytes]) -> tuple[int, int]:
        return self.place(match.start()), self.place(match.end() - 1) + 1


def _forms(value: str) -> Iterator[bytes]:
    """The ways in which a value is written, none shorter than the shortest secret."""
    data = value.encode("utf-8", "surrogatepass")
    texts = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    texts |= {text.replace("/", "\\/") for text in texts}
    from urllib.parse import quote, quote_plus  # noqa: PLC0415 - loaded with the first secret

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
