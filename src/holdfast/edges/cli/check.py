"""`holdfast check`: which rule decides a call and why, without running it; and the rules' examples as tests."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from holdfast.builtin.config import Config, load_config, refuse_unknown_tools
from holdfast.builtin.session import TOOLS, spelling
from holdfast.call.decision import Decision, PermissionRule
from holdfast.call.examples import trials
from holdfast.call.rules import Permissions, spelled
from holdfast.call.shell.denied import commands_seen
from holdfast.call.shown import shown
from holdfast.edges.opening import tools_in
from holdfast.errors import ToolError, ToolNotFound
from holdfast.host.fs import ScopedFs
from holdfast.host.scope import Scope
from holdfast.tool.definition import Tool
from holdfast.tool.near import near


@click.command()
@click.argument("tool", required=False)
@click.argument("arguments", required=False, metavar="[JSON | -]")
@click.option("--root", "roots", multiple=True, metavar="DIR", help="As for `holdfast call`.")
@click.option("--with", "extra", multiple=True, metavar="MODULE", help="As for `holdfast call`.")
@click.option("--config", "named", metavar="FILE", help="The rules; default: ~/.config/holdfast/holdfast.toml.")
@click.option("--rules", "try_rules", is_flag=True, help="Run the examples of all rules as tests.")
@click.option("--json", "as_json", is_flag=True, help="Print the decision as JSON.")
def check(
    tool: str | None,
    arguments: str | None,
    roots: tuple[str, ...],
    extra: tuple[str, ...],
    named: str | None,
    try_rules: bool,
    as_json: bool,
) -> None:
    """Say which rule decides a call of TOOL, and why. Nothing is run.

    \b
    holdfast check Bash '{"command": "git push"}'
    holdfast check Write '{"file_path": ".env", "content": ""}' --json
    holdfast check --rules --config team.toml
    """
    if try_rules == (tool is not None):
        raise click.UsageError("give a tool and its JSON, or --rules")
    try:
        tools = [*TOOLS, *(found for spec in extra for found in tools_in(spec))]
        scope = Scope.workspace(*(roots or (".",)), wide=bool(roots))
        config = load_config(named, [root.given for root in scope.roots])
        for note in config.ignored:
            click.echo(f"ignored: {note}", err=True)
        if tool is None:
            sys.exit(_try_rules(config.permissions, tools, as_json))
        refuse_unknown_tools(config.permissions, [found.name for found in tools])
        text = sys.stdin.read() if arguments == "-" else arguments or "{}"
        _show(*_decided(_found(tool, tools), text, config, scope), as_json)
    except ToolError as fault:
        raise click.UsageError(fault.message) from None


def _found(name: str, tools: list[Tool]) -> Tool:
    by_name = {tool.name: tool for tool in tools}
    if name not in by_name:
        meant = near(name, by_name)
        hint = f"did you mean `{meant[0]}`?" if meant else f"there are {', '.join(by_name)}"
        raise ToolNotFound(f"no tool named `{shown(name)}`; {hint}")
    return by_name[name]


def _decided(tool: Tool, text: str, config: Config, scope: Scope) -> tuple[Decision, tuple[tuple[str, ...], ...]]:
    """The decision, and every command seen in it, also where the rules had no need to look."""
    arguments = tool.arguments.parse(text)
    fs = ScopedFs(scope, encoding=config.encoding)
    if config.permissions is None:
        return Decision("allow", "there are no rules, so every tool runs"), ()
    spellings = spelled(tool, arguments, spelling(fs))
    effect = tool.traits.effect or ""
    decision = config.permissions.within(fs.roots).judge(tool=tool.name, effect=effect, spellings=spellings)
    if effect != "run" or decision.commands:
        return decision, decision.commands
    seen = [
        tuple("…" if word is None else word for word in words) for line in spellings for words in commands_seen(line)
    ]
    return decision, tuple(seen)


def _show(decision: Decision, commands: tuple[tuple[str, ...], ...], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_as_dict(decision, commands), ensure_ascii=False))
        return
    click.echo(f"{decision.action}: {decision.reason}")
    for argv in commands:
        click.echo("  command: " + " ".join(_quoted(word) for word in argv))


def _as_dict(decision: Decision, commands: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    return {
        "decision": decision.action,
        "reason": decision.reason,
        "rule": None if decision.rule is None else _rule(decision.rule),
        "commands": [list(argv) for argv in commands],
    }


def _rule(rule: PermissionRule) -> dict[str, Any]:
    return {"tool": rule.tool, "pattern": rule.pattern, "action": rule.action, "source": rule.source}


def _quoted(word: str) -> str:
    plain = word and all(char.isalnum() or char in "-_./=:,@%+^…" for char in word)
    return word if plain else "'" + shown(word) + "'"


def _try_rules(permissions: Permissions | None, tools: list[Tool], as_json: bool) -> int:
    if permissions is None:
        raise click.UsageError("there are no rules to try; name a file with --config")
    effects = {tool.name.lower(): tool.traits.effect or "" for tool in tools}
    tried = list(trials(permissions, lambda name: effects.get(name.lower())))
    faults = [trial for trial in tried if trial.fault is not None]
    if as_json:
        found = [{"rule": _rule(trial.rule), "example": trial.subject, "fault": trial.fault} for trial in faults]
        click.echo(json.dumps({"tried": len(tried), "faults": found}, ensure_ascii=False))
    else:
        for trial in faults:
            click.echo(f"{trial.rule}: {trial.fault}", err=True)
        click.echo(f"{len(tried)} example{'' if len(tried) == 1 else 's'}, {len(faults)} not as the rules say")
    return 1 if faults else 0
