"""The output cache: large outputs are stored in full and shown in part. Read cache.py first."""

from gripfast.call.cache.cache import Hit, OutputCache, OutputMatches, OutputWindow
from gripfast.call.cache.lines import CAP, PIECE
from gripfast.call.cache.sink import Sink, Streamed
from gripfast.call.cache.store import Row, Rows, Search, Store, Stored, Writer

__all__ = [
    "CAP",
    "PIECE",
    "Hit",
    "OutputCache",
    "OutputMatches",
    "OutputWindow",
    "Row",
    "Rows",
    "Search",
    "Sink",
    "Store",
    "Stored",
    "Streamed",
    "Writer",
]
