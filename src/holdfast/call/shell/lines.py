"""Judging a shell line: every command of it, by the rules, or what can be said when it can't be proved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from holdfast.call.decision import Action, Decision, PermissionRule, strictest
from holdfast.call.globs import folded
from holdfast.call.shell.commands import (
    CommandPattern,
    Tables,
    Workspace,
    command_pattern,
    open_words_problem,
    plainly,
)
from holdfast.call.shell.denied import Words, sightings, unproved_text, walked
from holdfast.call.shell.options import Program
from holdfast.call.shell.programs import SHELL_STATE
from holdfast.call.shell.recogniser import Argv, NotProvable, recognise
from holdfast.call.shown import shown


@dataclass(frozen=True, slots=True)
class _Known:
    """A rule made ready. `order` is its place among the rules."""

    order: int
    rule: PermissionRule
    pattern: CommandPattern


_Shelf: TypeAlias = Mapping[str, Sequence[_Known]]
_ANY = ""  # the shelf of rules that name no program


@dataclass(frozen=True, slots=True)
class LineRules:
    """The rules about one tool that runs commands, by the program they name."""

    default_action: Action
    allows: _Shelf
    asks: _Shelf
    denies: _Shelf
    tables: Tables
    workspace: Workspace
    inside_only: bool

    @classmethod
    def of(
        cls,
        rules: Sequence[PermissionRule],
        *,
        default_action: Action,
        programs: Mapping[str, Program],
        roots: tuple[str, ...],
        inside_only: bool,
    ) -> LineRules:
        shelves: dict[str, dict[str, list[_Known]]] = {"allow": {}, "ask": {}, "deny": {}}
        for order, rule in enumerate(rules):
            known = _Known(order, rule, command_pattern(rule.pattern))
            shelves[rule.action].setdefault(known.pattern.program, []).append(known)
        return cls(
            default_action,
            shelves["allow"],
            shelves["ask"],
            shelves["deny"],
            Tables(programs),
            Workspace(roots),
            inside_only,
        )

    def judge(self, line: str) -> Decision:
        proof = recognise(line)
        if isinstance(proof, NotProvable):
            return self._judge_unproved(line, proof)
        decision = strictest([self._judge_command(argv) for argv in dict.fromkeys(proof.commands)])
        return replace(decision, commands=proof.commands)

    def _judge_unproved(self, line: str, proof: NotProvable) -> Decision:
        """Never allowed. Denied when a denied command is seen in it."""
        if self.denies:
            seen = walked(line)
            caught = _first_caught(self.denies, sightings(seen))
            if caught is not None:
                return replace(_by(caught[0], caught[1]), commands=_printable(seen))
        action: Action = "deny" if self._denies_the_rest() else "ask"
        return Decision(action, f"it can't be proved what this line runs: {proof.reason}")

    def _denies_the_rest(self) -> bool:
        return self.default_action == "deny" and _ANY not in self.allows and _ANY not in self.asks

    def _judge_command(self, argv: Argv) -> Decision:
        seen = list(sightings([argv])) if self.denies or self.asks else []
        denied = _first_caught(self.denies, seen)
        if denied is not None:
            return _by(*denied)
        asked = _first_caught(self.asks, seen)
        allowed = self._first_allow(argv, None if asked is None else asked[0].order)
        if allowed is None:
            return self._by_default(argv) if asked is None else _by(*asked)
        return allowed

    def _first_allow(self, argv: Argv, before: int | None) -> Decision | None:
        """The first rule that allows the command and can vouch for its words; ask where rules match but none can."""
        doubt: Decision | None = None
        plain = plainly(argv)
        for known in _about(self.allows, argv[0]):
            if before is not None and known.order > before:
                break
            words = argv if known.pattern.allows(argv) else plain
            if words is plain and not known.pattern.allows(plain):
                continue
            problem = self._problem(known, words)
            if problem is None:
                return _by(known, words)
            doubt = doubt or Decision("ask", f"{problem} (the rule was: {known.rule})", known.rule)
        return doubt

    def _problem(self, known: _Known, argv: Argv) -> str | None:
        """An allow holds only for words that the rule spelled out or the program's table knows."""
        if known.rule.any_options:
            return self._what_is_unsafe_anyway(argv)
        return open_words_problem(argv, known.pattern, self.tables, self.workspace, inside_only=self.inside_only)

    def _by_default(self, argv: Argv) -> Decision:
        if self.default_action == "allow" and (problem := self._what_is_unsafe_anyway(argv)) is not None:
            return Decision("ask", problem)
        reason = f"`{_shown(argv)}`: no rule is about it, and the default is {self.default_action}"
        return Decision(self.default_action, reason)

    def _what_is_unsafe_anyway(self, argv: Argv) -> str | None:
        """Where every option is allowed: not what changes the meaning of later words, nor what leaves."""
        if argv[0] in SHELL_STATE and self.tables.find(argv) is None:
            return f"`{argv[0]}` changes what later commands mean"
        if (text := unproved_text(argv)) is not None:
            return f"`{argv[0]}` may run `{_shown((text,))}`, and it can't be proved what that does"
        if self.inside_only:
            leaving = next((word for word in argv[1:] if self.workspace.outside(word)), None)
            return None if leaving is None else f"`{_shown(argv)}`: `{leaving}` leaves the workspace"
        return None


def _about(shelf: _Shelf, word: str | None) -> Iterable[_Known]:
    """The rules that name this program and those that name none, in order."""
    named = () if word is None else shelf.get(folded(word.rpartition("/")[2]), ())
    nameless = shelf.get(_ANY, ())
    return sorted((*named, *nameless), key=lambda known: known.order) if named and nameless else named or nameless


def _first_caught(shelf: _Shelf, seen: Iterable[tuple[Words, int]]) -> tuple[_Known, Words] | None:
    first: tuple[_Known, Words] | None = None
    if not shelf:
        return None
    for words, start in seen:
        for known in _about(shelf, words[start]):
            if first is not None and first[0].order <= known.order:
                break
            if known.pattern.catches(words, start):
                first = known, words[start:]
    return first


def _by(known: _Known, words: Words) -> Decision:
    return Decision(known.rule.action, f"`{_shown(words)}`: decided by {known.rule}", known.rule)


def _shown(words: Words) -> str:
    """Enough of a command to know it by; the whole of it is in `Decision.commands`."""
    text = " ".join("…" if word is None else word for word in words[:12])
    return shown(text if len(words) <= 12 and len(text) <= 200 else f"{text[:200]} …")


def _printable(seen: Sequence[Words]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple("…" if word is None else word for word in words) for words in seen)
