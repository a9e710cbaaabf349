"""A session in, another framework's own objects out: one module for each framework, imported only when used."""
