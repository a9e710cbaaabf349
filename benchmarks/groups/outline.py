"""outline: against the languages' own parsers, what a view saves, how fast it is, and the map of a repository."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Row, Run, Turns, bound, processor_seconds, tell
from benchmarks.outline_corpus import (
    CORPORA,
    SOURCES,
    TOKENIZER,
    Corpus,
    Key,
    MissingCorpus,
    npm_package,
)

if TYPE_CHECKING:
    from gripfast.outline.definition import Parsed
    from gripfast.outline.language import Language

GROUP = "outline"
Tags = set[tuple[str, int]]
FIGURES = {"Python": 99.9}
SILENT, TOKENS, SPEED = "files that give nothing without saying why", "tokens of a view", "the parser"
OVER = "the parser over tree-sitter alone: parse, and a query of one pattern"
FIRST, MAP, AGAIN = "the first answer of a language", "the map of 7,000 files, cold", "the same map again"
MOST_FILES, LONG_FILE = 7_000, 200
COUNT = """
import { countTokens } from '%s/esm/encoding/o200k_base.js';
import fs from 'node:fs';
for (const line of fs.readFileSync(0, 'utf8').split('\\n').filter(Boolean)) {
  const [view, text] = JSON.parse(line);
  console.log(countTokens(view), countTokens(text));
}
"""


def measure(run: Run) -> None:
    found: dict[str, list[Path]] = {}
    for corpus in CORPORA:
        figure = FIGURES.get(corpus.language, 99.5)
        name = f"{corpus.language}: definitions with true start and end, by {corpus.parser}"
        try:
            files = corpus.files()
        except MissingCorpus as why:
            run.not_run(GROUP, name, f"≥ {figure} %", str(why))
            continue
        found[corpus.language] = files
        chosen = files[::20] if run.quick else files
        run.step(GROUP, name, lambda c=corpus, f=chosen, n=name, at=figure: _truth(run, c, f, n, at))
    sample = _sample(found, 10 if run.quick else 60)
    run.step(GROUP, SILENT, lambda: _silent(run, sample))
    run.step(GROUP, TOKENS, lambda: _tokens(run, sample))
    run.step(GROUP, SPEED, lambda: _speed(run, sample))
    run.step(GROUP, FIRST, lambda: _first_answers(run))
    run.step(GROUP, MAP, lambda: _map(run, found))


def _sample(found: dict[str, list[Path]], count: int) -> dict[str, list[Path]]:
    """The same files each time: as many of every language, all longer than a screen or two."""
    chosen: dict[str, list[Path]] = {}
    for language, files in found.items():
        shuffled = random.Random(7).sample(files, len(files))
        long = (p for p in shuffled if LONG_FILE < p.read_bytes().count(b"\n") < 20_000)
        chosen[language] = [path for path, _ in zip(long, range(count), strict=False)]
    return chosen


# --- truth ---


def _truth(run: Run, corpus: Corpus, files: list[Path], name: str, figure: float) -> None:
    from gripfast.outline.engine import found_in
    from gripfast.outline.languages import named

    language = named(corpus.language)
    total = hits = count = shown = ended = 0
    some: list[tuple[Path, set[Key]]] = []
    for path, keys in corpus.truth(files):
        wanted = set(keys)
        parsed = found_in(path.read_bytes(), language)
        found = parsed.definitions
        seen = list(_ends(path, language, parsed, wanted))
        shown, ended = shown + len(seen), ended + sum(seen)
        ours = {(d.own_name, start, d.end) for d in found for start in (d.start, d.line)}
        total, hits, count = total + len(wanted), hits + len(wanted & ours), count + 1
        some += [(path, wanted)] if count % 20 == 1 else []
    note = f"{hits:,} of {total:,} in {count:,} files"
    bound(run, GROUP, name, 100 * hits / total, figure, "%", at_least=True, note=note)
    note = f"{ended:,} of {shown:,} that the views show"
    name = f"{corpus.language}: definitions whose last line is shown or ends a fold"
    bound(run, GROUP, name, 100 * ended / shown, figure, "%", at_least=True, note=note)
    for peer, tags in (("universal-ctags", ctags), ("ast-grep outline", ast_grep)):
        _peer(run, f"{corpus.language}: the same by {peer}", some, tags)


def _ends(path: Path, language: Language, parsed: Parsed, wanted: set[Key]) -> Iterator[bool]:
    """For each definition that is shown, whether its last row is or a fold ends with it."""
    from gripfast.outline.text import SourceText, lines_of
    from gripfast.outline.view import collapsed

    lines = lines_of(path.read_text(encoding="utf-8", errors="replace"))
    view = collapsed(SourceText(lines, language.comment, language.docstring, language.idle), parsed)
    shown = {row for row in view.rows if isinstance(row, int)}
    ends = shown | {row.last for row in view.rows if not isinstance(row, int)}
    return (last in ends for _, first, last in wanted if first in shown)


def _peer(run: Run, name: str, some: list[tuple[Path, set[Key]]], tags: Callable[[Path], Tags]) -> None:
    try:
        found = sum(_by_name(wanted, tags(path)) for path, wanted in some)
    except FileNotFoundError as missing:
        run.not_run(GROUP, name, "–", f"no {missing.filename} on this machine")
        return
    share = 100 * found / sum(len(wanted) for _, wanted in some)
    run.add(Row(GROUP, name, "–", f"{share:.1f} %", note="by name alone, every twentieth file"))


def _by_name(wanted: set[Key], tags: Tags) -> int:
    """How many definitions have a tag of their name somewhere in their rows: not every peer tells where one ends."""
    return sum(any(tag == name and first <= line <= last for tag, line in tags) for name, first, last in wanted)


def ctags(path: Path) -> Tags:
    found = _json_lines(["ctags", "--output-format=json", "--fields=+n", "--kinds-all=*", "-f", "-", str(path)])
    return {(tag["name"], tag["line"]) for tag in found if tag.get("_type") == "tag"}


def ast_grep(path: Path) -> Tags:
    beside = Path(sys.executable).with_name("ast-grep")
    program = str(beside) if beside.exists() else "ast-grep"
    return {tag for found in _json_lines([program, "outline", "--json=stream", str(path)]) for tag in _named(found)}


def _named(value: Any) -> Iterator[tuple[str, int]]:
    """Every entry with a name and a place, however deep it lies."""
    if isinstance(value, dict):
        if "name" in value and "range" in value:
            yield value["name"], value["range"]["start"]["line"] + 1
        for each in value.values():
            yield from _named(each)
    elif isinstance(value, list):
        for each in value:
            yield from _named(each)


def _json_lines(command: list[str]) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in subprocess.run(command, capture_output=True, check=False).stdout.splitlines()
    ]


# --- views ---


def _views(paths: list[Path]) -> list[str]:
    """What the tool answers, each file in the session of its own directory's root."""
    from gripfast import Scope, open_session

    async def ask() -> list[str]:
        async with open_session(Scope.workspace("/", wide=True)) as session:
            return [(await session.call("outline", {"path": str(path)})).text for path in paths]

    return asyncio.run(ask())


