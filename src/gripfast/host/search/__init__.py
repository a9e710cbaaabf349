"""Finding names and text with ripgrep."""
