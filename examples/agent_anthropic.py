"""A complete coding agent for Anthropic's Messages API.

usage: pip install anthropic
       ANTHROPIC_API_KEY=... python examples/agent_anthropic.py "fix the failing test"
"""

import asyncio
import os
import sys
from typing import Any

from anthropic import AsyncAnthropic

from gripfast import PermissionRule, Permissions, Question, Scope, ToolCall, open_session, provider_messages

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


async def main(task: str) -> None:
    client = AsyncAnthropic()
    async with open_session(Scope.workspace("."), permissions=RULES, ask=ask) as session:
        history: list[Any] = [{"role": "user", "content": task}]
        while not session.finished:
            history = session.cache.trim(history, context_window=CONTEXT_WINDOW)
            reply = await client.messages.create(
                model=os.environ.get("MODEL", "claude-sonnet-4-5"),
                max_tokens=8192,
                messages=provider_messages(history, "anthropic"),
                tools=session.definitions("anthropic"),
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
