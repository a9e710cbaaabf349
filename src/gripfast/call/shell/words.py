"""The words and commands of a shell line, where some words are known only to be words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from gripfast.records import dataclass


@dataclass(frozen=True, slots=True)
class Unknown:
    """A word whose text only the shell will know: a variable, a glob, the output of a command.

    `text` is the source. Every word that comes of it starts with `prefix`. With `many` it may become no word or
    several. `glob` is the pattern where only names of files can come of it. `number` is a word of digits, perhaps
    with a sign. `beneath` are the places that it is or lies below, where those are known.
    """

    text: str
    prefix: str = ""
    many: bool = False
    glob: str | None = None
    number: Literal["", "digits", "signed"] = ""
    beneath: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    @property
    def may_be_option(self) -> bool:
        if self.beneath:
            return any(place.startswith("-") for place in self.beneath)
        return self.number != "digits" and self.prefix[:1] in ("", "-")


Word: TypeAlias = str | Unknown
Argv: TypeAlias = tuple[Word, ...]


class Redirect(NamedTuple):
    """A file that the shell itself opens for a command."""

    way: Literal["read", "write"]
    target: Word


class Command(NamedTuple):
    """One simple command: what is set for it, what it opens, and its words (none for an assignment alone)."""

    words: Argv
    assigned: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    repeated: bool = False


# What a program that runs the project's code may be told before its name, if the rules say so: where its modules are,
# and settings that applications read.
MODULE_PLACES = frozenset({"PYTHONPATH"})
_OF_APPLICATIONS = re.compile(
    r""".*_DIR|.*_ROOT|.*CONFIG.*|.*CONF|.*_FILE|.*_SETTINGS.*|.*MODULES?|.*_APP|POSTGRES.*|PG.*|MYSQL.*|REDIS.*|FLASK.*|
    DJANGO.*|UVICORN.*|GUNICORN.*|WERKZEUG.*|USER|LOGNAME|PORT_.*""",
    re.VERBOSE,
)


def is_left_to_rules(name: str, value: Word) -> bool:
    """Whether setting a variable is harmless only before some programs, and the rules say which."""
    left = is_of_applications(name) or (name in MODULE_PLACES and isinstance(value, str))
    return left and assignment_problem(name, value) is not None


@lru_cache(maxsize=256)
def is_of_applications(name: str) -> bool:
    """Whether only code of a project reads a variable, and no tool that is known."""
    only_there = _OF_APPLICATIONS.fullmatch(name) is not None and name == name.upper()
    return only_there and _SET_BY_BASH.fullmatch(name) is None and _READ_BY_TOOLS.fullmatch(name) is None


@dataclass(frozen=True, slots=True)
class Script:
    """Every command that a line can run, in the order they are written, and the values it gives to variables."""

    commands: tuple[Command, ...]
    values: tuple[Word, ...] = ()
    is_fed: bool = False  # it has a text that some command reads as its input


@dataclass(frozen=True, slots=True)
class NotProvable:
    reason: str


def plain_words(words: Sequence[Word]) -> tuple[str, ...]:
    """The words as written, to be shown."""
    return tuple(str(word) for word in words)


_SET_BY_BASH = re.compile(
    r"""_|BASH.*|EPOCH.*|HIST.*|COMP_.*|COMPREPLY|READLINE_.*|DIRSTACK|EUID|UID|PPID|GROUPS|FUNC.*|MAPFILE|PIPESTATUS|
    RANDOM|SRANDOM|SECONDS|LINENO|SHLVL|SHELL.*|HOST.*|MACHTYPE|OSTYPE|OPT(?:ARG|IND|ERR)|COPROC|TIMEFORMAT|TMOUT|PWD|
    OLDPWD|PS[0-9]|PROMPT.*|IFS|ENV|FCEDIT|FIGNORE|GLOB.*|GLOBIGNORE|EXECIGNORE|IGNOREEOF|INPUTRC|MAIL.*|POSIX.*|
    TEXTDOMAIN.*|CHILD_MAX|EMACS|INSIDE_EMACS|AUTO_RESUME|HISTCHARS|CDPATH|COLUMNS|LINES|REPLY""",
    re.VERBOSE,
)
# Names that programs read, and that decide what code they run, which files they read or write, or whom they talk to.
_READ_BY_TOOLS = re.compile(
    r""".*PATHS?|.*HOME|LD.*|DYLD.*|GIT.*|SSH.*|GPG.*|PYTHON.*|PYTEST.*|PY_.*|PIP.*|UV_.*|POETRY.*|PDM_.*|
    CONDA.*|VIRTUAL.*|COVERAGE.*|TOX.*|NOX.*|MYPY.*|RUFF.*|NODE_(?!ENV$).*|NPM_.*|YARN.*|PNPM.*|BUN.*|DENO.*|ESLINT.*|
    PRETTIER.*|TSC.*|TS_.*|TSX.*|TSCONFIG.*|BABEL.*|JEST.*|VITEST.*|ELECTRON.*|PLAYWRIGHT.*|COREPACK.*|RUBY.*|GEM.*|
    BUNDLE.*|PERL.*|_?JAVA.*|_?JDK.*|CLASS.*|MAVEN.*|MVN.*|M2.*|GRADLE.*|KOTLIN.*|SCALA.*|SBT.*|CARGO.*|RUST(?!_).*|
    RUSTC.*|RUSTDOC.*|GO[A-Z0-9_]*|CGO.*|CC|CXX|CPP|LD|AR|AS|NM|FC|CC_.*|CXX_.*|.*FLAGS?|MAKE.*|CMAKE.*|NINJA.*|
    PKG_.*|.*PAGER.*|.*EDITOR.*|VISUAL|BROWSER|.*OPTIONS?|.*OPTS?|.*ARGS?|.*COMMAND.*|.*_CMD|.*EXEC.*|.*WRAPPER.*|
    .*LAUNCHER.*|.*PROGRAM.*|.*RUNNER.*|LESS.*|MORE|MAN.*|RIPGREP.*|GREP_(?!COLORS?$).*|JQ.*|FZF.*|FD_.*|TAR.*|ZIP.*|
    UNZIP.*|GZIP|BZIP.*|XZ_.*|ZSTD.*|RSYNC.*|CVS.*|SVN.*|HG.*|.*RC|XDG.*|TERM.*|DISPLAY|WAYLAND.*|XAUTH.*|DBUS.*|LC_.*|LANG.*|LOC.*|NLS.*|GCONV.*|ICONV.*|MALLOC.*|GLIBC.*|LIB.*|
    TMP.*|TEMP.*|.*PROXY.*|.*PRELOAD.*|.*PLUGINS?.*|.*LOADER.*|.*STARTUP.*|.*HOOKS?.*|.*SHELL.*|.*_BIN|.*_LIB|
    .*INTERPRETER.*|.*COMPILER.*|DOCKER.*|PODMAN.*|KUBE.*|HELM.*|AWS.*|GOOGLE.*|GCLOUD.*|AZURE.*|SUDO.*|SU|
    ERL.*|ELIXIR.*|MIX_.*|HEX_.*|R_.*|JULIA.*|LUA.*|TCL.*|GUILE.*|SBCL.*|PHP.*|COMPOSER.*|DOTNET.*|NUGET.*|MSBUILD.*|
    SWIFT.*|XCODE.*|DEVELOPER.*|SDK.*|OPENSSL.*|SSL.*|CURL.*|WGET.*|NETRC|HTTP.*|FTP.*|KRB5.*|GTK.*|QT_.*|GIO.*|GDB.*|
    VIM.*|NVIM.*|EX.*|MAGIC|HUSKY.*|PRE_COMMIT.*|LEFTHOOK.*|DIRENV.*|MISE.*|ASDF.*|
    NVM.*|PYENV.*|RBENV.*|VOLTA.*|HOMEBREW.*|NIX.*""",
    re.VERBOSE,
)


def _each(option: str) -> str:
    """A pattern for options between blanks."""
    return rf"(?:(?:{option})(?: +|\Z))*"


_PLAIN_LOCALE = re.compile(r"(?:C|POSIX|C\.UTF-?8|en_US\.UTF-?8)?", re.IGNORECASE)
# Names of the same families that only change what is printed or built, with the values for which that holds.
_HARMLESS_VALUES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(values, re.ASCII)
    for names, values in {
        "PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUTF8 PYTHONFAULTHANDLER": "[0-9]+",
        "PYTHONIOENCODING": "(?i:utf-?8)",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT": "1",
        "GOOS GOARCH GOARM GOAMD64": "[a-z0-9]+",
        "GO111MODULE": "on|off|auto",
        "CGO_ENABLED CARGO_INCREMENTAL": "[01]",
        "CARGO_TERM_COLOR": "always|never|auto",
        "GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS": "0",
        "COLUMNS LINES GOMAXPROCS": "[0-9]{1,4}",
        "TERM": "dumb|xterm|xterm-256color",
        "NODE_OPTIONS": _each(
            "--max[-_]old[-_]space[-_]size=[0-9]+|--experimental-vm-modules|--no-warnings|--trace-warnings"
            "|--trace-deprecation|--no-deprecation|--enable-source-maps|--openssl-legacy-provider|--stack-trace-limit=[0-9]+"
        ),
        "CC CXX": r"(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+)(?:-[0-9]{1,2})?",
        "CFLAGS CXXFLAGS": _each(
            r"-O[0-3sgz]?|-g[0-3]?|-W[a-z][a-z0-9-]*(?:=[a-z0-9]+)?|-std=[a-z0-9+]+|-pedantic|-pipe|-fsanitize=[a-z,-]+"
            r"|-f(?:no-)?(?:omit-frame-pointer|lto|PIC|PIE|exceptions|rtti|fast-math|openmp|stack-protector|common)"
            r"|-m(?:arch|tune)=[a-z0-9-]+|-D[A-Za-z_][A-Za-z0-9_]*(?:=[A-Za-z0-9_.]*)?|-I[A-Za-z0-9_][A-Za-z0-9_/]*"
        ),
        "RUSTFLAGS": _each(
            "-[DAWF] ?[a-z_]+|-g|--cfg [a-z_]+|-C ?(?:target-cpu|opt-level|debuginfo|debug-assertions|overflow-checks"
            "|panic|lto|strip|instrument-coverage|codegen-units)(?:=[a-z0-9-]+)?"
        ),
        "GOFLAGS": _each(
            "-mod=(?:mod|vendor|readonly)|-v|-race|-count=[0-9]+|-trimpath|-buildvcs=(?:false|true|auto)"
        ),
        "MAVEN_OPTS GRADLE_OPTS SBT_OPTS": _each(
            "-Xm[sxn][0-9]+[kKmMgG]?|-Xss[0-9]+[kKmMgG]?|-ea|-DskipTests(?:=true)?"
        ),
        "JAVA_HOME": r"/usr/lib/jvm/[A-Za-z0-9][A-Za-z0-9._-]*/?",
        "FLASK_APP DJANGO_SETTINGS_MODULE": "[A-Za-z_][A-Za-z0-9_]*(?:[.:][A-Za-z_][A-Za-z0-9_]*)*",
        "FLASK_DEBUG FLASK_ENV FLASK_RUN_PORT": "[a-z0-9]+",
        "npm_config_loglevel": "[a-z]+",
        "UV_LINK_MODE": "copy|hardlink|symlink|clone",
    }.items()
    for name in names.split()
}
# Programs read few names in lower case; any other is a variable of the line's own.
_READ_IN_LOWER_CASE = re.compile(
    r"_+|histchars|auto_resume|.*_proxy|(?:npm|pnpm|yarn|bun|node|electron|ac_cv|lt_cv|fish|rvm)_.*"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def assignment_problem(name: str, value: Word | None, *, reads: bool = False) -> str | None:
    """Why a line may not set this variable; None if it only changes words. `reads` is for `IFS= read`."""
    if not _IDENTIFIER.fullmatch(name):
        return f"`{name}` is not a plain variable's name"
    upper = name.upper()
    if upper == "IFS" and reads:
        return None
    if (upper == "LANG" or upper.startswith("LC_")) and isinstance(value, str) and _PLAIN_LOCALE.fullmatch(value):
        return None
    if isinstance(value, str) and name in _HARMLESS_VALUES and _HARMLESS_VALUES[name].fullmatch(value):
        return None
    if name == name.lower() and not _READ_IN_LOWER_CASE.fullmatch(name):
        return None
    if _may_change_what_runs(upper):
        return f"setting `{name}` may change what runs"
    return None


@lru_cache(maxsize=256)
def _may_change_what_runs(upper: str) -> bool:
    return any(names.fullmatch(upper) for names in (_SET_BY_BASH, _READ_BY_TOOLS, _OF_APPLICATIONS))


_SECRET = re.compile(r".*(?:TOKEN|KEY|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH).*")


def may_be_secret(name: str) -> bool:
    return name == name.upper() and _SECRET.fullmatch(name) is not None


@dataclass(slots=True)
class Variables:
    """What a line does with variables, gathered while it is read."""

    in_arithmetic: set[str] = field(default_factory=set[str])
    numbers: dict[str, bool] = field(default_factory=dict[str, bool])
    values: list[Word] = field(default_factory=list[Word])

    def set(self, name: str, value: Word | None) -> None:
        if value is not None:
            self.values.append(value)
        known = isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value, re.ASCII) is not None
        number = known or (isinstance(value, Unknown) and value.number != "")
        self.numbers[name] = self.numbers.get(name, True) and number

    def problem(self) -> str | None:
        """Why arithmetic is unsafe: bash evaluates the text of a variable in it, and that may run a command."""
        odd = sorted(name for name in self.in_arithmetic if not self.numbers.get(name, False))
        return f"`{odd[0]}` in `$((…))` is not known to be a number" if odd else None
