"""Questions to the person at the client: may this call run, and what a tool itself wants to know."""

from __future__ import annotations

from typing import Any

from mcp_types import ElicitResult

from holdfast.call.hooks import Answer, Question
from holdfast.edges.mcp.visit import NOW, NobodyToAsk
from holdfast.errors import PolicyDenied

ONCE, ALWAYS, NO = "Allow once", "Allow always", "Deny"


async def ask_by_form(question: Question) -> Answer:
    """Asks for permission by elicitation. Raises PolicyDenied if the client can't show a form."""
    visit = NOW.get()
    choices = [ONCE, ALWAYS, NO] if question.may_remember else [ONCE, NO]
    decision = {"type": "string", "title": "Decision", "enum": choices}
    schema = {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}
    try:
        if visit is None:
            raise NobodyToAsk
        return _meaning(await visit.elicit(question.shown(), schema), question)
    except NobodyToAsk:
        raise PolicyDenied(
            f"{question.reason}; it needs approval and this client can't ask for it: {question.remedy}"
        ) from None


def _meaning(answer: ElicitResult, question: Question) -> Answer:
    decision = (answer.content or {}).get("decision")
    if answer.action != "accept":
        return False
    if decision == ALWAYS and question.may_remember:
        return "always"
    return decision == ONCE


class AtClient:
    """The person at the client, as a tool sees them."""

    async def fill_in(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        visit = NOW.get()
        try:
            if visit is None:
                raise NobodyToAsk
            answer = await visit.elicit(message, schema)
        except NobodyToAsk:
            return None
        return dict(answer.content or {}) if answer.action == "accept" else None
