"""Changes to one cell of a Jupyter notebook: which bytes of the file become which. All other bytes stay."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Literal, TypeAlias, cast

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass

CellType: TypeAlias = Literal["code", "markdown", "raw"]
EditMode: TypeAlias = Literal["replace", "insert", "delete"]
Span: TypeAlias = tuple[int, int]

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_STEP = re.compile(r"\{\r?\n([ \t]+)")


@dataclass(frozen=True, slots=True)
class CellEdit:
    """What to do with a cell, counted from 1. An inserted one comes after that cell; 0 is before the first."""

    mode: EditMode
    cell: int
    source: str | None = None
    kind: CellType | None = None


def edited_span(text: str, edit: CellEdit, shown: str) -> tuple[int, int, str]:
    """The part of a notebook's text that an edit replaces, and by what. Raises InvalidArgument."""
    try:
        notebook = _members(text, _SPACE.match(text, 0).end())  # type: ignore[union-attr]  # it matches anywhere
        cells = _elements(text, notebook["cells"][0])
    except (ValueError, KeyError, RecursionError):
        raise InvalidArgument(f"`{shown}` is not a notebook: it has no list of cells in JSON") from None
    first = 0 if edit.mode == "insert" else 1
    if not first <= edit.cell <= len(cells):
        raise InvalidArgument(
            f"`cell` is {edit.cell}; `{shown}` has {len(cells)} cells: give {first} to {len(cells)}"
        )
    if edit.mode == "delete":
        return _deleted(cells, edit.cell - 1)
    if edit.mode == "insert":
        return _inserted(text, notebook, cells, edit)
    return _replaced(text, cells[edit.cell - 1], edit)


# --- where things are ---


def _members(text: str, at: int) -> dict[str, Span]:
    """The values of a JSON object by key, as spans of the text."""
    found: dict[str, Span] = {}
    at = _after(text, at, "{")
    while text[at : at + 1] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _after(text, _skip(text, at), ":")
        _, end = _DECODER.raw_decode(text, at)
        found[str(key)] = (at, end)
        at = _next(text, end, "}")
    return found


def _elements(text: str, at: int) -> list[Span]:
    """The elements of a JSON list, as spans of the text."""
    found: list[Span] = []
    at = _after(text, at, "[")
    while text[at : at + 1] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append((at, end))
        at = _next(text, end, "]")
    return found


def _after(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise ValueError(f"no {mark} at {at}")
    return _skip(text, at + 1)


def _next(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    return at if text[at : at + 1] == closing else _after(text, at, ",")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


# --- what changes ---


def _deleted(cells: list[Span], index: int) -> tuple[int, int, str]:
    """With the comma that goes with it: the one after it, else the one before."""
    if index + 1 < len(cells):
        return cells[index][0], cells[index + 1][0], ""
    return (cells[index - 1][1] if index else cells[index][0]), cells[index][1], ""


def _inserted(text: str, notebook: dict[str, Span], cells: list[Span], edit: CellEdit) -> tuple[int, int, str]:
    cell: dict[str, Any] = {"cell_type": edit.kind or "code"}
    if _has_ids(text, notebook):
        cell["id"] = _new_id(text, edit)
    cell["metadata"] = {}
    new = _rendered(_of_kind({**cell, "source": _lines(edit.source or "")}), text, cells)
    if not cells:
        start = notebook["cells"][0] + 1
        return start, notebook["cells"][1] - 1, new
    if edit.cell == 0:
        return cells[0][0], cells[0][0], f"{new},{_gap(text, cells[0][0])}"
    end = cells[edit.cell - 1][1]
    return end, end, f",{_gap(text, cells[edit.cell - 1][0])}{new}"


def _replaced(text: str, span: Span, edit: CellEdit) -> tuple[int, int, str]:
    """The source alone; the whole cell where its type changes."""
    old = cast("dict[str, Any]", json.loads(text[span[0] : span[1]]))
    source = _members(text, span[0]).get("source")
    if source is None or (edit.kind and edit.kind != old.get("cell_type")):
        kind = edit.kind or old.get("cell_type", "code")
        new = _of_kind({**old, "cell_type": kind, "source": _source(edit, old)})
        return *span, _rendered(new, text, [span])
    if edit.source is None:
        raise InvalidArgument("nothing to replace: give new_source, cell_type or both")
    value = edit.source if isinstance(old["source"], str) else _lines(edit.source)
    return *source, _dumped(value, text, _indent(text, source[0]), _step(text, span))


def _of_kind(cell: dict[str, Any]) -> dict[str, Any]:
    """Only code cells have outputs and a count."""
    if cell["cell_type"] == "code":
        return {**cell, "execution_count": cell.get("execution_count"), "outputs": cell.get("outputs", [])}
    return {key: value for key, value in cell.items() if key not in ("execution_count", "outputs")}


def _source(edit: CellEdit, old: dict[str, Any]) -> Any:
    """The new source, or the one that the cell has."""
    return old.get("source", []) if edit.source is None else _lines(edit.source)


def _lines(source: str) -> list[str]:
    """A source as notebooks store it: lines with their ends."""
    return source.splitlines(keepends=True)


def _has_ids(text: str, notebook: dict[str, Span]) -> bool:
    """Cells have ids from format 4.5 on (https://nbformat.readthedocs.io/en/latest/format_description.html)."""
    numbers: list[int] = []
    for key in ("nbformat", "nbformat_minor"):
        start, end = notebook.get(key, (0, 0))
        digits = text[start:end]
        numbers.append(int(digits) if digits.isdigit() else 0)
    return tuple(numbers) >= (4, 5)


def _new_id(text: str, edit: CellEdit) -> str:
    for turn in range(1000):
        name = hashlib.sha256(f"{turn}{edit}{len(text)}".encode()).hexdigest()[:8]
        if f'"{name}"' not in text:
            return name
    raise InvalidArgument("no free id for the new cell")  # pragma: no cover (a thousand hashes in one file)


# --- how it is written ---


def _rendered(cell: dict[str, Any], text: str, like: list[Span]) -> str:
    """A cell in the layout of another one; without any, as Jupyter writes it."""
    if not like:
        return f"\n  {_dumped(cell, text, '  ', ' ')}\n "
    return _dumped(cell, text, _indent(text, like[0][0]), _step(text, like[0]))


def _dumped(value: Any, text: str, indent: str, step: str | None) -> str:
    ascii_only = text.isascii() and "\\u" in text
    written = json.dumps(value, ensure_ascii=ascii_only, indent=step)
    newline = "\r\n" if "\r\n" in text else "\n"
    return written.replace("\n", f"{newline}{indent}")


def _indent(text: str, at: int) -> str:
    """The space that the line begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _step(text: str, cell: Span) -> str | None:
    """By how much a level is indented; None if a cell is on one line."""
    found = _STEP.match(text, *cell)
    return found[1].removeprefix(_indent(text, cell[0])) or " " if found else None


def _gap(text: str, at: int) -> str:
    """The space before a position, for another element beside it."""
    return text[len(text[:at].rstrip(" \t\r\n")) : at]
