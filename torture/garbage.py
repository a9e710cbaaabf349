"""Feeds garbage to every parser and to the server's protocol."""

from __future__ import annotations

import json
import random
import string
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gripfast import PermissionRule, ToolError, tool
from gripfast.builtin.config import parse_config
from gripfast.builtin.images import picture
from gripfast.call.shell.denied import sightings, walked
from gripfast.call.shell.reader import read_script
from gripfast.call.shell.recogniser import recognise
from gripfast.host.files.paths import WorkPath
from gripfast.lisp.patterns import BadLispPattern, Budget, Pattern
from gripfast.lisp.scanner import scan
from gripfast.text.globs import BadPattern, compile_glob
from gripfast.text.terminal import plain
from torture.trial import Outcome, Torment

ROOT = Path(__file__).parent.parent

SEEDS = {
    "json": ['{"x": 1, "y": ["a", {"b": null}]}', '{"x": "\\ud83d\\ude00"}', "[1, 2e400, -0.0]", '{"x": true}'],
    "lisp": [
        '(defun f (x) #| a |# "s" \'(1 . 2) #\\( `(,@x))',
        "#+sbcl (a) ; c\n#.(x) |a b|",
        '"unclosed (',
        "))) (",
    ],
    "shell, level two": [
        'for f in *.py; do wc -l "$f" > out; done # x',
        "if [ -f a ]; then cat <<'E'\nx\nE\nfi",
        'case $x in a|b) ls;; esac && echo "$(date)" $((1+2))',
        "A=b ls {a,b}/*.ts 2>&1 | head -5 & [[ -n $x ]]",
    ],
    "shell": ["ls -la && cat 'a b' | wc -l", 'git log "--format=%H" ; echo x', "rm $(x) > y", "a\\\nb"],
    "denied names": ["sudo -u x sh -c 'rm -rf \"$y\"'", "find . -exec rm {} +", "cat <<E\n$(rm x)\nE", "$'\\x72m' y"],
    "path": ["src/../a b.txt", "./x//y", "/etc/passwd", "~/.ssh", "a" * 300],
    "glob": ["**/*.{py,[a-z]?}", "a/{b,c{d,e}}/[!x]*", "[[]", "\\*"],
    "rule": ["git * --[ab]*", "src/**/[!.]*", "{a,b}.md", "ls *"],
    "Lisp regex": ["(?i)^def(un|macro)\\s+(\\w+)$", "[^a-z\\d]{2,3}?(?<=x)\\1", "(?:a|b)*+", "\\Qx"],
    "terminal output": ["\x1b[31mred\x1b[0m\r\n", "\x1b]0;title\x07text", "50%\r100%\n", "\x9b5n\u202e"],
    "configuration": [
        '[permissions]\ndefault_action = "ask"\n[[permissions.rule]]\ntool = "Bash"\naction = "deny"\n'
    ],
    "image header": [
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1",
        "\xff\xd8\xff\xc0\0\x11\x08\0\1",
        "GIF89a\1\0\1\0",
    ],
}


def run(torment: Torment) -> None:
    for name, parse in PARSERS.items():
        fuzz(torment, name, parse)
    _level_two(torment)
    _protocol(torment)


def _level_two(torment: Torment) -> None:
    """Generated lines that are read, given to real bash with every program replaced by a recorder."""
    sys.path.append(str(ROOT / "tests"))
    from call.level_two import BASH, unproved

    name, promise = "lines of level two in real bash", "no program runs that was not proved"
    if BASH is None:
        torment.tell(Outcome(name, promise, why="no bash on this machine"))
        return
    times = torment.times(50_000, 300)
    found = unproved(times, torment.seed)
    for line, argv in found[:5]:
        torment.say(f"    {line!r} ran {argv!r}")
    torment.tell(Outcome(name, promise, times, len(found)))


@tool
def sample(x: int, y: list[dict[str, Any]] | None = None) -> str:
    """A tool that is called with garbage."""
    return f"{x}{y}"


PARSERS: dict[str, Callable[[str], object]] = {
    "json": sample.arguments.parse,
    "lisp": lambda text: list(scan(text)),
    "shell": recognise,
    "shell, level two": read_script,
    "denied names": lambda text: list(sightings(walked(text))),
    "path": WorkPath.parse,
    "glob": compile_glob,
    "rule": lambda text: PermissionRule("Bash", text, "allow"),
    "Lisp regex": lambda text: Pattern(text, Budget(5, time.monotonic)),
    "terminal output": plain,
    "configuration": parse_config,
    "image header": lambda text: picture(text.encode("latin-1", "replace")),
}
REFUSALS = (ToolError, BadPattern, BadLispPattern)


def fuzz(torment: Torment, name: str, parse: Callable[[str], object]) -> None:
    """Feeds mutated samples to a parser: it must answer or refuse, without any other exception or warning."""
    dice, failed = torment.dice(name), 0
    times = torment.times(100_000, 2_000)
    for _ in range(times):
        text = mutated(dice, dice.choice(SEEDS[name]))
        try:
            with warnings.catch_warnings(action="error"):
                parse(text)
        except REFUSALS:
            continue
        except Exception as fault:  # noqa: BLE001 - this is looking for any exception
            failed += 1
            torment.say(f"    {name}: {fault!r} on {text!r}")
    torment.tell(Outcome(f"garbage into the {name} parser", "an answer or a clear refusal", times, failed))


def mutated(dice: random.Random, text: str) -> str:
    characters = list(text)
    for _ in range(dice.randint(1, 8)):
        at = dice.randrange(len(characters) + 1)
        match dice.randrange(4):
            case 0:
                characters.insert(at, dice.choice(string.printable + "\x00é\ud800\u202e💥"))
            case 1 if at < len(characters):
                del characters[at]
            case 2:
                piece = characters[at : at + dice.randint(1, 6)]
                characters[at:at] = piece * dice.randint(1, 20)
            case _:
                dice.shuffle(characters) if dice.random() < 0.05 else characters.reverse()
    return "".join(characters)


def _protocol(torment: Torment) -> None:
    """Sends broken lines to a server; after each batch it must still answer a ping."""
    dice, failed, tried = torment.dice("protocol"), 0, 0
    room = torment.room("protocol")
    valid = json.dumps(
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "Read", "arguments": {}}}
    )
    server = _Server(room)
    for batch in range(torment.times(200, 10)):
        for _ in range(20):
            line = mutated(dice, valid).replace("\n", " ")
            server.send(line.encode("utf-8", "surrogatepass"))
            tried += 1
        if not server.answers(f"ping-{batch}"):
            failed += 1
            server.close()
            server = _Server(room)
    server.close()
    torment.tell(Outcome("broken lines into the server", "it still answers", tried, failed))


class _Server:
    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gripfast", "serve", "--root", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).encode())
        self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, which the next ping shows
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def answers(self, number: str) -> bool:
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode())
        assert self._process.stdout is not None
        late = threading.Timer(60, self._process.kill)
        late.start()
        try:
            return any(json.loads(line).get("id") == number for line in self._process.stdout)
        finally:
            late.cancel()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(20)