def _silent(run: Run, sample: dict[str, list[Path]]) -> None:
    paths = [path for files in sample.values() for path in files]
    silent = [view for view in _views(paths) if not view.strip() or ("\t" not in view and "[" not in view)]
    bound(run, GROUP, SILENT, len(silent), 0, "files", note=f"of {len(paths):,} asked for")


def _tokens(run: Run, sample: dict[str, list[Path]]) -> None:
    tokenizer = npm_package(TOKENIZER)
    every: list[float] = []
    medians: list[str] = []
    for language, paths in sample.items():
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
        pairs = "\n".join(json.dumps(pair) for pair in zip(_views(paths), texts, strict=True))
        command = ["node", "--input-type=module", "-e", COUNT % tokenizer]
        lines = subprocess.run(command, input=pairs, capture_output=True, text=True, check=True).stdout.split("\n")
        shares = [int(view) / int(text) for view, text in (line.split() for line in lines if line)]
        every += shares
        medians.append(f"{language} {statistics.median(shares):.0%}")
        whole = Turns({"gripfast": shares, f"reading {language} whole": [1.0] * len(shares)}, {})
        tell(run, GROUP, TOKENS, whole, {})
    low, _, high = statistics.quantiles(every, n=4)
    spread = f"{100 * low:.0f}–{100 * high:.0f} %"
    name = f"{TOKENS}, of the file's without numbers, median of {len(every)} files over {LONG_FILE} lines"
    bound(run, GROUP, name, 100 * statistics.median(every), 20, "%", spread=spread, note=", ".join(medians))


# --- speed ---


