"""`gripfast call`: one tool call from the shell."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import anyio
import click

from gripfast.builtin import kept
from gripfast.builtin import tools as tool_list
from gripfast.call.hooks import Answered, AskCallback, Question
from gripfast.call.run import Session, run_call
from gripfast.clock import monotonic
from gripfast.edges.cli import screen
from gripfast.edges.cli.options import SessionSettings, answer_within_option, as_usage_errors, session_options
from gripfast.edges.cli.say import say, say_json
from gripfast.edges.cli.shell_complete import complete_tool
from gripfast.edges.named_session import named_session
from gripfast.errors import InvalidArgument
from gripfast.framework.definition import Tool
from gripfast.host.kernel.prctl import hide_process
from gripfast.host.program import ready
from gripfast.host.program.ending import is_our_process
from gripfast.host.program.places import is_pipe_or_file
from gripfast.host.program.userfile import user_path
from gripfast.messages import ToolCall, ToolMessage

if TYPE_CHECKING:
    from gripfast.host.questions.question import QueuedQuestion


class _CallCommand(click.Command):
    """`call NAME --help` shows the arguments of that tool."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if any(word in ("-h", "--help") for word in args[:3]):
            known = {tool.name: tool for tool in tool_list.TOOLS}
            named = next((known[word] for word in args if word in known), None)
            if named is not None:
                say(_usage(named))
                ctx.exit()
        rest = super().parse_args(ctx, args)
        if is_our_process() and not ctx.params["extra"]:
            _recall(ctx.params["tool"])
        return rest


def _usage(tool: Tool) -> str:
    from gripfast.edges.reference import usage_of  # noqa: PLC0415 - a page that is kept, see pages.py

    return usage_of(tool)


_KEPT = "the tools, for `gripfast call`\0"  # no file has such a name


def _recall(tool: str) -> None:
    """Lists the tools as an earlier start has kept them, so that only the one that is called is loaded."""
    text = ready.load(ready.circumstances([_KEPT]))
    if text is not None:
        kept.use(text.decode(), tool)
    else:
        _to_keep.append(ready.circumstances([_KEPT]))


_to_keep: list[bytes] = []


def _keep() -> None:
    """For the next start, after the answer."""
    for key in _to_keep:
        ready.save(key, kept.kept_text().encode())


@click.command(cls=_CallCommand, short_help="Call a tool with a JSON object.")
@click.argument("tool", shell_complete=complete_tool)
@click.argument("words", nargs=-1, metavar="[JSON | - | WORD...]")
@session_options
@click.option("--session", "name", metavar="NAME", help="Continue the session of earlier calls with the same NAME.")
@answer_within_option(
    "Without a terminal, wait this long for an answer in `gripfast approvals`; default: not at all."
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole message as JSON.")
def call(
    tool: str,
    words: tuple[str, ...],
    settings: SessionSettings,
    name: str | None,
    answer_within: float | None,
    as_json: bool,
) -> None:
    """Call TOOL with a JSON object, given as an argument or on standard input, or with plain words.

    Words are the tool's arguments in their order, or NAME=VALUE. `gripfast call TOOL --help` lists them.

    The answer goes to standard output; an error goes to standard error, with exit code 1. `Bash` ends with the
    exit code of its command. With `--session`, calls share what was read, the todos, the working directory and
    cached outputs. Background commands end with the call that started them.

    \b
    gripfast call Read README.md limit=20
    gripfast call Read '{"file_path": "README.md", "limit": 20}'
    gripfast call Grep '{"pattern": "TODO", "output_mode": "content"}' | less
    echo '{"file_path": "README.md"}' | gripfast call Read --json
    gripfast call Read '{"file_path": "a.py"}' --session fix
    gripfast call Edit '{"file_path": "a.py", "old_string": "x", "new_string": "y"}' --session fix
    """
    hide_process()
    with as_usage_errors(), redirect_stdout(sys.stderr):  # what a tool prints is not part of its answer
        arguments = _arguments(words, next((one for one in settings.tools if one.name == tool), None))
        message, display_field = anyio.run(_call, tool, arguments, settings, name, answer_within or 0.0)
    if as_json:
        say_json(message.to_dict())
    else:
        screen.show(message, display_field)
        if name is None and message.error is not None and message.error.code == "NOT_READ":
            say("Each call is its own session: give both calls the same --session NAME", err=True)
        if not message.is_error and _stays(arguments):
            say("The command has ended with this call; only `gripfast serve` keeps commands running", err=True)
    _keep()
    sys.exit(1 if message.is_error else message.exit_code or 0)


def _arguments(words: tuple[str, ...], tool: Tool | None) -> str:
    """The arguments as JSON text: from the command line, from standard input, or made of plain words."""
    needed = tool is not None and bool(tool.definition.parameters.get("required"))
    if words == ("-",) or (not words and needed and _is_piped()):
        return sys.stdin.read()
    if not words or words[0].lstrip().startswith(("{", "[")):
        return " ".join(words) or "{}"
    return json.dumps(_named(words, list(tool.definition.parameters.get("properties", {})) if tool else []))


def _stays(arguments: str) -> bool:
    """Whether the call asked for a command that goes on after its answer."""
    return json.loads(arguments).get("run_in_background") in (True, "true")


def _named(words: tuple[str, ...], names: list[str]) -> dict[str, str]:
    """Plain words as arguments: NAME=VALUE, or the next argument that has no value yet."""
    given: dict[str, str] = {}
    free = iter(names)
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in names:
            given[name] = value
            continue
        place = next((one for one in free if one not in given), None)
        if place is None:
            raise InvalidArgument(f"{word!r} is one word too many; `gripfast call TOOL --help` lists the arguments")
        given[place] = word
    return given


def _is_piped() -> bool:
    """Whether standard input is a pipe or a file, and not a terminal or /dev/null."""
    return not sys.stdin.closed and not sys.stdin.isatty() and is_pipe_or_file(sys.stdin)


async def _call(
    tool: str, arguments: str, settings: SessionSettings, name: str | None, answer_within: float
) -> tuple[ToolMessage, str | None]:
    async with named_session(settings, name, ask=screen.asker()) as session:
        with screen.waiting(tool) as progress:
            ask = None if session.gate.can_ask or not answer_within else _asker(session, settings, answer_within)
            message = await run_call(session, ToolCall("call_1", tool, arguments), progress, ask=ask)
        found = session.tools.get(tool)
        return message, found and found.traits.display_field


def _asker(session: Session, settings: SessionSettings, seconds: float) -> AskCallback:
    """Asks whoever looks into the queue, for as long as this process waits."""

    def tell(question: QueuedQuestion) -> None:
        say(f"waiting for approval: gripfast approve {question.id}", err=True)

    from gripfast.edges.approvals import Approvals  # noqa: PLC0415 - few calls wait for an answer

    root = user_path(settings.working_directory())
    approvals = Approvals(session.id, root, "gripfast call", lifetime=seconds, notify=tell)

    async def ask(question: Question) -> Answered:
        try:
            return await approvals.ask(question, monotonic() + 2 * seconds)
        finally:
            await approvals.close()

    return ask
