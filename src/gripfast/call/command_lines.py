"""Applies the rules to a shell line: to each of its commands, or to what is seen of a line that can't be analysed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from gripfast.call.decision import Action, Decision, PermissionRule, strictest
from gripfast.call.line_places import LinePlaces, may_place_links, without_command
from gripfast.call.program_problems import (
    git_problem,
    is_shadowed,
    npx_problem,
    program_problem,
    removal_problem,
    unremovable,
)
from gripfast.call.shell.advice import instead_of
from gripfast.call.shell.commands import CommandPattern, Tables, command_pattern, open_words_problem, plainly
from gripfast.call.shell.denied import DEEPEST, Words, sightings, unknown_where_run, unproved_text, walked
from gripfast.call.shell.options import WRITING, Program
from gripfast.call.shell.programs import GIT_CHANGING, INTERPRETERS, PROJECT, SHELL_STATE, VERSIONS, WRAPPERS
from gripfast.call.shell.reader import read_script
from gripfast.call.shell.recogniser import Proved, recognise
from gripfast.call.shell.words import (
    MODULE_PLACES,
    Argv,
    Command,
    NotProvable,
    Redirect,
    Script,
    Unknown,
    Word,
    assignment_problem,
    is_left_to_rules,
    is_of_applications,
    plain_words,
)
from gripfast.call.shell.wrapping import run_by_find, runs_the_project, unwrapped
from gripfast.records import dataclass
from gripfast.text.escape import escaped
from gripfast.text.fold import folded


@dataclass(frozen=True, slots=True)
class _CompiledRule:
    """A compiled rule. `order` is its position among the rules."""

    order: int
    rule: PermissionRule
    pattern: CommandPattern


_RulesByProgram: TypeAlias = Mapping[str, Sequence[_CompiledRule]]
_ANY = ""  # the key of rules that name no program


@dataclass(frozen=True, slots=True)
class LineRules:
    """The rules about one tool that runs commands, by the program they name."""

    default_action: Action
    allows: _RulesByProgram
    asks: _RulesByProgram
    denies: _RulesByProgram
    tables: Tables
    inside_only: bool
    places: LinePlaces

    @classmethod
    def of(
        cls,
        rules: Sequence[PermissionRule],
        *,
        default_action: Action,
        programs: Mapping[str, Program],
        inside_only: bool,
        places: LinePlaces,
    ) -> LineRules:
        by_action: dict[str, dict[str, list[_CompiledRule]]] = {"allow": {}, "ask": {}, "deny": {}}
        for order, rule in enumerate(rules):
            known = _CompiledRule(order, rule, command_pattern(rule.pattern))
            by_action[rule.action].setdefault(known.pattern.program, []).append(known)
        return cls(
            default_action,
            by_action["allow"],
            by_action["ask"],
            by_action["deny"],
            Tables(programs),
            inside_only,
            places,
        )

    def judge(self, line: str) -> Decision:
        script = self._read(line)
        if isinstance(script, NotProvable):
            return self._judge_unproved(line, script)
        parts: list[Decision] = []
        places = self._places(script)
        changing = [may_place_links(command.words) for command in script.commands]
        making = [self._may_make_names(command) for command in script.commands]
        changes, makers = sum(changing), sum(making)
        for at, command in enumerate(script.commands):
            makes = command.repeated or bool(command.redirects) or makers > making[at]
            parts.append(self._judge_part(command, places.beside(changes=changes > changing[at], makes_names=makes)))
            places = places.after(command)
        about_all = (*self._elsewhere(script), *self._fetched(script), *self._made(script))
        decision = strictest([*about_all, *parts])
        commands = tuple(words for part in parts for words in part.commands)
        return replace(decision, commands=commands, parts=tuple(parts))

    def _may_make_names(self, command: Command) -> bool:
        """Whether a command may create files: true for any program that is not known to only read."""
        for redirect in command.redirects:
            if redirect.way == "write" and redirect.target != "/dev/null":
                return True
        if not command.words or command.words[0] == "cd":
            return False
        argv = plainly(command.words)
        found = self.tables.find(argv)
        if found is None or found[1].project or found[1].operands in WRITING:
            return True
        return argv[0] == "git" and any(" ".join(map(str, argv[1:end])) in GIT_CHANGING for end in (2, 3))

    def _read(self, line: str) -> Script | NotProvable:
        """Reads the line at level one if every word is known, or at level two if at least every command is."""
        proof = recognise(line)
        if isinstance(proof, Proved):
            return Script(tuple(Command(argv) for argv in proof.commands))
        script = read_script(line) if self.places.facts.is_bash else proof
        if isinstance(script, Script) and script.is_fed and any(_is_shell(word) for word in _all_words(script)):
            return NotProvable("a shell may read the text that is given as input, and run it")
        return script

    def _places(self, script: Script) -> LinePlaces:
        roots = self.places.workspace.roots
        here = self.places.facts.directory() or (roots[0] if roots else "")
        unknown_reads = self.places.unknown_reads and self.places.facts.sandboxed
        unknown_reads = unknown_reads and not any(self.places.outside(value) for value in script.values)
        # In a loop, the commands before a `cd` also run after it.
        lost = any(command.repeated and without_command(command.words)[:1] == ("cd",) for command in script.commands)
        changed = any(command.repeated and may_place_links(command.words) for command in script.commands)
        return replace(
            self.places,
            directories=(here,),
            unknown_reads=unknown_reads,
            is_lost=lost,
            trusting=self.default_action == "allow",
            has_changed=changed,
        )

    def _elsewhere(self, script: Script) -> Iterator[Decision]:
        """Relative paths name other places if the shell's working directory is outside the workspace."""
        here = self.places.facts.directory()
        if not self.inside_only or not here or self.places.workspace.holds(here):
            return
        first = script.commands[0].words
        if not (first[:1] == ("cd",) and str(first[-1]).startswith("/")):
            yield Decision("ask", f"the working directory, {escaped(here)}, is outside the workspace")

    def _fetched(self, script: Script) -> Iterator[Decision]:
        """An interpreter without a script runs its input, which may be what another command of the line downloads or
        decodes."""
        if not any(str(word).rpartition("/")[2] in _MAKES_INPUT for part in script.commands for word in part.words):
            return
        commands = [_innermost(command.words) for command in script.commands if command.words]
        names = {str(argv[0]).rpartition("/")[2] for argv in commands}
        if names.isdisjoint(_MAKES_INPUT):
            return
        fed = [argv for argv in commands if _runs_its_input(argv)]
        if fed:
            yield Decision(
                "ask",
                f"`{_shown(fed[0])}` may run what the line fetches or decodes; save it to a file and read that first",
            )

    def _made(self, script: Script) -> Iterator[Decision]:
        """make runs programs that variables name, including variables that the line has set before."""
        if self.default_action == "allow" or not any(_makes(command.words) for command in script.commands):
            return
        if any(
            command.words[:1] == ("export",) or (command.assigned and not command.words)
            for command in script.commands
        ):
            yield Decision("ask", "make may run what a variable says, and the line sets one")

    def _judge_unproved(self, line: str, proof: NotProvable) -> Decision:
        """A line that can't be analysed is never allowed. It is denied if a denied command is seen in it."""
        if self.denies:
            seen = walked(line)
            caught = _first_caught(self.denies, sightings(seen))
            if caught is not None:
                return replace(_by(caught[0], caught[1]), commands=_printable(seen))
        action: Action = "deny" if self._denies_the_rest() else "ask"
        return Decision(action, f"can't tell what this line runs: {proof.reason}")

    def _denies_the_rest(self) -> bool:
        return self.default_action == "deny" and _ANY not in self.allows and _ANY not in self.asks

    # --- one command ---

    def _judge_part(self, command: Command, places: LinePlaces) -> Decision:
        """Judges a command and the files that the shell opens for it."""
        opened = [self._judge_redirect(redirect, places) for redirect in command.redirects]
        if command.words:
            judged = self._judge_command(command.words, places)
            if judged.action == "ask" and (problem := unremovable(command.words, places)) is not None:
                judged = Decision("deny", problem, judged.rule, by_sandbox=True)
            if command.assigned and judged.action == "allow":
                judged = self._with_assigned(command, judged)
            found = strictest([judged, *opened]) if opened else judged
            leading = ""
            if judged.action == "ask" and all(decision.action == "allow" for decision in opened):
                leading = self._leading(command.words, places)
            words = (plain_words(command.words),)
            return replace(found, commands=words, parts=(), leading=leading)
        names = ", ".join(name for name, _ in command.assigned)
        alone = Decision("allow", f"sets {names}" if names else "opens files")
        return strictest([self._with_assigned(command, alone), *opened])

    def _with_assigned(self, command: Command, judged: Decision) -> Decision:
        """An allowed command, with what is set for it. Where any code of the project may run, that code may also be
        told where its modules are, if that is inside, and what applications are told by variables."""
        for name, value in command.assigned:
            if is_left_to_rules(name, value) and not (
                self.default_action == "allow" and self._may_be_told(command.words, name, value)
            ):
                return Decision(*self._not_allowed(f"setting `{name}` may change what runs"))
        if judged.rule is not None and _makes(command.words):
            return Decision("ask", "make may run what a variable says, and this command sets one", judged.rule)
        return judged

    def _may_be_told(self, argv: Argv, name: str, value: Word) -> bool:
        """Whether a variable only changes what code of the project does."""
        if not argv:
            return True
        if name in MODULE_PLACES:
            return _runs_project(argv) and not any(map(self.places.workspace.outside, str(value).split(":")))
        return _runs_project(argv) or is_shadowed(argv, self.places) or self._is_path_inside(str(argv[0]))

    def _is_path_inside(self, program: str) -> bool:
        return "/" in program and not self.places.workspace.outside(program)

    def _not_allowed(self, reason: str) -> tuple[Action, str]:
        return "deny" if self._denies_the_rest() else "ask", reason

    def _leading(self, argv: Argv, places: LinePlaces) -> str:
        """The leading words that a person would call "this command": `npm run`, `docker`. None for a command that
        runs its arguments, leaves the workspace, or is asked about because of a place."""
        name = str(argv[0])
        if "/" in name or name in WRAPPERS or name in INTERPRETERS or name in SHELL_STATE or name in _BY_PLACE:
            return ""
        if any(isinstance(word, Unknown) or places.outside(word) or _runs_value(word) for word in argv[1:]):
            return ""
        second = str(argv[1]) if len(argv) > 1 else ""
        both = _PLAIN_NAME.fullmatch(second) is not None and (
            self.tables.has_subcommands(name) or name in _SUBCOMMANDS
        )
        return f"{name} {second} *" if both else f"{name} *"

    def _judge_redirect(self, redirect: Redirect, places: LinePlaces) -> Decision:
        if redirect.way == "read" and self.inside_only and places.outside(redirect.target):
            return Decision("ask", f"`{redirect.target}` leaves the workspace")
        return places.redirection(redirect)

    def _judge_command(self, argv: Argv, places: LinePlaces, depth: int = 0) -> Decision:
        seen = list(sightings([argv])) if self.denies or self.asks else []
        denied = _first_caught(self.denies, seen)
        if denied is not None:
            return _by(*denied)
        asked = _first_caught(self.asks, seen)
        perhaps = None if asked is not None else _first_perhaps((self.denies, self.asks), seen)
        first = asked or perhaps
        allowed = self._first_allow(argv, None if first is None else first[0].order, places)
        if asked is not None:
            return allowed or _by(*asked)
        if perhaps is not None:
            return allowed or _perhaps_by(argv, *perhaps)
        if allowed is not None and allowed.action == "allow":
            return allowed
        if depth == DEEPEST or is_shadowed(argv, places):
            return allowed or self._by_default(argv, places)
        if (found := run_by_find(argv)) is not None:
            return strictest([self._judge_run(part, places, depth) for part in (found.rest, *found.run)])
        inner = unwrapped(argv)
        if inner is not None and argv[0] != "command":
            judged = self._judge_run(inner, places, depth)
            return judged if not runs_the_project(argv) or _is_for_projects(judged) else self._wrapped(argv)
        if inner is not None:
            return self._judge_command(inner, places, depth + 1)
        return allowed or self._by_default(argv, places)

    def _judge_run(self, argv: Argv, places: LinePlaces, depth: int) -> Decision:
        """Judges a command that is run by another program instead of the shell, so that `echo` is a file and not the
        shell's builtin."""
        judged = self._judge_command(argv, places, depth + 1)
        meant = judged.rule is not None  # where no rule matches it, any program may run, also the project's
        if judged.action == "allow" and meant and is_shadowed(argv, places, by_shell=False):
            return Decision("ask", f"`{argv[0]}` is a file in the workspace, and not the system's", judged.rule)
        return judged

    def _wrapped(self, argv: Argv) -> Decision:
        reason = (
            f"`{_shown(argv)}`: it runs the project's own code, which a rule for `{_shown(argv[2:])}` does not allow"
        )
        return Decision("deny" if self._denies_the_rest() else "ask", reason)

    def _first_allow(self, argv: Argv, before: int | None, places: LinePlaces) -> Decision | None:
        """The decision of the first rule that allows the command and all of its words. If rules match but none allows
        every word: ask, with the reason of the most specific rule."""
        doubt: Decision | None = None
        specific = -1
        argv, places = places.as_git_moves(argv)
        argv = places.as_activated(argv)
        plain, named = plainly(argv), self._by_name(argv)
        ways = (argv,) if named is argv and plain is argv else (argv, plain, named)
        for known in _about(self.allows, plain[0]):
            if before is not None and known.order > before:
                break
            for words in (argv, plain) if known.rule.pattern in VERSIONS else ways:
                if known.pattern.allows(words):
                    break
            else:
                continue
            problem = self._problem(known, words, places)
            if problem is None:
                return _by(known, words)
            if len(known.pattern.words) > specific:
                specific = len(known.pattern.words)
                doubt = Decision("ask", f"{problem}{_advice(argv)} (so {known.rule} does not cover it)", known.rule)
        return doubt

    def _by_name(self, argv: Argv) -> Argv:
        """The command with the bare name of a program in the project's environment: `.venv/bin/pytest` is pytest."""
        path = str(argv[0])
        found = _OWN_PROGRAM.fullmatch(path) if "/" in path else None
        if found is None or self.places.workspace.outside(path):
            return argv
        named = (found[1] or found[2], *argv[1:])
        table = self.tables.find(named)
        return named if table is not None and table[1].project else argv

    def _problem(self, known: _CompiledRule, argv: Argv, places: LinePlaces) -> str | None:
        """Why an allow doesn't apply: it covers only words that the rule spells out or the program's table lists."""
        if known.rule.any_options:
            return self._what_is_unsafe_anyway(argv, places)
        if argv[0] == "npx" and known.pattern.open_end:
            return npx_problem(argv, self.tables, places, inside_only=self.inside_only)
        problem = open_words_problem(argv, known.pattern, self.tables, places, inside_only=self.inside_only)
        problem = problem or program_problem(argv, self.tables, places, only_looks=known.rule.pattern in VERSIONS)
        return problem or (removal_problem(argv, places) if known.rule.undoable else None)

    def _by_default(self, argv: Argv, places: LinePlaces) -> Decision:
        if self.default_action == "allow" and (problem := self._what_is_unsafe_anyway(argv, places)) is not None:
            return Decision("ask", problem)
        reason = f"`{_shown(argv)}`: no rule matches it, and the default is {self.default_action}"
        return Decision(self.default_action, reason + _advice(argv))

    def _what_is_unsafe_anyway(self, argv: Argv, places: LinePlaces) -> str | None:
        """What is unsafe even with every option allowed: changing what later words mean, or leaving the workspace."""
        argv = places.as_activated(argv)
        if argv[0] in SHELL_STATE and (problem := self._builtin_problem(argv, places)) is not None:
            return problem
        if argv[0] == "env" and (problem := _environment_problem(argv)) is not None:
            return problem
        if (unknown := unknown_where_run(argv)) is not None:
            return f"`{argv[0]}` may run `{unknown}`, which is known only when the line runs"
        if (text := unproved_text(argv)) is not None:
            return f"`{argv[0]}` may run `{_shown((text,))}`, and it can't be proved what that does"
        if not places.facts.sandboxed and (problem := git_problem(argv, places)) is not None:
            return problem
        if self.inside_only:
            leaving = next((word for word in argv[1:] if places.outside(word)), None)
            return None if leaving is None else f"`{_shown(argv)}`: `{leaving}` leaves the workspace"
        return None

    def _builtin_problem(self, argv: Argv, places: LinePlaces) -> str | None:
        plain = plainly(argv)
        if self.default_action == "allow" and places.facts.sandboxed:
            if argv in (("set", "-a"), ("set", "+a")) or _reads_settings(argv, places):
                return None
            plain = tuple(word for word in plain if argv[0] != "export" or not _is_setting(word))
        found = self.tables.find(plain)
        if found is None:
            return f"`{argv[0]}` changes what later commands mean"
        if found[1].operands not in ("names", "sets", "format", "test"):
            return None
        return open_words_problem(plain, command_pattern(f"{found[0]} *"), self.tables, places, inside_only=False)


