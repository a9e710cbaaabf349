"""Source text to a collapsed view, in any language; pure. Grammars are an extra and loaded only here."""
