"""Replays edits that models made: which matcher finds their place, and is it the right one. Use scripts/replay.

A transcript is a chat of Aider (`owner__repo-number.md`) with its outcome beside it (`.json`, whose `model_patch` is
the diff of all edits). The files before the edits are taken from git repositories, by the blob ids in that diff.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from gripfast.builtin.edit import EditRequest, plan_edit
from gripfast.errors import NotUnique, ToolError
from gripfast.patch.grammar import parse
from gripfast.patch.plan import plan

# Each takes lines of JSON, `[text, old, new]`, and answers with the new text, null for none.
_AIDER = """
import json, sys
from aider.coders.editblock_coder import replace_most_similar_chunk
for line in sys.stdin:
    try:
        answer = replace_most_similar_chunk(*json.loads(line))
    except Exception:
        answer = None
    print(json.dumps(answer), flush=True)
"""
_CODEX = """
import json, sys
from codex_apply_patch import apply_patch_in_memory
for line in sys.stdin:
    text, patch = json.loads(line)
    try:
        answer = apply_patch_in_memory(patch, {"f": text}).files.get("f")
    except BaseException:
        answer = None
    print(json.dumps(answer), flush=True)
"""
_BLOCK = re.compile(r"<<<<<<< SEARCH\n(.*?)^=======\n(.*?)^>>>>>>> REPLACE", re.DOTALL | re.MULTILINE)
_NEIGHBOURS = 3


@dataclass(frozen=True)
class Block:
    """One edit of a transcript. `was_made`: the same one was applied before in it, as the session would know."""

    path: str
    old: str
    new: str
    was_made: bool = False


@dataclass(frozen=True)
class Result:
    """What a matcher did: `text` is the file afterwards if it applied the edit, else `why` says why not."""

    text: str | None
    why: str = "nowhere"


Matcher = Callable[[str, Block], Result]


def blocks_in(chat: str) -> Iterator[Block]:
    """The edits of a chat, each with the file that is named above it."""
    path = ""
    for found in _BLOCK.finditer(chat):
        above = chat[: found.start()].rstrip().split("\n")
        named = [line.strip().strip("`*:#") for line in above[-2:] if not line.startswith("```")]
        if named and re.fullmatch(r"[\w./+-]+\.\w+", named[-1]):
            path = named[-1]
        if path:
            yield Block(path, found[1], found[2])


# --- the truth ---


@dataclass
class Files:
    """The files of one transcript, before and after all its edits."""

    before: dict[str, str] = field(default_factory=dict[str, str])
    after: dict[str, str] = field(default_factory=dict[str, str])


def files_of(patch: str, read_blob: Callable[[str], str | None]) -> Files:
    """From a git diff. A file whose blob is not there is left out."""
    files = Files()
    for part in re.split(r"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        name = re.search(r"^--- a/(.*)$", part, re.MULTILINE)
        blob = re.search(r"^index ([0-9a-f]+)\.\.", part, re.MULTILINE)
        text = read_blob(blob[1]) if name and blob else None
        if name and text is not None:
            files.before[name[1]] = text
            files.after[name[1]] = _patched(text, part)
    return files


def _patched(text: str, diff: str) -> str:
    """A text with a unified diff applied, by its line numbers."""
    lines, new, at = text.split("\n"), list[str](), 0
    for hunk in re.finditer(r"^@@ -(\d+)(?:,(\d+))? \+\S+ @@.*\n((?:[ +\\-].*\n?)*)", diff, re.MULTILINE):
        start = int(hunk[1]) - (0 if hunk[2] == "0" else 1)
        new += lines[at:start]
        at = start
        for row in hunk[3].split("\n"):
            if row[:1] in (" ", "-"):
                at += 1
            if row[:1] in (" ", "+"):
                new.append(row[1:])
    return "\n".join(new + lines[at:])


def is_wrong(after: str, block: Block, final: str) -> bool:
    """Whether the new text stands elsewhere than in the transcript's own outcome, judged by the lines around it."""
    wanted = block.new.rstrip("\n").split("\n")
    mine, theirs = _places(after, wanted), _places(final, wanted)
    if not block.new.strip() or len(theirs) != 1 or not mine:
        return False  # a later edit changed it again, or it stands in several places: nobody can tell
    return not any(_around(one) & _around(theirs[0]) for one in mine)


