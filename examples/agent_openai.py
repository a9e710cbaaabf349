"""A complete coding agent for any API that is compatible with OpenAI's chat completions.

usage: pip install openai
       OPENAI_API_KEY=... python examples/agent_openai.py "fix the failing test"
OPENAI_BASE_URL points it at another server.
"""

import asyncio
import os
import sys
from typing import Any

from openai import AsyncOpenAI

from gripfast import PermissionRule, Permissions, Question, Scope, ToolCall, open_session, provider_messages

RULES = Permissions(
    default_action="allow",
    rules=[
        PermissionRule(tool="Bash", pattern="*", action="ask"),
        PermissionRule(tool="Write", pattern="*", action="ask"),
    ],
)
CONTEXT_WINDOW = 128_000


async def ask(question: Question) -> bool:
    print(f"\n{question.tool.name} {question.arguments.model_dump(exclude_unset=True)}\n  {question.reason}")
    return (await asyncio.to_thread(input, "run it? [y/N] ")).strip().lower() == "y"


async def main(task: str) -> None:
    client = AsyncOpenAI()
    async with open_session(Scope.workspace("."), permissions=RULES, ask=ask) as session:
        history: list[Any] = [{"role": "user", "content": task}]
        while not session.finished:
            history = session.cache.trim(history, context_window=CONTEXT_WINDOW)
            reply = await client.chat.completions.create(
                model=os.environ.get("MODEL", "gpt-5"),
                messages=provider_messages(history, "openai"),
                tools=session.definitions("openai"),
            )
            said = reply.choices[0].message
            history.append(said.model_dump(exclude_none=True))
            print(said.content or "", end="")
            wanted = [call for call in said.tool_calls or [] if call.type == "function"]
            calls = [ToolCall(call.id, call.function.name, call.function.arguments) for call in wanted]
            if not calls:
                break
            history += await session.call_all(calls)
    print()


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:])))
