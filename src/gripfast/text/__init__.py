"""Pure functions on text, shared by the rooms above: escaping, folding, globs, near names, cutting, path prefixes."""
