"""Turns Lisp source text into a collapsed view of its forms. Pure: text in, text out."""
