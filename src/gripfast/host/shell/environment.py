"""The environment of a command: an allow-list of the server's variables, and nobody to talk to."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping

from gripfast.text.below import is_below

ALLOWED: tuple[str, ...] = (
    *"PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TZ".split(),
    *"XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME".split(),
    *"VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT UV_CACHE_DIR UV_LINK_MODE".split(),
    *"NVM_DIR NVM_BIN NODE_PATH VOLTA_HOME PNPM_HOME BUN_INSTALL".split(),
    *"CARGO_HOME RUSTUP_HOME GOPATH GOROOT GOBIN GOPROXY JAVA_HOME MAVEN_HOME GRADLE_USER_HOME".split(),
    *"GEM_HOME RBENV_ROOT ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR SDKROOT HOMEBREW_PREFIX NIX_PROFILES".split(),
    *"SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS NIX_SSL_CERT_FILE".split(),
    *"HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy".split(),
    *"CC CXX CFLAGS CXXFLAGS LDFLAGS PKG_CONFIG_PATH".split(),
)
# Never, even when the configuration names them: they hold secrets, or turn into code in every child.
NEVER: tuple[str, ...] = (
    *"*TOKEN* *KEY* *SECRET* *PASSWORD* *PASSWD* *PASSPHRASE* *CREDENTIAL*".split(),
    *"LD_* DYLD_* GIT_* PYTHON* BASH_* BASHOPTS ENV SHELLOPTS IFS PS4 PROMPT_COMMAND".split(),
    *"CDPATH GLOBIGNORE EXECIGNORE POSIXLY_CORRECT MAKEFLAGS MFLAGS GNUMAKEFLAGS".split(),
    *"RIPGREP_CONFIG_PATH PERL5OPT PERL5LIB RUBYOPT RUBYLIB NODE_OPTIONS JAVA_TOOL_OPTIONS".split(),
)


def _git_settings(*settings: tuple[str, str]) -> dict[str, str]:
    """Settings that count before those of any repository. https://git-scm.com/docs/git-config#ENVIRONMENT"""
    numbered = list(enumerate(settings))
    keys = {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in numbered}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in numbered}
    return {"GIT_CONFIG_COUNT": str(len(settings)), **keys, **values}


# Pagers, editors, prompts and colours are off: nobody is there to answer them.
QUIET: Mapping[str, str] = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "CLICOLOR": "0",
    **dict.fromkeys("PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER AWS_PAGER".split(), "cat"),
    **dict.fromkeys("EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR".split(), "true"),
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
    **_git_settings(
        ("safe.bareRepository", "explicit"),  # a directory that only looks like a repository must not run its hooks
        ("core.fsmonitor", "false"),  # which may name a program, run by every look at the files
    ),
}
# bash must cut a line into characters as the recogniser did: in GBK or Shift_JIS a `\\` can be half of one.
_SPEECH = ("LC_ALL", "LC_CTYPE", "LANG")
# A login in an address, as in GOPROXY=https://user:password@host
_LOGIN = r"://[^/\s,|]*@"
_UTF8 = r"|C|POSIX|.*\.(?i:utf-?8)(?:@.*)?"


