"""Files inside one scope: which places may be read and written, and how that is done safely."""
