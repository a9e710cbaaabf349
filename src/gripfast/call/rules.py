"""The rules: which calls are allowed, asked about or denied. Pure: names and subjects in, a decision out.

How a call is judged, in this order:

    files     a deny covers any spelling of the path           -> deny
              else for each spelling the first rule that matches, or the default; the strictest stands
    commands  too long, odd characters, anything that could run what is not seen here -> not provable
              not provable: a denied command is seen in it     -> deny
                            otherwise                          -> ask (deny where the default is deny)
              proved:       a deny catches any command of it   -> deny
                            else for each command the first rule that matches, or the default; an allow holds
                            only when the words it left open are known to be harmless; a file that is written
                            is judged like Write on it; the strictest stands
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

from gripfast.call.decision import ACTIONS, Action, Decision, PermissionRule, strictest
from gripfast.call.hooks import Allow, Ask, Deny
from gripfast.call.shell.facts import NOTHING_KNOWN, Facts, nothing_lost
from gripfast.call.shell.workspace import Workspace
from gripfast.framework.definition import Tool
from gripfast.framework.subjects import Subjects
from gripfast.messages import ToolCall
from gripfast.records import dataclass
from gripfast.text.escape import escaped
from gripfast.text.patterns import PathGlob, path_glob

if TYPE_CHECKING:
    from pydantic import BaseModel

    from gripfast.call.command_lines import LineRules
    from gripfast.call.shell.options import Program

__all__ = ["Action", "Decision", "PermissionRule", "Permissions", "Spell", "judged", "rules_hook", "spelled"]

_IF_NEEDED = "; if it is needed, ask the user to do it or to change the rule"
_REASONS = 5  # the most reasons in a decision about several subjects
_MOST_DECIDED = 1000  # subjects whose decisions are kept


@dataclass(frozen=True)
class Permissions:
    """Rules in order, and the default for a call that no rule is about.

    `inside_only` asks before anything that points outside the workspace, whose absolute paths are `roots`.
    `programs` adds tables of options, by leading words. `narrowed_by` are rules that can only restrict further.
    `unknown_reads`, for sandboxed commands: they may read places that only the shell knows. `remark` is said with
    what the default denies. `facts` is what is known about the machine.
    """

    default_action: Action
    rules: Sequence[PermissionRule] = ()
    inside_only: bool = False
    programs: Mapping[str, Program] = field(default_factory=dict[str, "Program"])
    roots: tuple[str, ...] = ()
    narrowed_by: tuple[Permissions, ...] = ()
    unknown_reads: bool = False
    remark: str = ""
    facts: Facts = field(default=NOTHING_KNOWN, repr=False, compare=False)
    _ready: dict[tuple[str, str, tuple[str, ...]], _Ready] = field(
        default_factory=dict[tuple[str, str, tuple[str, ...]], "_Ready"], init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "roots", tuple(self.roots))
        if self.default_action not in ACTIONS:
            raise ValueError(f"default_action {self.default_action!r}: use one of {', '.join(ACTIONS)}")
        if self.programs:
            from gripfast.call.shell.options import check_program  # noqa: PLC0415 - tables of one's own are rare

            for program in self.programs.values():
                check_program(program)

    def within(self, roots: Iterable[str], facts: Facts | None = None) -> Permissions:
        """The same rules for a workspace at these absolute paths, on the machine that `facts` describes."""
        at, known = tuple(roots), facts or self.facts
        layers = tuple(layer.within(at, known) for layer in self.narrowed_by)
        return replace(self, roots=at, narrowed_by=layers, facts=known)

    def for_rehearsals(self) -> Permissions:
        """The same rules for calls that keep nothing: nobody is asked about what can't be undone."""
        rules = tuple(rule for rule in self.rules if rule.action != "ask" or not rule.undoable)
        layers = tuple(layer.for_rehearsals() for layer in self.narrowed_by)
        return replace(self, rules=rules, narrowed_by=layers, facts=replace(self.facts, removal_problem=nothing_lost))

    def judge(
        self, *, tool: str, effect: str, spellings: Sequence[str], stands_for: tuple[str, ...] = ()
    ) -> Decision:
        """The decision about one subject. `spellings` are the ways to write it: a path as requested and as it really
        is, or one shell line. `stands_for` are tools whose rules that ask or deny apply here too."""
        mine = self._judge_alone(tool, effect, spellings, stands_for)
        if not self.narrowed_by:
            return mine
        layers = (
            layer.judge(tool=tool, effect=effect, spellings=spellings, stands_for=stands_for)
            for layer in self.narrowed_by
        )
        return strictest((mine, *layers))

    def holds_back(self, tool: Tool) -> bool:
        """Whether any rule for this tool, or those it stands for, asks or denies."""
        name, effect, others = tool.name, tool.traits.effect or "", tool.traits.stands_for
        rules = (rule for rule in self.rules if rule.action != "allow" and rule.holds_for(name, effect, others))
        mine = self.default_action != "allow" or any(True for _ in rules)
        return mine or any(layer.holds_back(tool) for layer in self.narrowed_by)

    def judge_each(
        self, *, tool: str, effect: str, subjects: Sequence[Sequence[str]], stands_for: tuple[str, ...] = ()
    ) -> Decision:
        """The decision about a call with several subjects: the strictest, with every reason that is as strict."""
        found = [
            self.judge(tool=tool, effect=effect, spellings=spellings, stands_for=stands_for)
            for spellings in (subjects or ((),))
        ]
        if len(found) == 1:
            return found[0]
        first = strictest(found)
        reasons = list(dict.fromkeys(one.reason for one in found if one.action == first.action))
        more = f"; and {len(reasons) - _REASONS} more" if len(reasons) > _REASONS else ""
        return replace(first, reason="; ".join(reasons[:_REASONS]) + more)

    def _judge_alone(self, tool: str, effect: str, spellings: Sequence[str], stands_for: tuple[str, ...]) -> Decision:
        ready = self._ready.get((tool, effect, stands_for)) or self._make_ready(tool, effect, stands_for)
        if ready.lines is not None and spellings:
            return strictest([ready.lines.judge(line) for line in spellings])
        asked = tuple(spellings)
        decision = ready.decided.get(asked)
        if decision is None:
            if len(ready.decided) >= _MOST_DECIDED:
                ready.decided.clear()
            decision = ready.decided[asked] = ready.files.judge(asked)
        return decision

    def _make_ready(self, tool: str, effect: str, stands_for: tuple[str, ...]) -> _Ready:
        """The rules that apply to this tool, sorted and compiled once."""
        rules = [rule for rule in self.rules if rule.holds_for(tool, effect, stands_for)]
        inside = Workspace(self.roots) if self.inside_only else None
        lines = self._lines(rules, inside) if effect == "run" else None
        ready = _Ready(FileRules.of(tool, rules, self.default_action, inside), lines)
        self._ready[tool, effect, stands_for] = ready
        return ready

    def _lines(self, rules: Sequence[PermissionRule], inside: Workspace | None) -> LineRules:
        """What judges shell lines: loaded with the first of them."""
        from gripfast.call.command_lines import LineRules  # noqa: PLC0415 - files need none of it
        from gripfast.call.line_places import LinePlaces  # noqa: PLC0415 - the same

        writer = self.facts.writer
        writing = [rule for rule in self.rules if rule.is_about(writer, "write")]
        writes = FileRules.of(writer or "writing", writing, self.default_action, inside)
        return LineRules.of(
            rules,
            default_action=self.default_action,
            programs=self.programs,
            inside_only=self.inside_only,
            places=LinePlaces(
                Workspace(self.roots),
                self.facts,
                lambda path: writes.judge((path,)),
                self.unknown_reads,
                globs_written=all(rule.action == "allow" and rule.pattern == "*" for rule in writing),
            ),
        )


