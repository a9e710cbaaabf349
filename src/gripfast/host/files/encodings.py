"""Text that survives: encodings, byte order marks, line ends, final newlines.

Whatever a file is encoded in, the tools work on its text as UTF-8 bytes (`Text.body`); `TextForm.bytes_of` leads
back. A file that is UTF-8 already is never decoded and encoded again: its bytes outside an edit can't change.
"""

from __future__ import annotations

import codecs

from gripfast.errors import BinaryNotSupported, EncodingProblem, InvalidArgument
from gripfast.records import dataclass

HEAD_BYTES = 8192
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MARKS = tuple(mark for mark, _ in _BOMS)
NAME_IT = 'the user names its encoding in gripfast.toml, such as encoding = "latin-1"'
"""What makes a file editable that is not UTF-8."""
NO_TEXT = "is binary: only text can be edited or overwritten; a command can change or remove it"
_SUCH_AS = "use a name like 'shift_jis', 'euc_jp', 'latin-1'"
_ASCII = (rb"\u0041", rb"\x41", rb"\101", b"\x1b$B0!\x1b(B", b"+AEE- ~{VC~} xn--mnchen-3ya", bytes(range(128)))
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a file holds its text. `exact` is False when some bytes can't be decoded: shown, never written."""

    codec: str = "utf-8"
    bom: bytes = b""
    exact: bool = True

    @property
    def wide(self) -> bool:
        """Whether a newline is more than the one byte 0x0A, so that lines can't be found in the raw bytes."""
        return self.codec.startswith(("utf-16", "utf-32"))

    def bytes_of(self, body: bytes, path: str) -> bytes:
        """A file's bytes for its text in UTF-8."""
        if self.codec == "utf-8":
            return self.bom + body
        try:
            return self.bom + body.decode("utf-8").encode(self.codec)
        except UnicodeEncodeError as error:
            bad = error.object[error.start]
            raise EncodingProblem(
                f"`{path}` is in {self.codec}, which has no {bad!r} (U+{ord(bad):04X}); write it another way"
            ) from None


@dataclass(frozen=True, slots=True)
class Text:
    form: TextForm
    body: bytes


def checked_encoding(name: str | None) -> str | None:
    """An encoding's normal name; one that Python does not know, or that changes ASCII text, is refused."""
    if name is None:
        return None
    try:
        normal = codecs.lookup(name).name
        "".encode(normal)
    except (LookupError, ValueError):
        raise InvalidArgument(f"unknown encoding {name!r}; {_SUCH_AS}") from None
    if not _keeps_ascii(normal):
        raise InvalidArgument(
            f"encoding {name!r} doesn't keep ASCII text as it is, so a write could change it; {_SUCH_AS}"
        )
    return normal


def marked_form(head: bytes) -> TextForm | None:
    """The form that a byte order mark at the beginning indicates."""
    if not head.startswith(_MARKS):
        return None
    return next(TextForm(codec, bom) for bom, codec in _BOMS if head.startswith(bom))


def is_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are not text: a NUL, or mostly control bytes."""
    head = head[:HEAD_BYTES]
    marked = marked_form(head)
    if marked is not None and marked.wide:
        return "\0" in head[2 : len(head) & ~1].decode(marked.codec, "replace")
    if 0 in head:
        return True
    controls = len(head) - len(head.translate(None, _CONTROL))
    return controls * 10 > len(head) * 3


def shown_form(sample: bytes, encoding: str | None) -> TextForm:
    """How to decode bytes for showing, judged on a part of a file that has no byte order mark."""
    for codec in ("utf-8", encoding):
        if codec is not None and _decodes(sample, codec):
            return TextForm(codec)
    return TextForm("utf-8", exact=False)


def _decodes(data: bytes, codec: str) -> bool:
    if codec == "utf-8" and data.isascii():
        return True
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def text_of(data: bytes, encoding: str | None, path: str) -> Text:
    """A whole file as text that can be written again without loss; else BINARY_NOT_SUPPORTED or ENCODING."""
    marked = marked_form(data)
    if is_binary(data):
        raise BinaryNotSupported(f"`{path}` {NO_TEXT}")
    if marked is not None:
        return _marked_text(data, marked, path)
    if data.isascii():
        return Text(TextForm(encoding) if encoding else TextForm(), data)
    if _decodes(data, "utf-8"):
        return Text(TextForm(), data)
    if encoding is not None and _round_trips(data, encoding):
        return Text(TextForm(encoding), data.decode(encoding).encode("utf-8"))
    raise _undecodable(data, encoding, path)


def _marked_text(data: bytes, form: TextForm, path: str) -> Text:
    rest = data[len(form.bom) :]
    try:
        decoded = rest.decode(form.codec)
        return Text(form, rest if form.codec == "utf-8" else decoded.encode("utf-8"))
    except UnicodeError as error:
        at = getattr(error, "start", 0) + len(form.bom)
        raise EncodingProblem(
            f"`{path}` begins with a {form.codec} byte order mark, but its bytes at offset {at} are not {form.codec}"
        ) from None


def _keeps_ascii(codec: str) -> bool:
    """Whether ASCII text is the same bytes, alone and where some encodings would take it for an escape."""
    try:
        return all(part.decode(codec) == part.decode("ascii") and _round_trips(part, codec) for part in _ASCII)
    except UnicodeError:
        return False


def _round_trips(data: bytes, codec: str) -> bool:
    try:
        return data.decode(codec).encode(codec) == data
    except UnicodeError:
        return False


def _undecodable(data: bytes, encoding: str | None, path: str) -> EncodingProblem:
    try:
        data.decode("utf-8")
        at = 0
    except UnicodeDecodeError as error:
        at = error.start
    tried = f"neither UTF-8 nor {encoding}" if encoding else "not UTF-8"
    return EncodingProblem(
        f"`{path}` is {tried} (byte 0x{data[at]:02x} at offset {at}), so it can't be changed without loss until "
        f"{NAME_IT}; a command such as `LC_ALL=C sed` can change it as bytes",
        details={"offset": at},
    )
