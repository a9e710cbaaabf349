"""The MCP server, on the official SDK's low-level one."""

from holdfast.edges.mcp.lean import lighten_sdk

lighten_sdk()
