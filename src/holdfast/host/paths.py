"""WorkPath: a path text that was checked once, and how names are shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from holdfast.errors import InvalidArgument

MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255

# Control characters, what turns the direction of text, line separators, and bytes that are no UTF-8.
_UNSHOWABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]",
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class WorkPath:
    """A path as a caller gave it: not empty, no NUL, encodable, not over-long. ScopedFs says where it leads."""

    text: str

    @classmethod
    def parse(cls, text: str) -> WorkPath:
        fault = _fault(text)
        if fault:
            raise InvalidArgument(fault)
        return cls(text)

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        checked = core_schema.no_info_after_validator_function(_validated, core_schema.str_schema())
        return core_schema.no_info_before_validator_function(
            _unwrapped, checked, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )


def _validated(text: str) -> WorkPath:
    fault = _fault(text)
    if fault:
        raise PydanticCustomError("path", "{fault}", {"fault": fault})
    return WorkPath(text)


def _unwrapped(value: object) -> object:
    return value.text if isinstance(value, WorkPath) else value


def _fault(text: str) -> str | None:
    """What is wrong with a path text, or None."""
    if not text:
        return "the path is empty; give a file or directory name ('.' is the workspace)"
    if "\0" in text:
        return f"the path {escaped(text)!r} contains a NUL character; remove it"
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        return f"the path '{escaped(text)}' contains a lone surrogate; give it as valid Unicode"
    if len(data) <= MAX_NAME_BYTES:
        return None
    if len(data) > MAX_PATH_BYTES:
        return f"the path is {len(data)} bytes long; at most {MAX_PATH_BYTES} are possible"
    longest = max(len(part) for part in data.split(b"/"))
    if longest > MAX_NAME_BYTES:
        return f"a name in the path is {longest} bytes long; at most {MAX_NAME_BYTES} are possible"
    return None


def escaped(text: str) -> str:
    """A name on one line, with what a terminal or a reader would not show as it is written out."""
    return text if text.isascii() and text.isprintable() else _UNSHOWABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that os.fsdecode could not decode
        return f"\\x{code - 0xDC00:02x}"
    return _SHORT.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def is_below(path: str, *bases: str) -> bool:
    """Whether an absolute path is one of these directories or lies in one."""
    return any(after(base, path) is not None for base in bases)


def after(base: str, path: str) -> str | None:
    """What follows a directory in a path; None when the path is not below it."""
    if path == base:
        return ""
    prefix = f"{base.rstrip('/')}/"
    return path[len(prefix) :] if path.startswith(prefix) else None
