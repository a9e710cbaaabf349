"""Questions to the person at the client: whether a call may run, and what a tool asks itself."""

from __future__ import annotations

import contextlib
from typing import Any

from mcp_types import ElicitResult

from gripfast.call.hooks import Answer, Answered, Question, Width
from gripfast.edges.approvals import Approvals, console_url
from gripfast.edges.mcp.request import CannotAskClient, ClientRequest
from gripfast.errors import PolicyDenied
from gripfast.host.questions.queue import QueuedQuestion

ONCE, ALWAYS, NO = "Allow once", "Allow always", "Deny"


INSTANT_SECONDS = 1.0
"""A form that was declined within this time was shown to nobody."""
DISMISSED_SECONDS = 5.0
"""The same for one that was cancelled, which is what clients without a person answer, on a busy machine late."""


class AskingClient:
    """Who is asked whether a call of a client may run: the person at the client, else whoever looks into the queue.

    A client that can't show a form, or declines one before anybody can have read it, is not asked again.
    """

    def __init__(self, approvals: Approvals | None) -> None:
        self.approvals = approvals
        self._shows_forms = True

    async def ask(self, request: ClientRequest, until: float, question: Question) -> Answered:
        """The answer, waited for until a time of the monotonic clock where it comes from the queue. Raises
        PolicyDenied if there is nobody to ask."""
        if self._shows_forms:
            with contextlib.suppress(CannotAskClient):
                answer, seconds = await _by_elicitation(request, question)
                least = INSTANT_SECONDS if answer.action == "decline" else DISMISSED_SECONDS
                if answer.action == "accept" or seconds >= least or self.approvals is None:
                    return Answered(_answer_in(answer, question), "client")
                self._shows_forms = False
        if self.approvals is None:
            raise PolicyDenied(
                f"{question.reason}; it needs approval, which this client can't ask for: {question.remedy}"
            )
        return await self._by_queue(self.approvals, request, until, question)

    async def _by_queue(
        self, approvals: Approvals, request: ClientRequest, until: float, question: Question
    ) -> Answered:
        async def open_page(asked: QueuedQuestion) -> None:
            url = console_url(asked)
            if url is not None:
                await request.elicit_url(f"{asked.id}: {asked.reason}", url, asked.id)

        return await approvals.ask(question, until, open_page)


async def _by_elicitation(request: ClientRequest, question: Question) -> tuple[ElicitResult, float]:
    choices = [ONCE, *_choices(question).values(), NO]
    decision = {"type": "string", "title": "Decision", "enum": choices}
    schema = {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}
    return await request.elicit_timed(question.shown(), schema)


def _answer_in(answer: ElicitResult, question: Question) -> Answer:
    decision = (answer.content or {}).get("decision")
    if answer.action != "accept":
        return False
    for width, choice in _choices(question).items():
        if decision == choice:
            return width
    return decision == ONCE


def _choices(question: Question) -> dict[Width, str]:
    """The ways to say always; what the narrowest covers stands in the message."""
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