_RUN_BY_OPTION = ("--exec", "--receive-pack", "--upload-pack", "--command", "--eval", "--ssh-command", "--rsh")
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9:-]*")
# Questions about these are about places, or about options that run something.
_BY_PLACE = frozenset(
    "cp mv rm ln tee touch mkdir rmdir cd find fd fdfind sed sort xxd dd tar chmod chown rsync".split()
)
_SUBCOMMANDS = frozenset(
    "docker podman kubectl gh glab systemctl brew apt apt-get terraform poetry just gem bundle".split()
)
_OWN_PROGRAM = re.compile(
    r"(?:\./|/)?(?:[\w@.-]+/)*(?:\.venv|venv|env)/bin/([\w.-]+)|(?:\./|/)?(?:[\w@.-]+/)*node_modules/\.bin/([\w.-]+)"
)


def _is_for_projects(judged: Decision) -> bool:
    """Whether the rule that decided also allows the project's own code to run."""
    if judged.action != "allow" or judged.rule is None:
        return True
    return judged.rule.pattern not in VERSIONS and command_pattern(judged.rule.pattern).program in PROJECT


# These download something, or decode text that nobody could read in the line.
_MAKES_INPUT = frozenset(
    """curl wget fetch aria2c lynx links http https xh nc ncat netcat socat telnet ftp sftp scp ssh openssl base64
    base32 basenc xxd uudecode gpg gunzip zcat gzip bunzip2 bzcat bzip2 unxz xzcat xz zstdcat zstd unzip tr
    rev""".split()
)
_FROM_INPUT = re.compile(r"-|/dev/(?:stdin|fd/0)|/proc/self/fd/0|-[a-zA-Z]{1,2}|--")


