"""What a shell line is known to run: proved by the recogniser, or only looked through for what is denied."""
