"""Hooks before and after a call, and the approval question a hook may ask the user.

A hook before a call sees validated arguments and returns None, Deny or Ask. The permission rules are the first hook.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gripfast.errors import PolicyDenied, WaitingForApproval
from gripfast.framework.context import Interruption
from gripfast.framework.definition import Joined, Tool
from gripfast.framework.subjects import Subjects
from gripfast.messages import ToolCall, ToolMessage
from gripfast.records import dataclass
from gripfast.text.escape import escaped, visible

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Deny:
    """Denies the call. `by_sandbox`: only because the sandbox would refuse what it does."""

    reason: str
    by_sandbox: bool = False


@dataclass(frozen=True, slots=True)
class Allow:
    """Allows the call, with a reason for the record. A hook that returns None allows it without a reason."""

    reason: str


_BY_RULE = "allow it with a rule in gripfast.toml"


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the user whether the call may run.

    `token` identifies what the answer "always" would allow; `covers` describes it to the user. `leading` are the
    leading words of the commands in question, as rules write them (`npm run *`): the answer "always_leading" allows
    whatever follows them. `remedy` says what to do if there is nobody to ask, `where` is the working directory.
    `outdated` is called after a yes and says why that yes no longer applies, if so.
    """

    reason: str
    token: str | None = None
    remedy: str = _BY_RULE
    covers: str = ""
    leading: tuple[str, ...] = ()
    where: str = ""
    outdated: Callable[[], str | None] | None = None


Width: TypeAlias = Literal["always", "always_leading", "remember"]
"""What an "always" covers: exactly this call; its commands' leading words; or those in all future sessions too."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the user. The arguments shown are the very object that runs if the answer is yes."""

    call: ToolCall
    tool: Tool
    arguments: BaseModel
    reason: str
    may_remember: bool
    remedy: str = _BY_RULE
    covers: str = ""
    leading: tuple[str, ...] = ()
    where: str = ""
    may_store: bool = False
    preview: Callable[[], Awaitable[str]] | None = None  # returns the diff of what the call would change

    def widths(self) -> dict[Width, str]:
        """What an "always" may cover, with a description of each, the narrowest first."""
        widths: dict[Width, str] = {}
        if self.may_remember:
            widths["always"] = escaped(self.covers or "exactly this call")
        if self.leading:
            commands = " and ".join(f"`{escaped(pattern.removesuffix(' *'))} …`" for pattern in self.leading)
            widths["always_leading"] = f"{commands}, whatever follows, in this session"
            if self.may_store:
                widths["remember"] = (
                    f"{commands}, whatever follows, from now on: a rule is added to your configuration"
                )
        return widths

    async def diff(self) -> str:
        """What the call would change, as a diff with everything escaped; empty if that is not known. If a call with
        a yes would change something else by then, it is refused."""
        return "" if self.preview is None else visible(await self.preview())

    def shown(self, *, whole: bool = False) -> str:
        """The question as text: the call with its subject in full, other long arguments clipped unless `whole`, and
        everything escaped; then what "always" would allow, which may be more than this one call."""
        arguments = self.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)
        subject = self.tool.traits.subject
        all_of_it = whole or self.tool.traits.feeds is not None
        lines = [
            f"{name}: {_argument_text(value, whole=all_of_it or name == subject)}"
            for name, value in arguments.items()
        ]
        several = None if subject is None else getattr(self.arguments, subject)
        if subject is not None and isinstance(several, Subjects):
            at = list(arguments).index(subject)
            lines[at : at + 1] = [f"{subject}:", *(f"| {visible(line)}" for line in str(several).splitlines())]
        place = [f"working directory: {escaped(self.where)}"] if self.where else []
        wider = [f'"Always" covers {escaped(self.covers)}.'] if self.may_remember and self.covers else []
        return "\n".join([f"{self.tool.name} wants to run. {escaped(self.reason)}", *lines, *place, *wider])


_CLIP_AT = 4000  # characters of an argument that is not the subject


