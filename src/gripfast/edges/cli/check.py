"""`gripfast check`: says which rule decides a call and why, or runs the examples of the rules as tests."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from gripfast.builtin.config import Config, load_config, refuse_unknown_tools, rules_by_name
from gripfast.builtin.machine import ShellPlace, facts_of
from gripfast.builtin.session import spelling
from gripfast.builtin.tools import TOOLS
from gripfast.call.decision import Decision, PermissionRule
from gripfast.call.examples import check_examples
from gripfast.call.rules import Permissions, judged, spelled
from gripfast.call.shell.denied import commands_seen
from gripfast.call.shell.facts import Facts
from gripfast.edges.cli.say import say, say_json
from gripfast.edges.settings import tools_in
from gripfast.errors import ToolError, ToolNotFound
from gripfast.framework.definition import Tool
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from gripfast.host.program.userfile import read_user_file
from gripfast.host.record.removal import removal_forecast
from gripfast.text.escape import escaped
from gripfast.text.near import did_you_mean
from gripfast.text.plural import plural


@click.command(short_help="Say which rule decides a call, and why.")
@click.argument("tool", required=False)
@click.argument("arguments", required=False, metavar="[JSON | -]")
@click.option("--root", "roots", multiple=True, metavar="DIR", help="As for `gripfast call`.")
@click.option("--with", "extra", multiple=True, metavar="MODULE", help="As for `gripfast call`.")
@click.option(
    "--config", "named", metavar="FILE", help="Your configuration; default: ~/.config/gripfast/gripfast.toml."
)
@click.option("--rules", "try_rules", is_flag=True, help="Run the examples of all rules as tests.")
@click.option("--set", "rules", metavar="NAME", help="Judge by this set, as `--rules NAME` of `gripfast serve` does.")
@click.option("--log", metavar="FILE", help="Judge every shell line of a file: a JSON list, or a line each.")
@click.option("--json", "as_json", is_flag=True, help="Print the decision as JSON.")
def check(
    tool: str | None,
    arguments: str | None,
    roots: tuple[str, ...],
    extra: tuple[str, ...],
    named: str | None,
    try_rules: bool,
    rules: str | None,
    log: str | None,
    as_json: bool,
) -> None:
    """Say which rule decides a call of TOOL, and why, without running it.

    \b
    gripfast check 'git push'
    gripfast check Write '{"file_path": ".env", "content": ""}' --json
    gripfast check --rules --config team.toml
    gripfast check --log commands.json --set workspace
    """
    if (tool is not None) + try_rules + (log is not None) != 1:
        raise click.UsageError("give a tool and its JSON, or --rules, or --log FILE")
    try:
        tools = [*TOOLS, *(found for spec in extra for found in tools_in(spec))]
        scope = Scope.workspace(*(roots or (".",)), wide=bool(roots))
        choice = None if try_rules and rules is None else rules_by_name(rules, runs=True)
        config = load_config(named, [root.given for root in scope.roots], choice)
        for note in config.ignored:
            say(f"ignored: {note}", err=True)
        if log is not None:
            _show_log(log, config, scope, as_json)
            return
        if tool is None:
            sys.exit(_try_rules(config.permissions, tools, as_json))
        refuse_unknown_tools(config.permissions, [found.name for found in tools])
        text = sys.stdin.read() if arguments == "-" else arguments
        _show(*_decided(*_call(tool, text, tools), config, scope), as_json)
    except ToolError as fault:
        raise click.UsageError(fault.message) from None


def _call(name: str, text: str | None, tools: list[Tool]) -> tuple[Tool, str]:
    """The tool and its JSON; a shell line alone, or after the name of the tool that runs it, is that tool's call."""
    line = name if text is None and " " in name.strip() else text
    if text is None and line is not None:
        name = next(tool.name for tool in tools if tool.traits.effect == "run")
    tool = _found(name, tools)
    if line is not None and tool.traits.effect == "run" and not line.lstrip().startswith("{"):
        return tool, json.dumps({tool.traits.subject: line})
    return tool, line or "{}"


def _found(name: str, tools: list[Tool]) -> Tool:
    by_name = {tool.name: tool for tool in tools}
    if name not in by_name:
        raise ToolNotFound(f"no tool named `{escaped(name)}`; {did_you_mean(name, by_name)}")
    return by_name[name]


