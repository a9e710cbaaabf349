"""The output cache: an output is never lost and never floods the context. Read cache.py first."""

from holdfast.call.cache.cache import Found, Hit, OutputCache, Window
from holdfast.call.cache.lines import CAP
from holdfast.call.cache.sink import Sink, Streamed
from holdfast.call.cache.store import Row, Rows, Search, Store, Stored, Writer

__all__ = [
    "CAP",
    "Found",
    "Hit",
    "OutputCache",
    "Row",
    "Rows",
    "Search",
    "Sink",
    "Store",
    "Stored",
    "Streamed",
    "Window",
    "Writer",
]