def _places(text: str, wanted: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    lines, trimmed = text.split("\n"), [line.strip() for line in wanted]
    return [
        (lines[max(0, at - _NEIGHBOURS) : at], lines[at + len(wanted) : at + len(wanted) + _NEIGHBOURS])
        for at in range(len(lines) - len(wanted) + 1)
        if [line.strip() for line in lines[at : at + len(wanted)]] == trimmed
    ]


def _around(place: tuple[list[str], list[str]]) -> set[tuple[str, str]]:
    """The lines next to a place; a later edit may have changed some of them."""
    sides = (("above", place[0]), ("below", place[1]))
    return {(side, line.strip()) for side, lines in sides for line in lines if line.strip()}


# --- matchers ---


def our_edit(text: str, block: Block) -> Result:
    request = EditRequest(block.old.encode(), block.new.encode(), False, "auto", None, block.was_made)
    try:
        found = plan_edit(text.encode(), request, None, block.path)
    except NotUnique:
        return Result(None, "several places")
    except ToolError:
        return Result(None)
    if found.applied_at is not None:
        return Result(None, "already applied")
    return Result(found.bytes_of(block.path).decode())


def as_patch(block: Block) -> str:
    old, new = (text.split("\n")[:-1] if text.endswith("\n") else text.split("\n") for text in (block.old, block.new))
    rows = [f"-{line}" for line in (old if block.old else [])] + [f"+{line}" for line in (new if block.new else [])]
    return "\n".join(["*** Begin Patch", "*** Update File: f", "@@", *rows, "*** End Patch"])


class _File:
    def __init__(self, text: str) -> None:
        self._text = text

    def body(self) -> bytes:
        return self._text.encode()


def our_patch(text: str, block: Block) -> Result:
    try:
        planned = plan(parse(as_patch(block)), {"f": "f"}, lambda _: _File(text))
    except ToolError:
        return Result(None)
    if planned.failures:
        several = isinstance(planned.failures[0].error, NotUnique)
        return Result(None, "several places" if several else "nowhere")
    return Result(planned.files["f"].text().decode())


class Peer:
    """A matcher of another project, in a Python of its own."""

    def __init__(self, python: str, script: str, *, patches: bool) -> None:
        self._patches = patches
        self._process = subprocess.Popen(
            [python, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def __call__(self, text: str, block: Block) -> Result:
        asked = [text, as_patch(block)] if self._patches else [text, block.old, block.new]
        stdin, stdout = self._pipes()
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        answer = json.loads(stdout.readline())
        return Result(answer)

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def close(self) -> None:
        for pipe in self._pipes():
            pipe.close()
        self._process.wait()


# --- the replay ---


@dataclass
class Tally:
    """How often each thing happened, by matcher."""

    blocks: int = 0
    without_file: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])


def replay(chat: str, files: Files, matchers: dict[str, Matcher], tally: Tally) -> None:
    """Every matcher gets every edit on the same text, which is the transcript's so far."""
    now = dict(files.before)
    made: set[Block] = set()
    for block in blocks_in(chat):
        text = now.get(block.path)
        if text is None or not block.old.strip():
            tally.without_file += 1
            continue
        tally.blocks += 1
        sent = replace(block, was_made=block in made)
        results = {name: matcher(text, sent) for name, matcher in matchers.items()}
        for name, result in results.items():
            counter = tally.counts.setdefault(name, Counter())
            if result.text is None:
                counter[result.why] += 1
            else:
                counter["wrong" if is_wrong(result.text, block, files.after[block.path]) else "applied"] += 1
        done = [result.text for result in results.values() if result.text is not None]
        if done:
            now[block.path] = done[0]
            made.add(block)


def repository_of(name: str, repositories: Path) -> Path | None:
    """The git directory for `owner__repo-number`: `owner__repo`, `owner+repo/repo` or `repo`, bare or not."""
    project = name.rpartition("-")[0]
    owner, _, repo = project.partition("__")
    for place in (project, f"{owner}+{repo}/repo", repo):
        for found in (repositories / place / ".git", repositories / place):
            if (found / "objects").is_dir():
                return found
    return None


def blob_reader(repository: Path) -> Callable[[str], str | None]:
    def read(blob: str) -> str | None:
        command = ["git", "--git-dir", str(repository), "cat-file", "blob", blob]
        done = subprocess.run(command, capture_output=True, check=False)
        try:
            return done.stdout.decode() if done.returncode == 0 else None
        except UnicodeDecodeError:
            return None

    return read


def table(tally: Tally) -> str:
    lines = [
        "| matcher | applied | wrong place | already applied | several places | nowhere |",
        "|---|---|---|---|---|---|",
    ]
    for name, counter in tally.counts.items():
        cells = [counter[key] for key in ("applied", "wrong", "already applied", "several places", "nowhere")]
        shown = " | ".join(f"{count:,} ({count / max(1, tally.blocks):.1%})" for count in cells)
        lines.append(f"| {name} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/replay", description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("transcripts", type=Path)
    parser.add_argument("repositories", type=Path)
    parser.add_argument("--aider", help="a Python with aider-chat")
    parser.add_argument("--codex", help="a Python with codex-apply-patch")
    parser.add_argument("--page", type=Path, help="put the table into this page, between its marks")
    options = parser.parse_args()
    matchers: dict[str, Matcher] = {"gripfast Edit": our_edit}
    peers: list[Peer] = []
    if options.aider:
        peers.append(Peer(options.aider, _AIDER, patches=False))
        matchers["aider-chat"] = peers[-1]
    matchers["gripfast apply_patch"] = our_patch
    if options.codex:
        peers.append(Peer(options.codex, _CODEX, patches=True))
        matchers["codex-apply-patch"] = peers[-1]
    tally = _replayed(options.transcripts, options.repositories, matchers)
    for peer in peers:
        peer.close()
    text = f"{tally.blocks:,} edits replayed; {tally.without_file:,} others left out.\n\n{table(tally)}\n"
    print(text)
    if options.page is not None:
        page = options.page.read_text(encoding="utf-8")
        begin, end = "<!-- replay -->\n", "<!-- end of replay -->"
        head, tail = page.split(begin)[0], page.split(end)[1]
        options.page.write_text(f"{head}{begin}\n{text}\n{end}{tail}", encoding="utf-8")


def _replayed(transcripts: Path, repositories: Path, matchers: dict[str, Matcher]) -> Tally:
    tally = Tally()
    for chat in sorted(transcripts.glob("*.md")):
        outcome, repository = chat.with_suffix(".json"), repository_of(chat.stem, repositories)
        if not outcome.exists() or repository is None:
            continue
        patch = json.loads(outcome.read_text(encoding="utf-8")).get("model_patch") or ""
        files = files_of(patch, blob_reader(repository))
        if files.before:
            replay(chat.read_text(encoding="utf-8", errors="replace"), files, matchers, tally)
    return tally


if __name__ == "__main__":
    main()
