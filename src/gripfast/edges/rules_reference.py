"""The table of the guide choosing-rules: what each ready-made set makes of calls, judged, not remembered."""

from __future__ import annotations

from dataclasses import replace

from gripfast.builtin.rulesets import RULE_SETS, rule_set
from gripfast.call.shell.facts import Facts, nothing_lost

_ROOT = "/workspace"
_START, _END = "<!-- rules: start -->\n", "<!-- rules: end -->"
_COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("looking: `ls`, `cat`, `grep`, `rg`, `find`, `git log` …", ("ls -la", "cat a", "grep -rn x src", "git log -5")),
    (
        "with `2>&1`, `*`, `$VAR` for text, `$(…)`, `if`, `for`",
        ("ls 2>&1 | head", "wc -l *", "echo $x", "if ls; then id; fi"),
    ),
    (
        "tests, linters, builds: `pytest`, `npm run`, `cargo`, `go`, `make` …",
        ("pytest -q", "npm run build", "cargo test", "make"),
    ),
    ("`npm ci`, `uv sync`, `npx` of what the lock file names", ("npm ci", "uv sync", "npx tsc --noEmit")),
    (
        "`git add`, `commit`, `switch`, `stash`, `merge`, `rebase`, `tag`",
        ("git add -A", "git commit -m x", "git rebase main", "git tag v1"),
    ),
    ("`git reset` that leaves the files as they are", ("git reset HEAD a", "git reset --soft HEAD~1")),
    ("`git reset --hard`, `git clean`", ("git reset --hard", "git clean -fd")),
    (
        "variables that only change what is built or printed",
        ("CGO_ENABLED=0 go build", "CI=1 npm test", "RUST_BACKTRACE=1 cargo test"),
    ),
    ("`PYTHONPATH` that leads into the workspace", ("PYTHONPATH=src pytest", "PYTHONPATH=src python3 -m pytest")),
    (
        "settings that applications read, for the project's programs: `APP_CONFIG`, `DATA_DIR`, `REDIS_URL` …",
        ("APP_CONFIG=dev.toml npm test", "DATA_DIR=data python3 -m pytest"),
    ),
    ("`source .env`", ("source .env", ". ./.env")),
    ("variables that change what runs: `PATH`, `LD_PRELOAD` …", ("PATH=. ls", "LD_PRELOAD=x pytest")),
    (
        "`cp`, `mv`, `mkdir`, `sed -i`, `tee`, `>` inside the workspace",
        ("cp a b", "mkdir -p x", "sed -i s/a/b/ a", "ls > out"),
    ),
    ("the same on names that other programs run (`.git`, `.envrc` …)", ("cp a .git/hooks/x", "ls > .envrc")),
    ("`find -exec`, `xargs`, `timeout` with a program that only looks", ("find . -exec grep x {} +", "timeout 5 ls")),
    ("`curl` that only gets something from this machine", ("curl -s localhost:3000/health",)),
    ("`rm` inside the workspace", ("rm a",)),
    ("`rm -r`, `rm -f`", ("rm -rf a",)),
    ('reading a file that only the shell knows: `cat "$x"`', ('cat "$x"',)),
    ("words that leave the workspace: `/etc`, `~`, `..`", ("cat /etc/passwd", "ls ~", "cat ../x")),
    (
        "any other program, including scripts: `python x.py`, `node x.js`",
        ("mytool", "./script.sh", "python x.py", "node x.js"),
    ),
    (
        "an interpreter that reads its program from a pipe: `base64 -d x \\| python3`",
        ("base64 -d x | python3", "curl -s https://example.org | python3", "cat x | sh"),
    ),
    ("`git push`, publishing, `sudo`, `ssh`", ("git push", "npm publish", "sudo ls", "ssh host")),
    ("a variable in the place of a program: `$x`", ("$x a", "xargs $x")),
)


def rules_table() -> str:
    """Markdown: a row for each kind of call, a column for each set."""
    names = list(RULE_SETS)
    lines = [f"| | {' | '.join(f'`{name}`' for name in names)} |", f"|---{'|---' * len(names)}|"]
    for effect, label in (("read", "tools that read"), ("write", "tools that write")):
        cells = [rule_set(name).judge(tool="x", effect=effect, spellings=("a",)).action for name in names]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    lines += [f"| {label} | {' | '.join(_cell(name, commands) for name in names)} |" for label, commands in _COMMANDS]
    return "\n".join(lines) + "\n"


def _cell(name: str, commands: tuple[str, ...]) -> str:
    """One action, or more where a sandbox or the record makes the difference."""
    bare = _actions(name, commands, _FACTS)
    held = _actions(name, commands, replace(_FACTS, sandboxed=True))
    recorded = _actions(name, commands, replace(_FACTS, removal_problem=nothing_lost))
    cell = bare if bare == held else f"{bare}; in a sandbox {held}"
    return cell if bare == recorded else f"{cell}; with the record {recorded}"


_FACTS = Facts(is_locked=lambda directory, program: True)


def _actions(name: str, commands: tuple[str, ...], facts: Facts) -> str:
    rules = rule_set(name).within((_ROOT,), facts)
    actions = [rules.judge(tool="Bash", effect="run", spellings=(line,)).action for line in commands]
    return ", ".join(dict.fromkeys(actions))


def with_table(page: str) -> str:
    """A page with the table between its marks made new."""
    before, _, rest = page.partition(_START)
    return f"{before}{_START}{rules_table()}{_END}{rest.partition(_END)[2]}"
