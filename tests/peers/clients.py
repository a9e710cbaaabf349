"""Third-party MCP clients; each lists the tools and calls Read. Run by the peers' own interpreter.

usage: clients.py fastmcp|pydantic-ai|langchain|openai-agents stdio COMMAND... | http URL TOKEN
"""

import asyncio
import json
import sys
from typing import Any

CALL = ("Read", {"file_path": "a.txt", "limit": 2})


async def fastmcp(kind: str, words: list[str]) -> Any:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if kind == "stdio":
        transport: Any = StdioTransport(words[0], words[1:])
    else:
        transport = StreamableHttpTransport(words[0], headers={"Authorization": f"Bearer {words[1]}"})
    async with Client(transport) as client:
        names = [tool.name for tool in await client.list_tools()]
        answer = await client.call_tool(*CALL)
        return names, answer.content[0].text


async def pydantic_ai(kind: str, words: list[str]) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    seen: dict[str, Any] = {}

    def model(messages: Any, info: Any) -> ModelResponse:
        seen["names"] = [tool.name for tool in info.function_tools]
        parts = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
        if parts:
            seen["answer"] = parts[0].content
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(CALL[0], CALL[1])])

    agent = Agent(FunctionModel(model), toolsets=[_pydantic_toolset(kind, words)])
    async with agent:
        await agent.run("read it")
    return seen["names"], seen["answer"]


def _pydantic_toolset(kind: str, words: list[str]) -> Any:
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
    from pydantic_ai import mcp

    if hasattr(mcp, "MCPToolset"):
        if kind == "stdio":
            return mcp.MCPToolset(StdioTransport(words[0], words[1:]))
        return mcp.MCPToolset(StreamableHttpTransport(words[0], headers={"Authorization": f"Bearer {words[1]}"}))
    if kind == "stdio":
        return mcp.MCPServerStdio(words[0], words[1:])
    return mcp.MCPServerStreamableHTTP(words[0], headers={"Authorization": f"Bearer {words[1]}"})


async def langchain(kind: str, words: list[str]) -> Any:
    from langchain_mcp_adapters.client import MultiServerMCPClient

    if kind == "stdio":
        server: dict[str, Any] = {"transport": "stdio", "command": words[0], "args": words[1:]}
    else:
        headers = {"Authorization": f"Bearer {words[1]}"}
        server = {"transport": "streamable_http", "url": words[0], "headers": headers}
    tools = await MultiServerMCPClient({"gripfast": server}).get_tools()
    read = next(tool for tool in tools if tool.name == CALL[0])
    answer = await read.ainvoke(CALL[1])
    return [tool.name for tool in tools], answer if isinstance(answer, str) else answer[0]["text"]


async def openai_agents(kind: str, words: list[str]) -> Any:
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

    if kind == "stdio":
        server: Any = MCPServerStdio({"command": words[0], "args": words[1:]}, client_session_timeout_seconds=60)
    else:
        headers = {"Authorization": f"Bearer {words[1]}"}
        server = MCPServerStreamableHttp({"url": words[0], "headers": headers}, client_session_timeout_seconds=60)
    async with server:
        names = [tool.name for tool in await server.list_tools()]
        answer = await server.call_tool(*CALL)
        return names, answer.content[0].text


CLIENTS = {"fastmcp": fastmcp, "pydantic-ai": pydantic_ai, "langchain": langchain, "openai-agents": openai_agents}

if __name__ == "__main__":
    names, answer = asyncio.run(CLIENTS[sys.argv[1]](sys.argv[2], sys.argv[3:]))
    sys.stdout.write("\n" + json.dumps({"names": names, "answer": answer}) + "\n")
