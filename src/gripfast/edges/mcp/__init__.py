"""The MCP server, built on the low-level server of the official SDK."""

from gripfast.edges.mcp.sdk_import import defer_sdk_validators

defer_sdk_validators()
