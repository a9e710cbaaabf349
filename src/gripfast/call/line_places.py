"""The places that the words of one line may name: possible working directories, and what may be read and written."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import replace

from gripfast.call.decision import Decision, strictest
from gripfast.call.shell.facts import Facts
from gripfast.call.shell.words import Argv, Command, Redirect, Unknown, Word
from gripfast.call.shell.workspace import Workspace
from gripfast.records import dataclass
from gripfast.text.below import is_below

MOST_DIRECTORIES = 16
# A redirection to one of these names does nothing, or uses a descriptor that is already open. Other names in /dev may
# be devices or the network.
_HARMLESS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})
_AT_HOME = re.compile(r"\$\{?(?:HOME|OLDPWD|TMPDIR|XDG_\w+)\b|(?:^|[=:])~")
# Places that a word names though only the shell knows them whole. No line that is read sets these variables.
_IN_TMPDIR = re.compile(r"\$(?:TMPDIR|\{TMPDIR\})(?:/[\w.@%+=,-]+)+")
_IN_HOME = re.compile(r"~((?:/[\w.@%+=,-]+)+)")
_ACTIVATES = re.compile(r"(?:^|/)(\.?venv/bin/activate)$")
_GLOB_MARKS = re.compile(r"[*?\[\]!^]")
_QUOTES = str.maketrans("", "", "\"'\\")


@dataclass(frozen=True, slots=True)
class LinePlaces:
    """The places of one line, at one of its commands."""

    workspace: Workspace
    facts: Facts
    writes: Callable[[str], Decision]  # what the rules decide about Write on a path
    unknown_reads: bool  # whether places that only the shell knows may be read
    globs_written: bool = True  # no rule distinguishes between files, so that names not known yet may be written
    directories: tuple[str, ...] = ("",)  # the possible working directories; "" is an unknown one
    is_lost: bool = False  # there are too many possible working directories
    trusting: bool = False  # the default is allow, so that only places known to be closed are asked about
    changes: bool = False  # another command of the line may create links
    has_changed: bool = False  # an earlier command may have created links
    makes_names: bool = True  # another command of the line, or this one in a loop, may make files

    # --- reading ---

    def outside(self, word: Word) -> bool:
        """Whether a word may name a place outside the workspace."""
        if isinstance(word, Unknown):
            return self._unknown_outside(word)
        return self.workspace.outside(word) and not self._is_scratch(word)

    def _unknown_outside(self, word: Unknown) -> bool:
        if word.number or word.prefix.startswith("/dev/fd/"):
            return False
        if _AT_HOME.search(word.text):
            return True
        if word.beneath:
            return any(self.outside(place) for place in word.beneath)
        if word.glob is not None:
            return self.workspace.outside(_GLOB_MARKS.sub("x", word.glob)) or _may_step_up(word.glob)
        if self.workspace.outside(word.text.translate(_QUOTES)):
            return True
        return not (self.unknown_reads and self.facts.sandboxed)

    def _is_scratch(self, path: str) -> bool:
        return self.facts.sandboxed and ".." not in path.split("/") and is_below(path, *self.facts.scratch)

    # --- writing ---

    def write_problem(self, word: Word) -> str | None:
        """Why a program that a rule allows to write may not write a place. Such a rule also allows places that no
        rule is about, but not those that a rule asks about, that are protected, or that are outside."""
        decision = self.write(word, vouched=True)
        return None if decision.action == "allow" else decision.reason

    def knows_protected(self, word: Word) -> bool:
        """Whether the scope can tell if other programs run what this word names. It can for a single path, but not
        for everything in a directory."""
        return self.facts.writes_to is not None and isinstance(word, str) and not word.endswith(("/.", "/./"))

    def write(self, word: Word, *, vouched: bool = False) -> Decision:
        """Judges a written path like a call of Write, for every directory where the shell may be."""
        word = self._placed(word)
        if isinstance(word, Unknown) and self._is_temporary(word) and self.writes("scratch").action != "deny":
            return Decision("allow", f"`{word}` is the session's own", self.writes("scratch").rule)
        if isinstance(word, Unknown) and (word.glob is None or word.text.startswith("~")):
            return Decision("ask", f"`{word}` would be written, and it is known only when the line runs")
        path = word.glob or "" if isinstance(word, Unknown) else word
        if path in _HARMLESS and isinstance(word, str):
            return Decision("allow", f"`{path}` is not a file")
        if not path or path.startswith("/dev/"):
            return Decision("ask", f"`{word}` would be written")
        if isinstance(word, Unknown) and not (vouched and self.globs_written and not _may_step_up(path)):
            return Decision(
                "ask", f"`{word}` would be written, and which files those are is known only when the line runs"
            )
        if self._is_scratch(path) and (refused := self.writes("scratch")).action != "deny":
            return Decision("allow", f"`{path}` is the session's own", refused.rule)
        if self.is_lost and not path.startswith("/"):
            return Decision("ask", f"`{path}` would be written, in a directory that is known only when the line runs")
        if (reason := self._unknown_way(path)) is not None:
            return Decision("ask", f"`{path}` would be written, and {reason}")
        places = [posixpath.normpath(posixpath.join(where, path)) for where in self.directories]
        return strictest([self._write_at(place, vouched=vouched) for place in places])

    def _placed(self, word: Word) -> Word:
        """`~/x` as the path that it is."""
        found = _IN_HOME.fullmatch(word.text) if isinstance(word, Unknown) and self.facts.home else None
        return word if found is None else posixpath.normpath(self.facts.home + found[1])

    def _is_temporary(self, word: Unknown) -> bool:
        """`$TMPDIR/x`, which is the session's own where commands are held."""
        text = word.text.replace('"', "")
        return self.facts.sandboxed and ".." not in text.split("/") and _IN_TMPDIR.fullmatch(text) is not None

    def unremovable(self, word: Word) -> str | None:
        """Why the sandbox would not remove what a word names, whatever a person says: it is protected and there."""
        if not self.facts.sandboxed or self.facts.writes_to is None or isinstance(word, Unknown) or self.is_lost:
            return None
        places = [posixpath.normpath(posixpath.join(where, word)) for where in self.directories]
        if not all(self.workspace.holds(path) and self.facts.exists(path) for path in places):
            return None
        problems = [self.facts.writes_to(path) for path in places if ".git" not in path.split("/")]
        return problems[0] if len(problems) == len(places) and all(problems) else None

    def _unknown_way(self, path: str) -> str | None:
        """Why it is not yet known where a path leads; None if it is."""
        if self.trusting:
            return None
        parts = path.split("/")
        if ".." in parts and (len(self.directories) > 1 or ".." in parts[parts.count("..") :]):
            return "`..` after a name leads elsewhere if that name is a link"
        return "the line changes which files are there, so it may be a link by then" if self.changes else None

    def moving_problem(self, source: Word) -> str | None:
        """Why a file or directory may not be moved or copied."""
        if self.is_lost or (isinstance(source, Unknown) and source.glob is None):
            return f"`{source}` is known only when the line runs"
        path = str(source.glob if isinstance(source, Unknown) else source)
        places = [posixpath.join(where, path) for where in self.directories]
        problems = (self.facts.moving_refusal(place) for place in places if place.startswith("/"))
        return next((problem for problem in problems if problem is not None), None)

    def removal_problem(self, word: Word) -> str | None:
        """Why the removal of what a word names could not be undone."""
        if self.is_lost or self.has_changed or (isinstance(word, Unknown) and word.glob is None):
            return f"`{word}` is known only when the line runs"
        path = str(word.glob if isinstance(word, Unknown) else word)
        places = (posixpath.join(where, path) for where in self.directories)
        return next(filter(None, map(self.facts.removal_problem, places)), None)

    def may_be_option(self, word: Unknown) -> bool:
        """Whether a word that only the shell knows may become an option. A glob can't if no file name starts with a
        dash and the line creates no files."""
        if not word.may_be_option or word.glob is None or word.glob.startswith("-"):
            return word.may_be_option
        return self.is_lost or self.makes_names or any(map(self.facts.has_dashes, self.directories))

    def has(self, word: Word) -> bool:
        """Whether a word names a file or directory that is there."""
        return isinstance(word, str) and any(
            self.facts.exists(posixpath.join(where, word)) for where in self.directories
        )

    def _write_at(self, path: str, *, vouched: bool) -> Decision:
        decision = self.writes(self._spelled(path))
        if vouched and decision.action == "ask" and decision.rule is None:
            decision = Decision("allow", f"`{path}`: no rule matches it")
        problem = self._protected(path) if decision.action == "allow" else None
        if problem is None:
            return decision
        if not self.facts.sandboxed:
            return Decision("ask", problem)
        asks = f". {self.facts.writer} asks the user for one file" if "unprotect = " in problem else ""
        return Decision("deny", f"{problem}{asks if self.facts.writer else ''}", by_sandbox=True)

    def _protected(self, path: str) -> str | None:
        if self.facts.writes_to is not None and path.startswith("/"):
            return self.facts.writes_to(path)
        hidden = next((name for name in path.split("/") if name.startswith(".") and name not in (".", "..")), None)
        return None if hidden is None else f"`{hidden}` may be a file that other programs run"

    def _spelled(self, path: str) -> str:
        """A path as rules match it: relative to the first root, or absolute if it is elsewhere."""
        first = self.workspace.roots[0].rstrip("/") if self.workspace.roots else ""
        if first and path.startswith(first + "/"):
            return path[len(first) + 1 :]
        return path

    def redirection(self, redirect: Redirect) -> Decision:
        """Judges a file that the shell itself opens for a command."""
        if redirect.way == "write":
            return self.write(redirect.target)
        target = redirect.target
        if isinstance(target, Unknown) and target.prefix.startswith("/dev/fd/"):
            return Decision("allow", "what a command prints")
        if isinstance(target, Unknown) and target.glob is None:
            return Decision("ask", f"`{target}` would be opened, and it is known only when the line runs")
        path = str(target)
        if path.startswith("/dev/") and path not in _HARMLESS:
            return Decision("ask", f"`{path}` may be a device or the network")
        return Decision("allow", f"`{path}` is read")

    # --- moving ---

    def beside(self, *, changes: bool, makes_names: bool) -> LinePlaces:
        """The places of a command, by what the other commands of the line do."""
        if (changes, makes_names) == (self.changes, self.makes_names):
            return self
        return replace(self, changes=changes, makes_names=makes_names)

    def as_git_moves(self, argv: Argv) -> tuple[Argv, LinePlaces]:
        """`git -C dir log` as `git log` in that directory, if it is plain and inside the workspace."""
        if argv[:2] != ("git", "-C") or len(argv) < 4 or not isinstance(argv[2], str):
            return argv, self
        if not argv[2] or argv[2].startswith("-") or ".." in argv[2].split("/") or self.workspace.outside(argv[2]):
            return argv, self
        moved = tuple(posixpath.normpath(posixpath.join(where, argv[2])) for where in self.directories)
        return ("git", *argv[3:]), replace(self, directories=tuple(dict.fromkeys(moved)))

    def as_activated(self, argv: Argv) -> Argv:
        """`source ../.venv/bin/activate` by its plain name, if that is an environment of the workspace. A directory
        that the line itself enters may be a link, so that `..` would lead elsewhere."""
        if len(argv) != 2 or argv[0] not in ("source", ".") or not isinstance(argv[1], str):
            return argv
        found = _ACTIVATES.search(argv[1])
        if found is None or self.is_lost or len(self.directories) != 1:
            return argv
        file = posixpath.normpath(posixpath.join(*self.directories, argv[1]))
        climbs = ".." in argv[1].lstrip("./").split("/")
        inside = file.startswith("/") and self.workspace.holds(file)
        return (argv[0], found[1]) if inside and not climbs else argv

    def after(self, command: Command) -> LinePlaces:
        """The places for the next command."""
        words = without_command(command.words)
        if words[:1] != ("cd",):
            return replace(self, has_changed=True) if may_place_links(words) else self
        target = _directory(words)
        if target is None or command.repeated:
            return replace(self, is_lost=True)
        moved = (posixpath.normpath(posixpath.join(where, target)) for where in self.directories)
        there = tuple(dict.fromkeys((*self.directories, *moved)))
        return replace(
            self, directories=there[:MOST_DIRECTORIES], is_lost=self.is_lost or len(there) > MOST_DIRECTORIES
        )


