"""Whether a program is the one that a rule means, by the file its name leads to and the repository it reads."""

from __future__ import annotations

import re

from gripfast.call.line_places import LinePlaces
from gripfast.call.shell.commands import Tables, plainly
from gripfast.call.shell.options import Program, problem_with
from gripfast.call.shell.programs import BUILTINS, GIT_CHANGING, INTO_A_VENV, PROJECT
from gripfast.call.shell.words import Argv
from gripfast.text.below import is_below

# The table for any tool that the project itself has chosen and pinned.
_PINNED = Program("*", operands="inside", project=True)
_PACKAGE = re.compile(r"(?:@[\w-][\w.-]*/)?[\w-][\w.-]*", re.ASCII)  # no version, URL or path: those are downloaded
# Words that publish something or delete data, whatever the tool.
_SENDS = re.compile(
    r"""(?:.*[:-])?(?:publish|unpublish|deploy|release|upload|push|submit|login|reset|destroy|drop)(?:[:-].*)?|np|vercel|
    netlify|wrangler|serverless|sst|gh-pages|surge|release-it|standard-version|.*semantic-release|firebase(?:-tools)?|
    supabase|eas|ngrok|localtunnel|lt|npm-publish""",
    re.VERBOSE,
)
# Programs that run their arguments as commands, or delete the files they name.
_RUNNERS = frozenset(
    """concurrently cross-env cross-env-shell dotenv dotenv-cli dotenvx dotenv-flow env-cmd nodemon shx zx npm npx
    pnpm yarn bun deno node sh bash npm-run-all npm-run-all2 run-s run-p run-z start-server-and-test start-test
    wait-on chokidar chokidar-cli onchange lerna nx turbo pm2 forever husky rimraf del-cli trash execa per-env
    better-npm-run wireit foreach-cli c8 nyc degit create-react-app""".split()
)
_RUNS_TEXT = ("-e", "--eval", "-p", "--print", "-c", "--call", "-x", "--exec", "--command")


def program_problem(argv: Argv, tables: Tables, places: LinePlaces, *, only_looks: bool = False) -> str | None:
    """Why a program may not run: its file is in the workspace, where somebody may have replaced it, or git would run
    something that the repository configures. `only_looks` is for a rule that doesn't allow the project's code to run,
    though the program might run it."""
    name = str(argv[0])
    if name == "cd" and places.has_changed:
        return f"`cd {argv[-1]}`, which may be a link by then: the line changes which files are there"
    if "/" in name or name in BUILTINS:
        return None
    if (problem := moving_problem(argv, places)) is not None:
        return problem
    found = tables.find(argv)
    if found is None:
        return None
    file = places.facts.file_of(name)
    inside = file is not None and is_below(file, *places.workspace.roots)
    held = places.facts.sandboxed and name == "uv"  # uv finds an environment itself, and can write none outside
    if found[0] in INTO_A_VENV and not inside and not held:
        return f"`{name}` does not belong to an environment in the workspace, so it would install elsewhere"
    if inside and (only_looks or not found[1].project):
        return f"`{name}` is {file}, a file in the workspace, and not the system's"
    return _git_words_problem(argv, places) or git_problem(argv, places)


def is_shadowed(argv: Argv, places: LinePlaces, *, by_shell: bool = True) -> bool:
    """Whether a program that should be the system's is a file in the workspace. `by_shell` means that the shell runs
    it, which has some programs built in."""
    name = str(argv[0])
    file = None if (by_shell and name in BUILTINS) or name in PROJECT else places.facts.file_of(name)
    return file is not None and is_below(file, *places.workspace.roots)


_COPIES_TREES = re.compile(r"-[A-Za-z]*[rRa]|--recursive|--archive")


def moving_problem(argv: Argv, places: LinePlaces) -> str | None:
    """Why a move or copy is unsafe: a directory takes its links, hooks and settings with it."""
    words = argv[2:] if argv[:2] == ("git", "mv") else argv[1:]
    if argv[0] == "cp" and not any(_COPIES_TREES.match(str(word)) for word in words):
        return None
    if argv[0] not in ("cp", "mv") and argv[:2] != ("git", "mv"):
        return None
    end = words.index("--") if "--" in words else len(words)
    operands = [*(word for word in words[:end] if not str(word).startswith("-")), *words[end + 1 :]]
    for source in operands[:-1]:
        if (problem := places.moving_problem(source)) is not None:
            return f"`{argv[0]}` of `{source}`: {problem}"
    return None


def unremovable(argv: Argv, places: LinePlaces) -> str | None:
    """Why `rm` would fail in the sandbox even after a yes: what it names is protected."""
    if argv[0] != "rm":
        return None
    problems = (places.unremovable(word) for word in argv[1:] if not str(word).startswith("-"))
    return next((f"`rm`: {problem}" for problem in problems if problem is not None), None)


def removal_problem(argv: Argv, places: LinePlaces) -> str | None:
    """Why what a command removes could not be restored."""
    words = argv[1:]
    end = words.index("--") if "--" in words else len(words)
    operands = [*(word for word in words[:end] if not str(word).startswith("-")), *words[end + 1 :]]
    problems = (places.removal_problem(word) for word in operands)
    return next((f"`{argv[0]}`: {problem}" for problem in problems if problem is not None), None)


def _git_words_problem(argv: Argv, places: LinePlaces) -> str | None:
    words = plainly(argv)
    if words[:2] == ("git", "checkout") and (paths := [word for word in words[2:] if places.has(word)]):
        return f"`git checkout {paths[0]}` throws away what was changed there, if it is not a branch"
    if words[:2] == ("git", "rebase") and not places.facts.sandboxed and {"--continue", "--skip"} & {*words[2:]}:
        return "`git rebase` continues with a list that may name programs to run"
    return None


def git_problem(argv: Argv, places: LinePlaces) -> str | None:
    """What the repository's configuration would make git run."""
    if argv[0] != "git":
        return None
    words = plainly(argv)
    looks = not any(" ".join(map(str, words[1:end])) in GIT_CHANGING for end in (2, 3))
    if places.is_lost:
        return "`git` in a directory known only when the line runs, whose repository may name programs to run"
    for directory in places.directories:
        if (problem := places.facts.git_runs(directory, looks)) is not None:
            return problem
    return None


def npx_problem(argv: Argv, tables: Tables, places: LinePlaces, *, inside_only: bool) -> str | None:
    """Why an `npx` command is not safe. npx runs packages that the lock file names, and downloads any others."""
    words = argv[1:]
    while words and words[0] in ("--no-install", "--no", "-y", "--yes", "-q", "--quiet"):
        words = words[1:]
    if not words or not isinstance(words[0], str) or words[0].startswith("-"):
        return "`npx` without the plain name of a program"
    name = words[0]
    if not _PACKAGE.fullmatch(name):
        return f"`npx {name}`: not the plain name of a package's program"
    found = tables.find((name,))
    program = found[1] if found is not None and found[1].project else _PINNED
    if program.leading or program is _PINNED:
        if any(_SENDS.fullmatch(str(word)) for word in words):
            return f"`npx {name}` may publish something or remove data"
        if name in _RUNNERS or any(str(word).partition("=")[0] in _RUNS_TEXT for word in words[1:]):
            return f"`npx {name}` runs the text it is given"
    if not all(places.facts.is_locked(directory, name) for directory in places.directories):
        return f"no lock file names `{name}`, so `npx` may fetch and run anything of that name"
    return problem_with(program, f"npx {name}", words[1:], places=places, inside_only=inside_only)
