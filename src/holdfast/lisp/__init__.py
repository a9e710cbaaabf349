"""Common Lisp source text to forms to a collapsed view. Pure: text in, text out."""
