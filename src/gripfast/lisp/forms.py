"""Classifies a unit of source: its operator, the name it defines, a one-line summary, the definitions inside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gripfast.lisp.dialects import COMMON_LISP, Dialect
from gripfast.lisp.scanner import Unit, read_unit

Kind: TypeAlias = Literal["definition", "wrapper", "context", "other"]

VALUE_WIDTH = 40  # a variable's value is shown up to here
REMARK_WIDTH = 80  # (declaim ...) and the like are shown in full up to here
CLAUSE_WIDTH = 60  # the list after the name, if the operator is unknown
SIGNATURE_WIDTH = 200
DOC_WIDTH = 120
NESTING = 8  # how deep nested wrappers are searched
ELEMENTS = 64  # how many elements of a class are searched for its documentation

VARIABLE = re.compile(
    r"def(?:var|parameter|constant|const|global|custom|once|alias|ine|)$|defvar-|define-(?:symbol-macro|constant)$"
)
CLASS = re.compile(r"def(?:class|generic)$|define-condition$")
PACKAGE = re.compile(r"def(?:ine-)?package$")
SYSTEM = re.compile(r"defsystem$")
FUNCTION = re.compile(r"(?:cl-)?def(?:un|macro|subst|method|type$|setf|n-?$|ine-(?:compiler|modify|setf))")
DECLARE = re.compile(r"\(\s*(?:declare|interactive)\b", re.IGNORECASE)
DOCUMENTATION = re.compile(r"\(\s*:documentation\s+", re.IGNORECASE)
EXPORT = re.compile(r"\(\s*:export\s", re.IGNORECASE)
UNTIDY = re.compile(r"[\n\r\t\f,;]|  |#\||[(\[{] | [)\]}]|^ | $")
PLACE = re.compile(r"\(\s*(?:setf|cas)\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Form:
    """A classified unit. `line` is its summary in a view; `inside` are the definitions in a wrapper."""

    unit: Unit
    kind: Kind
    line: str
    name: str = ""
    inside: tuple[Form, ...] = ()

    def spellings(self, package: str = ":") -> tuple[str, ...]:
        """The names that a pattern may match: with and without package, `(setf x)` and `x`."""
        bare = PLACE.sub("", self.name).removesuffix(")") if PLACE.match(self.name) else self.name
        return tuple(dict.fromkeys((self.name, bare, _bare(bare, package)))) if self.name else ()


@dataclass(frozen=True, slots=True)
class _FormSource:
    """The text and its dialect."""

    text: str
    dialect: Dialect

    def line(self, unit: Unit, width: int = SIGNATURE_WIDTH) -> str:
        return one_line(self.text, unit.start, unit.end, width, self.dialect)

    def short(self, unit: Unit, width: int) -> str | None:
        """The unit on one line, if it fits."""
        line = _flat(self.text, unit.start, unit.end, width, self.dialect)
        return line if len(line) <= width else None

    def before(self, unit: Unit) -> str:
        """The quotes and conditions of a unit, as one line to put before its object."""
        raw = self.text[unit.start : unit.datum]
        gap = " " if raw[-1:].isspace() else ""
        opens = self.opens(unit)
        dispatch = self.text[unit.datum : opens - 1] if opens else ""  # `#?` of a reader conditional
        return one_line(self.text, unit.start, unit.datum, REMARK_WIDTH, self.dialect) + gap + dispatch

    def opens(self, unit: Unit) -> int:
        """The position just after the opening bracket of the unit's list; 0 if its object is not a list."""
        if self.text[unit.datum] not in self.dialect.opens and self.text[unit.datum] != "#":
            return 0
        found = self.dialect.grammar.top.match(self.text, unit.datum, unit.end)
        return found.end() if found and found.lastgroup == "open" else 0

    def closes(self, unit: Unit) -> int:
        """The position of the closing bracket of the unit's list, or its end if that is missing."""
        return unit.end if unit.fault else unit.end - 1

    def is_string(self, unit: Unit) -> bool:
        return self.text[unit.datum] == '"' and unit.start == unit.datum

    def parts(self, unit: Unit) -> Iterator[Unit]:
        """The elements of a list, in order; of a broken list, those that can be read."""
        at, end = self.opens(unit), self.closes(unit)
        while at:
            part = read_unit(self.text, at, end, self.dialect)
            if part is None or part.fault:
                return
            yield part
            at = part.end


