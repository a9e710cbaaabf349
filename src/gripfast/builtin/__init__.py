"""The built-in tools, one file each, and what opens a Session over them."""
