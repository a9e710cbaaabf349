"""What is known of one language: how its files are called, and what reads them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, cast

Engine: TypeAlias = Literal["grammar", "lisp", "markdown"]

C_COMMENTS = ("//", "/*", "*/", "* ", "** ", "**/")  # the stars of a block comment, not those of `*pointer = 1;`


class Language(NamedTuple):
    """How a language's files are called, which grammar reads them and how comments look.

    `comment` is how a comment line begins, for the line of words above a definition; `docstring`: it stands inside.
    `idle`: marks before a definition that are not worth a line. `data`: keys and values instead of code."""

    name: str
    suffixes: tuple[str, ...]
    grammar: str = ""  # `module` or `module:function`; the default is made from the query's name
    query: str = ""
    comment: tuple[str, ...] = C_COMMENTS
    docstring: bool = False
    idle: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    shebangs: tuple[str, ...] = ()
    engine: Engine = "grammar"
    data: bool = False
    shallow: bool = False  # the query's patterns begin at the root or right below: the rest need not be searched
    mend: str = ""  # what in it no grammar reads; see mending.py

    @property
    def distribution(self) -> str:
        """What to install for it."""
        return self.module.replace("_", "-")

    @property
    def module(self) -> str:
        return f"tree_sitter_{(self.grammar or self.query).partition(':')[0]}"

    @property
    def function(self) -> str:
        return self.grammar.partition(":")[2] or "language"

    @classmethod
    def from_plain(cls, values: list[Any]) -> Language:
        """From the list that JSON makes of one, with lists where there were tuples."""
        return cls._make(tuple(cast("list[str]", value)) if isinstance(value, list) else value for value in values)
