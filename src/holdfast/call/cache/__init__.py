"""The output cache: an output is never lost and never floods the context. Read cache.py first."""

from holdfast.call.cache.cache import OutputCache, Window
from holdfast.call.cache.lines import CAP
from holdfast.call.cache.sink import Sink, Streamed
from holdfast.call.cache.store import Found, Search, Store, Stored, Writer

__all__ = ["CAP", "Found", "OutputCache", "Search", "Sink", "Store", "Stored", "Streamed", "Window", "Writer"]
