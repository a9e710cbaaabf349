"""The system's errors as messages for the caller."""

from __future__ import annotations

import errno
import os

from gripfast.errors import Internal, InvalidArgument, NotDirectory, NotFile, NotFound, ToolError, Unauthorized
from gripfast.text.escape import escaped

_NEXT = {
    errno.EACCES: "the permissions of the file or its directory forbid it",
    errno.EPERM: "the system forbids it",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "no space is left on the device; free some and try again",
    errno.EDQUOT: "the disk quota is used up; free some space and try again",
    errno.EIO: "the device reports an input/output error",
    errno.EMFILE: "too many files are open in this process; try again",
    errno.ENFILE: "too many files are open on this machine; try again",
    errno.EFBIG: "the file would be larger than the file system or the process limit allows",
}
_PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EINTR, errno.EAGAIN})


def explained(error: OSError, path: str, doing: str) -> ToolError:
    """The ToolError for an OSError. `doing` is a verb: read, write, list."""
    shown = escaped(path)
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"`{shown}` does not exist any more; it vanished during the call", retriable=True)
        case errno.ENOTDIR:
            return NotDirectory(f"a part of `{shown}` is not a directory")
        case errno.EISDIR:
            return NotFile(f"`{shown}` is a directory")
        case errno.ENAMETOOLONG:
            return InvalidArgument(f"`{shown}` is longer than this file system allows")
        case errno.EACCES | errno.EPERM as code:
            name = errno.errorcode[code]
            message = f"can't {doing} `{shown}`: {_NEXT[code]} ({name})"
            return Unauthorized(message, details={"errno": name})
        case code:
            name = errno.errorcode.get(code or 0, "unknown")
            why = _NEXT.get(code or 0) or os.strerror(code or 0).lower()
            return Internal(
                f"can't {doing} `{shown}`: {why} ({name})",
                retriable=code in _PASSING,
                details={"errno": name},
            )
