"""What a shell line runs: proved by the recogniser, or, if that fails, only searched for denied commands."""
