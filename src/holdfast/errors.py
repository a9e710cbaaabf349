"""Every way a call can fail, as one tree.

    ToolError                   .code .message .retriable .details
    ├── InvalidArgument         INVALID_ARGUMENT      the arguments can't be used as they are
    ├── NotFound                NOT_FOUND             no such file, ref, shell
    ├── NotFile                 NOT_FILE              a directory, FIFO, socket or device
    ├── NotDirectory            NOT_DIRECTORY         a file where a directory is wanted
    ├── BinaryNotSupported      BINARY_NOT_SUPPORTED  text was asked of a file that has none
    ├── SizeLimitExceeded       SIZE_LIMIT_EXCEEDED   larger than the tool reads or writes
    ├── InvalidRegex            INVALID_REGEX         the pattern does not compile
    ├── SandboxViolation        SANDBOX_VIOLATION     the place is outside the scope, denied or protected
    ├── PolicyDenied            POLICY_DENIED         a rule, a hook or the person asked said no
    ├── NotRead                 NOT_READ              write to a file that this session has not read
    ├── Conflict                CONFLICT              the file changed since it was read
    ├── NoMatch                 NO_MATCH              the text to replace is not there
    ├── NotUnique               NOT_UNIQUE            the text to replace is there more than once
    ├── EncodingProblem         ENCODING              the bytes can't be decoded or encoded without loss
    ├── TimedOut                TIMEOUT               the work took longer than it may
    ├── ToolNotFound            TOOL_NOT_FOUND        no tool of that name in this session
    ├── Cancelled               CANCELLED             the caller gave the call up
    └── Internal                INTERNAL              a fault of ours or of the machine

A message says what went wrong, with which value, and what to do next. It names paths as the caller gave them.
`retriable` means: the same call may succeed later, unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

CODES = frozenset(
    {
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "NOT_FILE",
        "NOT_DIRECTORY",
        "BINARY_NOT_SUPPORTED",
        "SIZE_LIMIT_EXCEEDED",
        "INVALID_REGEX",
        "SANDBOX_VIOLATION",
        "POLICY_DENIED",
        "NOT_READ",
        "CONFLICT",
        "NO_MATCH",
        "NOT_UNIQUE",
        "ENCODING",
        "TIMEOUT",
        "TOOL_NOT_FOUND",
        "CANCELLED",
        "INTERNAL",
    }
)


class ToolError(Exception):
    """A failure that is an answer: the model reads its message and goes on."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retriable: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        if code not in CODES:
            raise ValueError(f"unknown error code {code!r}; use one of {', '.join(sorted(CODES))}")
        self.code = code
        self.message = speakable(message)
        super().__init__(self.message)
        self.retriable = retriable
        self.details: dict[str, Any] = dict(details or {})

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class _Coded(ToolError):
    CODE: ClassVar[str] = "INTERNAL"
    RETRIABLE: ClassVar[bool] = False

    def __init__(
        self, message: str, *, retriable: bool | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        retriable = self.RETRIABLE if retriable is None else retriable
        super().__init__(self.CODE, message, retriable=retriable, details=details)


class InvalidArgument(_Coded):
    CODE = "INVALID_ARGUMENT"


class NotFound(_Coded):
    CODE = "NOT_FOUND"


class NotFile(_Coded):
    CODE = "NOT_FILE"


class NotDirectory(_Coded):
    CODE = "NOT_DIRECTORY"


class BinaryNotSupported(_Coded):
    CODE = "BINARY_NOT_SUPPORTED"


class SizeLimitExceeded(_Coded):
    CODE = "SIZE_LIMIT_EXCEEDED"


class InvalidRegex(_Coded):
    CODE = "INVALID_REGEX"


class SandboxViolation(_Coded):
    CODE = "SANDBOX_VIOLATION"


class PolicyDenied(_Coded):
    CODE = "POLICY_DENIED"


class NotRead(_Coded):
    CODE = "NOT_READ"


class Conflict(_Coded):
    CODE = "CONFLICT"


class NoMatch(_Coded):
    CODE = "NO_MATCH"


class NotUnique(_Coded):
    CODE = "NOT_UNIQUE"


class EncodingProblem(_Coded):
    CODE = "ENCODING"


class TimedOut(_Coded):
    CODE = "TIMEOUT"
    RETRIABLE = True


class ToolNotFound(_Coded):
    CODE = "TOOL_NOT_FOUND"


class Cancelled(_Coded):
    CODE = "CANCELLED"
    RETRIABLE = True


class Internal(_Coded):
    CODE = "INTERNAL"


def speakable(text: str) -> str:
    """Text that can be sent: halves of surrogate pairs can't, and become U+FFFD."""
    if text.isascii():
        return str.__str__(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str.__str__(text)
