"""The MCP server, on the official SDK's low-level one."""
