"""WorkPath: a path text that was checked once."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass
from gripfast.text.escape import escaped

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255


@dataclass(frozen=True, slots=True)
class WorkPath:
    """A path as a caller gave it: not empty, no NUL, encodable, not over-long. ScopedFs says where it leads.

    `judged` is the real place that rules or a person said yes to. A path that has one leads there or nowhere.
    `lifted`: the place is protected, and it is written only after a person's yes to this call.
    """

    text: str
    judged: str | None = field(default=None, compare=False)
    on_disk: bool = field(default=False, compare=False)
    lifted: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        fault = _fault(self.text, "surrogateescape" if self.on_disk else "strict")
        if fault:
            raise InvalidArgument(fault)

    @classmethod
    def parse(cls, text: str) -> WorkPath:
        return cls(text)

    def as_judged(self, real: str) -> WorkPath:
        return replace(self, judged=real)

    def as_lifted(self) -> WorkPath:
        return replace(self, lifted=True)

    @classmethod
    def recorded(cls, text: str) -> WorkPath:
        """A path that was found on the disk, and so may have bytes in it that are not UTF-8."""
        return cls(text, on_disk=True)

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema  # noqa: PLC0415 - loaded with the first tool that is built

        checked = core_schema.no_info_after_validator_function(_validated, core_schema.str_schema())
        return core_schema.no_info_before_validator_function(
            _unwrapped, checked, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )


def _validated(text: str) -> WorkPath:
    try:
        return WorkPath(text)
    except InvalidArgument as fault:
        from pydantic_core import PydanticCustomError  # noqa: PLC0415 - the same

        raise PydanticCustomError("path", "{fault}", {"fault": fault.message}) from None


def _unwrapped(value: object) -> object:
    return value.text if isinstance(value, WorkPath) else value


def _fault(text: str, errors: str) -> str | None:
    """What is wrong with a path text, or None. `errors` says what half a surrogate pair is: see os.fsdecode."""
    if not text:
        return "the path is empty; give a file or directory name ('.' is the workspace)"
    if "\0" in text:
        return f"the path {escaped(text)!r} contains a NUL character; remove it"
    try:
        data = text.encode("utf-8", errors)
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


HERE = WorkPath(".")
"""The workspace itself."""
