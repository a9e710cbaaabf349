"""A whole coding agent against Anthropic's Messages API.

usage: pip install anthropic
       ANTHROPIC_API_KEY=... python examples/agent_anthropic.py "fix the failing test"
"""

import asyncio
import itertools
import os
import sys
from typing import Any

from anthropic import AsyncAnthropic

from holdfast import PermissionRule, Permissions, Question, Scope, ToolCall, ToolMessage, open_session

RULES = Permissions(
    default_action="allow",
    rules=[
        PermissionRule(tool="Bash", pattern="*", action="ask"),
        PermissionRule(tool="Write", pattern="*", action="ask"),
    ],
)
CONTEXT_WINDOW = 200_000


async def ask(question: Question) -> bool:
    print(f"\n{question.tool.name} {question.arguments.model_dump(exclude_unset=True)}\n  {question.reason}")
    return (await asyncio.to_thread(input, "run it? [y/N] ")).strip().lower() == "y"


def as_anthropic(history: list[Any]) -> list[Any]:
    """The answers to one turn's calls are one message of the user's."""
    messages: list[Any] = []
    for answers, group in itertools.groupby(history, lambda message: isinstance(message, ToolMessage)):
        turn = list(group)
        messages += [{"role": "user", "content": [as_block(answer) for answer in turn]}] if answers else turn
    return messages


def as_block(answer: ToolMessage) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": answer.tool_call_id, "content": answer.text}
    return {**block, "is_error": answer.is_error}


async def main(task: str) -> None:
    client = AsyncAnthropic()
    async with open_session(Scope.workspace("."), permissions=RULES, ask=ask) as session:
        history: list[Any] = [{"role": "user", "content": task}]
        while not session.finished:
            history = session.cache.trim(history, context_window=CONTEXT_WINDOW)
            reply = await client.messages.create(
                model=os.environ.get("MODEL", "claude-sonnet-4-5"),
                max_tokens=8192,
                messages=as_anthropic(history),
                tools=session.definitions("anthropic"),  # type: ignore[arg-type]
            )
            history.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
            print("".join(block.text for block in reply.content if block.type == "text"), end="")
            calls = [ToolCall(one.id, one.name, one.input) for one in reply.content if one.type == "tool_use"]
            if not calls:
                break
            history += await session.call_all(calls)
    print()


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:])))
