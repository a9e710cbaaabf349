"""Side by side with the peers: every comparison has both sides in one run, interleaved, and is told as a ratio."""
