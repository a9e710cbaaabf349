"""Lines of the second level, generated, and real bash asked what it runs when it is given them.

Variables are unset or hold odd things, commands print odd things, and files with odd names lie about: whatever an
unknown word becomes, no program may run that was not proved, and no file may be written that was not named.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from call.bash_oracle import BASH, confined
from gripfast.call.shell.reader import read_script
from gripfast.call.shell.words import Command, Script, Unknown, Word

Ran = list[tuple[str, ...]]

ORACLE = r"""
record() {
    builtin local IFS=$'\x02'
    builtin local words="$N$IFS$*"
    builtin printf '%s\x03' "${words//$'\n'/$'\x01'}" >&9
    builtin [ "$1" = seq ] && builtin printf '%s\n' '-rf' 'a[$(evil-number)]' '$(evil-printed) `evil-printed`;
    evil-printed' builtin return "$STATUS"
}
command_not_found_handle() { record "$@"; }
names=$(builtin compgen -b)
for name in $names; do
    case $name in builtin|record|break|continue|read) builtin continue;; esac
    builtin eval "function $name { record $name \"\$@\"; }"
done
builtin unset PATH
PATH=/nonexistent
x='-rf / ; evil-value' y='a[$(evil-number)]' dir='$(evil-value)' f='`evil-value`' i=7 z='*'
N=0
while IFS= builtin read -r -d '' -u 8 line; do
    for STATUS in 0 1; do
        N=$((N + 1))
        ( builtin ulimit -t 1; builtin eval "$line" ) </dev/null >/dev/null 8<&-
        builtin wait
    done
