"""What `outline` knows of files: read through the scope, parsed in workers, remembered while they don't change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from gripfast.builtin.notebook import notebook
from gripfast.errors import BinaryNotSupported, SizeLimitExceeded
from gripfast.host.files.encodings import is_binary, marked_form, shown_form
from gripfast.host.files.guard import Identity, is_settled
from gripfast.host.files.opened import OpenFile
from gripfast.host.program.worker import WorkerFault, Workers
from gripfast.outline.cells import cells_of
from gripfast.outline.definition import Parsed, from_plain
from gripfast.outline.engine import order_for
from gripfast.outline.indentation import by_indentation
from gripfast.outline.language import Language
from gripfast.outline.languages import language_of, refined
from gripfast.outline.map import tops
from gripfast.outline.text import SourceText, lines_of
from gripfast.outline.view import named_row
from gripfast.records import dataclass

LARGEST = 64 * 1024 * 1024
MOST_LINES = 500_000
LARGEST_PARSED = 8 * 1024 * 1024
MOST_REMEMBERED = 200_000  # definitions, of all files together
ENGINE = "gripfast.outline.engine:answer"


@dataclass(frozen=True, slots=True)
class Outline:
    """A file's definitions, how many lines it has, the lines of its top level, and what has to be said about it."""

    found: Parsed
    total: int
    top: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _OutlineSource:
    text: SourceText
    data: bytes
    language: Language | None
    notes: tuple[str, ...] = ()
    is_notebook: bool = False


class Outlines:
    """The outlines of one session. Safe to share between threads."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, Identity], Outline] = OrderedDict()
        self._weight = 0

    @property
    def at_once(self) -> int:
        """How many files are parsed at a time."""
        return self._workers.count

    def recall(self, file: OpenFile) -> Outline | None:
        """What was found in a file before, if it is still the same."""
        with self._lock:
            return self._known.get((file.real, Identity.of(file.stat)))

    def text_and_outline(
        self, file: OpenFile, shown: str, encoding: str | None, is_cancelled: Callable[[], bool]
    ) -> tuple[SourceText, Outline]:
        """The lines of a file, and what is defined in them."""
        source = _source(file, shown, encoding)
        known = self.recall(file)
        if known is None:
            known = self._parsed(source, shown, is_cancelled)
            self._remember(file, known)
        return source.text, known

    def outline(self, file: OpenFile, shown: str, encoding: str | None, is_cancelled: Callable[[], bool]) -> Outline:
        return self.recall(file) or self.text_and_outline(file, shown, encoding, is_cancelled)[1]

    def _remember(self, file: OpenFile, outline: Outline) -> None:
        if not is_settled(file.stat):
            return
        with self._lock:
            self._known[file.real, Identity.of(file.stat)] = outline
            self._weight += 1 + len(outline.found.definitions)
            while self._weight > MOST_REMEMBERED:
                _, old = self._known.popitem(last=False)
                self._weight -= 1 + len(old.found.definitions)

    def _parsed(self, source: _OutlineSource, shown: str, is_cancelled: Callable[[], bool]) -> Outline:
        found, notes = self._found(source, shown, is_cancelled)
        lines = source.text.lines
        named = (named_row(source.text, each) or each.line for each in tops(found.definitions) if each.name)
        return Outline(found, len(lines), tuple((row, lines[row - 1]) for row in named), (*source.notes, *notes))

    def _found(
        self, source: _OutlineSource, shown: str, is_cancelled: Callable[[], bool]
    ) -> tuple[Parsed, tuple[str, ...]]:
        language, lines = source.language, source.text.lines
        if source.is_notebook:
            return cells_of(lines), ()
        if language is None:
            return by_indentation(lines), (f"`{shown}` is in no language that outline knows",)
        if len(source.data) > LARGEST_PARSED:
            return by_indentation(lines), (f"{language.name} of {len(source.data)} bytes is too large to be parsed",)
        try:
            answer = self._workers.ask(order_for(language), source.data, is_cancelled=is_cancelled)
        except WorkerFault as fault:
            return by_indentation(lines), (f"the {language.name} could not be parsed: {fault}",)
        if missing := answer.get("missing"):
            said = f"{language.name} needs {missing}: pip install 'gripfast[outline]'"
            return by_indentation(lines), (said,)
        found = from_plain(answer)
        if not found.definitions and lines:
            said = f"no definitions found in this {language.name}"
            return by_indentation(lines)._replace(faults=found.faults), (said,)
        return found, ()


def _source(file: OpenFile, shown: str, encoding: str | None) -> _OutlineSource:
    if is_binary(file.head()):
        raise BinaryNotSupported(f"`{shown}` is binary ({file.stat.st_size} bytes); outline shows text")
    if file.stat.st_size > LARGEST:
        raise SizeLimitExceeded(
            f"`{shown}` has {file.stat.st_size} bytes; outline takes at most {LARGEST}. Use Grep or Read"
        )
    content = file.content()
    if (count := content.count(b"\n")) > MOST_LINES:
        raise SizeLimitExceeded(f"`{shown}` has {count} lines; outline takes at most {MOST_LINES}. Use Grep or Read")
    if shown.endswith(".ipynb") and (cells := notebook(content, most=0)) is not None:
        return _OutlineSource(SourceText(lines_of(cells[0])), b"", None, is_notebook=True)
    text, notes = _decoded(content, shown, encoding)
    lines = lines_of(text)
    language = refined(language_of(shown, lines[0] if lines else ""), text)
    seen = SourceText(lines, language.comment, language.docstring, language.idle) if language else SourceText(lines)
    return _OutlineSource(seen, text.encode("utf-8", "replace"), language, notes)


def _decoded(content: bytes, shown: str, encoding: str | None) -> tuple[str, tuple[str, ...]]:
    marked = marked_form(content)
    if marked is not None:
        return content[len(marked.bom) :].decode(marked.codec, "replace"), ()
    form = shown_form(content, encoding)
    notes = () if form.exact else (f"`{shown}` is not UTF-8: odd bytes are shown as \\xNN",)
    return content.decode(form.codec, "backslashreplace"), notes
