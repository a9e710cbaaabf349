"""Questions to the person at the client: whether a call may run, and the questions that tools ask."""

from __future__ import annotations

import contextlib
from typing import Any

from mcp_types import ElicitResult

from gripfast.call.hooks import Answer, Answered, Question, Width
from gripfast.clock import monotonic
from gripfast.edges.approvals import Approvals, bounded, console_url
from gripfast.edges.mcp.request import CannotAskClient, ClientRequest
from gripfast.errors import PolicyDenied, WaitingForApproval
from gripfast.host.questions.queue import QueuedQuestion

ONCE, ALWAYS, NO = "Allow once", "Allow always", "Deny"

INSTANT_SECONDS = 1.0
"""A form declined faster than this was probably declined by the client, not by a person."""
UNSEEN_SECONDS = 0.25
"""A form declined or cancelled faster than this can't have been a person's answer."""
LARGEST_FORM = 20_000
"""Characters of a diff in a form."""
PAGE_SECONDS = 0.2
"""How soon a call of the newer protocol ends with the address of a page, if its question is not answered by then."""
DISMISSED_SECONDS = 5.0
"""The same for a cancelled form. Clients that can't show one cancel it, on a busy machine after a while."""


class AskingClient:
    """Asks whether a client's call may run: first the person at the client, then whoever answers the question queue.

    A form that a client declines before anybody could have read it goes to the queue, too, and the answer says so. If
    it was too fast for anybody to react, the client gets no more forms; else the next question is tried with it.
    """

    def __init__(self, approvals: Approvals | None) -> None:
        self.approvals = approvals
        self._shows_forms = True
        self._was_unseen = False

    async def ask(self, request: ClientRequest, until: float, question: Question) -> Answered:
        """Returns the answer. `until` is how long to wait for the queue, by the monotonic clock. Raises PolicyDenied
        if there is nobody to ask."""
        if self._shows_forms and not await self._waits_in_queue(question):
            with contextlib.suppress(CannotAskClient):
                answer, seconds = await _by_elicitation(request, question)
                least = INSTANT_SECONDS if answer.action == "decline" else DISMISSED_SECONDS
                self._was_unseen = answer.action != "accept" and seconds < least
                if not self._was_unseen or self.approvals is None:
                    return Answered(_answer_in(answer, question), "client")
                self._shows_forms = seconds >= UNSEEN_SECONDS
        if self.approvals is None:
            raise PolicyDenied(
                f"{question.reason}; it needs approval, which this client can't ask for: {question.remedy}"
            )
        return await self._by_queue(self.approvals, request, until, question)

    async def _waits_in_queue(self, question: Question) -> bool:
        """Whether this is the call of a question that was put into the queue before, and waits there."""
        return self.approvals is not None and await self.approvals.is_waiting(question)

    async def _by_queue(
        self, approvals: Approvals, request: ClientRequest, until: float, question: Question
    ) -> Answered:
        async def open_page(asked: QueuedQuestion) -> None:
            if (url := console_url(asked)) is not None:
                pages.append((f"{asked.id}: {asked.reason}", url, asked.id))
                if not request.is_suspended_to_ask:
                    await request.elicit_url(*pages[0])

        pages: list[tuple[str, str, str]] = []
        note = "The client declined it at once, probably unseen. " if self._was_unseen else ""
        if request.is_suspended_to_ask and request.opens_pages and not await approvals.is_waiting(question):
            with contextlib.suppress(WaitingForApproval):
                soon = min(until, monotonic() + PAGE_SECONDS)
                return await approvals.ask(question, soon, open_page, note=note)
            if pages:
                await request.elicit_url(*pages[0])
        return await approvals.ask(question, until, open_page, note=note)


async def _by_elicitation(request: ClientRequest, question: Question) -> tuple[ElicitResult, float]:
    choices = [ONCE, *_choices(question).values(), NO]
    decision = {"type": "string", "title": "Decision", "enum": choices}
    schema = {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}
    diff = bounded(await question.diff(), LARGEST_FORM)
    return await request.elicit_timed(f"{question.shown()}\n{diff}" if diff else question.shown(), schema)


def _answer_in(answer: ElicitResult, question: Question) -> Answer:
    decision = (answer.content or {}).get("decision")
    if answer.action != "accept":
        return False
    for width, choice in _choices(question).items():
        if decision == choice:
            return width
    return decision == ONCE


def _choices(question: Question) -> dict[Width, str]:
    """The choices that mean "always". The message itself says what the narrowest of them covers."""
    return {
        width: ALWAYS if width == "always" else f"{ALWAYS}: {covers}" for width, covers in question.widths().items()
    }


class PersonAtClient:
    """The person at the client, as a tool sees them."""

    def __init__(self, request: ClientRequest) -> None:
        self._request = request

    async def fill_in(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        try:
            answer = await self._request.elicit(message, schema)
        except CannotAskClient:
            return None
        return dict(answer.content or {}) if answer.action == "accept" else None