@dataclass(frozen=True, slots=True)
class _Ready:
    files: FileRules
    lines: LineRules | None  # for tools that run commands
    decided: dict[tuple[str, ...], Decision] = field(default_factory=dict[tuple[str, ...], Decision])
    """What `files` says about subjects that were asked about before. It depends on nothing but the text."""


@dataclass(frozen=True, slots=True)
class _FileRule:
    rule: PermissionRule
    glob: PathGlob

    @classmethod
    def of(cls, rule: PermissionRule) -> _FileRule:
        return cls(rule, path_glob(rule.pattern))

    def matches(self, path: str) -> bool:
        """A rule that allows is read narrowly, one that asks or denies widely."""
        if self.rule.action == "allow":
            return self.glob.matches(path)
        return self.glob.covers(path)


@dataclass(frozen=True, slots=True)
class FileRules:
    """The rules about one tool whose subject is a path, or that has no subject."""

    tool: str
    denies: tuple[_FileRule, ...]
    others: tuple[_FileRule, ...]
    default_action: Action
    inside: Workspace | None  # where paths must be, if anywhere

    @classmethod
    def of(
        cls, tool: str, rules: Sequence[PermissionRule], default_action: Action, inside: Workspace | None
    ) -> FileRules:
        denies = tuple(_FileRule.of(rule) for rule in rules if rule.action == "deny")
        others = tuple(_FileRule.of(rule) for rule in rules if rule.action != "deny")
        return cls(tool, denies, others, default_action, inside)

    def judge(self, spellings: Sequence[str]) -> Decision:
        """Every spelling is judged, and the strictest answer stands."""
        if len(spellings) == 1:
            return self._judge_one(spellings[0])
        return strictest([self._judge_one(path) for path in spellings or ("",)])

    def _judge_one(self, path: str) -> Decision:
        for known in self.denies:
            if known.matches(path):
                return self._by(known.rule, path)
        for known in self.others:
            if known.matches(path):
                return self._by(known.rule, path)
        reason = f"{self._shown(path)}: no rule matches it, and the default is {self.default_action}"
        return Decision(self.default_action, reason)

    def _by(self, rule: PermissionRule, path: str) -> Decision:
        if rule.action == "allow" and self.inside is not None and not self.inside.holds(path):
            return Decision("ask", f"{self._shown(path)} is outside the workspace", rule)
        return Decision(rule.action, f"{self._shown(path)}: {rule.verdict}", rule)

    def _shown(self, path: str) -> str:
        return f"{self.tool} {escaped(path)}" if path else self.tool


