"""Questions to the person at the client: whether a call may run, and what a tool asks itself."""

from __future__ import annotations

from typing import Any

from mcp_types import ElicitResult

from gripfast.call.hooks import Answer, Question, Width
from gripfast.edges.mcp.request import CannotAskClient, ClientRequest
from gripfast.errors import PolicyDenied

ONCE, ALWAYS, NO = "Allow once", "Allow always", "Deny"


async def ask_by_elicitation(request: ClientRequest, question: Question) -> Answer:
    """Asks for permission by elicitation. Raises PolicyDenied if the client can't show a form."""
    choices = [ONCE, *_choices(question).values(), NO]
    decision = {"type": "string", "title": "Decision", "enum": choices}
    schema = {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}
    try:
        return _answer_in(await request.elicit(question.shown(), schema), question)
    except CannotAskClient:
        raise PolicyDenied(
            f"{question.reason}; it needs approval, which this client can't ask for: {question.remedy}"
        ) from None


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
