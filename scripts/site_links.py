"""For the documentation site: a link to a file of the repository that is no page leads to the repository."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

ADDRESS = "https://github.com/gripfast/gripfast/blob/main"
REPOSITORY = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#|/)([^)#\s]+)(?=[)#])")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Called by mkdocs with the text of each page."""
    return _LINK.sub(lambda link: _address(link[1], page.file.src_uri, files), markdown)


def _address(link: str, page: str, files: Any) -> str:
    """The link as it is when it leads to a page, or nowhere: then the strict build says so."""
    target = (REPOSITORY / PurePosixPath(page).parent / link).resolve()
    if not target.is_relative_to(REPOSITORY) or not target.exists():
        return link
    inside = target.relative_to(REPOSITORY).as_posix()
    return link if files.get_file_from_path(inside) else f"{ADDRESS}/{inside}"