done 2>/dev/null
builtin exit 0
"""


def ran_by_bash(lines: Sequence[str]) -> tuple[dict[int, Ran], dict[str, str]]:
    """What each line ran (twice: with commands that succeed and with commands that fail), and the files there
    then."""
    assert BASH is not None
    with tempfile.TemporaryDirectory() as folder:
        given, seen, place = Path(folder, "given"), Path(folder, "seen"), Path(folder, "place")
        given.write_bytes(b"".join(line.encode() + b"\0" for line in lines))
        seen.touch()
        place.mkdir()
        for name in ("-rf", "a.ts", "b.ts", "-delete.ts", "$(evil-name)", "src"):
            (place / name).mkdir() if name == "src" else (place / name).write_text("$(evil-content)\n")
        (place / "src" / "`evil-name`.ts").touch()
        subprocess.run(
            [*confined(folder), BASH, "--norc", "--noprofile", "-c", f"{{ {ORACLE} }} 8<'{given}' 9>>'{seen}'"],
            cwd=place,
            env={"LC_ALL": "C.UTF-8", "HOME": "/nonexistent/home"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=3600,
            check=True,  # it must have come to its end, or lines would go unseen
        )
        files = {path.relative_to(place).as_posix(): "" for path in place.rglob("*")}
        return _records(seen.read_bytes()), files


def _records(data: bytes) -> dict[int, Ran]:
    ran: dict[int, Ran] = {}
    for record in data.decode("utf-8", "replace").split("\x03")[:-1]:
        number, *words = record.replace("\x01", "\n").split("\x02")
        ran.setdefault(int(number), []).append(tuple(words))
    return ran


def unproved(count: int, seed: int) -> list[tuple[str, tuple[str, ...]]]:
    """Of `count` generated lines that are read, the commands that bash ran and that were not proved."""
    accepted: list[tuple[str, Script]] = []
    for line in generated(random.Random(seed)):
        script = read_script(line)
        if isinstance(script, Script) and observable(script):
            accepted.append((line, script))
            if len(accepted) == count:
                break
    return faults(accepted)


def faults(accepted: Sequence[tuple[str, Script]]) -> list[tuple[str, tuple[str, ...]]]:
    found: list[tuple[str, tuple[str, ...]]] = []
    for start in range(0, len(accepted), 2000):
        part = accepted[start : start + 2000]
        ran, files = ran_by_bash([line for line, _ in part])
        for at, (line, script) in enumerate(part):
            ways = [expected(command) for command in script.commands if command.words]
            for argv in {*ran.get(2 * at + 1, ()), *ran.get(2 * at + 2, ())}:
                if not any(way.fullmatch("\0".join((*argv, ""))) for way in ways):
                    found.append((line, argv))
        named = {
            _named(redirect.target)
            for _, script in part
            for command in script.commands
            for redirect in command.redirects
        }
        found += [("a file was written", (name,)) for name in files if name not in PLACED and name not in named]
    return found


PLACED = {"-rf", "a.ts", "b.ts", "-delete.ts", "$(evil-name)", "src", "src/`evil-name`.ts"}


def _named(target: Word) -> str:
    return os.path.normpath(str(target))


def expected(command: Command) -> re.Pattern[str]:
    """The words a command may be run with, as a pattern over words that each end in NUL."""
    return re.compile("".join(_way(word) for word in command.words), re.DOTALL)


def _way(word: Word) -> str:
    if isinstance(word, str):
        return re.escape(word) + "\0"
    start = re.escape(word.prefix) if word.prefix != "~" else "[~/]"
    body = "-?[0-9]*" if word.number else "[^\0]*"
    one = f"{start}{body}\0"
    return f"(?:{one})*" if word.many else one


def _is_inside(target: Word) -> bool:
    if not isinstance(target, str):
        return False  # no rules allow it: nobody knows what is written
    path = f"{os.path.normpath(target)}/"
    return path == "/dev/null/" or not path.startswith(("/", "~", "../"))


def observable(script: Script) -> bool:
    """bash looks a name with `/` up nowhere; `builtin` is what the oracle stands on; loops must end. What the shell
    itself opens must lie in the directory where the line is run: bash really opens it, whoever runs the tests."""
    if not all(_is_inside(redirect.target) for command in script.commands for redirect in command.redirects):
        return False
    names = [command.words[0] for command in script.commands if command.words]
    return all(isinstance(name, str) and "/" not in name and name not in ("builtin", "record") for name in names)


WORDS = """ls git cat echo grep -la --all=x HEAD~1 a.ts src ./x a=b 2 x@y é - -- ! ] } a#b % ^x""".split()
QUOTED = [
    "''",
    "'a b'",
    '"a b"',
    "'$x'",
    '"\\$x"',
    "'`x`'",
    '"it\'s"',
    "$'a\\tb'",
    "$'\\''",
    '"a\\\nb"',
    "a\\ b",
    "\\*",
    "\\$x",
    "\\\\",
    "'#'",
]
UNKNOWN = [
    *(
        '$x "$x" ${x} "${x}" $y "$y" $? $# $$ "$@" $* $1 ${x:-d} "${x#a}" ${x%.ts} ${#x} ${x//a/b}'
        ' ${x^^} $i "$i" $z "$z"'.split()
    ),
    *(
        "* *.ts src/* ./*.ts ? [ab].ts src/[!a]* ~ ~/x a=~ x:~ --include=*.ts {a,b} src/{a,b}.ts"
        " {1..3} *.{ts,js} {}".split()
    ),
    "$(seq 1)",
    '"$(seq 1)"',
    "`seq 1`",
    '"`seq 1`"',
    "$((1+2))",
    "$((i + 1))",
    '"a$x"',
    'a"$x"b',
    "$x$y",
    "<(seq 1)",
    '"$"',
    "$dir",
    '"$f"',
]
REDIRECTS = [
    "2>&1",
    ">/dev/null",
    "2>/dev/null",
    "</dev/null",
    "&>/dev/null",
    ">&2",
    ">out",
    ">>out",
    "2> out",
    "<a.ts",
    "<<<x",
    '<<<"$x"',
    "2>&-",
    ">&-",
    "<&-",
    ">&2-",
    ">|out",
    "<>a.ts",
    "&>>out",
    ">& out",
]
BETWEEN = ["; ", " && ", " || ", " | ", "\n", " & ", ";", "\n\n", " # note; ls\n", " |& ", " \\\n && "]
ODD = [
    *"$`\\*?[]{}()<>&#!~=;|'\"\n\t ^%",
    "$(",
    "${",
    "<<",
    ">&",
    ">&-",
    "<&",
    "<<-",
    "<<'END'",
    "$'",
    "\\\n",
    "#x",
    "((",
    "))",
    ";;",
    "$((",
    "}",
    "fi",
    "done",
    "do ",
    "<(",
    "in",
    "[[ ",
    " ]]",
    "!",
    "coproc ",
    "{ ",
    " }",
]


