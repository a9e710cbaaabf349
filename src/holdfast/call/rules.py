"""The rules: which calls are allowed, asked about or denied. Pure: names and subjects in, a decision out.

How a call is judged, in this order:

    files     a deny covers any spelling of the path           -> deny
              else for each spelling the first rule that matches, or the default; the strictest stands
    commands  too long, odd characters, anything bash may read in its own way -> not provable
              not provable: a denied command is seen in it     -> deny
                            otherwise                          -> ask (deny where the default is deny)
              proved:       a deny catches any command of it   -> deny
                            else for each command the first rule that matches, or the default; an allow holds
                            only when the words it left open are known to be harmless; the strictest stands
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from holdfast.call.globs import BadPattern, PathGlob, check_pattern, folded, path_glob
from holdfast.call.shell.commands import (
    CommandPattern,
    Tables,
    Workspace,
    command_pattern,
    open_words_problem,
    plainly,
)
from holdfast.call.shell.denied import Words, sightings, walked
from holdfast.call.shell.options import Program, check_program
from holdfast.call.shell.programs import SHELL_STATE
from holdfast.call.shell.recogniser import Argv, NotProvable, recognise

Action: TypeAlias = Literal["allow", "ask", "deny"]
ACTIONS: tuple[Action, ...] = get_args(Action)
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_EFFECTS = ("read", "write", "run")


@dataclass(frozen=True)
class PermissionRule:
    """One line of the rules: which tool, on what, and what then.

    `tool` is a tool's name in any case, `*`, or `effect:read`, `effect:write`, `effect:run` for all tools of
    that effect. `pattern` is a path glob for tools on files, words for tools that run commands. `any_options`
    vouches for every option of the commands it allows. `source` says where the rule was written.
    """

    tool: str
    pattern: str = "*"
    action: Action = "ask"
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
    any_options: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", tuple(self.examples))
        object.__setattr__(self, "counterexamples", tuple(self.counterexamples))
        if self.action not in ACTIONS:
            raise ValueError(f"action {self.action!r}: use one of {', '.join(ACTIONS)}")
        if not self.tool.strip():
            raise ValueError("a rule needs a tool: its name, `*`, or effect:read, effect:write, effect:run")
        if self.tool.lower().startswith("effect:") and self.tool.lower()[7:] not in _EFFECTS:
            raise ValueError(f"tool {self.tool!r}: use effect:read, effect:write or effect:run")
        check_pattern(self.pattern)
        if self._is_for_commands():
            command_pattern(self.pattern)
        elif ".." in self.pattern.split("/") and self.tool != "*":
            raise BadPattern(f"{self.pattern!r}: paths are matched without `..`; write where it leads")

    def _is_for_commands(self) -> bool:
        return self.tool.lower() in ("bash", "effect:run")

    def __str__(self) -> str:
        where = f" ({self.source})" if self.source else ""
        return f"{self.action} {self.tool} `{self.pattern}`{where}"

    def is_about(self, tool: str, effect: str) -> bool:
        mine = self.tool.lower()
        return mine in ("*", tool.lower(), f"effect:{effect}")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided and why; the rule is None for the default and for what can't be proved."""

    action: Action
    reason: str
    rule: PermissionRule | None = None
    commands: tuple[tuple[str, ...], ...] = ()


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The first of those that allow least."""
    return max(decisions, key=lambda decision: _STRICTNESS[decision.action])


@dataclass(frozen=True)
class Permissions:
    """Rules in order, and what happens to a call that none of them is about.

    `inside_only` asks before anything that points outside the workspace, whose absolute paths are `roots`.
    `programs` adds tables of options, by leading words. `narrowed_by` are rules that can only take away.
    """

    default_action: Action
    rules: Sequence[PermissionRule] = ()
    inside_only: bool = False
    programs: Mapping[str, Program] = field(default_factory=dict[str, Program])
    roots: tuple[str, ...] = ()
    narrowed_by: tuple[Permissions, ...] = ()
    _relevant: dict[tuple[str, str], _Relevant] = field(
        default_factory=dict[tuple[str, str], "_Relevant"], init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "roots", tuple(self.roots))
        if self.default_action not in ACTIONS:
            raise ValueError(f"default_action {self.default_action!r}: use one of {', '.join(ACTIONS)}")
        for program in self.programs.values():
            check_program(program)

    def within(self, roots: Iterable[str]) -> Permissions:
        """The same rules for a workspace at these absolute paths."""
        at = tuple(roots)
        return replace(self, roots=at, narrowed_by=tuple(layer.within(at) for layer in self.narrowed_by))

    def judge(self, *, tool: str, effect: str, spellings: Sequence[str], remembered: _Memory = ()) -> Decision:
        """`spellings` are the ways to write the subject: a path requested and real, or one shell line."""
        mine = self._judge_alone(tool, effect, spellings, remembered)
        if not self.narrowed_by:
            return mine
        layers = (layer._judge_alone(tool, effect, spellings, remembered) for layer in self.narrowed_by)
        return strictest((mine, *layers))

    def _judge_alone(self, tool: str, effect: str, spellings: Sequence[str], remembered: _Memory) -> Decision:
        relevant = self._relevant.get((tool, effect)) or self._sort_out(tool, effect)
        if effect == "run" and spellings:
            return strictest([_judge_line(self, relevant, line, remembered) for line in spellings])
        return _judge_subject(self, relevant, spellings, remembered)

    def _sort_out(self, tool: str, effect: str) -> _Relevant:
        """The rules about this tool, made ready once."""
        rules = [rule for rule in self.rules if rule.is_about(tool, effect)]
        relevant = _Relevant(
            tool,
            tuple(_FileRule.of(rule) for rule in rules) if effect != "run" else (),
            tuple(_CommandRule.of(rule) for rule in rules) if effect == "run" else (),
        )
        self._relevant[tool, effect] = relevant
        return relevant


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a person said "always" to: one tool with one exact subject; of a command, all its words."""

    tool: str
    subject: str | Argv