Spell: TypeAlias = Callable[[object], Sequence[str]]
"""Returns the ways to write a path that is a call's subject."""


RulesHook: TypeAlias = "Callable[[ToolCall, Tool, BaseModel], Deny | Ask | Allow]"


def rules_hook(every: Permissions, spell: Spell) -> RulesHook:
    """The rules as a hook before a call."""
    rehearsed = every.for_rehearsals()

    def judge(call: ToolCall, tool: Tool, arguments: BaseModel) -> Deny | Ask | Allow:
        permissions = rehearsed if _is_rehearsal(tool, arguments) else every
        subjects = spelled(tool, arguments, spell)
        decision = judged(permissions, tool, subjects)
        if decision.action == "allow":
            return Allow(decision.reason)
        if decision.action == "deny":
            remark = f"; {every.remark}" if every.remark and decision.rule is None else ""
            remark = _IF_NEEDED if decision.rule is not None and not decision.by_sandbox else remark
            return Deny(f"{decision.reason}{remark}", decision.by_sandbox)
        token, covers = _always(tool, arguments, subjects)
        if tool.traits.effect == "run" and subjects:
            asked = _about_line(permissions, decision, token, covers)
            return _about_rehearsal(asked) if _is_rehearsal(tool, arguments) else asked
        if tool.traits.effect != "run" and decision.rule is not None and decision.rule.action == "allow":
            return Ask(decision.reason, token, "make the directory it is in a root as well", covers)
        return Ask(decision.reason, token, covers=covers)

    return judge


def _about_line(permissions: Permissions, decision: Decision, token: str, covers: str) -> Ask:
    """The question about a shell line. A yes applies only while the shell stays in its current directory."""
    where = permissions.facts.directory()
    asked = [part for part in decision.parts if part.action == "ask"]
    leading = tuple(dict.fromkeys(part.leading for part in asked)) if all(part.leading for part in asked) else ()
    remedy = "allow it with a rule in gripfast.toml" if decision.commands else "give it as plain commands"

    def outdated() -> str | None:
        return None if permissions.facts.directory() == where else "the working directory has changed meanwhile"

    return Ask(decision.reason, f"{token}\0{where}", remedy, covers, leading, where, outdated)


def _is_rehearsal(tool: Tool, arguments: BaseModel) -> bool:
    return tool.traits.rehearses is not None and bool(getattr(arguments, tool.traits.rehearses))


def _about_rehearsal(asked: Ask) -> Ask:
    """A person says always more lightly to a call that keeps nothing, so it covers no other."""
    return replace(asked, token=f"{asked.token}\0rehearsal", covers=f"{asked.covers}, as a dry run", leading=())


def _always(tool: Tool, arguments: BaseModel, subjects: Sequence[Sequence[str]]) -> tuple[str, str]:
    """The token that an "always" remembers, and its description: the tool on these subjects, or exactly this call if
    it has none."""
    if tool.traits.feeds is not None:
        command = getattr(arguments, tool.traits.feeds)
        return f"{tool.name}\0{command}", f"{tool.name} to {command}, whatever is sent"
    if not subjects:
        return f"{tool.name}\0{arguments.model_dump_json()}", f"{tool.name} with exactly these arguments"
    token = "\0".join((tool.name, *(name for spellings in subjects for name in spellings)))
    if tool.traits.effect == "run":
        return token, f"{tool.name} with exactly this {tool.traits.subject}"
    named = ", ".join(", really ".join(spellings) for spellings in subjects)
    return token, f"{tool.name} on {named}, whatever else it is given"


def judged(permissions: Permissions, tool: Tool, subjects: Sequence[Sequence[str]]) -> Decision:
    """The decision of the rules about a call of a tool on these subjects, each in all its spellings."""
    traits = tool.traits
    decision = permissions.judge_each(
        tool=tool.name, effect=traits.effect or "", subjects=subjects, stands_for=traits.stands_for
    )
    named = decision.rule is not None and decision.rule.tool == tool.name
    if traits.feeds is None or decision.action != "allow" or named or not permissions.holds_back(tool):
        return decision
    return Decision(
        "ask", f"{tool.name}: rules can't judge what is typed into a running command, so the user is asked"
    )


def spelled(tool: Tool, arguments: BaseModel, spell: Spell) -> Sequence[Sequence[str]]:
    """The subjects of a call as rules match them: paths in all their spellings, texts unchanged."""
    subject = None if tool.traits.subject is None else getattr(arguments, tool.traits.subject)
    if subject is None:
        return ()
    if isinstance(subject, Subjects):
        return [spell(part) for part in subject.parts()]
    return ((subject,) if isinstance(subject, str) else spell(subject),)
