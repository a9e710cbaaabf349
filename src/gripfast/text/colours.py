"""What a program prints, in the colours of a terminal: pieces of text and the names of their styles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from gripfast.records import dataclass
from gripfast.text.escape import visible
from gripfast.text.terminal import ESCAPES

MOST_CHANGES = 5000
"""How many changes of style are shown; what follows has none."""
_COLOUR = re.compile("(?:\x1b\\[|\x9b)([0-9;:]{0,200})m")
_TOKEN = re.compile(f"({_COLOUR.pattern})|{ESCAPES.pattern}|(\r+(?![\r\n]))|(\r*\n)")
_STYLES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "struck"}
_ENDS = {21: "bold", 22: "bold dim", 23: "italic", 24: "underline", 27: "inverse", 29: "struck"}
_HUES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_CUBE = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text and its styles: `bold`, `red`, `bright-red`, `on-red` and the like, with spaces between."""

    text: str
    style: str = ""


def coloured(text: str) -> list[Run]:
    """The text as a person would have seen it last. Colours become styles, every other escape sequence is left out,
    and each character that may not be shown is written out."""
    lines = _Lines()
    end = 0
    for found in _TOKEN.finditer(text):
        lines.add(text[end : found.start()])
        end = found.end()
        if found[1] is not None:
            lines.change(found[2])
        elif found[3] is not None:
            lines.is_rewound = True
        elif found[4] is not None:
            lines.end()
    lines.add(text[end:])
    return list(_joined(lines.runs))


def has_colours(text: str) -> bool:
    return _COLOUR.search(text) is not None


@dataclass(slots=True)
class _Style:
    """The styles in force. Colours of more than sixteen are shown as the nearest of these, which a page can choose so
    that they are readable on its ground."""

    on: set[str] = field(default_factory=set[str])
    front: str = ""
    ground: str = ""

    def take(self, parameters: str) -> None:
        codes = [int(code) if code and len(code) < 6 else 0 for code in re.split("[;:]", parameters)]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.on, self.front, self.ground = set(), "", ""
            elif code in _STYLES:
                self.on.add(_STYLES[code])
            elif code in _ENDS:
                self.on.difference_update(_ENDS[code].split())
            elif code in (38, 48):
                self._set(_of_many(codes), code - 30)
            elif 30 <= code <= 49:
                self._set("" if code % 10 > 7 else _HUES[code % 10], code - code % 10 - 30 + 8)
            elif 90 <= code <= 97 or 100 <= code <= 107:
                self._set(f"bright-{_HUES[code % 10]}", 8 if code < 98 else 18)

    def _set(self, colour: str, place: int) -> None:
        if place == 8:
            self.front = colour
        else:
            self.ground = colour and f"on-{colour}"

    def name(self) -> str:
        return " ".join(filter(None, (*sorted(self.on), self.front, self.ground)))


class _Lines:
    """Text as it comes: what is printed after a carriage return replaces the line."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.is_rewound = False
        self._begin = 0
        self._style = _Style()
        self._changes = 0

    def change(self, parameters: str) -> None:
        self._changes += 1
        self._style.take(parameters if self._changes <= MOST_CHANGES else "0")

    def add(self, text: str) -> None:
        if text and self.is_rewound:
            del self.runs[self._begin :]
            self.is_rewound = False
        if text:
            self.runs.append(Run(visible(text), self._style.name()))

    def end(self) -> None:
        self.is_rewound = False
        self.add("\n")
        self._begin = len(self.runs)


def _joined(runs: list[Run]) -> Iterator[Run]:
    texts: list[str] = []
    for at, run in enumerate(runs):
        texts.append(run.text)
        if at + 1 == len(runs) or runs[at + 1].style != run.style:
            yield Run("".join(texts), run.style)
            texts = []


def _of_many(codes: list[int]) -> str:
    """One of 256 colours or of 16 million, as the nearest of sixteen. Takes its numbers from `codes`."""
    kind = codes.pop(0) if codes else 0
    if kind == 5 and codes:
        number = min(codes.pop(0), 255)
        if number < 16:
            return _HUES[number] if number < 8 else f"bright-{_HUES[number - 8]}"
        if number >= 232:
            level = (number - 232) * 10 + 8
            return _nearest(level, level, level)
        cube = number - 16
        return _nearest(_CUBE[cube // 36], _CUBE[cube // 6 % 6], _CUBE[cube % 6])
    if kind == 2 and len(codes) >= 3:
        red, green, blue = (min(codes.pop(0), 255) for _ in range(3))
        return _nearest(red, green, blue)
    return ""


def _nearest(red: int, green: int, blue: int) -> str:
    strongest = max(red, green, blue)
    if strongest < 50:
        return "black"
    if strongest - min(red, green, blue) < 40:
        return "bright-black" if strongest < 130 else "white"
    bits = sum(bit for bit, part in ((1, red), (2, green), (4, blue)) if part > strongest * 0.6)
    return f"bright-{_HUES[bits]}" if strongest > 215 else _HUES[bits]
