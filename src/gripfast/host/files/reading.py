"""Reading what is open: all of it, or some lines as text."""

from __future__ import annotations

from gripfast.errors import BinaryNotSupported, SizeLimitExceeded
from gripfast.host.files.encodings import is_binary, shown_form
from gripfast.host.files.opened import OpenFile
from gripfast.host.files.paths import WorkPath
from gripfast.text.escape import escaped

MAX_WHOLE_BYTES = 256 * 1024 * 1024  # what is read into memory at once, to be edited


def whole_content(path: WorkPath, file: OpenFile) -> bytes:
    """All bytes of an open file, if they are not too many."""
    if file.stat.st_size > MAX_WHOLE_BYTES:
        raise SizeLimitExceeded(
            f"`{escaped(path.text)}` has {file.stat.st_size} bytes; at most {MAX_WHOLE_BYTES} are read at once"
        )
    return file.content()


def lines_as_text(path: WorkPath, file: OpenFile, offset: int, limit: int, encoding: str | None) -> str:
    """Lines of an open file, each ended by a newline but perhaps the last."""
    if is_binary(file.head()):
        raise BinaryNotSupported(f"`{escaped(path.text)}` is binary; it has no lines")
    window = file.window(offset, limit)
    text = b"\n".join(window.lines)
    form = shown_form(text, None if file.form.wide else encoding)
    return text.decode(form.codec, "backslashreplace") + ("\n" if window.newline and window.lines else "")
