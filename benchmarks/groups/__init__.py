"""One file a group of comparisons; each has measure(run)."""
