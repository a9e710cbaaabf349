"""The corridor: one call from door to door. Read run.py first."""
