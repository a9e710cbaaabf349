"""Every way a call can fail, as one tree.

    ToolError                   .code .message .retriable .details
    ├── InvalidArgument         INVALID_ARGUMENT      the arguments can't be used as they are
    ├── NotFound                NOT_FOUND             no such file, ref, shell
    ├── NotFile                 NOT_FILE              a directory, FIFO, socket or device
    ├── NotDirectory            NOT_DIRECTORY         a file where a directory is needed
    ├── BinaryNotSupported      BINARY_NOT_SUPPORTED  the file is binary and the tool needs text
    ├── SizeLimitExceeded       SIZE_LIMIT_EXCEEDED   larger than the tool can read or write
    ├── InvalidRegex            INVALID_REGEX         the pattern does not compile
    ├── SandboxViolation        SANDBOX_VIOLATION     the path is outside the scope, denied or protected
    ├── PolicyDenied            POLICY_DENIED         a rule, a hook or the user refused
    ├── WaitingForApproval      WAITING_FOR_APPROVAL  a person has not answered yet; call again
    ├── NotRead                 NOT_READ              a write to a file that this session has not read
    ├── Conflict                CONFLICT              the file changed since it was read
    ├── NoMatch                 NO_MATCH              the text to replace does not occur
    ├── NotUnique               NOT_UNIQUE            the text to replace occurs more than once
    ├── EncodingProblem         ENCODING              the bytes can't be decoded or encoded without loss
    ├── TimedOut                TIMEOUT               the time limit was reached
    ├── ToolNotFound            TOOL_NOT_FOUND        this session has no tool of that name
    ├── Cancelled               CANCELLED             the caller cancelled the call
    ├── Unavailable             UNAVAILABLE           what the tool needs can't be reached
    ├── RateLimited             RATE_LIMITED          called more often than a service allows
    ├── Unauthorized            UNAUTHORIZED          the system or a service forbids it
    └── Internal                INTERNAL              a bug in a tool or in gripfast, or a failure of the machine

A message says what went wrong, with which value, and what to do next. Paths appear as the caller wrote them.
A tool of your own may raise `ToolError` with a code of its own, in upper case.
`retriable` means that the same call, unchanged, may succeed later.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
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
        "WAITING_FOR_APPROVAL",
        "NOT_READ",
        "CONFLICT",
        "NO_MATCH",
        "NOT_UNIQUE",
        "ENCODING",
        "TIMEOUT",
        "TOOL_NOT_FOUND",
        "CANCELLED",
        "UNAVAILABLE",
        "RATE_LIMITED",
        "UNAUTHORIZED",
        "INTERNAL",
    }
)
"""The codes with a meaning of their own. A tool may use others: upper case, with underscores."""

_CODE = re.compile("[A-Z][A-Z0-9_]{1,63}")


class ToolError(Exception):
    """A failure the model can act on: it reads the message and continues."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retriable: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        if not _CODE.fullmatch(code):
            raise ValueError(f"the error code {code!r} is not upper case, such as {', '.join(sorted(CODES))}")
        self.code = code
        self.message = valid_unicode(message)
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


class WaitingForApproval(_Coded):
    CODE = "WAITING_FOR_APPROVAL"
    RETRIABLE = True


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


class Unavailable(_Coded):
    CODE = "UNAVAILABLE"
    RETRIABLE = True


class RateLimited(_Coded):
    CODE = "RATE_LIMITED"
    RETRIABLE = True


class Unauthorized(_Coded):
    CODE = "UNAUTHORIZED"


class Internal(_Coded):
    CODE = "INTERNAL"


def error_like(error: ToolError, message: str, *, retriable: bool, details: Mapping[str, Any]) -> ToolError:
    """An error of the same kind with another message."""
    if isinstance(error, _Coded):
        return type(error)(message, retriable=retriable, details=details)
    return ToolError(error.code, message, retriable=retriable, details=details)


_MOST_JOINED = 20


def joined(errors: Sequence[ToolError]) -> ToolError:
    """Several errors as one, with the code of the first."""
    first, *others = errors
    if not others:
        return first
    lines = [f"- {error.message}" for error in errors[:_MOST_JOINED]]
    if len(errors) > _MOST_JOINED:
        lines.append(f"- and {len(errors) - _MOST_JOINED} more")
    listed = [{"code": error.code, **error.details} for error in errors[:_MOST_JOINED]]
    retriable = all(error.retriable for error in errors)
    text = "\n".join([f"{len(errors)} reasons:", *lines])
    return error_like(first, text, retriable=retriable, details={"errors": listed})


def valid_unicode(text: str) -> str:
    """The text with every lone surrogate, which UTF-8 can't encode, replaced by U+FFFD."""
    if text.isascii():
        return str.__str__(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str.__str__(text)


_SHORT = {
    errno.EMFILE: "this process has as many files open as it may (ulimit -n)",
    errno.ENFILE: "the machine has as many files open as it can",
    errno.ENOMEM: "there is not enough memory",
    errno.ENOBUFS: "there is not enough memory",
    errno.ETOOMANYREFS: "too many file descriptors are in transit between processes",
    errno.EAGAIN: "no more processes can be started (ulimit -u)",
}


def shortage_of(fault: BaseException) -> str | None:
    """What the machine has too little of, if that is why something failed."""
    if isinstance(fault, MemoryError):
        return _SHORT[errno.ENOMEM]
    if isinstance(fault, OSError):
        return _SHORT.get(fault.errno or 0)
    is_thread = isinstance(fault, RuntimeError) and fault.args == ("can't start new thread",)
    return "no more threads can be started" if is_thread else None
