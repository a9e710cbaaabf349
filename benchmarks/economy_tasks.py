"""Twenty tasks in a workspace of real code, and the calls that do each with one set of tools or another.

The calls are what a careful model would send: the cheapest way that the set's own definitions suggest, without
knowing the answer before. A later call may use what an earlier answer showed, such as a line number.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGES = ("asyncio", "email", "http", "json", "logging", "unittest", "urllib")
Call = tuple[str, dict[str, Any]]
Answers = list[str]
_PID = r"PID:? (\d+)"
_REF = r'ref(?:_id)?[ =:"]*"?([\w-]{6,})'
Step = Call | Callable[[Answers], Call]

SERVER = """import time
print("starting", flush=True)
time.sleep(0.3)
print("listening on port 8123", flush=True)
time.sleep(600)
"""
NOISY = """for number in range(3000):
    print(f"step {number}: all is as it should be" if number != 1702 else "step 1702: ERROR disk quota exceeded")
"""
TESTS = """import unittest
from shop.prices import total


class Prices(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_discount(self):
        self.assertEqual(total([100], discount=10), 90)
"""
PRICES = '''"""Prices of orders."""

RATE = 19


def total(prices, discount=0):
    """What an order costs."""
    return sum(prices)
'''


def make_workspace(root: Path) -> None:
    """Packages of the standard library as `lib`, and a small project with a failing test, all in git."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for name in PACKAGES:
        shutil.copytree(library / name, root / "lib" / name, ignore=shutil.ignore_patterns("__pycache__", "_test*"))
    for name, text in {
        "shop/__init__.py": "", "shop/prices.py": PRICES, "shop/test_prices.py": TESTS, "shop/a.py": "LIMIT = 10\n",
        "shop/b.py": "LIMIT = 10\n", "shop/c.py": "LIMIT = 10\n", "serve.py": SERVER, "noisy.py": NOISY,
    }.items():  # fmt: skip
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    git = ["git", "-C", str(root), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run([*git, *words], check=True, capture_output=True)


@dataclass(frozen=True)
class Task:
    """What is to be done, how each set of tools does it, and how to see that it was done.

    `by` has no entry for a set whose tools can't do it. `shows` must be in the answers; `holds` is true of the
    workspace afterwards.
    """

    kind: str
    goal: str
    by: dict[str, list[Step]]
    shows: str = ""
    holds: Callable[[Path], bool] = lambda _: True


def number_in(pattern: str, answers: Answers) -> int:
    """The number that an earlier answer showed."""
    return int(_found(pattern, answers))


def _found(pattern: str, answers: Answers) -> str:
    found = re.search(pattern, "\n".join(answers))
    if found is None:
        raise RuntimeError(f"no answer shows {pattern!r}: {answers[-1][-300:]}")
    return found[1]


def tasks(root: Path) -> list[Task]:
    """The twenty tasks, for the workspace in `root`."""

    def at(name: str) -> str:
        return str(root / name)  # the other servers want absolute paths

    return [*_finding(root, at), *_understanding(at), *_editing(at), *_running(root)]


def _finding(root: Path, at: Callable[[str], str]) -> list[Task]:
    return [
        Task("find", "the file that defines the class Message", {
            "gripfast": [("Grep", {"pattern": r"^class Message\b", "output_mode": "content"})],
            "claude-code": [("Bash", {"command": r"grep -rn '^class Message\b' ."})],
            "commander": _search(str(root), "^class Message\\b"),
        }, shows=r"message\.py"),
        Task("find", "the files that call get_content_maintype", {
            "gripfast": [("Grep", {"pattern": r"get_content_maintype\("})],
            "claude-code": [("Bash", {"command": r"grep -rl 'get_content_maintype(' ."})],
            "commander": _search(str(root), "get_content_maintype(", literalSearch=True),
        }, shows=r"generator\.py"),
        Task("find", "the files with `policy` in their name", {
            "gripfast": [("Glob", {"pattern": "**/*policy*"})],
            "claude-code": [("Bash", {"command": "find . -name '*policy*'"})],
            "commander": _search(str(root), "policy", searchType="files"),
            "filesystem": [("search_files", {"path": str(root), "pattern": "**/*policy*"})],
        }, shows=r"_policybase\.py"),
        Task("find", "which packages there are", {
            "gripfast": [("Glob", {"pattern": "lib/*/__init__.py"})],
            "claude-code": [("Bash", {"command": "ls lib"})],
            "commander": [("list_directory", {"path": at("lib"), "depth": 1})],
            "filesystem": [("list_directory", {"path": at("lib")})],
        }, shows="urllib"),
        Task("find", "how many `XXX` each file has", {
            "gripfast": [("Grep", {"pattern": "XXX", "output_mode": "count"})],
            "claude-code": [("Bash", {"command": "grep -rc XXX . --include='*.py' | grep -v ':0$'"})],
            "commander": _search(str(root), "XXX"),
        }, shows="policy|parse"),
    ]  # fmt: skip


def _search(path: str, pattern: str, **more: Any) -> list[Step]:
    """A search with Desktop Commander: one call starts it, another gives what it has found."""
    given = {"path": path, "pattern": pattern, "searchType": "content", "contextLines": 0, **more}

    def results(seen: Answers) -> Call:
        time.sleep(3)  # as long as a model takes to answer; asked at once, it has found nothing yet
        return "get_more_search_results", {"sessionId": _found(r"session: (\S+)", seen[-1:])}

    return [("start_search", given), results]


def _understanding(at: Callable[[str], str]) -> list[Task]:
    path, definition = "lib/email/message.py", r"^    def get_payload\b"
    line = r"(?m)(\d+)[:\t| -]+ *def get_payload"
    return [
        Task("understand", "what email/message.py defines", {
            "gripfast": [("outline", {"path": path})],
            "claude-code": [("Bash", {"command": f"grep -nE '^ *(class|def) ' {path}"})],
            "commander": _search(at(path), "^ *(class|def) .*"),
            "filesystem": [("read_text_file", {"path": at(path)})],
        }, shows="get_payload"),
        Task("understand", "how Message.get_payload works", {
            "gripfast": [
                ("Grep", {"pattern": definition, "path": path, "output_mode": "content"}),
                lambda seen: ("Read", {"file_path": path, "offset": number_in(line, seen) - 1, "limit": 80}),
            ],
            "claude-code": [
                ("Bash", {"command": f"grep -n 'def get_payload' {path}"}),
                lambda seen: ("Read", {"file_path": at(path), "offset": number_in(line, seen), "limit": 80}),
            ],
            "commander": [
                *_search(at(path), "^ *def get_payload.*"),
                lambda seen: ("read_file", {"path": at(path), "offset": number_in(line, seen) - 1, "length": 80}),
            ],
            "filesystem": [("read_text_file", {"path": at(path)})],
        }, shows="multipart"),
        Task("understand", "how logging/config.py ends", {
            "gripfast": [("Read", {"file_path": "lib/logging/config.py", "offset": -20})],
            "claude-code": [("Bash", {"command": "tail -20 lib/logging/config.py"})],
            "commander": [("read_file", {"path": at("lib/logging/config.py"), "offset": -20})],
            "filesystem": [("read_text_file", {"path": at("lib/logging/config.py"), "tail": 20})],
        }, shows="stopListening|_listener"),
        Task("understand", "three small files", {
            "gripfast": [("Read", {"file_path": f"lib/{name}"}) for name in _SMALL],
            "claude-code": [("Read", {"file_path": at(f"lib/{name}")}) for name in _SMALL],
            "commander": [("read_multiple_files", {"paths": [at(f"lib/{name}") for name in _SMALL]})],
            "filesystem": [("read_multiple_files", {"paths": [at(f"lib/{name}") for name in _SMALL]})],
        }, shows="__version__|main"),
        Task("understand", "what the package json defines", {
            "gripfast": [("outline", {"path": "lib/json"})],
            "claude-code": [("Bash", {"command": "grep -rnE '^(class|def) ' lib/json"})],
            "commander": _search(at("lib/json"), "^(class|def) .*"),
            "filesystem": [
                ("list_directory", {"path": at("lib/json")}),
                ("read_multiple_files", {"paths": [at(f"lib/json/{name}") for name in _JSON]}),
            ],
        }, shows="JSONDecoder"),
    ]  # fmt: skip


_SMALL = ("json/tool.py", "urllib/error.py", "unittest/__main__.py")
_JSON = ("__init__.py", "decoder.py", "encoder.py", "scanner.py", "tool.py")


def _edit(path: str, old: str, new: str, **more: Any) -> Call:
    return "Edit", {"file_path": path, "old_string": old, "new_string": new, **more}


def _block(path: str, old: str, new: str, **more: Any) -> Call:
    return "edit_block", {"file_path": path, "old_string": old, "new_string": new, **more}


def _changes(path: str, old: str, new: str) -> Call:
    return "edit_file", {"path": path, "edits": [{"oldText": old, "newText": new}]}


def _start(root: Path, command: str, wait: int = 20_000) -> Call:
    return "start_process", {"command": f"cd {root} && {command}", "timeout_ms": wait}


def _editing(at: Callable[[str], str]) -> list[Task]:
    total, right = "    return sum(prices)", "    return sum(prices) * (100 - discount) // 100"
    half = '\n\ndef half(prices):\n    """Half of what an order costs."""\n    return total(prices) // 2\n'
    new = '"""Taxes."""\n\n\ndef tax(price, rate=19):\n    return price * rate // 100\n'
    return [
        Task("edit", "one line of shop/prices.py", {
            "gripfast": [("Read", {"file_path": "shop/prices.py"}), _edit("shop/prices.py", total, right)],
            "claude-code": [("Read", {"file_path": at("shop/prices.py")}), _edit(at("shop/prices.py"), total, right)],
            "commander": [("read_file", {"path": at("shop/prices.py")}), _block(at("shop/prices.py"), total, right)],
            "filesystem": [
                ("read_text_file", {"path": at("shop/prices.py")}), _changes(at("shop/prices.py"), total, right)
            ],
        }, holds=lambda root: right in (root / "shop/prices.py").read_text()),
        Task("edit", "a name in every place of noisy.py", {
            "gripfast": [
                ("Read", {"file_path": "noisy.py"}), _edit("noisy.py", "number", "index", replace_all=True)
            ],
            "claude-code": [
                ("Read", {"file_path": at("noisy.py")}), _edit(at("noisy.py"), "number", "index", replace_all=True)
            ],
            "commander": [
                ("read_file", {"path": at("noisy.py")}),
                _block(at("noisy.py"), "number", "index", expected_replacements=3)
            ],
            "filesystem": [
                ("read_text_file", {"path": at("noisy.py")}),
                ("write_file", {"path": at("noisy.py"), "content": NOISY.replace("number", "index")}),
            ],
        }, holds=lambda root: "number" not in (root / "noisy.py").read_text()),
        Task("edit", "a new file", {
            "gripfast": [("Write", {"file_path": "shop/taxes.py", "content": new})],
            "claude-code": [("Write", {"file_path": at("shop/taxes.py"), "content": new})],
            "commander": [("write_file", {"path": at("shop/taxes.py"), "content": new})],
            "filesystem": [("write_file", {"path": at("shop/taxes.py"), "content": new})],
        }, holds=lambda root: (root / "shop/taxes.py").read_text() == new),
        Task("edit", "the same constant in three files", {
            "gripfast": [
                ("Grep", {"pattern": "LIMIT =", "output_mode": "content", "path": "shop"}),
                *(_edit(f"shop/{name}.py", "LIMIT = 10", "LIMIT = 20") for name in "abc"),
            ],
            "claude-code": [
                ("Bash", {"command": "grep -rn 'LIMIT =' shop"}),
                *(("Read", {"file_path": at(f"shop/{name}.py")}) for name in "abc"),
                *(_edit(at(f"shop/{name}.py"), "LIMIT = 10", "LIMIT = 20") for name in "abc"),
            ],
            "commander": [
                *_search(at("shop"), "LIMIT ="),
                *(_block(at(f"shop/{name}.py"), "LIMIT = 10", "LIMIT = 20") for name in "abc"),
            ],
        }, holds=lambda root: all("20" in (root / f"shop/{name}.py").read_text() for name in "abc")),
        Task("edit", "a function at the end of a file", {
            "gripfast": [
                ("Read", {"file_path": "shop/prices.py"}), _edit("shop/prices.py", right, right + half)
            ],
            "claude-code": [
                ("Read", {"file_path": at("shop/prices.py")}), _edit(at("shop/prices.py"), right, right + half)
            ],
            "commander": [("write_file", {"path": at("shop/prices.py"), "content": half, "mode": "append"})],
            "filesystem": [
                ("read_text_file", {"path": at("shop/prices.py")}),
                _changes(at("shop/prices.py"), right, right + half)
            ],
        }, holds=lambda root: "def half" in (root / "shop/prices.py").read_text()),
        Task("edit", "a file's name", {
            "gripfast": [("Bash", {"command": "mv shop/taxes.py shop/tax.py"})],
            "claude-code": [("Bash", {"command": "mv shop/taxes.py shop/tax.py"})],
            "commander": [("move_file", {"source": at("shop/taxes.py"), "destination": at("shop/tax.py")})],
            "filesystem": [("move_file", {"source": at("shop/taxes.py"), "destination": at("shop/tax.py")})],
        }, holds=lambda root: (root / "shop/tax.py").exists()),
    ]  # fmt: skip


def _running(root: Path) -> list[Task]:
    test, noisy, serve = "python3 -m unittest -q shop.test_prices", "python3 noisy.py", "python3 serve.py"
    change = "sed -i 's/import/IMPORT/' lib/json/*.py"
    return [
        Task("run", "the tests", {
            "gripfast": [("Bash", {"command": test})],
            "claude-code": [("Bash", {"command": test})],
            "commander": [_start(root, test)],
        }, shows="OK"),
        Task("run", "the one error in 3,000 lines of output", {
            "gripfast": [
                ("Bash", {"command": noisy}),
                lambda seen: ("tool_output_cache_grep", {"ref_id": _found(_REF, seen), "pattern": "ERROR"}),
            ],
            "claude-code": [("Bash", {"command": noisy}), ("Bash", {"command": f"{noisy} | grep ERROR"})],
            "commander": [_start(root, noisy), _start(root, f"{noisy} | grep ERROR")],
        }, shows="disk quota exceeded"),
        Task("run", "a server, until it listens, and end it", {
            "gripfast": [
                ("Bash", {"command": serve, "run_in_background": True}),
                ("BashOutput", {"bash_id": "bash_1", "wait_ms": 5000}),
                ("BashOutput", {"bash_id": "bash_1", "wait_ms": 5000}),
                ("KillBash", {"bash_id": "bash_1"}),
            ],
            "commander": [
                _start(root, serve, wait=2000),
                lambda seen: ("read_process_output", {"pid": number_in(_PID, seen), "timeout_ms": 2000}),
                lambda seen: ("force_terminate", {"pid": number_in(_PID, seen)}),
            ],
            "claude-code": [
                ("Bash", {"command": f"{serve} > out.txt 2>&1 & echo $!"}),
                ("Bash", {"command": "sleep 2; cat out.txt"}),
                lambda seen: ("Bash", {"command": f"kill {number_in('([0-9]+)', seen)}"}),
            ],
        }, shows="listening on port 8123"),
        Task("undo", "a command that changed six files", {
            "gripfast": [("Bash", {"command": change}), ("Undo", {})],
            "claude-code": [("Bash", {"command": change}), ("Bash", {"command": "git checkout -- lib/json"})],
            "commander": [_start(root, change), _start(root, "git checkout -- lib/json")],
        }, holds=lambda root: "IMPORT" not in (root / "lib/json/decoder.py").read_text()),
    ]  # fmt: skip
