"""Reads git's index strictly, because commands can write it: where git would put the files that it lists.

Git checks a path when it is added, and trusts the index afterwards. https://git-scm.com/docs/index-format
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from gripfast.host.kernel.regular import read_regular
from gripfast.text.fold import folded

_HEAD = struct.Struct(">4sII")
_EXTENSION = struct.Struct(">4sI")
_PAIR = struct.Struct(">II")
_STAT = 40
_EXTENDED, _LENGTH, _DIRECTORY = 0x4000, 0xFFF, 0o040000
# What git's verify_path() refuses: empty parts, `.` and `..`, and `.git` in every spelling that a file system of
# Windows or macOS takes for it.
_NO_NAME = re.compile(rb"[\0/]\.{0,2}(?=[/\0])")
_DOT_GIT = re.compile(rb"[\0/\\](?:\.git|git~1)[ .]*(?=[/\\:\0])", re.IGNORECASE)
_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*sha256\s*$", re.IGNORECASE | re.MULTILINE)
_LARGEST_CONFIG = 64 * 1024
_INVISIBLE = (b"\xe2\x80", b"\xe2\x81", b"\xef\xbb\xbf")


def is_sha256(common: str) -> bool:
    """Whether the objects of a repository are named by SHA-256."""
    try:
        return _SHA256.search(read_regular(f"{common}/config", _LARGEST_CONFIG)) is not None
    except OSError:
        return False


class MalformedIndex(ValueError):
    """Git may read an index in another way than this module."""


def forbidden_path(data: bytes, *, hash_size: int = 20) -> str | None:
    """A path of an index that git itself would never put there, or None. Raises MalformedIndex."""
    places = _places(data, hash_size)
    is_split = any(name == b"link" for name, _ in _extensions(data, _end(data, places, hash_size), hash_size))
    paths = [_plain(data, path, start) for path, start, _ in places if path or not is_split]
    text = b"\0%s\0" % b"\0".join(paths) if paths else b""
    if _NO_NAME.search(text) or _DOT_GIT.search(text) or any(bytes in text for bytes in _INVISIBLE):
        return next((path.decode(errors="replace") for path in paths if _is_forbidden(path)), None)
    return None


def _plain(data: bytes, path: bytes, start: int) -> bytes:
    is_directory = path.endswith(b"/") and int.from_bytes(data[start + 24 : start + 28]) == _DIRECTORY
    return path[:-1] if is_directory else path


def _is_forbidden(path: bytes) -> bool:
    text = b"\0%s\0" % path
    is_hidden = any(bytes in path for bytes in _INVISIBLE)
    parts = path.decode(errors="surrogateescape").split("/") if is_hidden else ()
    return bool(_NO_NAME.search(text) or _DOT_GIT.search(text)) or any(folded(part) == ".git" for part in parts)


def _places(data: bytes, hash_size: int) -> list[tuple[bytes, int, int]]:
    """Each path with where its entry and its flags begin."""
    try:
        magic, version, count = _HEAD.unpack_from(data)
        if magic != b"DIRC" or version not in (2, 3, 4):
            raise MalformedIndex("not an index of version 2, 3 or 4")
        return _compressed(data, count, hash_size) if version == 4 else _padded(data, version, count, hash_size)
    except (struct.error, IndexError, ValueError) as fault:
        raise MalformedIndex(str(fault)) from None


def _padded(data: bytes, version: int, count: int, hash_size: int) -> list[tuple[bytes, int, int]]:
    found: list[tuple[bytes, int, int]] = []
    at, to_flags = _HEAD.size, _STAT + hash_size
    find = data.index
    for _ in range(count):
        flags_at = at + to_flags
        flags = data[flags_at] << 8 | data[flags_at + 1]
        start = flags_at + 2
        if flags & _EXTENDED:
            start += 2
            if version == 2:
                raise MalformedIndex("extended flags in version 2")
        end = find(0, start)
        _require_length(end - start, flags)
        found.append((data[start:end], at, flags_at))
        at += (end - at + 8) & ~7
    return found


def _compressed(data: bytes, count: int, hash_size: int) -> list[tuple[bytes, int, int]]:
    """Version 4 says how much of the last path to drop before the rest of this one is added."""
    found: list[tuple[bytes, int, int]] = []
    at, path = _HEAD.size, b""
    for _ in range(count):
        flags_at = at + _STAT + hash_size
        flags = data[flags_at] << 8 | data[flags_at + 1]
        start = flags_at + (4 if flags & _EXTENDED else 2)
        drop = data[start] & 0x7F
        while data[start] & 0x80:
            start += 1
            drop = ((drop + 1) << 7) | (data[start] & 0x7F)
        if drop > len(path):
            raise MalformedIndex("a path drops more than there is")
        end = data.index(0, start + 1)
        path = path[: len(path) - drop] + data[start + 1 : end]
        _require_length(len(path), flags)
        found.append((path, at, flags_at))
        at = end + 1
    return found


def _require_length(length: int, flags: int) -> None:
    """Git believes the length in the flags, not the end of the text."""
    if flags & _LENGTH != min(length, _LENGTH):
        raise MalformedIndex("a path has another length than its entry says")


def _end(data: bytes, places: Sequence[tuple[bytes, int, int]], hash_size: int) -> int:
    """Where the entries end."""
    if not places:
        return _HEAD.size
    start = places[-1][1]
    if int.from_bytes(data[4:8]) == 4:
        return data.index(0, _after_drop(data, places[-1][2])) + 1
    flags_at = places[-1][2]
    name = flags_at + (4 if data[flags_at] & 0x40 else 2)
    return start + ((name + len(places[-1][0]) - start + 8) & ~7)


def _after_drop(data: bytes, flags_at: int) -> int:
    start = flags_at + (4 if data[flags_at] & 0x40 else 2)
    while data[start] & 0x80:
        start += 1
    return start + 1


def _extensions(data: bytes, end: int, hash_size: int) -> list[tuple[bytes, bytes]]:
    """The extensions after the entries. Raises MalformedIndex if one sends git to other entries than these."""
    found: list[tuple[bytes, bytes]] = []
    at, last = end, len(data) - hash_size
    while at + _EXTENSION.size <= last:
        name, size = _EXTENSION.unpack_from(data, at)
        found.append((name, data[at + 8 : at + 8 + size]))
        at += 8 + size
    if at != last:
        raise MalformedIndex("its extensions do not end where it ends")
    for name, content in found:
        if name == b"EOIE" and int.from_bytes(content[:4]) != end:
            raise MalformedIndex("it gives another end of its entries")
        if name == b"IEOT":
            _require_blocks(data, content, hash_size)
    return found


def _require_blocks(data: bytes, table: bytes, hash_size: int) -> None:
    """Git reads a large index in blocks, from where this table says that they begin."""
    places = _places(data, hash_size)
    if len(table) % 8 != 4:
        raise MalformedIndex("a table of blocks that is cut off")
    number = 0
    for offset, count in _PAIR.iter_unpack(table[4:]):
        if number >= len(places) or places[number][1] != offset or not _is_whole(data, *places[number]):
            raise MalformedIndex("a block of entries begins elsewhere")
        number += count
    if number != len(places):
        raise MalformedIndex("its blocks have other entries")


def _is_whole(data: bytes, path: bytes, _: int, flags_at: int) -> bool:
    """Whether a path does not need the one before it: git forgets that where a block begins."""
    return int.from_bytes(data[4:8]) != 4 or data.startswith(path + b"\0", _after_drop(data, flags_at))
