"""One source text in, its definitions out, by whichever engine reads the language. Runs in a worker process."""

# ruff: noqa: PLC0415 - a worker loads only the engine that it needs: its start is part of the first answer

from __future__ import annotations

from typing import Any

from gripfast.outline.definition import Parsed, to_plain
from gripfast.outline.language import Language


def order_for(language: Language) -> dict[str, Any]:
    """What a worker is asked; a source text goes with it."""
    return {"language": language}


def answer(order: dict[str, Any], source: bytes) -> dict[str, Any]:
    """What a worker answers. `missing` names the grammar that is not installed."""
    language = Language.from_plain(order["language"])
    if language.engine == "grammar":
        from gripfast.outline.grammar import is_installed

        if not is_installed(language):
            return {"missing": language.distribution}
    return to_plain(found_in(source, language))


def found_in(source: bytes, language: Language) -> Parsed:
    match language.engine:
        case "grammar":
            from gripfast.outline.grammar import parsed

            return parsed(source, language)
        case "markdown":
            from gripfast.outline.markdown import headings

            return headings(source.decode("utf-8", "replace"))
        case "lisp":
            from gripfast.outline.lisp_forms import forms

            return forms(source.decode("utf-8", "replace"), language.name)
