"""The supported Lisp dialects, as a table of how their syntax differs.

A row holds fragments of regular expressions; `Grammar` joins them into the ones the scanner runs. Every
repetition is possessive, so that nothing backtracks: a string of ten million escapes uses no stack.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cached_property

STRING = r'"(?:[^"\\]++|\\.)*+"'
BARS = r"\|(?:[^|\\]++|\\.)*+\|"
# A comment without another comment inside; the scanner counts nested ones.
BLOCK = r"\#[0-9]*+\|(?:[^|\#]++|\|(?!\#)|\#(?!\|))*+\|\#"


@dataclass(frozen=True)
class Dialect:
    """The syntax of a Lisp dialect. The defaults are those of Common Lisp.

    Fragments may contain the placeholders {space}, {brackets} and {tail} (the rest of a token).
    """

    name: str
    suffixes: tuple[str, ...]
    opens: str = "("
    closes: str = ")"
    space: str = r"\ \t\n\r\f"
    ends_token: str = "'`,"  # besides space, brackets, `"` and `;`
    bars: bool = True  # |x| quotes inside a symbol
    blocks: bool = True  # has #| comments |#, and no token begins with `#`
    comment: str = r";[^\n]*+"
    character: str = ""  # character syntax other than #\x
    pair: str = r"\#!?+[+-]"  # takes two objects: a condition and what it guards
    hash_open: str = r"\#[0-9]*+"  # may directly precede an opening bracket
    hash_atom: str = r"\#[0-9]*+\\.{tail}|\#[0-9]*+\#|\#[:*]{tail}"  # a complete object
    prefix: str = r"['`]|,[@.]?+|\#[0-9]*+[^{space}{brackets}\"|\\]"  # belongs to the object that follows
    package: str = ":"  # separates a package from a name
    definers: str = r"def(?!ault)|test$"  # how the name of a defining operator begins, without its package
    wrappers: frozenset[str] = frozenset()  # operators that may contain definitions
    context: frozenset[str] = frozenset()  # operators whose forms are always shown in full
    remarks: frozenset[str] = frozenset()  # operators whose forms are shown in full if short
    naming: frozenset[str] = frozenset()  # operators that define nothing, but whose second element is a name

    @cached_property
    def grammar(self) -> Grammar:
        return Grammar(
            top=re.compile(_top(self), re.DOTALL),
            inner=re.compile(_inner(self), re.DOTALL),
            lines=re.compile(_lines(self), re.DOTALL),
            definer=re.compile(self.definers),
        )


@dataclass(frozen=True)
class Grammar:
    """A dialect's compiled expressions."""

    top: re.Pattern[str]  # one lexeme outside any list; lastgroup is its kind
    inner: re.Pattern[str]  # inside a list: everything up to and including the next change of depth
    lines: re.Pattern[str]  # what to keep and what to drop when source is joined into one line
    definer: re.Pattern[str]


COMMON_LISP = Dialect(
    "Common Lisp",
    (".lisp", ".lsp", ".cl", ".asd", ".ros"),
    wrappers=frozenset(
        "eval-when progn prog1 let let* locally macrolet flet labels symbol-macrolet compiler-let"
        " when unless if eval with-upgradability coalton-toplevel with-compilation-unit".split()
    ),
    context=frozenset({"in-package"}),
    remarks=frozenset(
        "declaim proclaim load require provide setf setq export unexport import use-package shadow"
        " shadowing-import in-readtable in-suite push pushnew".split()
    ),
)