_Memory: TypeAlias = Collection[Remembered]


@dataclass(frozen=True, slots=True)
class _FileRule:
    rule: PermissionRule
    exactly: PathGlob
    loosely: PathGlob

    @classmethod
    def of(cls, rule: PermissionRule) -> _FileRule:
        return cls(rule, path_glob(rule.pattern), path_glob(folded(rule.pattern)))

    def matches(self, path: str) -> bool:
        if self.rule.action == "allow":
            return self.exactly.matches(path)
        return self.loosely.covers(folded(path))


@dataclass(frozen=True, slots=True)
class _CommandRule:
    rule: PermissionRule
    pattern: CommandPattern

    @classmethod
    def of(cls, rule: PermissionRule) -> _CommandRule:
        return cls(rule, command_pattern(rule.pattern))


@dataclass(frozen=True, slots=True)
class _Relevant:
    tool: str
    on_files: tuple[_FileRule, ...]
    on_commands: tuple[_CommandRule, ...]


# Files, and everything else that is not a shell line.


def _judge_subject(
    permissions: Permissions,
    relevant: _Relevant,
    spellings: Sequence[str],
    remembered: _Memory,
) -> Decision:
    subjects = spellings or ("",)
    for file_rule in relevant.on_files:
        if file_rule.rule.action == "deny":
            for subject in subjects:
                if file_rule.matches(subject):
                    return _by(file_rule.rule, subject, relevant.tool)
    decision = strictest([_first_match(permissions, relevant, subject) for subject in subjects])
    if decision.action == "ask" and all(Remembered(relevant.tool, subject) in remembered for subject in subjects):
        return Decision("allow", f"{_shown(relevant.tool, subjects[0])} was always allowed in this session")
    return decision


def _first_match(permissions: Permissions, relevant: _Relevant, subject: str) -> Decision:
    for file_rule in relevant.on_files:
        if file_rule.matches(subject):
            if file_rule.rule.action == "allow" and permissions.inside_only and subject.startswith("/"):
                return Decision("ask", f"{_shown(relevant.tool, subject)} is outside the workspace", file_rule.rule)
            return _by(file_rule.rule, subject, relevant.tool)
    return _by_default(permissions, _shown(relevant.tool, subject))


def _by(rule: PermissionRule, subject: str, tool: str) -> Decision:
    return Decision(rule.action, f"{_shown(tool, subject)}: the rule {rule} decides", rule)


def _by_default(permissions: Permissions, what: str) -> Decision:
    action = permissions.default_action
    return Decision(action, f"{what}: no rule is about it, and the default is {action}")


def _shown(tool: str, subject: str) -> str:
    return f"{tool} {subject}" if subject else tool


# Shell lines.


