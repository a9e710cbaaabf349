"""Runs one call: `run_call` is the table in ARCHITECTURE.md as one function. Read this first."""

from __future__ import annotations

import itertools
import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import anyio

from gripfast.call.cache import OutputCache, Store
from gripfast.call.hooks import Asides, AskCallback, CallGate, PostToolCall, PreToolCall, Remember, after_call
from gripfast.call.recorder import Recorder
from gripfast.errors import Internal, InvalidArgument, ToolError, ToolNotFound, joined
from gripfast.framework.context import LOGGER, Factory, Progress, ToolContext
from gripfast.framework.definition import Joined, RawArguments, Tool, only_tool_errors
from gripfast.framework.depends import Lifetime, factory_parameters
from gripfast.framework.providers import ProviderForm, definitions
from gripfast.framework.render import render
from gripfast.framework.subjects import Subjects
from gripfast.messages import TextPart, TextResult, ToolCall, ToolMessage
from gripfast.text.escape import escaped, visible
from gripfast.text.near import did_you_mean
from gripfast.text.redact import Redactor

if TYPE_CHECKING:
    from pydantic import BaseModel

_AS_JSON = json.JSONEncoder(ensure_ascii=False, default=str).encode

# What a failed hook means for the call; appended to the error message.
DID_NOT_RUN = ", so the call did not run"
WITHHELD = ", so its result is withheld"


async def run_call(
    session: Session,
    call: ToolCall,
    progress: Callable[[Progress], None] | None = None,
    *,
    ask: AskCallback | None = None,
    deps: Mapping[str, Any] | None = None,
    tell: Callable[[str], None] | None = None,
) -> ToolMessage:
    """Runs one call. Never raises, except when it is cancelled.

    `progress`, `ask`, `deps` and `tell` belong to this call: where to report progress, whom to ask, values for its
    dependencies by id, and who is told whether it was allowed.
    """
    if session.recorder is None:
        return await _answer(session, call, progress, ask, deps, tell)
    entry = session.recorder.begin(call.id, call.name, argument_text(call))
    try:
        message = await _answer(session, call, progress, ask, deps, _both(entry.decided, tell))
    except BaseException:
        entry.end(error="CANCELLED")
        raise
    return with_note(message, entry.end(**_facts(message)))


def _both(one: Callable[[str], None], other: Callable[[str], None] | None) -> Callable[[str], None]:
    if other is None:
        return one

    def tell(decision: str) -> None:
        one(decision)
        other(decision)

    return tell


async def _answer(
    session: Session,
    call: ToolCall,
    progress: Callable[[Progress], None] | None,
    ask: AskCallback | None,
    deps: Mapping[str, Any] | None,
    tell: Callable[[str], None] | None,
) -> ToolMessage:
    name = f"`{call.name[:80]}`"
    try:
        message = await only_tool_errors(_run_steps(session, call, progress, ask, deps, tell), name, session.logger)
    except ToolError as error:
        message = refusal(call, error)
        if session.secrets is not None:
            message = replace(message, content=session.secrets()(message.text))
    if not session.after:
        return message
    try:
        hooks = after_call(session.after, call, session.tools.get(call.name), message)
        return await only_tool_errors(hooks, f"{name} ran, but a hook after it", session.logger, WITHHELD)
    except ToolError as error:
        return refusal(call, error)


async def _run_steps(
    session: Session,
    call: ToolCall,
    progress: Callable[[Progress], None] | None,
    ask: AskCallback | None,
    deps: Mapping[str, Any] | None,
    tell: Callable[[str], None] | None,
) -> ToolMessage:
    tool = session.find(call.name)
    result = render(await _value(session, call, tool, progress, ask, deps, tell))
    content, ref = await session.cache.fit(result, output=tool.traits.output)
    session.finished = session.finished or tool.traits.ends
    code = result.exit_code if isinstance(result, TextResult) else None
    return ToolMessage(call.id, tool.name, content, output_ref=ref, done=tool.traits.ends, exit_code=code)