HEREDOC = "\n$(evil-heredoc)\n'END\nEND"


def generated(dice: random.Random) -> Iterator[str]:
    while True:
        line = _list(dice, 2)
        if dice.random() < 0.25:
            at = dice.randrange(len(line) + 1)
            line = line[:at] + dice.choice(ODD) + line[at + dice.choice((0, 0, 1)) :]
        yield line


def _list(dice: random.Random, depth: int) -> str:
    text = "i=1; " if dice.random() < 0.1 else ""
    for _ in range(dice.randint(1, 3)):
        if text and not text.endswith("; "):
            text += "\n" if text.endswith("END") else dice.choice(BETWEEN)
        text += _command(dice, depth)
    return text + "\n:" if text.endswith("END") else text


def _command(dice: random.Random, depth: int) -> str:
    if depth and dice.random() < 0.4:
        return _compound(dice, depth - 1)
    words = [
        dice.choice(("ls", "git", "cat", "echo", "prog", "[", "test", "cd")),
        *(_word(dice, depth) for _ in range(dice.randint(0, 4))),
    ]
    if dice.random() < 0.25:
        words.insert(dice.randrange(len(words) + 1), dice.choice(REDIRECTS))
    if dice.random() < 0.12:
        words.insert(0, dice.choice(("A=b", "A=$x", 'A="$(seq 1)"', "i=3", "B=~", "LC_ALL=C", "A=", "A=*", "A+=x")))
    text = " ".join(words)
    if dice.random() < 0.06:
        text += dice.choice((" <<'END'", " <<-'END'", " <<'END' | cat", " <<'END' && git")) + HEREDOC
    elif dice.random() < 0.03:
        text += " <<END\nplain\nEND"
    return text


def _compound(dice: random.Random, depth: int) -> str:
    inner = lambda: _list(dice, depth)  # noqa: E731 - it is what the shapes below are made of
    value = dice.choice(UNKNOWN)
    return dice.choice(
        (
            lambda: f"if {inner()}; then {inner()}; fi",
            lambda: f"if {inner()}\nthen {inner()}\nelif {inner()}; then\n{inner()}\nelse {inner()}\nfi",
            lambda: f"for f in {value} a; do {inner()}; done",
            lambda: f"for f in {value}\ndo\n{inner()}\ndone",
            lambda: f"while {inner()}; do {inner()}; break; done",
            lambda: f"until {inner()}; do {inner()}; break; done",
            lambda: f"case {value} in a) {inner()};; *|b) {inner()};; esac",
            lambda: f"case $x in (-*) {inner()} ;; esac",
            lambda: f"{{ {inner()}; }}",
            lambda: f"( {inner()} )",
            lambda: f"! {inner()}",
            lambda: f"time {_command(dice, 0)}",
            lambda: f"[[ -f {dice.choice(WORDS[:10])} && $x == a* ]] && {inner()}",
            lambda: f'[[ "$y" != x || -n $x ]] || {inner()}',
            lambda: f'echo "$({inner()})"',
            lambda: f"A=$({inner()})",
            lambda: f"seq 1 | while IFS= read -r line; do {inner()}; break; done",
            lambda: f"{inner()} > out",
        )
    )()


def _word(dice: random.Random, depth: int) -> str:
    roll = dice.random()
    if roll < 0.35:
        return dice.choice(WORDS)
    if roll < 0.5:
        return dice.choice(QUOTED)
    if roll < 0.9 or not depth:
        return dice.choice(UNKNOWN)
    return dice.choice(WORDS) + dice.choice(UNKNOWN)


__all__ = ["Unknown", "faults", "generated", "observable", "ran_by_bash", "unproved"]
