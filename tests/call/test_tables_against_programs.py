"""The tables held against the real programs: what passes as harmless is run, and changes nothing."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gripfast.builtin.rulesets import GIT_LOOKING, LOOKING, rule_set
from gripfast.call.shell.options import Program, check_program
from gripfast.call.shell.programs import BEFORE_SUBCOMMAND, PROGRAMS

TRIES = int(os.environ.get("GRIPFAST_TABLE_TRIES", "300"))
SEED = int(os.environ.get("GRIPFAST_TABLE_SEED", "8"))
# Not run: what waits, and what only the shell has.
SKIPPED = {
    "sleep",
    "cd",
    "type",
    "command -v",
    "free",
    "ps",
    "df",
    "whereis",
    "groups",
    "id",
    "printf",
    "echo",
    "test",
}
WORDS = """a.txt b.txt src out x -- - 1 2 1,2p -o -O -delete -exec --output=out --output out HEAD HEAD~1 main . 3d
    --compress-program=x -w --format -fprint --ext-diff -d -D -m +%F %s new -l""".split()


@pytest.mark.parametrize("name", [*PROGRAMS, *BEFORE_SUBCOMMAND])
def test_every_table_can_be_read(name: str) -> None:
    check_program(PROGRAMS.get(name) or BEFORE_SUBCOMMAND[name])


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_text("b\na\na\n1,2\n")
    (folder / "b.txt").write_text("a\nb\n")
    (folder / "src" / "x").write_text("x\n")
    if shutil.which("git"):
        for words in (
            ["init", "-q", "-b", "main"],
            ["add", "."],
            ["commit", "-qm", "one"],
            ["commit", "-qm", "two", "--allow-empty"],
        ):
            subprocess.run(["git", *words], cwd=folder, check=True, env=environment(tmp_path))
        (folder / "a.txt").write_text("c\n")
    return folder


def environment(home: Path) -> dict[str, str]:
    who = {f"GIT_{role}_{what}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", "GIT_OPTIONAL_LOCKS": "0", **who}


def snapshot(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): "folder"
        if path.is_dir()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
    }


def generated(dice: random.Random, names: list[str]) -> Iterator[list[str]]:
    while True:
        name = dice.choice(names)
        words = [word for _ in range(dice.randint(1, 5)) for word in _words(dice, PROGRAMS[name])]
        yield [*name.split(), *words]


def _words(dice: random.Random, program: Program) -> list[str]:
    options = program.options.split()
    if not options or dice.random() < 0.45:
        return [dice.choice(WORDS)]
    option, equals, _ = dice.choice(options).partition("=")
    option = option.removesuffix("[").replace("#", "3")
    if not equals or dice.random() < 0.2:
        return [option]
    value = dice.choice(WORDS)
    joint = "=" if option.startswith("--") or program.style == "words" else ""
    return [option + joint + value] if dice.random() < 0.5 else [option, value]


def passing(dice: random.Random, names: list[str]) -> Iterator[list[str]]:
    permissions = rule_set("read-only")
    for words in generated(dice, names):
        line = " ".join(f"'{word}'" for word in words)
        if permissions.judge(tool="Bash", effect="run", spellings=(line,)).action == "allow":
            yield words


def test_what_passes_as_only_looking_changes_nothing(scratch: Path, tmp_path: Path) -> None:
    names = [name for name in (*LOOKING, *(f"git {command}" for command in GIT_LOOKING)) if name not in SKIPPED]
    names = [name for name in names if shutil.which(name.split()[0])]
    before = snapshot(scratch)
    tried = passing(random.Random(SEED), names)
    for _ in range(TRIES):
        words = next(tried)
        subprocess.run(
            words, cwd=scratch, env=environment(tmp_path), stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
        assert snapshot(scratch) == before, words


def test_the_same_generator_finds_what_a_table_would_let_through(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `-o` among sort's options the test above goes red."""
    monkeypatch.setitem(PROGRAMS, "sort", Program(PROGRAMS["sort"].options + " -o="))  # type: ignore[arg-type]
    before = snapshot(scratch)
    tried = passing(random.Random(8), ["sort"])
    for _ in range(300):
        subprocess.run(
            next(tried),
            cwd=scratch,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        if snapshot(scratch) != before:
            return
    pytest.fail("a table that lets `sort -o` through was not found out")
