"""Which files are UTF-8: the others are searched in the configured encoding."""

from __future__ import annotations

import codecs
import os
import stat

from gripfast.host.search.reached import open_without_links

_CHUNK = 1 << 20
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # ripgrep reads a file that begins with one as UTF-16


class Utf8Files:
    """Says which files beneath a root are UTF-8. Each is read once, up to the first byte that is not."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._known: dict[str, bool] = {}

    def has(self, path: str) -> bool:
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path: str) -> bool:
        try:
            fd = open_without_links(self._root, path)
        except OSError:
            return True
        try:
            return not stat.S_ISREG(os.fstat(fd).st_mode) or is_utf8(fd)
        finally:
            os.close(fd)


def is_utf8(fd: int) -> bool:
    """Whether an open file is UTF-8, or marked as UTF-16. One that can't be read passes for UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    at = 0
    try:
        while data := os.pread(fd, _CHUNK, at):
            if at == 0 and data.startswith(_MARKS):
                return True
            decoder.decode(data)
            at += len(data)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except OSError:
        return True
    return True
