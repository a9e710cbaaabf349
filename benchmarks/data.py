"""Generates the trees and files for measurements, always the same, and keeps them in a cache folder."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.harness import CACHE

DATA = CACHE / "data"
WORDS = (
    "static int struct return buffer device driver register unsigned void const char size flags lock mutex "
    "page table entry node list head next init exit probe remove read write error ret goto out err dev priv "
    "data queue work timer irq handler port channel frame packet header length offset index value mask shift"
).split()


def tree(files: int) -> Path:
    """A source tree of `files` small files, about forty in a directory, with rare and common words."""
    root = DATA / f"tree-{files}"
    (root / ".git").mkdir(parents=True, exist_ok=True)  # its own repository, so that no .gitignore above it applies
    if (root / ".made").is_file():
        return root
    rng = random.Random(files)
    body = [" ".join(rng.choices(WORDS, k=9)) + ";" for _ in range(4000)]
    for number in range(files):
        folder = root / f"area{number // 1600:03d}" / f"part{number // 40 % 40:02d}"
        if number % 40 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        start = rng.randrange(3800)
        lines = body[start : start + rng.randrange(20, 180)]
        if number % 997 == 0:
            lines = [*lines, "/* the needle is here */"]
        name = f"file{number:05d}.{'c' if number % 3 else 'h'}"
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (root / ".gitignore").write_text("*.o\n", encoding="utf-8")
    (root / ".made").write_text("", encoding="utf-8")
    return root


def flat(entries: int) -> Path:
    """One directory with `entries` files."""
    root = DATA / f"flat-{entries}"
    if not (root / ".made").is_file():
        (root / "many").mkdir(parents=True, exist_ok=True)
        for number in range(entries):
            (root / "many" / f"f{number:06d}").touch()
        (root / ".made").write_text("", encoding="utf-8")
    return root


def text(size: int) -> Path:
    """A text file of about that size, with lines of about sixty characters."""
    path = DATA / "texts" / f"text-{size}.txt"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        rng = random.Random(size)
        block = "".join(" ".join(rng.choices(WORDS, k=10)) + f" {n}\n" for n in range(16_000)).encode()
        with path.open("wb") as out:
            written = 0
            while written < size:
                written += out.write(block[: size - written])
            out.write(b"\n")
    return path
