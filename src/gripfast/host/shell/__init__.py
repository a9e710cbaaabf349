"""Commands: how they are started, confined, followed and ended."""