def _speed(run: Run, sample: dict[str, list[Path]]) -> None:
    from gripfast.outline.engine import found_in
    from gripfast.outline.languages import named

    each: list[str] = []
    size = spent = parsing = walking = 0.0
    for language, paths in sample.items():
        data = [path.read_bytes() for path in paths]
        found_in(data[0], named(language))
        parse, walk = _alone(named(language), data)
        took = processor_seconds(lambda d=data, n=language: [found_in(one, named(n)) for one in d])
        megabytes = sum(map(len, data)) / 1e6
        size, spent = size + megabytes, spent + took
        parsing, walking = parsing + parse, walking + walk
        each.append(f"{language} {megabytes / took:.1f}")
    bound(run, GROUP, SPEED, size / spent, 10, "MB/s", at_least=True, note=f"processor time; {', '.join(each)}")
    alone = f"{size / parsing:.1f} MB/s"
    note = "of the whole files; ours leaves out the bodies of functions in which nothing is defined"
    run.add(Row(GROUP, "tree-sitter alone on the same files: parse", "–", alone, note=note))
    note = f"over the parse alone {spent / parsing:.2f}"
    bound(run, GROUP, OVER, spent / (parsing + walking), 1, "x", note=note)
    if shutil.which("ctags"):
        paths = [str(path) for files in sample.values() for path in files]
        took = _child_seconds(["ctags", "-f", "/dev/null", *paths])
        note = f"processor time; ours over it {spent / took:.2f}"
        run.add(Row(GROUP, "universal-ctags on the same files", "–", f"{size / took:.1f} MB/s", note=note))


def _child_seconds(command: list[str]) -> float:
    """Processor time of a command, so that other load doesn't count for it either."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _alone(language: Language, data: list[bytes]) -> tuple[float, float]:
    """The seconds that tree-sitter takes to parse, and to go through the trees with a query that finds nothing but
    the root: the least that any query costs."""
    import importlib

    from tree_sitter import Language as Grammar
    from tree_sitter import Parser, Query, QueryCursor

    grammar = Grammar(getattr(importlib.import_module(language.module), language.function)())
    parser = Parser(grammar)
    trees = [parser.parse(one) for one in data]
    query = Query(grammar, f"({trees[0].root_node.type}) @root")
    parse = processor_seconds(lambda: [parser.parse(one) for one in data])
    return parse, processor_seconds(lambda: [QueryCursor(query).matches(tree.root_node) for tree in trees])


def _first_answers(run: Run) -> None:
    """From a session that has not outlined anything, the start of its worker included."""
    from gripfast import Scope, open_session
    from gripfast.outline.languages import LANGUAGES

    place = SOURCES / "first"
    place.mkdir(parents=True, exist_ok=True)

    async def once(path: Path) -> float:
        async with open_session(Scope.workspace(place)) as session:
            await session.call("Glob", {"pattern": "none"})
            began = time.perf_counter()
            await session.call("outline", {"path": path.name})
            return 1000 * (time.perf_counter() - began)

    took: dict[str, float] = {}
    for language in LANGUAGES:
        path = place / f"sample{language.suffixes[0]}"
        path.write_text("x\n" * 40, encoding="utf-8")
        took[language.name] = min(asyncio.run(once(path)) for _ in range(3))
    slow = sorted(took, key=lambda name: took[name])[-5:]
    note = "slowest: " + ", ".join(f"{name} {took[name]:.0f}" for name in reversed(slow))
    over = sum(value > 150 for value in took.values())
    bound(run, GROUP, f"{FIRST}, median of {len(took)}", statistics.median(took.values()), 150, "ms", note=note)
    bound(run, GROUP, "languages whose first answer takes longer than 150 ms", over, 0, "languages")


def _map(run: Run, found: dict[str, list[Path]]) -> None:
    from gripfast import Scope, open_session

    root = SOURCES / "map"
    if not (root / ".made").is_file():
        _copy(root, found)

    async def twice() -> list[float]:
        async with open_session(Scope.workspace(root)) as session:
            took: list[float] = []
            for _ in range(2):
                began = time.perf_counter()
                answer = await session.call("outline", {"path": "."})
                took.append(time.perf_counter() - began)
                assert answer.error is None and "files" in answer.text
            return took

    cold, again = asyncio.run(twice())
    bound(run, GROUP, MAP, cold, 3, "s")
    bound(run, GROUP, AGAIN, again, 0.5, "s")


def _copy(root: Path, found: dict[str, list[Path]]) -> None:
    """A repository of so many real files, in the directories they come from."""
    every = [(language, path) for language, files in found.items() for path in files]
    (root / ".git").mkdir(parents=True, exist_ok=True)
    for language, path in every[:: max(1, len(every) // MOST_FILES)][:MOST_FILES]:
        place = root / language / Path(*path.parts[-4:])
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    (root / ".made").touch()
