"""One file for each group of comparisons, with a function measure(run)."""
