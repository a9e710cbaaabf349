"""Subjects: an argument by which a call acts on several things at once, such as a patch over many files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self


class Subjects(ABC):
    """Each part is placed, judged and shown as if it were the subject of a call of its own; the call runs if all may.
    `str()` is the argument as it was given, which a question shows whole."""

    __slots__ = ()

    @abstractmethod
    def parts(self) -> Sequence[object]:
        """What rules judge one by one: paths."""

    @abstractmethod
    def with_parts(self, parts: Sequence[object]) -> Self:
        """The same argument with each part bound to the place it leads to."""
