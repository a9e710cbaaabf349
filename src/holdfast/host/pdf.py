"""The text of PDF pages, by pypdf, which is loaded when the first PDF is read."""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass

from holdfast.errors import BinaryNotSupported

# What pypdf raises on files that are not what they claim to be, besides its own errors.
_BROKEN = (ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError, OSError, RecursionError)


@dataclass(frozen=True, slots=True)
class Pages:
    """The texts of pages `first` and following (from 1), of `total`."""

    texts: list[str]
    first: int
    total: int


def pdf_pages(data: bytes, first: int, count: int, shown: str) -> Pages:
    """Up to `count` pages from `first` on."""
    try:
        import pypdf  # noqa: PLC0415 - an extra, and heavy: only who reads a PDF pays for it
        from pypdf.errors import PyPdfError  # noqa: PLC0415 - as above
    except ImportError:
        raise BinaryNotSupported(
            f"`{shown}` is a PDF; reading it needs the extra: pip install 'holdfast[pdf]'"
        ) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise BinaryNotSupported(f"`{shown}` is a PDF with a password; it can't be read")
        total = len(reader.pages)
        chosen = range(first - 1, min(total, first - 1 + count))
        return Pages([reader.pages[number].extract_text() for number in chosen], first, total)
    except (PyPdfError, *_BROKEN) as fault:
        raise BinaryNotSupported(f"`{shown}` can't be read as a PDF: {type(fault).__name__}") from None
