"""Asks real bash what it would run: many lines in one process, without executing any command.

Every builtin but `builtin` is a function that records its words, every other name ends in the handler for commands
that are not found, and PATH is empty. Each line is read twice, with commands that succeed (so that all `&&` go on)
and with commands that fail (so that all `||` do).
"""

from __future__ import annotations

import functools
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gripfast.call.shell.recogniser import Argv, Proved, recognise

BASH = shutil.which("bash")

ORACLE = r"""
record() {
    builtin local IFS=$'\x02'
    builtin local words="$N$IFS$*"
    builtin printf '%s\x03' "${words//$'\n'/$'\x01'}" >&9  # one write, so that the parts of a pipe don't mix
    builtin return "$STATUS"
}
command_not_found_handle() { record "$@"; }
names=$(builtin compgen -b)
for name in $names; do
    case $name in builtin|record) builtin continue;; esac
    builtin eval "function $name { record $name \"\$@\"; }"
done
builtin unset PATH
PATH=/nonexistent
N=0
while IFS= builtin read -r -d '' -u 8 line; do
    for STATUS in 0 1; do
        N=$((N + 1))
        builtin eval "$line" </dev/null >/dev/null
    done
done 2>&1
builtin exit 0
"""

Ran = dict[int, list[Argv]]


@functools.cache
def _bwrap() -> str:
    """bubblewrap, where it works."""
    found = shutil.which("bwrap") or ""
    probe = [found, "--ro-bind", "/", "/", "--dev", "/dev", "--", "/bin/true"]
    return found if found and subprocess.run(probe, capture_output=True, check=False).returncode == 0 else ""


def confined(folder: str) -> list[str]:
    """What to put before a command so that it writes only in this folder, as far as this machine can hold that."""
    bwrap = _bwrap()
    return [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--bind", folder, folder, "--"] if bwrap else []


def ran_by_bash(lines: list[str], locale: str = "C.UTF-8") -> list[tuple[list[Argv], list[Argv]]]:
    """For each line, the commands that bash runs if all succeed and if all fail."""
    assert BASH is not None
    with tempfile.TemporaryDirectory() as folder:
        given, seen = Path(folder, "given"), Path(folder, "seen")
        given.write_bytes(b"".join(line.encode() + b"\0" for line in lines))
        seen.touch()
        empty = Path(folder, "empty")
        empty.mkdir()
        subprocess.run(
            [*confined(folder), BASH, "--norc", "--noprofile", "-c", f"{{ {ORACLE} }} 8<'{given}' 9>>'{seen}'"],
            cwd=empty,
            env={"LC_ALL": locale},
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=600,
        )
        records = _records(seen.read_bytes())
        assert not list(empty.iterdir()), "bash wrote a file"
    return [(records.get(2 * at + 1, []), records.get(2 * at + 2, [])) for at in range(len(lines))]


def _records(data: bytes) -> Ran:
    ran: Ran = {}
    for record in data.decode().split("\x03")[:-1]:
        number, *words = record.replace("\x01", "\n").split("\x02")
        ran.setdefault(int(number), []).append(tuple(words))
    return ran


def differences(count: int, seed: int, locale: str = "C.UTF-8") -> list[tuple[str, Proved, object]]:
    """Generates `count` lines that the recogniser accepts; returns those for which bash runs something else."""
    accepted: list[tuple[str, Proved]] = []
    for line in generated(random.Random(seed)):
        proof = recognise(line)
        if isinstance(proof, Proved) and observable(proof):
            accepted.append((line, proof))
            if len(accepted) == count:
                break
    ran = ran_by_bash([line for line, _ in accepted], locale)
    return [
        (line, proof, both)
        for (line, proof), both in zip(accepted, ran, strict=True)
        if not _agree(line, proof, *both)
    ]


def observable(proof: Proved) -> bool:
    """Skips names with `/`, which bash does not look up, and `builtin`, which the oracle itself uses."""
    return all("/" not in argv[0] and argv[0] != "builtin" for argv in proof.commands)


def _agree(line: str, proof: Proved, when_all_succeed: list[Argv], when_all_fail: list[Argv]) -> bool:
    """Whether only recognised commands ran, and each of them ran in one of the two cases."""
    proved = list(proof.commands)
    if set(when_all_succeed) | set(when_all_fail) != set(proved):
        return False
    if "|" in line:
        return True  # the parts of a pipe run concurrently
    return _in_order(when_all_succeed, proved) and _in_order(when_all_fail, proved)


def _in_order(ran: list[Argv], proved: list[Argv]) -> bool:
    rest = iter(proved)
    return all(argv in rest for argv in ran)


PLAIN = """ls git cat a b1 x_y
    echo cd test printf true read set export : . -la --all=x a=b HEAD~1 HEAD^ a~ x@y 50% a:b a,b
    +x 日本 é if in 2 /etc ./x ../y %1 ]] time a~b:c x:~ ~ a/~ ^x^y a=~b ...""".split()
_SINGLE = ["''", "'a b'", "'$x'", "'`x`'", "'\\'", "'\"'", "'*'", "'a\nb'", "'#'", "'~'", "'日 本'", "'!!'", "'  '"]
_DOUBLE = ['""', '"a b"', '"\\""', '"\\\\"', '"\\$x"', '"\\`"', '"\\a\\n"', '"\'"', '"*?["', '"a\nb"', '"~"', '"!x"']
_JOINED = ['"a;b|c&d"', "';'", "'&&'", '"#x"', '"{a,b}"', "'(x)'", '"<>"', '"\t"']
QUOTED = [*_SINGLE, *_DOUBLE, *_JOINED]
BETWEEN = [" ", "  ", "\t", "", "", " ; ", ";", "&&", " && ", "||", " || ", "|", " | ", "\n", "\n\n", " ;\n", "|\n "]
ODD = [*"$`\\*?[]{}()<>&#!~=;|'\"\n\t ^%-+:@,./_a1é", "$(", "${", "<<", ">&", "$'", "\\\n", "a=", "#x", "~/", "[a]"]


def generated(dice: random.Random) -> Iterator[str]:
    """Lines close to what the recogniser accepts: words and separators, some with an odd character inserted."""
    while True:
        pieces = [_piece(dice) for _ in range(dice.randint(1, 12))]
        if dice.random() < 0.4:
            pieces.insert(dice.randrange(len(pieces) + 1), dice.choice(ODD))
        if dice.random() < 0.1:
            pieces = [dice.choice(ODD) for _ in range(dice.randint(1, 10))]
        yield "".join(pieces)


def _piece(dice: random.Random) -> str:
    word = dice.choice(PLAIN if dice.random() < 0.6 else QUOTED)
    return word + dice.choice(BETWEEN if dice.random() < 0.7 else [" "])