class _FormParts:
    """The elements of a list, read on demand: a signature does not need the body."""

    def __init__(self, source: _FormSource, unit: Unit) -> None:
        self._source = source
        self._read: list[Unit] = []
        self._at, self._end = source.opens(unit), source.closes(unit)

    def get(self, index: int) -> Unit | None:
        """The element at an index, or None past the last one that can be read."""
        while len(self._read) <= index:
            part = read_unit(self._source.text, self._at, self._end, self._source.dialect)
            if part is None or part.fault:
                return None
            self._read.append(part)
            self._at = part.end
        return self._read[index]

    def start(self, index: int) -> int | None:
        """The position of the element at an index, without reading it; None if there is no such element."""
        if index < len(self._read):
            return self._read[index].start
        if index and self.get(index - 1) is None:
            return None
        at, match = self._at, self._source.dialect.grammar.top.match
        while (found := match(self._source.text, at, self._end)) and found.lastgroup == "skip":
            at = found.end()
        return found.start() if found else None


def understand(text: str, unit: Unit, dialect: Dialect = COMMON_LISP) -> Form:
    """Classifies a unit. Reads only its first few elements, unless it is a wrapper."""
    return _form(_FormSource(text, dialect), unit, NESTING)


def _form(source: _FormSource, unit: Unit, nesting: int) -> Form:
    if not source.opens(unit):
        return Form(unit, "other", source.line(unit, REMARK_WIDTH))
    parts, dialect = _FormParts(source, unit), source.dialect
    first, name = parts.get(0), parts.get(1)
    head = source.line(first, REMARK_WIDTH) if first else ""
    bare = _bare(head, dialect.package).lower()
    if bare in dialect.context:
        return Form(unit, "context", source.line(unit))
    if name and dialect.grammar.definer.match(bare):
        shown = [head, source.line(name), *_signature(source, bare, name, parts)]
        return Form(unit, "definition", f"{source.before(unit)}({' '.join(shown)})", _name(source, name))
    subject = _subject(source, bare, head, name)
    if subject:
        line = f"{source.before(unit)}({' '.join([head, source.line(subject), *_dots(parts, 2)])})"
    else:
        line = _elided(source, unit, head, name)
    if nesting and (bare in dialect.wrappers or bare.startswith("with-")):
        return Form(unit, "wrapper", line, inside=tuple(_definitions(source, unit, nesting - 1)))
    if bare in dialect.remarks or not _is_symbol(head):
        line = source.short(unit, REMARK_WIDTH) or line
    return Form(unit, "other", line, _name(source, subject) if subject else "")


def _subject(source: _FormSource, bare: str, head: str, second: Unit | None) -> Unit | None:
    """The second element of a form that defines nothing by its operator's name, where it names what the form is
    about: `(ns name`, `(use-package name`, or a keyword, a quoted symbol or a short string after any operator."""
    if second is None or source.opens(second) or not _is_symbol(head):
        return None
    text = source.text[second.start : second.end]
    is_name = bare in source.dialect.naming or text[:1] in (":", "'", '"')
    return second if is_name and len(text) <= CLAUSE_WIDTH and "\n" not in text else None


def _definitions(source: _FormSource, unit: Unit, nesting: int) -> Iterator[Form]:
    for part in source.parts(unit):
        if source.opens(part):
            form = _form(source, part, nesting)
            if form.kind == "definition" or form.inside:
                yield form


def _elided(source: _FormSource, unit: Unit, head: str, second: Unit | None) -> str:
    """`(head ...)`, for a form whose operator alone is shown."""
    opening = source.text[source.opens(unit) - 1]
    closing = source.dialect.closes[source.dialect.opens.index(opening)]
    body = f"{head} ..." if second else head
    return f"{source.before(unit)}{opening}{body if _is_symbol(head) or not head else '...'}{closing}"


def _signature(source: _FormSource, bare: str, name: Unit, parts: _FormParts) -> list[str]:
    """What to show of a definition after its name; `...` where something is left out."""
    named_by_list = source.opens(name) and not PLACE.match(source.text, name.datum)
    if VARIABLE.match(bare) and not named_by_list:
        return _variable(source, parts)
    if CLASS.match(bare):
        return _class(source, parts, has_slots=bare != "defgeneric")
    if PACKAGE.match(bare):
        return _package(source, parts)
    if SYSTEM.match(bare):
        return _system(source, parts)
    if named_by_list:
        return _docstring_and_rest(source, parts, 2)
    return _function(source, FUNCTION.match(bare) is not None, parts)


