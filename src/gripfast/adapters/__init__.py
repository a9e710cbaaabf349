"""A session in, another framework's own objects out: one module a framework, imported only by who uses it."""