def _innermost(argv: Argv) -> Argv:
    """The command inside known wrappers: `timeout 5 python3` is `python3`."""
    for _ in range(DEEPEST):
        inner = unwrapped(argv)
        if inner is None:
            break
        argv = inner
    return argv


def _runs_its_input(argv: Argv) -> bool:
    name = str(argv[0]).rpartition("/")[2]
    if name not in INTERPRETERS and not _is_shell(name) and not re.fullmatch(r"python[0-9.]+", name):
        return False
    rest = [word for word in argv[1:] if word not in ("-c", "-e", "-m", "-V", "-v", "-h", "-f")]
    return len(rest) == len(argv) - 1 and all(_FROM_INPUT.fullmatch(str(word)) for word in rest)


def _runs_value(word: Word) -> bool:
    """Whether a word may be an option whose value is run, also abbreviated: `git push --receive-pack=…`."""
    name = str(word).partition("=")[0]
    return len(name) > 3 and any(option.startswith(name) for option in _RUN_BY_OPTION)


def _runs_project(argv: Argv) -> bool:
    return str(argv[0]).rpartition("/")[2] in PROJECT


def _makes(argv: Argv) -> bool:
    return any(text.endswith("make") and text.rpartition("/")[2] in ("make", "gmake") for text in map(str, argv))