def _variable(source: _FormSource, parts: _FormParts) -> list[str]:
    value, docstring = parts.get(2), parts.get(3)
    if value is None:
        return []
    shown = [source.short(value, VALUE_WIDTH) or "..."]
    if docstring and source.is_string(docstring):
        return [*shown, _first_line(source, docstring), *_dots(parts, 4)]
    return shown + _dots(parts, 3)


def _class(source: _FormSource, parts: _FormParts, *, has_slots: bool) -> list[str]:
    """Superclasses or lambda list, the names of the slots, and the text of the `(:documentation ...)` option."""
    second, slots = parts.get(2), parts.get(3)
    shown = [source.line(second)] if second else []
    rest = 3
    if has_slots and slots and source.opens(slots):
        shown.append(_names(source, slots))
        rest = 4 if shown[-1] == source.line(slots) else 3
    for index in range(3, ELEMENTS):
        option = parts.get(index)
        if option is None:
            break
        found = DOCUMENTATION.match(source.text, option.datum, option.end)
        docstring = read_unit(source.text, found.end(), option.end, source.dialect) if found else None
        if docstring and source.is_string(docstring):
            return [*shown, _first_line(source, docstring), "..."]
    return shown + _dots(parts, rest)


def _names(source: _FormSource, unit: Unit) -> str:
    """The names in a list of names and of lists that begin with one: `(x y)` for `((x :initform 0) y)`."""
    names: list[str] = []
    width = 0
    for part in source.parts(unit):
        names.append(_name(source, part))
        width += len(names[-1]) + 1
        if width > SIGNATURE_WIDTH:
            return f"({' '.join(names[:-1])} ...)"
    return f"({' '.join(names)})"


def _package(source: _FormSource, parts: _FormParts) -> list[str]:
    """The first option if it is short, and what the package exports."""
    first = parts.get(2)
    shown: list[str] = []
    for index in range(2, ELEMENTS):
        option = parts.get(index)
        if option is None:
            break
        exports = EXPORT.match(source.text, option.datum, option.end) is not None
        if exports or (option is first and source.short(option, CLAUSE_WIDTH)):
            shown.append(source.line(option))
    return [*shown, *_dots(parts, 2 + len(shown))]


def _system(source: _FormSource, parts: _FormParts) -> list[str]:
    """What a system depends on, and the names of its components."""
    shown: list[str] = []
    for index in range(2, ELEMENTS):
        key, value = parts.get(index), parts.get(index + 1)
        if key is None or value is None:
            break
        match source.text[key.start : key.end].lower():
            case ":depends-on":
                shown += [":depends-on", source.line(value)]
            case ":components":
                shown += [":components", _components(source, value, NESTING)]
            case _:
                pass
    return [*shown, *_dots(parts, 2 + len(shown))]


def _components(source: _FormSource, unit: Unit, nesting: int) -> str:
    """The names of `((:file "a") (:module "src" :components (...)))`, with those of a module after its own."""
    shown: list[str] = []
    for component in source.parts(unit):
        elements = _FormParts(source, component)
        name = elements.get(1) if source.opens(component) else None
        if name is None:
            continue
        inner = _component_list(source, elements) if nesting else None
        text = _name(source, name)
        shown.append(f"({text} {_components(source, inner, nesting - 1)[1:-1]})" if inner else text)
    return _within(f"({' '.join(shown)})", SIGNATURE_WIDTH)


def _component_list(source: _FormSource, elements: _FormParts) -> Unit | None:
    for index in range(2, ELEMENTS):
        key = elements.get(index)
        if key is None:
            return None
        if source.text[key.start : key.end].lower() == ":components":
            return elements.get(index + 1)
    return None


def _within(line: str, width: int) -> str:
    """A list of names, clipped to a width."""
    if len(line) <= width:
        return line
    cut = line[:width].rpartition(" ")[0]
    return f"{cut} ...{')' * (cut.count('(') - cut.count(')'))}"


