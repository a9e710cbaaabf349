"""holdfast: tools for LLM coding agents, held inside one scope."""
