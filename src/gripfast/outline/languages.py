"""The languages that have an outline. A new one is a line here and a query file in queries/."""

from __future__ import annotations

import posixpath
import re

from gripfast.lisp.dialects import DIALECTS
from gripfast.outline.language import C_COMMENTS as _C
from gripfast.outline.language import Language

_HASH = ("#",)
_BLOCK = _C[1:]
LANGUAGES: tuple[Language, ...] = (
    Language("Python", (".py", ".pyi", ".pyw"), query="python", comment=_HASH, docstring=True, shebangs=("python",)),
    Language("JavaScript", (".js", ".mjs", ".cjs", ".jsx"), query="javascript", shebangs=("node",)),
    Language("TypeScript", (".ts", ".mts", ".cts"), "typescript:language_typescript", "typescript", mend="ts"),
    Language("TSX", (".tsx",), "typescript:language_tsx", "typescript"),
    Language("Go", (".go",), query="go", shallow=True),
    Language("Rust", (".rs",), query="rust", idle=("#[test]",)),
    Language("Java", (".java",), query="java", idle=("@Override", "@Test")),
    Language("Kotlin", (".kt", ".kts"), query="kotlin"),
    Language("Scala", (".scala", ".sc", ".sbt"), query="scala"),
    Language("C", (".c", ".h"), query="c", mend="c"),
    Language(
        "C++", (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp", ".inl", ".cu", ".ino"), query="cpp", mend="c++"
    ),
    Language("C#", (".cs", ".csx"), query="c_sharp"),
    Language(
        "Ruby",
        (".rb", ".rake", ".gemspec", ".ru"),
        query="ruby",
        comment=_HASH,
        names=("Rakefile", "Gemfile", "Vagrantfile"),
        shebangs=("ruby",),
    ),
    Language("PHP", (".php", ".phtml", ".inc"), "php:language_php", "php", comment=(*_C, "#"), shebangs=("php",)),
    Language("Swift", (".swift",), query="swift"),
    Language("Bash", (".sh", ".bash", ".zsh", ".ksh"), query="bash", comment=_HASH, shebangs=("sh", "bash", "zsh")),
    Language("Lua", (".lua",), query="lua", comment=("--",), shebangs=("lua",)),
    Language("SQL", (".sql",), query="sql", comment=("--", *_BLOCK)),
    Language("HCL", (".tf", ".tfvars", ".hcl"), query="hcl", comment=(*_C, "#")),
    Language("CSS", (".css",), query="css", comment=_BLOCK),
    Language("SCSS", (".scss",), query="scss"),
    Language("HTML", (".html", ".htm", ".xhtml"), query="html", comment=("<!--",)),
    Language("Elixir", (".ex", ".exs"), query="elixir", comment=_HASH),
    Language("Haskell", (".hs",), query="haskell", comment=("--", "{-")),
    Language("Julia", (".jl",), query="julia", comment=_HASH),
    Language("Zig", (".zig",), query="zig"),
    Language("PowerShell", (".ps1", ".psm1"), query="powershell", comment=_HASH),
    Language("Solidity", (".sol",), query="solidity"),
    Language("GraphQL", (".graphql", ".gql"), query="graphql", comment=_HASH),
    Language(
        "Make", (".mk",), query="make", comment=_HASH, shallow=True, names=("Makefile", "GNUmakefile", "makefile")
    ),
    Language(
        "Dockerfile", (".dockerfile",), query="dockerfile", comment=_HASH, names=("Dockerfile", "Containerfile")
    ),
    Language("Markdown", (".md", ".markdown", ".mdx"), comment=(), engine="markdown"),
    Language("JSON", (".json", ".jsonc", ".json5"), query="json", data=True, shallow=True),
    Language("YAML", (".yaml", ".yml"), query="yaml", comment=_HASH, data=True, shallow=True),
    Language(
        "TOML",
        (".toml",),
        query="toml",
        comment=_HASH,
        data=True,
        shallow=True,
        names=("Cargo.lock", "poetry.lock", "uv.lock"),
    ),
    *(Language(dialect.name, dialect.suffixes, comment=(";",), engine="lisp") for dialect in DIALECTS),
)

_CPP = re.compile(
    r"^\s*(?:template\s*<|namespace\b|class\s+\w+[^;]*$|using\s+\w|(?:public|private|protected):)", re.MULTILINE
)

_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}
_BY_NAME = {name: language for language in LANGUAGES for name in language.names}
_BY_SHEBANG = {word: language for language in LANGUAGES for word in language.shebangs}


def language_of(path: str, first_line: str = "") -> Language | None:
    """The language of a file, by its name, or by its first line if that names an interpreter."""
    name = posixpath.basename(path)
    suffix = posixpath.splitext(name)[1]
    found = _BY_NAME.get(name) or _BY_SUFFIX.get(suffix) or _BY_SUFFIX.get(suffix.lower())
    if found is None and first_line.startswith("#!"):
        words = first_line[2:].split()
        program = posixpath.basename(words[-1] if words[0].endswith("/env") else words[0]) if words else ""
        found = _BY_SHEBANG.get(program.rstrip("0123456789."))
    return found


def refined(language: Language | None, text: str) -> Language | None:
    """C++ for a header that is called as C's are, but uses words that C does not have."""
    if language is not None and language.name == "C" and _CPP.search(text[:100_000]):
        return named("C++")
    return language


def named(name: str) -> Language:
    return next(language for language in LANGUAGES if language.name == name)