async def _value(
    session: Session,
    call: ToolCall,
    tool: Tool,
    progress: Callable[[Progress], None] | None = None,
    ask: AskCallback | None = None,
    deps: Mapping[str, Any] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Any:
    arguments, work = await session.judge(call, tool, ask, deps, tell)
    if work is not None:
        deps = {**(deps or {}), **work.deps}
    shown = _without_secrets(session, progress or session.context.progress)
    return await tool.run(arguments, session.context.for_call(shown, deps))


def _without_secrets(
    session: Session, progress: Callable[[Progress], None] | None
) -> Callable[[Progress], None] | None:
    """Progress with the names of secrets in its messages, as answers have them."""
    hidden = session.secrets
    if progress is None or hidden is None:
        return progress

    def report(given: Progress) -> None:
        progress(replace(given, message=given.message and hidden()(given.message)))

    return report


def _refuse_placeholder(secrets: Redactor, arguments: BaseModel) -> None:
    """Refuses arguments with the placeholder that answers show instead of a secret: written to a file, it would
    replace the secret."""
    name = secrets.placeholder_in(str(dict(arguments)))
    if name is not None:
        raise InvalidArgument(
            f"{name} stands for a secret that is hidden from answers; written to a file it would replace the secret. "
            "Leave that line as it is, or ask the user"
        )


def _asides(session: Session, tool: Tool, arguments: BaseModel, deps: Mapping[str, Any] | None) -> Asides:
    traits = tool.traits
    return Asides(
        None if traits.preview is None else partial(_preview, session, tool, arguments),
        None if traits.joins is None else lambda: tool.joins(arguments, session.context.for_call(None, deps)),
        None if traits.refuses is None else lambda: tool.refuses(arguments, session.context.for_call(None, deps)),
    )


async def _preview(session: Session, tool: Tool, arguments: BaseModel) -> str:
    """The diff of what a call would change, for a question; it changes nothing."""
    work = tool.preview(arguments, session.context.for_call())
    try:
        return await only_tool_errors(work, f"the preview of `{tool.name}`", session.logger)
    except ToolError as error:
        return f"(what it would change can't be shown: {error.message})"


def _each_placed(place: Callable[[Tool, Any, bool], Any], tool: Tool, subjects: Subjects, may_ask: bool) -> Subjects:
    """Resolves every part. Raises one error with all reasons if some are refused."""
    parts: list[Any] = []
    faults: list[ToolError] = []
    for part in subjects.parts():
        try:
            parts.append(place(tool, part, may_ask))
        except ToolError as fault:
            faults.append(fault)
    if faults:
        raise joined(faults)
    return subjects.with_parts(parts)


def argument_text(call: ToolCall) -> str:
    """The arguments as JSON text, as the caller sent them."""
    given = call.arguments
    if isinstance(given, bytes):
        return given.decode("utf-8", "replace")
    return given if isinstance(given, str) else _AS_JSON(given or {})


def _facts(message: ToolMessage) -> dict[str, Any]:
    """What the record stores of an answer."""
    ref, error = message.output_ref, message.error
    text = message.text
    size = len(text.encode("utf-8", "replace"))
    return {"size": size, "output_ref": ref and ref.id, "error": error and error.code, "answer": text}


def with_note(message: ToolMessage, note: str | None) -> ToolMessage:
    """The message with a line below its content."""
    if note is None:
        return message
    if isinstance(message.content, str):
        return replace(message, content=f"{message.content}\n{note}" if message.content else note)
    return replace(message, content=(*message.content, TextPart(note)))


def refusal(call: ToolCall, error: ToolError) -> ToolMessage:
    said = visible(error.message)  # it may quote file names, settings and other programs' output
    content = (
        f"Permission denied: {said}"
        if error.code == "POLICY_DENIED"
        else f"Error executing tool: {error.code}: {said}"
    )
    return ToolMessage(call.id, call.name, content, is_error=True, error=error)


class Session:
    """The tools of one conversation and their state: dependencies, rules, cached outputs."""

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        overrides: Mapping[str, Factory] | None = None,
        before: Iterable[PreToolCall] = (),
        after: Iterable[PostToolCall] = (),
        ask: AskCallback | None = None,
        remember: Remember | None = None,
        place: Callable[[Tool, Any, bool], Any] | None = None,
        cache: OutputCache | None = None,
        recorder: Recorder | None = None,
        secrets: Callable[[], Redactor] | None = None,
        logger: logging.Logger | None = None,
        now: Callable[[], datetime] | None = None,
        id: str | None = None,
    ) -> None:
        self.id = id or uuid.uuid4().hex
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise ValueError(f"two tools are named `{tool.name}`")
            self.tools[tool.name] = tool
        for dependency, factory in (overrides or {}).items():
            if faults := factory_parameters(factory).faults:
                raise TypeError(f"override `{dependency}` can't be called: {'; '.join(faults)}")
        self.gate = CallGate(tuple(before), ask, remember)
        self.after = tuple(after)
        self._place = place
        self.cache = cache or OutputCache(self.default_store(), session=self.id, owns_store=True)
        self.cache.read_with(self.tools.values())
        self.recorder = recorder
        self.secrets = secrets
        if secrets is not None:
            self.cache.redact_with(secrets)
        self.logger = logger or LOGGER
        self.finished = False
        self._lifetime = Lifetime()
        self.context = ToolContext(overrides=overrides, logger=logger, now=now, lifetime=self._lifetime)
        self._numbers = itertools.count(1)

    @staticmethod
    def default_store() -> Store | None:
        """The store of a session without a cache of its own. `from gripfast import Session` sets the embedded one."""
        return None

    async def call(
        self,
        name: str,
        arguments: RawArguments = None,
        *,
        id: str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> ToolMessage:
        """Calls a tool by name. `arguments` is an object or its JSON text."""
        return await run_call(self, ToolCall(id or f"call_{next(self._numbers)}", name, arguments), progress)

    async def value(
        self,
        tool: str | Tool,
        arguments: RawArguments = None,
        *,
        id: str | None = None,
        ask: AskCallback | None = None,
    ) -> Any:
        """Runs a tool and returns its plain value: validated and judged like any call, but neither rendered nor cut,
        and with secrets as they are, so it is for your program and not for a model. The tool may be one that the
        session does not list. Raises ToolError, unless the caller is cancelled."""
        self._require_open()
        tool = self.find(tool) if isinstance(tool, str) else tool
        call = ToolCall(id or f"call_{next(self._numbers)}", tool.name, arguments)
        if self.recorder is None:
            return await only_tool_errors(_value(self, call, tool, None, ask), f"`{tool.name}`", self.logger)
        entry = self.recorder.begin(call.id, call.name, argument_text(call))
        error: str | None = "CANCELLED"
        try:
            work = _value(self, call, tool, None, ask, None, entry.decided)
            value = await only_tool_errors(work, f"`{tool.name}`", self.logger)
            error = None
        except ToolError as fault:
            error = fault.code
            raise
        finally:
            entry.end(error=error)
        return value

    async def call_all(self, calls: Iterable[ToolCall]) -> list[ToolMessage]:
        """Runs the calls of one turn concurrently; the answers come in the order of the calls."""
        calls = list(calls)
        answers: dict[int, ToolMessage] = {}

        async def one(place: int, call: ToolCall) -> None:
            answers[place] = await run_call(self, call)

        async with anyio.create_task_group() as group:
            for place, call in enumerate(calls):
                group.start_soon(one, place, call)
        return [answers[place] for place in range(len(calls))]

    def definitions(self, form: ProviderForm = "mcp") -> list[Any]:
        """The tool list, ready to pass to a provider's API."""
        return definitions(self.tools.values(), form)

    async def judge(
        self,
        call: ToolCall,
        tool: Tool,
        ask: AskCallback | None = None,
        deps: Mapping[str, Any] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> tuple[BaseModel, Joined | None]:
        """Everything between a call and its tool: the arguments are parsed, their path is bound to a place, the hooks
        are asked. Returns the arguments to run with, and the work that the call only waits for, if so. Raises
        ToolError if the call may not run."""
        work: Joined | None = None
        arguments = tool.parse(call.arguments)
        if self.secrets is not None and tool.traits.effect == "write":
            _refuse_placeholder(self.secrets(), arguments)
        if self.gate.hooks:
            arguments = self._placed(tool, arguments, may_ask=ask is not None or self.gate.can_ask)
            gate = self.gate.check(call, tool, arguments, ask, tell, _asides(self, tool, arguments, deps))
            work = await only_tool_errors(gate, f"a hook before `{tool.name}`", self.logger, DID_NOT_RUN)
        return arguments, work

    def _placed(self, tool: Tool, arguments: BaseModel, *, may_ask: bool) -> BaseModel:
        """The arguments with their subject resolved to a place, which is then judged, shown and opened. Raises
        ToolError for a place that would be refused whatever the rules or a person say."""
        subject = tool.traits.subject
        value = None if subject is None else getattr(arguments, subject)
        if self._place is None or value is None or isinstance(value, str) or subject is None:
            return arguments
        if isinstance(value, Subjects):
            placed: object = _each_placed(self._place, tool, value, may_ask)
        else:
            placed = self._place(tool, value, may_ask)
        return arguments.model_copy(update={subject: placed})

    def find(self, name: str) -> Tool:
        self._require_open()
        tool = self.tools.get(name)
        if tool is None:
            hint = did_you_mean(name, self.tools, 3, none="this session has no tools")
            raise ToolNotFound(f"no tool named `{escaped(name[:80])}`; {hint}")
        return tool

    def _require_open(self) -> None:
        if self._lifetime.closed:
            raise Internal("the session is closed; open a new one")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Releases everything the session holds: dependencies, shells, file descriptors."""
        await self._lifetime.close()
        await self.cache.close()
