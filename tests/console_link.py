"""The link of a console that was started without a terminal: it is in a private file."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import unquote


def console_link(printed: str) -> str:
    assert "key=" not in printed, "a command could read it in a log"
    found = re.search(r"file://(\S+)", printed)
    assert found is not None, printed
    page = Path(unquote(found[1])).read_text(encoding="utf-8")
    return html.unescape(page.partition("url=")[2].partition('"')[0])