def _environment_problem(argv: Argv) -> str | None:
    for word in argv[1:]:
        name, equals, value = str(word).partition("=")
        if equals and (problem := assignment_problem(name, value)) is not None:
            return problem
    return None


_SETTINGS_FILE = re.compile(r"(?:\./)?(?:[\w-]+/)*\.env(?:\.[\w-]+)*", re.ASCII)


def _reads_settings(argv: Argv, places: LinePlaces) -> bool:
    """`source .env`: a script of the project, like any that `bash` may run there."""
    named = len(argv) == 2 and argv[0] in ("source", ".") and isinstance(argv[1], str)
    return named and _SETTINGS_FILE.fullmatch(str(argv[1])) is not None and not places.outside(argv[1])


def _is_setting(word: Word) -> bool:
    """`NAME=value` of a variable that only code of the project reads."""
    name, equals, _ = (word.prefix if isinstance(word, Unknown) else word).partition("=")
    return equals != "" and is_of_applications(name)


_SHELLS = frozenset("sh bash dash zsh ksh mksh fish ash rbash yash csh tcsh ssh su sudo eval source .".split())


def _is_shell(word: Word) -> bool:
    return isinstance(word, str) and word.rpartition("/")[2].lower() in _SHELLS


def _all_words(script: Script) -> Iterator[Word]:
    """The words that may be programs: the first of each command, and every word of a command that runs others."""
    for command in script.commands:
        runs = command.words and str(command.words[0]).rpartition("/")[2] in WRAPPERS
        yield from command.words if runs else command.words[:1]