EMACS_LISP = Dialect(
    "Emacs Lisp",
    (".el",),
    opens="([",
    closes=")]",
    bars=False,
    blocks=False,
    character=r"\?(?:\\[CMSHAs]-|\\\^)*+\\?+.",
    pair="",
    hash_open=r"\#(?:s|\^{1,2}+)?+",
    hash_atom=r"\#[0-9]++\#|\#(?!['=(\[])(?![0-9]++=)(?!(?:s|\^{1,2})[(\[]){tail}",
    prefix=r"['`]|,@?+|\#'|\#[0-9]++=",
    definers=r"(?:cl-|pcase-|transient-|ert-)?+def(?!ault)",
    wrappers=frozenset(
        "progn prog1 let let* eval-when-compile eval-and-compile with-eval-after-load when unless if"
        " cl-flet cl-labels cl-macrolet save-excursion with-no-warnings".split()
    ),
    remarks=frozenset("require provide setq setq-default setf declare-function autoload".split()),
    naming=frozenset({"use-package", "leaf", "setup"}),
)

SCHEME = Dialect(
    "Scheme",
    (".scm", ".ss", ".sls", ".sld", ".rkt"),
    opens="([{",
    closes=")]}",
    pair="",
    hash_open=r"\#[A-Za-z0-9]*+",
    hash_atom=(
        r"\#\\.{tail}|\#lang[^\n]*+|\#<<(?P<here>[^\n]*+)\n(?:.*?\n)??(?P=here)(?=\n|\Z)|\#[rp]x\#?+"
        + STRING
        + r"|\#(?!['`,;&\#\"(\[{\\|]|[0-9]++=){tail}"
    ),
    prefix=r"['`]|,@?+|\#['`;&]|\#,@?+|\#[0-9]++=",
    definers="def(?!ault)|struct$",
    wrappers=frozenset(
        "begin let let* letrec letrec* module module* module+ begin-for-syntax library define-library"
        " when unless if cond-expand let-syntax letrec-syntax parameterize".split()
    ),
    remarks=frozenset("import export require provide use-modules load include set! use".split()),
)

CLOJURE = Dialect(
    "Clojure",
    (".clj", ".cljs", ".cljc", ".edn", ".bb"),
    opens="([{",
    closes=")]}",
    space=r"\ \t\n\r\f,",
    ends_token="`@~^",
    package="/",
    bars=False,
    blocks=False,
    comment=r"(?:;|\#!)[^\n]*+",
    pair=r"\#?+\^",
    hash_open=r"\#(?:\?@?+|::?+{tail})?+",
    hash_atom=r"\\.{tail}",
    prefix=r"['`@]|~@?+|\#['_=\#]|\#\?@?+|\#(?![\"(\[{]){tail}",
    definers=r"def(?!ault)|reg-",
    wrappers=frozenset("do let when when-not if if-not binding letfn :clj :cljs :default".split()),
    context=frozenset({"in-ns"}),
    remarks=frozenset("ns require import use refer set! declare".split()),
    naming=frozenset({"ns", "fdef"}),
)

DIALECTS = (COMMON_LISP, EMACS_LISP, SCHEME, CLOJURE)


def dialect_of(path: str) -> Dialect | None:
    """The dialect for a file's suffix, or None if the file is not Lisp."""
    suffix = posixpath.splitext(path)[1].lower()
    return next((dialect for dialect in DIALECTS if suffix in dialect.suffixes), None)


def _top(dialect: Dialect) -> str:
    not_hash = r"(?!\#)" if dialect.blocks else ""
    kinds = [
        ("skip", rf"(?:[{dialect.space}]++|{dialect.comment}{_or_block(dialect)})++"),
        ("block", r"\#[0-9]*+\|" if dialect.blocks else ""),
        ("pair", dialect.pair),
        ("open", rf"(?:{_fill(dialect.hash_open, dialect)})?+[{_class(dialect.opens)}]"),
        ("close", rf"[{_class(dialect.closes)}]++"),
        ("atom", _fill(rf"{_or(dialect.character)}{dialect.hash_atom}|\#?+", dialect) + STRING),
        ("prefix", _fill(dialect.prefix, dialect)),
        ("token", not_hash + _tail(dialect, "++")),
        ("bad", "."),
    ]
    return "|".join(f"(?P<{kind}>{fragment})" for kind, fragment in kinds if fragment)


