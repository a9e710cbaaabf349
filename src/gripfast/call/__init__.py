"""Runs one call from start to finish: permission, the tool, the output cache. Read run.py first."""