def _function(source: _FormSource, known: bool, parts: _FormParts) -> list[str]:
    """Qualifiers, lambda list, docstring; in Clojure the docstring comes first."""
    shown: list[str] = []
    at, part = 2, parts.get(2)
    if part and source.is_string(part) and parts.start(3) is not None:
        shown, at = [_first_line(source, part)], 3
    while known and (part := parts.get(at)) and not source.opens(part):
        shown.append(source.line(part, VALUE_WIDTH))
        at += 1
        if shown[-1].lower() == "nil":  # an empty lambda list
            return shown + _docstring_and_rest(source, parts, at)
    part = parts.get(at)
    if part and source.opens(part) and (known or _is_short_clause(source, part, parts.start(at + 1))):
        shown.append(source.line(part))
        at += 1
    return shown + _docstring_and_rest(source, parts, at)


def _is_short_clause(source: _FormSource, part: Unit, after: int | None) -> bool:
    return after is not None and source.short(part, CLAUSE_WIDTH) is not None


def _docstring_and_rest(source: _FormSource, parts: _FormParts, at: int) -> list[str]:
    """What follows a lambda list: the docstring, even after declarations, and `...`. A final string is a value."""
    index = at
    while (start := parts.start(index)) is not None and DECLARE.match(source.text, start):
        index += 1
    if start is not None and source.text[start] == '"' and parts.start(index + 1) is not None:
        docstring = parts.get(index)
        return [_first_line(source, docstring), "..."] if docstring else ["..."]
    return _dots(parts, at)


def _dots(parts: _FormParts, at: int) -> list[str]:
    return [] if parts.start(at) is None else ["..."]


def _first_line(source: _FormSource, unit: Unit) -> str:
    text = source.text[unit.datum + 1 : unit.end - 1].strip()
    first = text.split("\n", 1)[0].strip()
    if len(first) > DOC_WIDTH:
        first = first[: DOC_WIDTH - 3].rstrip("\\") + "..."
    elif first != text:
        first += " ..."
    return f'"{first}"'


def _name(source: _FormSource, unit: Unit) -> str:
    """The defined name: a symbol without quotes, `(setf x)`, or the first element of `(name options)`."""
    for _ in range(3):
        if not source.opens(unit) or PLACE.match(source.text, unit.datum):
            break
        first = next(source.parts(unit), None)
        if first is None:
            break
        unit = first
    text = one_line(source.text, unit.datum, unit.end, SIGNATURE_WIDTH, source.dialect)
    return text.lstrip("#':").strip('"')


def one_line(text: str, start: int, end: int, width: int, dialect: Dialect = COMMON_LISP) -> str:
    """Source on one line, clipped to width: comments dropped, whitespace joined, strings and characters kept."""
    line = _flat(text, start, end, width, dialect)
    if len(line) <= width:
        return line
    kept = line[:width].rpartition(" ")[0] or line[:width]
    return f"{kept.rstrip()} ...{_closing(kept, dialect)}"


def _flat(text: str, start: int, end: int, width: int, dialect: Dialect) -> str:
    """Source on one line, but only as much of it as is needed to tell whether it fits into width."""
    piece = text[start : min(end, start + 8 * width)]
    line = (
        dialect.grammar.lines.sub(_on_one_line, piece).replace("\n", " ").strip() if UNTIDY.search(piece) else piece
    )
    return line if start + len(piece) == end else line.ljust(width) + "."


def _closing(kept: str, dialect: Dialect) -> str:
    """The brackets that a piece of source leaves open."""
    needed: list[str] = []
    for bracket in kept:
        if bracket in dialect.opens:
            needed.append(dialect.closes[dialect.opens.index(bracket)])
        elif needed and bracket in dialect.closes:
            needed.pop()
    return "".join(reversed(needed))


def _on_one_line(found: re.Match[str]) -> str:
    if found.lastgroup == "keep":
        kept = found[0]
        return kept if "\n" not in kept else kept.split("\n", 1)[0].rstrip() + "..." + kept[-1]
    at, text = found.start(), found.string
    hugs = text[at - 1 : at] in tuple("([{") and text[at - 2 : at - 1] != "\\"
    return "" if hugs or text[found.end() : found.end() + 1] in tuple(")]}") else " "


def _bare(name: str, package: str) -> str:
    """A name without its package."""
    return name.rpartition(package)[2] or name


def _is_symbol(head: str) -> bool:
    return head[:1] not in "([{\"'`,#0123456789" if head else False