def _inner(dialect: Dialect) -> str:
    """Skips text that can't change the depth, and stops at brackets, a nested comment or a fault."""
    skipped, opens, closes = _skipped(dialect), _class(dialect.opens), _class(dialect.closes)
    leaf = rf"[{opens}](?:{skipped})*+[{closes}]"  # a list without lists inside is skipped by the regex alone
    return rf"(?:{skipped}|{leaf})*+(?:([{opens}]++)|([{closes}]++)|(\#[0-9]*+\||[\#\"|\\?])|\Z)"


def _skipped(dialect: Dialect) -> str:
    marks = ("|" if dialect.bars else "") + ("?" if dialect.character else "")
    parts = [rf"[^{_brackets(dialect)}\"\\\#;{marks}]++", STRING, dialect.comment, _escaped(dialect)]
    if dialect.blocks:
        parts += [rf"{_inside_token(dialect)}\#{_tail(dialect)}", BLOCK]
    if dialect.character:
        parts += [rf"{_inside_token(dialect)}\?", dialect.character]
    return "|".join([*parts, _dispatch(dialect)])


def _dispatch(dialect: Dialect) -> str:
    """`#` and the characters that belong to it: `#\\(` opens no bracket, `#;` no comment, `#'` no quote."""
    if not dialect.blocks:  # a `#` may end a symbol
        return rf"\#[^{dialect.space}{_brackets(dialect)}\"\\;]?+"
    own = rf"[^{dialect.space}{_brackets(dialect)}\"\\|]"
    return rf"\#[0-9]*+(?:\\.{_tail(dialect)}|{own}|(?=[{_class(dialect.opens)}\"]))"


def _inside_token(dialect: Dialect) -> str:
    """Matches after a character of a token: `foo#|x|` is one symbol, but `#.#|x|#foo` contains a comment."""
    constituent = rf"[^{dialect.space}{_brackets(dialect)}\";{dialect.ends_token}]"
    taken = rf"[^{dialect.space}{_brackets(dialect)}\"\\|:*]"
    return rf"(?<={constituent})(?<!,[@.])(?<!\#{taken})(?<!\#[0-9]{taken})(?<!\#[0-9][0-9]{taken})"


def _lines(dialect: Dialect) -> str:
    kept = [dialect.character, STRING, rf"\#[0-9]*+\\.{_tail(dialect)}", _escaped(dialect), r"\#;"]
    dropped = rf"(?:[{dialect.space}]++|{dialect.comment}{_or_block(dialect)})++"
    return rf"(?P<keep>{'|'.join(filter(None, kept))})|(?P<drop>{dropped})"


def _escaped(dialect: Dialect) -> str:
    return rf"(?:{BARS}|\\.){_tail(dialect)}" if dialect.bars else rf"\\.{_tail(dialect)}"


def _tail(dialect: Dialect, times: str = "*+") -> str:
    """The rest of a token: constituent characters and escaped ones."""
    bar, bars = ("|", f"|{BARS}") if dialect.bars else ("", "")
    plain = rf"[^{dialect.space}{_brackets(dialect)}\";\\{dialect.ends_token}{bar}]"
    return rf"(?:{plain}++|\\.{bars}){times}"


def _fill(fragment: str, dialect: Dialect) -> str:
    filled = fragment.replace("{space}", dialect.space).replace("{brackets}", _brackets(dialect))
    return filled.replace("{tail}", _tail(dialect))


def _or_block(dialect: Dialect) -> str:
    return f"|{BLOCK}" if dialect.blocks else ""


def _or(fragment: str) -> str:
    return f"{fragment}|" if fragment else ""


def _brackets(dialect: Dialect) -> str:
    return _class(dialect.opens + dialect.closes)


def _class(characters: str) -> str:
    return re.escape(characters)