def _about(rules: _RulesByProgram, word: Word | None) -> Iterable[_CompiledRule]:
    """The rules that name this program and those that name none, in order."""
    named = () if not isinstance(word, str) else rules.get(folded(word.rpartition("/")[2]), ())
    nameless = rules.get(_ANY, ())
    return sorted((*named, *nameless), key=lambda known: known.order) if named and nameless else named or nameless


def _first_caught(rules: _RulesByProgram, seen: Iterable[tuple[Words, int]]) -> tuple[_CompiledRule, Words] | None:
    first: tuple[_CompiledRule, Words] | None = None
    if not rules:
        return None
    for words, start in seen:
        for known in _about(rules, words[start]):
            if first is not None and first[0].order <= known.order:
                break
            if known.pattern.catches(words, start):
                first = known, words[start:]
    return first


def _first_perhaps(
    groups: Iterable[_RulesByProgram], seen: Sequence[tuple[Words, int]]
) -> tuple[_CompiledRule, Words] | None:
    """The first rule that asks or denies and may match the command, depending on the words that only the shell
    knows."""
    for words, start in seen:
        if not any(isinstance(word, Unknown) for word in words[start:]):
            continue
        for rules in groups:
            for known in _about(rules, words[start]):
                if known.pattern.may_catch(words, start):
                    return known, words[start:]
    return None


def _by(known: _CompiledRule, words: Words) -> Decision:
    return Decision(known.rule.action, f"`{_shown(words)}`: {known.rule.verdict}", known.rule)


def _advice(argv: Argv) -> str:
    """What would work instead of a command that installs or fetches something for more than the project."""
    advice = instead_of(argv)
    return f"; {advice}" if advice else ""


def _perhaps_by(argv: Argv, known: _CompiledRule, words: Words) -> Decision:
    """The question about a command that a rule may be about, depending on words that only the shell knows."""
    if (unknown := unknown_where_run(argv)) is not None:
        return Decision("ask", f"`{argv[0]}` may run `{_shown((unknown,))}`, which is known only when the line runs")
    return Decision(
        "ask", f"`{_shown(words)}` is known only when it runs, and {known.rule} may be about it", known.rule
    )


def _shown(words: Words) -> str:
    """Enough of a command to recognise it; `Decision.commands` has all of it."""
    text = " ".join("…" if word is None else str(word) for word in words[:12])
    return escaped(text if len(words) <= 12 and len(text) <= 200 else f"{text[:200]} …")


def _printable(seen: Sequence[Words]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple("…" if word is None else str(word) for word in words) for words in seen)