_CHANGING = frozenset(
    "checkout switch stash merge rebase worktree restore pull cherry-pick revert am apply reset read-tree".split()
)


_ONLY_SHOWING = {("stash", "list"), ("stash", "show"), ("worktree", "list")}


def may_place_links(argv: Argv) -> bool:
    """Whether a git command may replace files, and so create links. Programs that run the project's code may create
    links too, but they could also write to the link's target directly."""
    words = [str(word) for word in argv] if "git" in argv else []
    while "git" in words:
        words = words[words.index("git") + 1 :]
        command = next((at for at, word in enumerate(words) if word in _CHANGING), None)
        if command is not None and tuple(words[command : command + 2]) in _ONLY_SHOWING:
            continue
        if command is not None:
            return not (words[command + 1 : command + 2] in (["-b"], ["-c"]) and len(words) == command + 3)
    return False


def without_command(words: Argv) -> Argv:
    """Drops a leading `command`: `command cd x` is `cd x`, in the same shell."""
    while words[:1] == ("command",):
        words = words[1:]
    return words


def _directory(words: Argv) -> str | None:
    named = [word for word in words[1:] if word not in ("-L", "-P", "-e", "--")]
    return named[0] if len(named) == 1 and isinstance(named[0], str) and named[0] != "-" else None


def _may_step_up(glob: str) -> bool:
    """Whether a glob may match `..`, as `.*` does."""
    return any(part.startswith(".") and any(mark in part for mark in "*?[") for part in glob.split("/"))
