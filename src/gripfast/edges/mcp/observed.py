"""A call as logs, metrics and traces see it: who, what, decision, outcome, time, bytes; content only on request."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

from gripfast.call.run import Session, argument_text
from gripfast.clock import monotonic
from gripfast.messages import ToolCall, ToolMessage
from gripfast.records import dataclass

OK, ASKED = "ok", "ASKED"
"""Outcomes besides the codes of errors. ASKED: the client is to call again with an answer."""


@dataclass(slots=True)
class ObservedCall:
    """One call while it is served. The fields below `call` are final when it ends."""

    who: str
    client: str
    protocol_session: str
    call: ToolCall
    is_known: bool = False
    session: str = ""
    decision: str = ""
    reason: str = ""
    outcome: str = "CANCELLED"
    exit_code: int | None = None
    answer: str = ""
    stored: int | None = None
    seconds: float = 0.0
    redact: Callable[[str], str] = str
    _size: int | None = None

    def opened(self, session: Session) -> None:
        self.session = session.id
        self.is_known = self.call.name in session.tools
        if session.secrets is not None:
            secrets = session.secrets
            self.redact = lambda text: secrets()(text)

    def decided(self, decision: str) -> None:
        """Takes the decision of the rules or a person. Its reason may quote the call, so it is content."""
        self.decision, _, self.reason = decision.partition(": ")
        if self.reason.startswith("the user said"):
            self.decision += " by the user"

    def answered(self, message: ToolMessage) -> None:
        self.outcome = OK if message.error is None else message.error.code
        self.exit_code = message.exit_code
        self.answer = message.text
        self.stored = message.output_ref and message.output_ref.byte_size

    @property
    def bytes_in(self) -> int:
        if self._size is None:
            self._size = len(argument_text(self.call).encode("utf-8", "surrogatepass"))
        return self._size

    @property
    def bytes_out(self) -> int:
        return len(self.answer.encode("utf-8", "surrogatepass"))

    def arguments(self) -> str:
        """What the caller sent, without known secrets."""
        return self.redact(argument_text(self.call))


class Observer(Protocol):
    """Is entered before each call and left after it."""

    def watch(self, call: ObservedCall) -> AbstractContextManager[Any]: ...


@contextmanager
def observed(observers: Sequence[Observer], call: ObservedCall) -> Generator[None]:
    """Shows a call to all observers while it is served."""
    started = monotonic()
    with ExitStack() as stack:
        for observer in observers:
            stack.enter_context(observer.watch(call))
        try:
            yield
        finally:
            call.seconds = monotonic() - started
