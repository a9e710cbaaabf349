"""The type and size of an image, from its first bytes and without decoding it."""

from __future__ import annotations

from struct import error as ShortData
from struct import unpack_from

from gripfast.records import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    media_type: str
    width: int
    height: int


def media_type(head: bytes) -> str | None:
    """The image type with this beginning; None if it is not a supported image."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def picture(data: bytes) -> Picture | None:
    """The type and size of an image; None if its header is damaged."""
    kind = media_type(data)
    if kind is None:
        return None
    try:
        size = _SIZES[kind](data)
    except (ShortData, IndexError):
        return None
    return Picture(kind, *size) if size and all(size) else None


def _png(data: bytes) -> tuple[int, int] | None:
    if data[12:16] != b"IHDR":
        return None
    width, height = unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int] | None:
    width, height = unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Follows the segments to the one that starts a frame."""
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in (0x01, *range(0xD0, 0xD9)):
            at += 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = unpack_from(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + max(2, int(unpack_from(">H", data, at + 2)[0]))
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 ":
            width, height = unpack_from("<HH", data, 26)
            return (width & 0x3FFF, height & 0x3FFF) if data[23:26] == b"\x9d\x01\x2a" else None
        case b"VP8L":
            bits = int(unpack_from("<I", data, 21)[0])
            return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1) if data[20] == 0x2F else None
        case b"VP8X":
            return _three(data, 24) + 1, _three(data, 27) + 1
        case _:
            return None


def _three(data: bytes, at: int) -> int:
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16


_SIZES = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}