def _judge_line(permissions: Permissions, relevant: _Relevant, line: str, remembered: _Memory) -> Decision:
    proof = recognise(line)
    if isinstance(proof, NotProvable):
        return _judge_unproved(permissions, relevant, line, proof, remembered)
    denied = _denied(relevant, proof.commands)
    if denied is not None:
        return replace(denied, commands=proof.commands)
    decisions = [_judge_command(permissions, relevant, argv, remembered) for argv in proof.commands]
    return replace(strictest(decisions), commands=proof.commands)


def _judge_unproved(
    permissions: Permissions,
    relevant: _Relevant,
    line: str,
    proof: NotProvable,
    remembered: _Memory,
) -> Decision:
    """Never allowed by a rule. Denied when a denied command is seen in it."""
    if any(known.rule.action == "deny" for known in relevant.on_commands):
        seen = walked(line)
        denied = _denied(relevant, seen)
        if denied is not None:
            return replace(denied, commands=_printable(seen))
    if Remembered(relevant.tool, line) in remembered:
        return Decision("allow", "this very line was always allowed in this session")
    action: Action = "deny" if _nobody_would_be_asked(permissions, relevant) else "ask"
    return Decision(action, f"it can't be proved what this line runs: {proof.reason}")


def _nobody_would_be_asked(permissions: Permissions, relevant: _Relevant) -> bool:
    """The default is deny, and no rule about everything says otherwise."""
    about_everything = any(known.rule.action != "deny" and not known.pattern.words for known in relevant.on_commands)
    return permissions.default_action == "deny" and not about_everything


def _printable(seen: Sequence[Words]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple("…" if word is None else word for word in words) for words in seen)


def _denied(relevant: _Relevant, commands: Iterable[Words]) -> Decision | None:
    denials = [known for known in relevant.on_commands if known.rule.action == "deny"]
    if not denials:
        return None
    for words, start in sightings(commands):
        for known in denials:
            if known.pattern.catches(words, start):
                what = " ".join(word or "…" for word in words[start : start + 8])
                return Decision("deny", f"`{what}`: the rule {known.rule} decides", known.rule)
    return None


def _judge_command(permissions: Permissions, relevant: _Relevant, argv: Argv, remembered: _Memory) -> Decision:
    decision = _first_command_match(permissions, relevant, argv)
    if decision.action == "ask" and Remembered(relevant.tool, argv) in remembered:
        return Decision("allow", f"`{' '.join(argv)}` was always allowed in this session")
    return decision


def _first_command_match(permissions: Permissions, relevant: _Relevant, argv: Argv) -> Decision:
    shown = " ".join(argv)
    plain = plainly(argv)
    seen = list(sightings([argv]))
    for known in relevant.on_commands:
        if known.rule.action == "allow":
            if known.pattern.allows(plain) or known.pattern.allows(argv):
                return _allowed(permissions, known, argv if known.pattern.allows(argv) else plain)
        elif any(known.pattern.catches(words, start) for words, start in seen):
            return Decision(known.rule.action, f"`{shown}`: the rule {known.rule} decides", known.rule)
    decision = _by_default(permissions, f"`{shown}`")
    return _unless_unsafe(permissions, argv, decision)


def _allowed(permissions: Permissions, known: _CommandRule, argv: Argv) -> Decision:
    """An allow holds only for words that the rule spelled out or the program's table knows."""
    decision = Decision("allow", f"`{' '.join(argv)}`: the rule {known.rule} decides", known.rule)
    if known.rule.any_options:
        return _unless_unsafe(permissions, argv, decision)
    problem = open_words_problem(
        argv,
        known.pattern,
        Tables(permissions.programs),
        Workspace(permissions.roots),
        inside_only=permissions.inside_only,
    )
    return decision if problem is None else Decision("ask", f"{problem} (the rule was {known.rule})", known.rule)


def _unless_unsafe(permissions: Permissions, argv: Argv, decision: Decision) -> Decision:
    """Where everything is allowed: not what changes the meaning of the words after it, nor what leaves."""
    if decision.action != "allow":
        return decision
    if argv[0] in SHELL_STATE and Tables(permissions.programs).find(argv) is None:
        return replace(decision, action="ask", reason=f"`{argv[0]}` changes what later commands mean")
    if permissions.inside_only:
        outside = Workspace(permissions.roots).outside
        for word in argv[1:]:
            if outside(word):
                return replace(decision, action="ask", reason=f"`{word}` leaves the workspace")
    return decision
