"""What a write does to a file's text: the whole replaced, or a part of it."""

from __future__ import annotations

from collections.abc import Callable

from gripfast.errors import EncodingProblem, NoMatch, NotUnique
from gripfast.host.files.encodings import TextForm, text_of
from gripfast.text.line_ends import rewritten
from gripfast.text.match import exact_spans, spliced, splices


def rewriting(content: str, encoding: str | None, shown: str) -> Callable[[bytes | None], bytes]:
    """Puts a text in the place of a file's, in the encoding, line ends and final newline the old one has."""
    body = _utf8(content, shown)

    def rewrite(before: bytes | None) -> bytes:
        if before is None:
            return TextForm(encoding or "utf-8").bytes_of(body, shown)
        text = text_of(before, encoding, shown)
        return text.form.bytes_of(rewritten(text.body, body), shown)

    return rewrite


def replacing(old: str, new: str, *, all: bool, encoding: str | None, shown: str) -> Callable[[bytes], bytes]:
    """Replaces a text that occurs once, or every occurrence of it."""

    def edit(before: bytes) -> bytes:
        text = text_of(before, encoding, shown)
        spans = exact_spans(text.body, _utf8(old, shown))
        if len(spans) != 1 and not (spans and all):
            count = f"occurs {len(spans)} times" if spans else "does not occur"
            raise (NotUnique if spans else NoMatch)(f"the text to replace {count} in `{shown}`")
        return text.form.bytes_of(spliced(text.body, splices(text.body, spans, _utf8(new, shown))), shown)

    return edit


def _utf8(text: str, shown: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise EncodingProblem(f"the text for `{shown}` has a lone surrogate at character {error.start}") from None
