"""The record: what every call did to the files, and how it is taken back."""
