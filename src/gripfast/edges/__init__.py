"""Where calls come in and messages go out: the MCP server and the command line."""
