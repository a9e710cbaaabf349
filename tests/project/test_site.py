"""The documentation site: built from the Markdown of the repository, whole, and fetching nothing from anybody."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None or not (ROOT / ".venv").is_dir(),
    reason="scripts/setup has not been run",
)


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in ("script", "img", "source", "iframe") and "src" in values:
            self.loads.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon", "preconnect"):
            self.loads.append(values["href"])


def test_the_site_has_every_page_no_broken_link_and_fetches_nothing(tmp_path: Path) -> None:
    """One test, since a build takes seconds."""
    done = subprocess.run(
        ["scripts/docs", "site", tmp_path],
        cwd=ROOT,
        env={**os.environ, "GRIPFAST_SETUP": "done"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = [path for path in tmp_path.rglob("*.html") if path.name != "404.html"]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in found}
    guides = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "docs").rglob("*.md")]
    assert [guide for guide in guides if tmp_path / guide / "index.html" not in pages] == []
    assert [f"{path.parent.name}: {link}" for path in pages for link in broken(path, pages)] == []
    assert {load for page in pages.values() for load in page.loads if re.match(r"(https?:)?//", load)} == set()
    assert not any('data-md-component="source"' in path.read_text(encoding="utf-8") for path in found)
    for sheet in tmp_path.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import\s*)[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")) == []
    architecture = pages[tmp_path / "ARCHITECTURE" / "index.html"]
    assert "https://github.com/gripfast/gripfast/blob/main/src/gripfast/call/run.py" in architecture.links


def broken(path: Path, pages: dict[Path, Page]) -> list[str]:
    """The links of a page that lead to no page, or to no place in it."""
    return [link for link in pages[path].links if not re.match(r"[a-z]+:", link) and not leads(link, path, pages)]


def leads(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    address, place = urldefrag(link)
    target = (path.parent / unquote(address)).resolve() if address else path
    target = target / "index.html" if target.is_dir() else target
    if target not in pages:
        return target.exists()
    return not place or unquote(place) in pages[target].ids


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = Page(
        '<a href="#here">1</a><a href="#gone">2</a><a href="other/">3</a><a href="mailto:x">4</a><p id="here">'
    )
    assert broken(tmp_path / "index.html", {tmp_path / "index.html": page}) == ["#gone", "other/"]


def test_every_page_is_reached_from_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    wanted = [path.relative_to(ROOT).as_posix() for path in (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"))]
    assert [path for path in wanted if f": {path}\n" not in navigation] == []