def command_environment(
    *,
    temporary: str,
    allow: Iterable[str] = (),
    roots: Iterable[str] = (),
    sandboxed: bool = False,
    distrusted: Iterable[str] = (),
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The variables a command gets. `allow` adds names or globs; what is in NEVER stays out, and so does what leads
    into one of the directories `distrusted`. Without a `temporary` directory TMPDIR is not set."""
    source = os.environ if source is None else source
    patterns = (*ALLOWED, *allow)
    chosen = {name: value for name, value in source.items() if _matches(name, patterns) and _harmless(name, value)}
    roots, distrusted = tuple(roots), tuple(distrusted)
    chosen = {name: value for name, value in chosen.items() if not _leads_into(value, distrusted)}
    if _is_our_own(chosen.get("VIRTUAL_ENV", ""), roots):
        del chosen["VIRTUAL_ENV"]
    chosen["PATH"] = command_path((*roots, *distrusted), sandboxed=sandboxed, source=source)
    if not any(chosen.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")):
        chosen["LANG"] = "C.UTF-8"
    return {**chosen, **QUIET, **({"TMPDIR": temporary} if temporary else {})}


def users_tmpdir(distrusted: Iterable[str], source: Mapping[str, str] | None = None) -> str:
    """$TMPDIR as the server has it; nothing if it has none, or one that leads into the directories `distrusted`."""
    found = (os.environ if source is None else source).get("TMPDIR", "")
    return found if found.startswith("/") and not _is_inside(found, tuple(distrusted)) else ""


def command_path(
    roots: Iterable[str] = (), *, sandboxed: bool = False, source: Mapping[str, str] | None = None
) -> str:
    """PATH as a command has it now. In a sandbox it is the user's, after the environments of the first root; without
    one nothing is found in the workspace's `roots` by its bare name. Nothing depends on the working directory. The
    environment that this program is installed in comes last: it is not the one that `pip` should install into."""
    source = os.environ if source is None else source
    roots = tuple(roots)
    places = [place for place in source.get("PATH", "").split(":") if place.startswith("/") and "\0" not in place]
    if sandboxed:
        project = [place for place in project_places(roots[0], source) if place not in places] if roots else []
        places = [*project, *places]
    else:
        places = [place for place in places if not _is_inside(place, roots)]
    if sys.prefix != sys.base_prefix:
        places.sort(key=lambda place: _is_our_own(os.path.dirname(place), roots))
    return ":".join(places) or "/usr/local/bin:/usr/bin:/bin"


def project_places(root: str, source: Mapping[str, str] | None = None) -> list[str]:
    """Where a project keeps its own programs: an environment of Python, unless the user has one active; of Node."""
    source = os.environ if source is None else source
    names = [NODE_PROGRAMS] if _has_active(root, source) else [*PYTHON_PROGRAMS, NODE_PROGRAMS]
    return [place for name in names if os.path.isdir(place := f"{root}/{name}")]


PYTHON_PROGRAMS, NODE_PROGRAMS = (".venv/bin", "venv/bin"), "node_modules/.bin"


def _has_active(root: str, source: Mapping[str, str]) -> bool:
    """Whether the user activated an environment for this work. The one this program is installed in, elsewhere, is
    not for the project."""
    active = source.get("VIRTUAL_ENV") or source.get("CONDA_PREFIX")
    return bool(active) and not _is_our_own(active or "", (root,))


def _is_our_own(environment: str, roots: tuple[str, ...]) -> bool:
    """Whether this is the environment that this program runs in, and not one of the project."""
    real = os.path.realpath(environment) if environment else ""
    return real == os.path.realpath(sys.prefix) and not is_below(real, *roots)


def program_file(name: str, path: str, roots: Iterable[str] = ()) -> str | None:
    """The real file that a program's name leads to by this PATH; a link to it that lies in one of `roots`, if there
    is one: whoever writes there chooses what the name means."""
    found = shutil.which(name, path=path)
    if found is None:
        return None
    inside = tuple(roots)
    return next((place for place in _hops(found) if is_below(place, *inside)), os.path.realpath(found))


def _hops(path: str) -> Iterator[str]:
    """Every place that a path leads through, link by link, each in its real directory."""
    for _ in range(40):  # as many as the kernel follows
        folder, name = os.path.split(path)
        here = os.path.join(os.path.realpath(folder), name)
        yield here
        try:
            path = os.path.join(os.path.dirname(here), os.readlink(here))
        except OSError:
            return


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _harmless(name: str, value: str) -> bool:
    if "\0" in value or not name or _matches(name.upper(), NEVER):
        return False
    if name in _SPEECH and not re.fullmatch(_UTF8, value):
        return False
    if name.lower().endswith("_proxy") and "@" in value:  # a proxy's address may carry a password without a scheme
        return False
    return re.search(_LOGIN, value) is None


def _leads_into(value: str, places: tuple[str, ...]) -> bool:
    """Whether a variable names something in one of these places, alone or in a list."""
    return any(_is_inside(part, places) for part in value.split(":") if part.startswith("/"))


def _is_inside(place: str, roots: tuple[str, ...]) -> bool:
    spellings = (os.path.normpath(place), os.path.realpath(place))
    return any(is_below(spelling, *roots) for spelling in spellings)
