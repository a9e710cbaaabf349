"""Comparisons with similar projects: both sides are measured in one run, interleaved, and reported as a ratio."""