def _decided(tool: Tool, text: str, config: Config, scope: Scope) -> tuple[Decision, tuple[tuple[str, ...], ...]]:
    """The decision, and every command in the call, even if the rules had no need to look at them."""
    arguments = tool.parse(text)
    fs = ScopedFs(scope, encoding=config.encoding)
    if config.permissions is None:
        return Decision("allow", "there are no rules, so every tool may run"), ()
    subjects = spelled(tool, arguments, spelling(fs))
    effect = tool.traits.effect or ""
    permissions = config.permissions.within(fs.roots, _facts(fs, config))
    decision = judged(permissions, tool, subjects)
    if effect != "run" or decision.commands:
        return decision, decision.commands
    seen = [
        tuple("…" if word is None else str(word) for word in words)
        for spellings in subjects
        for line in spellings
        for words in commands_seen(line)
    ]
    return decision, tuple(seen)


def _facts(fs: ScopedFs, config: Config) -> Facts:
    """The machine as a session would find it that is opened now."""
    forecast = None if config.record is None else removal_forecast(config.record, fs.roots)
    return facts_of(fs, ShellPlace(), config.sandbox, forecast)


def _show(decision: Decision, commands: tuple[tuple[str, ...], ...], as_json: bool) -> None:
    if as_json:
        say_json(_as_dict(decision, commands))
        return
    say(f"{decision.action}: {escaped(decision.reason)}")
    for part in decision.parts:
        command = " ".join(_quoted(word) for word in part.commands[0]) if part.commands else "(the shell itself)"
        say(f"  {part.action}: {command}\n    {escaped(part.reason)}")
    for argv in () if decision.parts else commands:
        say("  command: " + " ".join(_quoted(word) for word in argv))


def _show_log(path: str, config: Config, scope: Scope, as_json: bool) -> None:
    """What the rules say to each line of a file, so that people can see what they would be asked."""
    fs = ScopedFs(scope, encoding=config.encoding)
    if config.permissions is None:
        raise click.UsageError("there are no rules to judge by; name a set with --set")
    rules = config.permissions.within(fs.roots, _facts(fs, config))
    lines = _logged(path)
    judged = [(line, rules.judge(tool="Bash", effect="run", spellings=(line,))) for line in lines]
    if as_json:
        found = [{"line": line, "decision": one.action, "reason": one.reason} for line, one in judged]
        say_json({"rules": config.rules, "lines": found})
        return
    for line, one in judged:
        if one.action != "allow":
            say(f"{one.action}: {escaped(line)[:200]}\n  {escaped(one.reason)}")
    for action in ("allow", "ask", "deny"):
        count = sum(one.action == action for _, one in judged)
        say(f"{action}: {count} of {len(judged)} ({100 * count / max(1, len(judged)):.1f} %)")


def _logged(path: str) -> list[str]:
    text = read_user_file(path)
    if text is None:
        raise click.UsageError(f"{path} does not exist")
    if not text.lstrip().startswith("["):
        return [line for line in text.splitlines() if line.strip()]
    try:
        found = json.loads(text)
    except ValueError as fault:
        raise click.UsageError(f"{path} is not a JSON list: {fault}") from None
    if not all(isinstance(line, str) for line in found):
        raise click.UsageError(f"{path} must be a list of strings, one shell line each")
    return found


def _as_dict(decision: Decision, commands: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    return {
        "decision": decision.action,
        "reason": decision.reason,
        "rule": None if decision.rule is None else _rule(decision.rule),
        "commands": [list(argv) for argv in commands],
        "parts": [
            {
                "decision": part.action,
                "reason": part.reason,
                "command": list(part.commands[0]) if part.commands else [],
            }
            for part in decision.parts
        ],
    }


def _rule(rule: PermissionRule) -> dict[str, Any]:
    return {"tool": rule.tool, "pattern": rule.pattern, "action": rule.action, "source": rule.source}


def _quoted(word: str) -> str:
    plain = word and all(char.isalnum() or char in "-_./=:,@%+^…" for char in word)
    return word if plain else "'" + escaped(word) + "'"


def _try_rules(permissions: Permissions | None, tools: list[Tool], as_json: bool) -> int:
    effects = {tool.name.lower(): tool.traits.effect or "" for tool in tools}
    tried = [] if permissions is None else list(check_examples(permissions, lambda name: effects.get(name.lower())))
    faults = [trial for trial in tried if trial.fault is not None]
    if as_json:
        found = [{"rule": _rule(trial.rule), "example": trial.subject, "fault": trial.fault} for trial in faults]
        say_json({"tried": len(tried), "faults": found})
    else:
        for trial in faults:
            say(f"{trial.rule}: {trial.fault}", err=True)
        none = "; you have no rules of your own, and --config names a file with some" if permissions is None else ""
        say(f"{plural(len(tried), 'example')}, {len(faults)} not judged as the rules say{none}")
    return 1 if faults else 0