def _argument_text(value: Any, *, whole: bool) -> str:
    text = escaped(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if whole or len(text) <= _CLIP_AT:
        return text
    return f"{text[:_CLIP_AT]} … ({len(text) - _CLIP_AT} more characters)"


Answer: TypeAlias = bool | Width
"""Yes, no, or one of the ways to say "always" in `Question.widths`."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, who gave it (for the record) and, for a no, the reason (for the model)."""

    answer: Answer
    by: str = ""
    because: str = ""


Remember: TypeAlias = Callable[[str, str], None]
"""Stores a rule that allows a tool on a pattern in future sessions."""
AskCallback: TypeAlias = Callable[[Question], Awaitable[Answer | Answered]]
PreToolCall: TypeAlias = (
    "Callable[[ToolCall, Tool, BaseModel], Deny | Ask | Allow | Awaitable[Deny | Ask | Allow | None] | None]"
)
PostToolCall: TypeAlias = Callable[
    [ToolCall, Tool | None, ToolMessage], ToolMessage | Awaitable[ToolMessage | None] | None
]


@dataclass(frozen=True, slots=True)
class Asides:
    """What else the gate may want to know of a call, as far as its tool declares it: `preview` returns the diff for a
    question, `joins` the running work that the call would only wait for, `refuses` raises what even a yes would not
    change."""

    preview: Callable[[], Awaitable[str]] | None = None
    joins: Callable[[], Awaitable[Joined | None]] | None = None
    refuses: Callable[[], Awaitable[None]] | None = None


_NO_ASIDES = Asides()


class CallGate:
    """Runs the hooks before a call, in order; the first one that does not allow the call decides."""

    __slots__ = ("_always", "_ask", "_remember", "hooks")

    def __init__(
        self, hooks: tuple[PreToolCall, ...], ask: AskCallback | None, remember: Remember | None = None
    ) -> None:
        self.hooks = hooks
        self._ask = ask
        self._remember = remember
        self._always: set[str] = set()

    @property
    def can_ask(self) -> bool:
        """Whether the session itself has somebody to ask."""
        return self._ask is not None

    async def check(
        self,
        call: ToolCall,
        tool: Tool,
        arguments: BaseModel,
        ask: AskCallback | None = None,
        tell: Callable[[str], None] | None = None,
        asides: Asides = _NO_ASIDES,
    ) -> Joined | None:
        """Returns if the call may run, with the work that it joins instead, if so; raises PolicyDenied if not. Asks
        the call's own `ask`, or else the session's. `tell` receives the decision and who made it."""
        tell = tell or _nobody
        joined: Joined | None = None
        for hook in self.hooks:
            verdict: Any = hook(call, tool, arguments)
            if verdict is not None and not isinstance(verdict, Allow) and inspect.isawaitable(verdict):
                verdict = await verdict
            if isinstance(verdict, Deny):
                tell(f"denied: {verdict.reason}")
                raise PolicyDenied(verdict.reason)
            if isinstance(verdict, Ask):
                if joined is None and asides.joins is not None:
                    joined = await asides.joins()
                if joined is not None:
                    tell(f"allowed: {joined.reason}; {verdict.reason}")
                    continue
                if asides.refuses is not None:
                    await asides.refuses()
                shown = None if asides.preview is None else _Shown(asides.preview)
                asked = _question(verdict, call, tool, arguments, self._remember is not None, shown)
                await self._ask_user(verdict, asked, ask or self._ask, tell)
                if shown is not None and await shown.is_outdated():
                    raise PolicyDenied("it would now change something other than what the user saw; call it again")
            elif isinstance(verdict, Allow):
                tell(f"allowed: {verdict.reason}")
            elif verdict is not None:
                raise PolicyDenied(f"a hook must return None, Deny or Ask, not {type(verdict).__name__}")
        return joined

    async def _ask_user(
        self, request: Ask, question: Question, ask: AskCallback | None, tell: Callable[[str], None]
    ) -> None:
        leading = {f"{question.tool.name}\0{pattern}" for pattern in request.leading}
        if (request.token is not None and request.token in self._always) or (leading and leading <= self._always):
            tell(f"allowed: the user said always; {request.reason}")
            return
        tell(f"denied: {request.reason}; nobody said yes")
        if ask is None:
            raise PolicyDenied(f"{request.reason}; it needs approval and there is nobody to ask: {request.remedy}")
        try:
            given = await ask(question)
        except WaitingForApproval as waiting:
            tell(f"waiting: {request.reason}; {waiting.message.partition(';')[0]}")
            raise
        except Interruption:
            tell(f"waiting: {request.reason}; the client asks, and calls again with the answer")
            raise
        said = given if isinstance(given, Answered) else Answered(given)
        answer, by = said.answer, f" ({said.by})" if said.by else ""
        if answer is not True and answer != "always" and answer not in question.widths():
            because = f": {said.because}" if said.because else ""
            tell(f"denied: the user said no{by}{because}; {request.reason}")
            raise PolicyDenied(f"{request.reason}; the user said no{because}")
        if request.outdated is not None and (fault := request.outdated()) is not None:
            raise PolicyDenied(f"{fault}, so the yes no longer applies; call it again")
        self._keep(answer, request, question.tool.name, leading)
        tell(f"allowed: the user said {'yes' if answer is True else answer}{by}; {request.reason}")

    def _keep(self, answer: Answer, request: Ask, tool: str, leading: set[str]) -> None:
        if answer == "always" and request.token is not None:
            self._always.add(request.token)
        if answer in ("always_leading", "remember"):
            self._always |= leading
        if answer == "remember" and self._remember is not None:
            for pattern in request.leading:
                self._remember(tool, pattern)


def _question(
    request: Ask,
    call: ToolCall,
    tool: Tool,
    arguments: BaseModel,
    may_store: bool,
    shown: _Shown | None,
) -> Question:
    return Question(
        call,
        tool,
        arguments,
        reason=request.reason,
        may_remember=request.token is not None,
        remedy=request.remedy,
        covers=request.covers,
        leading=request.leading,
        where=request.where,
        may_store=may_store,
        preview=None if shown is None else shown.preview,
    )


class _Shown:
    """The diff that a person saw before they answered."""

    def __init__(self, preview: Callable[[], Awaitable[str]]) -> None:
        self._preview = preview
        self._seen: str | None = None

    async def preview(self) -> str:
        self._seen = await self._preview()
        return self._seen

    async def is_outdated(self) -> bool:
        """Whether the call would now change something else. False if the diff was not looked at."""
        return self._seen is not None and await self._preview() != self._seen


def _nobody(decision: str) -> None:
    """Nothing is recorded."""


async def after_call(
    hooks: tuple[PostToolCall, ...], call: ToolCall, tool: Tool | None, message: ToolMessage
) -> ToolMessage:
    """Runs the hooks after a call. Each may replace the message; None leaves it unchanged."""
    for hook in hooks:
        changed: Any = hook(call, tool, message)
        if inspect.isawaitable(changed):
            changed = await changed
        if changed is not None and not isinstance(changed, ToolMessage):
            raise TypeError(f"a hook after a call must return a ToolMessage or None, not {type(changed).__name__}")
        message = changed or message
    return message
