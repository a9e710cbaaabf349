"""The scanner held against SBCL's own reader: on random token soup and on real source."""

from __future__ import annotations

import random
import re
import shutil
import sys

import pytest
from benchmarks import lisp_corpus

from gripfast.lisp.scanner import scan

needs_sbcl = pytest.mark.skipif(not shutil.which("sbcl"), reason="sbcl is not installed")
needs_corpus = pytest.mark.skipif(bool(lisp_corpus.missing()), reason=lisp_corpus.missing())

SOUP = (
    r"""( ) ( ) \n \t \r \f " "a" "\"" ; ;c\n #| |# #|| ||# | |a| |)| \ \( #\ #\( #\; #\" #\| #\a ' ` , ,@ ,. """
    r"""# #. #+ #- #+x\s #' #: #* #( #1= #1# #12# #C #S #p #P #2A #a foo b 1 . @ : :: [ ] { } ^ #+(or\sa\sb) """
    r"""1# a# é あ #3( #0| % ~ ! ? $ & \s \s"""
).split(" ")
PIECES = [piece.replace(r"\n", "\n").replace(r"\t", "\t").replace(r"\r", "\r").replace(r"\f", "\f") for piece in SOUP]
# What SBCL reads otherwise only because it is told not to read: a number's radix, an unknown dispatch character.
SUPPRESSED = re.compile(r"""#[0-9]*["bBoOxXrR\x08]""")


def soup(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    pieces = [piece.replace(r"\s", " ") for piece in PIECES]
    texts = ("".join(draw.choices(pieces, k=draw.randint(1, 14))) for _ in range(count))
    return [text for text in texts if not SUPPRESSED.search(text) and not text.startswith("#!")]


@needs_sbcl
@pytest.mark.parametrize("seed", range(4))
def test_token_soup_has_the_units_that_sbcl_reads(seed: int) -> None:
    texts = soup(seed, 10_000)
    readable = 0
    for text, truth in zip(texts, lisp_corpus.sbcl_boundaries(texts), strict=True):
        if truth is not None:
            readable += 1
            assert lisp_corpus.boundaries(text) == (truth, False), repr(text)
    assert readable > 2_000


@pytest.mark.corpus
@needs_corpus
def test_real_files_have_the_units_that_sbcl_reads() -> None:
    found = lisp_corpus.compare(lisp_corpus.files())
    assert found.files > 2_000
    assert found.share >= 0.999, found.different
    assert not found.silent
    assert found.unreadable < 20


@pytest.mark.corpus
@needs_corpus
@pytest.mark.parametrize("change", ["drop", "add"])
def test_a_paren_dropped_from_or_added_to_a_real_form_is_reported_at_that_form(change: str) -> None:
    draw = random.Random(5)
    tried = right = 0
    for path in draw.sample(lisp_corpus.files(), 300):
        text = lisp_corpus.decoded(path)
        units = [unit for unit in scan(text) if not unit.fault]
        lists = [
            unit for unit in units if text[unit.start] == "(" and text[unit.start - 1 : unit.start] in ("", "\n")
        ]
        if not lists:
            continue
        unit = draw.choice(lists)
        changed = text[: unit.end] + ")" if change == "add" else text[: unit.end - 1]
        broken = changed + text[unit.end :]
        faulty = [found for found in scan(broken) if found.fault]
        tried += 1
        right += bool(faulty) and faulty[0].start == unit.start
    assert tried > 200
    assert right / tried > 0.97


@pytest.mark.corpus
@needs_corpus
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is told by /proc")
def test_the_view_of_ten_megabytes_takes_little_more_memory_than_the_text() -> None:
    _, megabytes = lisp_corpus.big_file(lisp_corpus.files())
    assert megabytes < 200
