"""One source text in, its definitions out, by whichever engine reads the language. Runs in a worker process."""

from __future__ import annotations

from typing import Any

from gripfast.outline.definition import Parsed, to_plain
from gripfast.outline.grammar import is_installed, parsed
from gripfast.outline.languages import Language, named
from gripfast.outline.lisp_forms import forms
from gripfast.outline.markdown import headings


def answer(order: dict[str, Any], source: bytes) -> dict[str, Any]:
    """What a worker is asked: `order` names the language. `missing` names the grammar that is not installed."""
    language = named(order["language"])
    if language.engine == "grammar" and not is_installed(language):
        return {"missing": language.distribution}
    return to_plain(found_in(source, language))


def found_in(source: bytes, language: Language) -> Parsed:
    match language.engine:
        case "grammar":
            return parsed(source, language)
        case "markdown":
            return headings(source.decode("utf-8", "replace"))
        case "lisp":
            return forms(source.decode("utf-8", "replace"), language.name)
