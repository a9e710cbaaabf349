"""Lines whose commands are all known, though some words are not: what is read is what bash runs, and no more."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from call.bash_oracle import BASH
from call.level_two import faults, generated, observable, unproved
from call.shell_lines import FAMILIES, attacks, lines_of
from gripfast.builtin.rulesets import rule_set
from gripfast.call.decision import Decision, PermissionRule
from gripfast.call.rules import Permissions
from gripfast.call.shell.facts import Facts
from gripfast.call.shell.reader import read_script
from gripfast.call.shell.words import NotProvable, Script, Unknown

LINES = int(os.environ.get("GRIPFAST_LEVEL_TWO_LINES", "400"))
SHARED = Path(os.environ.get("GRIPFAST_SHARED") or Path(__file__).parents[3] / "shared")
DAY = SHARED / "data" / "agent-commands.json"
ROOT = "/workspace/root"
needs_bash = pytest.mark.skipif(BASH is None, reason="needs bash")


def read(line: str) -> list[list[str]]:
    script = read_script(line)
    assert isinstance(script, Script), script
    return [[str(word) for word in command.words] for command in script.commands]


def judged(name: str, line: str, **facts: Any) -> Decision:
    rules = rule_set(name).within((ROOT,), Facts(**facts))
    return rules.judge(tool="Bash", effect="run", spellings=(line,))


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("ls 2>&1 | head # first", [["ls"], ["head"]]),
        ("ls >/dev/null 2>&1; cat <a", [["ls"], ["cat"]]),
        (
            "if ls; then cat a; elif wc b; then id; else nl c; fi",
            [["ls"], ["cat", "a"], ["wc", "b"], ["id"], ["nl", "c"]],
        ),
        ('for f in *.py; do wc -l "$f"; done', [["wc", "-l", '"$f"']]),
        ("while ls; do cat a; done; until id; do nl b; done", [["ls"], ["cat", "a"], ["id"], ["nl", "b"]]),
        ("case $x in a|b) ls;; (c) cat d;; *) ;; esac", [["ls"], ["cat", "d"]]),
        ("{ ls; cat a; }; (id; nl b); ! wc c", [["ls"], ["cat", "a"], ["id"], ["nl", "b"], ["wc", "c"]]),
        ('echo "$(ls $(id))" `nl a`', [["id"], ["ls", "$(id)"], ["nl", "a"], ["echo", '"$(ls $(id))"', "`nl a`"]]),
        (
            "git commit -m \"$(cat <<'EOF'\n$(x)\nEOF\n)\"",
            [["cat"], ["git", "commit", "-m", "\"$(cat <<'EOF'\n$(x)\nEOF\n)\""]],
        ),
        ("mkdir -p a/{b,c}/{1..2}", [["mkdir", "-p", "a/b/1", "a/b/2", "a/c/1", "a/c/2"]]),
        ("A=b LC_ALL=C sort x", [["sort", "x"]]),
        ("grep -n x \\\n  a.py", [["grep", "-n", "x", "a.py"]]),
        ("find . -name \\*.py \\( -type f \\)", [["find", ".", "-name", "*.py", "(", "-type", "f", ")"]]),
        ("[[ -f a && $x == b* ]] && ls", [["ls"]]),
        ("diff <(ls a) <(ls b)", [["ls", "a"], ["ls", "b"], ["diff", "<(ls a)", "<(ls b)"]]),
        ("ls & wait", [["ls"], ["wait"]]),
        ("time ls; echo '#' a#b \"x$\"", [["ls"], ["echo", "#", "a#b", "x$"]]),
    ],
)
def test_a_line_is_read_as_the_commands_it_may_run(line: str, commands: list[list[str]]) -> None:
    assert read(line) == commands


@pytest.mark.parametrize(
    ("word", "unknown"),
    [
        ("src/*.ts", Unknown("src/*.ts", "src/", many=True, glob="src/*.ts")),
        ('"$x"', Unknown('"$x"')),
        ("$x", Unknown("$x", many=True)),
        ("src/$x", Unknown("src/$x", many=True)),
        ('src/"$x"', Unknown('src/"$x"', "src/")),
        ("$?", Unknown("$?", number="digits")),
        ("~/x", Unknown("~/x", "~")),
        ("--include=*.py", Unknown("--include=*.py", "--include=", many=True, glob="--include=*.py")),
    ],
)
def test_what_is_known_of_a_word_is_how_it_begins_and_whether_it_is_one(word: str, unknown: Unknown) -> None:
    script = read_script(f"ls {word}")
    assert isinstance(script, Script)
    assert script.commands[0].words[1] == unknown


@pytest.mark.parametrize(
    "line",
    [
        *(
            "$x a",
            "f() { ls; }",
            "coproc ls",
            "select x in a; do ls; done",
            "((1))",
            "ls ${!x}",
            "ls ${x@P}",
            "a=(b)",
        ),
        *("x='a[$(id)]'; echo $((x))", "PATH=. ls", "for IFS in a; do ls; done", "cat <<EOF\n$(id)\nEOF"),
        *("cat <<'E'\nx\nE)\nid\nE", "ls {fd}>x", "ls <(", "if ls; fi", "ls ;; id", "echo $\\\n(id)"),
        *('echo "$\\\n(id)"', "ls $'\\x41'"),
        # bash reads `>&-` and then a word: this runs `rm ls -rf src`
        *(">&-rm ls -rf src", "ls >& -rm", "cat <&-x", "ls >&\\\n-x", "ls >&--"),
        # bash 5.2 loses the `;` after a here-document inside `$( )`: this runs `sort a -o b`
        *(
            "echo $(cat <<'E'\nx\nE\nsort a; -o b)",
            "echo $(cat <<'E'\nx\nE\nls; id)",
            "echo $(cat <<'E'; ls; id\nE\n)",
        ),
        *("diff <(cat <<'E'\nx\nE\nls; id) a", "echo $({ cat <<'E'\nx\nE\nls; id; })"),
        *("echo $(if cat <<'E'\nx\nE\nthen ls; id; fi)", "echo $(echo \"$(cat <<'E'\nx\nE\n)\"; ls; id)"),
    ],
)
def test_what_could_run_something_else_is_not_read(line: str) -> None:
    assert isinstance(read_script(line), NotProvable)


@given(st.text(st.sampled_from(list("ls $x\"'`(){}[]<>&|;#~*?!=\\\n\t#ifdo0-")), max_size=40))
def test_any_text_gets_an_answer(line: str) -> None:
    read_script(line)


@needs_bash
def test_bash_runs_no_program_that_was_not_proved() -> None:
    assert unproved(LINES, seed=int(os.environ.get("GRIPFAST_LEVEL_TWO_SEED", "3"))) == []


@needs_bash
def test_bash_runs_no_program_that_was_not_proved_in_the_lines_kept_as_data() -> None:
    kept = [*(line for family in FAMILIES for line in attacks(family)), *lines_of("once_asked")]
    scripts = [
        (line, read_script(line)) for line in kept if not any(word in line for word in ("sleep", "while", "until"))
    ]
    accepted = [(line, script) for line, script in scripts if isinstance(script, Script) and observable(script)]
    assert len(accepted) > 500
    assert faults(accepted) == []


@needs_bash
def test_the_comparison_with_bash_can_fail() -> None:
    wrong = read_script("ls a")
    assert isinstance(wrong, Script)
    assert faults([("ls b", wrong)]) == [("ls b", ("ls", "b"))]


def test_the_generator_reaches_both_answers() -> None:
    lines = generated(random.Random(1))
    answers = [isinstance(read_script(next(lines)), Script) for _ in range(1000)]
    assert 200 < sum(answers) < 950


# --- what rules make of it ---


@pytest.mark.parametrize("name", ["read-only", "workspace"])
def test_a_word_that_may_be_an_option_is_only_for_programs_that_no_option_makes_dangerous(name: str) -> None:
    for line in ("grep x *.py", "wc -l *", "cat -- *", "ls src/*", "sort ./*.txt", "sort -- *.txt"):
        assert judged(name, line).action == "allow", line
    for line in ("sort *.txt", "find * -name x", "rg x *", 'git log "$x"'):
        assert "may be an option" in judged(name, line, sandboxed=True).reason, line


def test_a_place_that_nobody_knows_is_read_only_in_a_sandbox_and_written_never() -> None:
    assert judged("workspace", 'cat "$x"').action == "ask"
    assert judged("workspace", 'cat "$x"', sandboxed=True).action == "allow"
    assert judged("workspace", 'x=/etc/passwd; cat "$x"', sandboxed=True).action == "ask"
    assert judged("workspace", "cat ~/.ssh/id_rsa", sandboxed=True).action == "ask"
    for line in ('ls > "$x"', 'tee "$x"', 'cp a "$x"', 'sed -i s/a/b/ -- "$x"'):
        assert judged("workspace", line, sandboxed=True).action == "ask", line


def test_a_file_that_is_written_is_judged_like_write_in_every_directory_the_line_may_be_in() -> None:
    for line in (
        "ls > out",
        "cd src && ls >> a/out",
        "sed -i 's/a/b/g' src/a.py",
        "cp a b && mv b c",
        "ls | tee out",
    ):
        assert judged("workspace", line).action == "allow", line
        assert judged("read-only", line).action != "allow", line
    for line in (
        "ls > .git/config",
        "cd .git && ls > config",
        "cd .git; cd hooks; ls > x",
        "cp x .git/hooks/y",
        "ls > ../x",
    ):
        assert judged("workspace", line).action == "ask", line


def test_a_program_is_the_file_it_resolves_to() -> None:
    files = {"ls": f"{ROOT}/bin/ls", "cat": "/usr/bin/cat", "pytest": f"{ROOT}/.venv/bin/pytest"}
    assert "and not the system's" in judged("read-only", "ls", file_of=files.get).reason
    assert judged("read-only", "cat a", file_of=files.get).action == "allow"
    shadowed = {"timeout": f"{ROOT}/timeout"}
    assert judged("workspace", "timeout 5 ls", file_of=shadowed.get).action == "ask"
    assert (
        judged("workspace", "pytest -q && .venv/bin/pytest && .venv/bin/python -m pytest", file_of=files.get).action
        == "allow"
    )
    assert judged("workspace", ".venv/bin/ls", file_of=files.get).action == "ask"
    for file, action in ((f"{ROOT}/.venv/bin/pip", "allow"), ("/usr/bin/pip", "ask")):
        assert judged("workspace", "pip install -r requirements.txt", file_of={"pip": file}.get).action == action


def all_locked(directory: str, name: str) -> bool:
    return True


def nothing_lost(path: str) -> None:
    return None


def no_dashes(directory: str) -> bool:
    return False


def only_typescript(directory: str, name: str) -> bool:
    return name in ("tsx", "tsc", "tsgo")


def test_npx_runs_what_the_lock_file_names() -> None:
    assert judged("workspace", "npx tsc --noEmit", is_locked=only_typescript).action == "allow"
    assert "no lock file names" in judged("workspace", "npx tsc --noEmit").reason


def test_npx_runs_no_program_that_runs_its_words_or_publishes() -> None:
    lines = (
        *("npx tsc@evil", "npx github:evil/x", "npx ./evil", "npx ../evil", "npx http://evil", "npx file:x"),
        *(
            "npx npm publish",
            "npx lerna publish",
            "npx nx release",
            "npx changeset publish",
            "npx np",
            "npx eas submit",
        ),
        *("npx shx rm -rf x", "npx cross-env A=b rm x", "npx concurrently 'rm x'", "npx nodemon --exec 'rm x'"),
        *(
            "npx dotenv -- rm x",
            "npx zx -e x",
            "npx tsx -e x",
            "npx tsx --eval=x",
            "npx sh x",
            "npx prisma migrate reset",
        ),
        *("npx esbuild x --outfile=/etc/x", "npx esbuild x --outfile=.git/hooks/x", "npx eslint -o/etc/x ."),
        *("npx tsx", "npx firebase deploy", "npx supabase db push", "npx ngrok http 80", "npx rimraf src"),
    )
    allowed = [line for line in lines if judged("workspace", line, is_locked=all_locked).action == "allow"]
    assert allowed == []
    for line in ("npx tsc -p packages/core", "npx vitest run -c vitest.config.ts", "npx esbuild src/a.ts --bundle"):
        assert judged("workspace", line, is_locked=all_locked).action == "allow", line


def test_rm_is_asked_about_unless_it_can_be_undone() -> None:
    assert judged("workspace", "rm a").action == "ask"
    lost = {f"{ROOT}/.env": "ignored by git"}
    for name in ("workspace", "trusted"):
        for line in ("rm -rf src", "rm -f a b", "cd src && rm -r a", "rm -f src/*.o"):
            assert judged(name, line, removal_problem=nothing_lost).action == "allow", line
        for line in ("rm -f .env", "rm -rf a .env", 'rm -rf "$x"', "rm -rf $(ls)", "git checkout main && rm -f a"):
            assert judged(name, line, removal_problem=lost.get).action == "ask", line
    for line in ("rm /etc/x", "rm ../x", "rm -rf .git", "rm a .git/config"):
        assert judged("workspace", line, removal_problem=nothing_lost).action == "ask", line


def test_a_pattern_is_no_option_where_no_name_starts_with_a_dash() -> None:
    for line in ("sort *.txt", "sed -i s/a/b/ *.ts", "cd src && sed -n 1p *.ts", "rg x *"):
        assert judged("workspace", line, has_dashes=no_dashes).action == "allow", line
        assert judged("workspace", line, has_dashes=bool).action == "ask", line
    for line in (
        "npm test && sort *.txt",
        "cp -- a ./-o; sort *.txt",
        "ls > -o; sort *.txt",
        "git stash pop; sort *.txt",
        "for i in 1 2; do sort *.txt; done",
        "sort -*",
        "sort $x*",
    ):
        assert judged("workspace", line, has_dashes=no_dashes).action == "ask", line


def test_what_find_runs_is_judged() -> None:
    for line in ("find . -exec grep x {} +", "find src lib -type f -exec wc -l {} \\;", "find -exec cat {} \\;"):
        for name in ("read-only", "workspace", "trusted"):
            assert judged(name, line).action == "allow", line
    for line in ("find . -exec rm {} +", "find . -exec touch {} +", "find / -exec cat {} +", "find . -exec $x {} +"):
        assert judged("workspace", line).action == "ask", line
    assert judged("trusted", "find . -exec rm -rf {} +").action == "ask"


def test_a_program_that_another_program_runs_is_a_file_and_not_the_shells_own() -> None:
    files = {"echo": f"{ROOT}/bin/echo"}
    for line in ("xargs echo", "timeout 5 echo x", "env echo x", "find . -exec echo {} +", "nohup echo x"):
        assert judged("workspace", line, sandboxed=True).action == "allow", line
        assert judged("workspace", line, sandboxed=True, file_of=files.get).action == "ask", line
    assert judged("workspace", "echo x; command echo x", file_of=files.get).action == "allow"


def test_git_in_another_directory_is_judged_there() -> None:
    def runs(where: str, looks: bool) -> str | None:
        return "git may run something" if where == f"{ROOT}/sub" else None

    assert judged("read-only", "git -C lib log", git_runs=runs).action == "allow"
    assert judged("read-only", "git -C sub log", git_runs=runs).action == "ask"
    assert judged("read-only", "git log", git_runs=runs).action == "allow"


def test_what_export_sets_is_known_to_calculations_and_to_make() -> None:
    assert judged("workspace", "export CI=1 && npm test").action == "allow"
    for line in ("export PATH=.; ls", "export i='a[$(id)]'; echo $((i))", "export X=evil; make", "X=evil; make"):
        assert judged("workspace", line).action == "ask", line
    assert judged("trusted", "export GIT_SSH_COMMAND=x; ls").action == "ask"


@pytest.mark.parametrize("name", ["workspace", "trusted"])
def test_a_variable_that_only_changes_what_is_built_or_printed_may_be_set(name: str) -> None:
    for line in (
        *(
            "CGO_ENABLED=0 go build",
            "GOOS=linux GOARCH=amd64 go build ./...",
            "CI=1 npm test",
            "NODE_ENV=test npm test",
        ),
        *("RUST_BACKTRACE=1 cargo test", "RUST_LOG=debug cargo test", "DEBUG=x npm test", "COLUMNS=200 pytest"),
        *("PYTHONUNBUFFERED=1 pytest -q", "PYTHONDONTWRITEBYTECODE=1 pytest", "CARGO_TERM_COLOR=never cargo build"),
    ):
        assert judged(name, line).action == "allow", line
    for line in (
        *("GOFLAGS=-toolexec=./x go build", "GOROOT=x go build", "CGO_CFLAGS=x go build", "GOOS=$x go build"),
        *(
            "CGO_ENABLED=./x go build",
            "NODE_OPTIONS=-r./x npm test",
            "RUSTC=./x cargo test",
            "PYTHONSTARTUP=x pytest",
        ),
        *(
            "PYTHONHOME=x pytest",
            "PYTHONUNBUFFERED=$(id) pytest",
            "COLUMNS='a[$(id)]' ls",
            "TERM=../x ls",
            "LINES+=1 ls",
        ),
    ):
        assert judged(name, line).action == "ask", line


@pytest.mark.parametrize("name", ["workspace", "trusted"])
def test_variables_of_the_lines_own_in_lower_case_are_only_words(name: str) -> None:
    for line in ("tmp=x; ls $tmp", "pytest_args=-q; ls", "path=src; ls $path", "for config in a b; do ls; done"):
        assert judged(name, line, sandboxed=True).action == "allow", line
    for line in (
        "https_proxy=x ls",
        "npm_config_script_shell=x npm test",
        "histchars=x; ls",
        "Path=x ls",
        "TMP=x ls",
    ):
        assert judged(name, line, sandboxed=True).action == "ask", line


@pytest.mark.parametrize(
    ("line", "name", "action"),
    [
        ("NODE_OPTIONS=--max-old-space-size=4096 npm test", "workspace", "allow"),
        ("NODE_OPTIONS='--no-warnings --require=./x' npm test", "trusted", "ask"),
        ("CC=clang CFLAGS='-O2 -Wall' make", "trusted", "allow"),
        ("CC=./clang make", "trusted", "ask"),
        ("CFLAGS='-O2 -fplugin=x' make", "trusted", "ask"),
        ("CFLAGS=-B. make", "trusted", "ask"),
        ("RUSTFLAGS='-D warnings -C target-cpu=native' cargo test", "workspace", "allow"),
        ("RUSTFLAGS='-C linker=x' cargo build", "trusted", "ask"),
        ("GOFLAGS=-mod=mod go build ./...", "workspace", "allow"),
        ("MAVEN_OPTS=-Xmx1g mvn test", "workspace", "allow"),
        ("MAVEN_OPTS=-javaagent:x mvn test", "trusted", "ask"),
        ("JAVA_HOME=/usr/lib/jvm/java-21 mvn test", "workspace", "allow"),
        ("JAVA_HOME=/usr/lib/jvm/../../x mvn test", "trusted", "ask"),
        ("DJANGO_SETTINGS_MODULE=shop.settings pytest", "workspace", "allow"),
        ("export FLASK_APP=shop.app; flask run", "trusted", "allow"),
        ("FLASK_APP=/tmp/x.py ls", "trusted", "ask"),
    ],
)
def test_a_toolchain_may_be_told_what_runs_nothing_else(line: str, name: str, action: str) -> None:
    assert judged(name, line, sandboxed=True).action == action


def test_settings_that_only_applications_read_may_be_given_where_any_code_of_the_project_may_run() -> None:
    files = {"flask": f"{ROOT}/.venv/bin/flask"}
    for line in (
        *("APP_CONFIG=dev.toml npm start", "DATA_DIR=data python3 x.py", "REDIS_URL=redis://localhost ./serve"),
        *("FLASK_APP=shop/app.py flask run", "BUILD_DIR=build; ls $BUILD_DIR", "export LOG_FILE=x.log; npm test"),
        *("set -a; source .env; set +a; npm test", ". ./conf/.env.local && npm test"),
    ):
        assert judged("trusted", line, sandboxed=True, file_of=files.get).action == "allow", line
        assert judged("workspace", line, sandboxed=True, file_of=files.get).action == "ask", line
        assert judged("read-only", line, sandboxed=True, file_of=files.get).action != "allow", line
    for line in (
        *("APP_CONFIG=x ls", "GIT_CONFIG_FILE=x npm test", "BASH_MODULE=x npm test", "DATA_DIR=x git push"),
        *("export GIT_DIR=x; npm test", "set -a; PATH=x; ls", "source /tmp/.env", "source ../.env", "source x"),
        *("source .env; git push", "source .env x", "set -ax", "PATH_DIR=x PATH=. npm test", "SSL_CERT_FILE=x; ls"),
    ):
        assert judged("trusted", line, sandboxed=True, file_of=files.get).action == "ask", line
    assert judged("trusted", "source .env").action == "ask"  # it would run outside a sandbox


def test_a_wrapper_may_run_what_the_project_has_installed_where_any_program_may_run() -> None:
    files = {name: f"{ROOT}/.venv/bin/{name}" for name in ("flask", "rm", "git")}
    for line in ("uv run flask --app shop.app run", "timeout 5 flask run", "uv run python -c 'import x; print(1)'"):
        assert judged("trusted", line, sandboxed=True, file_of=files.get).action == "allow", line
    for line in ("uv run git push", "timeout 5 rm -rf src", "uv run twine upload dist/a"):
        rules = judged("trusted", line, sandboxed=True, file_of=files.get, removal_problem=nothing_lost)
        assert rules.action == "ask", line


def test_a_question_about_a_written_place_is_asked_only_where_a_yes_matters() -> None:
    def refused(path: str) -> str | None:
        return None if path.startswith(f"{ROOT}/") else f"`{path}` is outside"

    def written(line: str, *, sandboxed: bool = True) -> str:
        return judged("trusted", line, sandboxed=sandboxed, writes_to=refused, home="/home/u").action

    for line in ("echo x > $TMPDIR/a", 'echo x >> "$TMPDIR/a/b"', 'echo x > "${TMPDIR}"/a'):
        assert written(line) == "allow", line
        assert written(line, sandboxed=False) == "ask", line
    for line in ("cat a >> ~/.bashrc", "echo x > ~/a/../b"):
        assert written(line) == "deny", line
        assert written(line, sandboxed=False) == "ask", line
    for line in (
        "echo x > $TMPDIR/../a",
        "echo x > $TMPDIR$y",
        "echo x > ~u/a",
        "echo x > ~$y",
        'echo x > "$HOME"/a',
    ):
        assert written(line) == "ask", line


def test_a_denial_by_rule_is_stricter_than_one_by_the_sandbox() -> None:
    rules = Permissions("allow", [PermissionRule("Bash", "git push *", "deny")])
    facts = Facts(sandboxed=True, writes_to=lambda path: "protected")
    line = "echo x > a; git push"
    decision = rules.within((ROOT,), facts).judge(tool="Bash", effect="run", spellings=(line,))
    assert decision.action == "deny" and not decision.by_sandbox and "git push" in decision.reason


def test_what_an_option_of_read_is_given_is_no_variable() -> None:
    for line in ("read -p 'name? ' n", "read -rp 'name? ' n", "read -r -d '' x", "read -t 5 -n 1 key"):
        assert judged("trusted", line).action == "allow", line
    for line in ("read -p 'x' PATH", "read -rp x IFS", "read -r PATH", "read -- PATH", "read -p PATH -r PATH"):
        assert judged("trusted", line).action == "ask", line


def test_python_may_be_told_where_its_modules_are_only_where_any_code_of_the_project_may_run() -> None:
    for line in (
        "PYTHONPATH=src python3 x.py",
        "PYTHONPATH=src:lib pytest -q",
        f"PYTHONPATH={ROOT}/src .venv/bin/python x.py",
    ):
        assert judged("trusted", line).action == "allow", line
        assert judged("workspace", line).action == "ask", line
        assert judged("read-only", line).action == "deny", line
    for line in (
        *(
            "PYTHONPATH=/tmp/x python3 x.py",
            "PYTHONPATH=src:../x pytest",
            "PYTHONPATH=$x pytest",
            "PYTHONPATH=src ls",
        ),
        *(
            "PYTHONPATH+=:src pytest",
            "PYTHONPATH=src; pytest",
            "export PYTHONPATH=src; pytest",
            "PYTHONPATH=~/x pytest",
        ),
        *(
            "bash -c 'PYTHONPATH=/tmp/x python3 x.py'",
            "PYTHONPATH=src LD_PRELOAD=x pytest",
            "PYTHONPATH=src git push",
        ),
        *("PYTHONPATH=src python3 -m twine upload dist/a", "env PYTHONPATH=src python3 x.py"),
    ):
        assert judged("trusted", line).action == "ask", line


def test_an_environment_of_the_workspace_is_activated_from_a_directory_below() -> None:
    for name in ("workspace", "trusted"):
        for line in (
            "source ../.venv/bin/activate && pytest",
            f". {ROOT}/venv/bin/activate",
            "source ../../.venv/bin/activate",
        ):
            assert judged(name, line, directory=lambda: f"{ROOT}/a/b").action == "allow", line
        for line in (
            *(
                "source ../../../.venv/bin/activate",
                "source /tmp/.venv/bin/activate",
                "source ../x/../.venv/bin/activate",
            ),
            *(
                "cd c && source ../.venv/bin/activate",
                'source "$x"/.venv/bin/activate',
                "source ../.venv/bin/activate x",
            ),
            *("source ../.venv/bin/evil", "source ../venv/bin/activate.d", "source x"),
        ):
            assert judged(name, line, directory=lambda: f"{ROOT}/a/b").action == "ask", line
        assert judged(name, "source ../.venv/bin/activate", directory=lambda: ROOT).action == "ask"


@pytest.mark.parametrize("name", ["workspace", "trusted"])
def test_git_reset_is_allowed_where_it_leaves_every_file_as_it_is(name: str) -> None:
    for line in (
        "git reset",
        "git reset HEAD a",
        "git reset -q -- a b",
        "git reset --soft HEAD~1",
        "git reset HEAD~1",
    ):
        assert judged(name, line).action == "allow", line
    for line in (
        *(
            "git reset --hard",
            "git reset --ha HEAD~1",
            "git reset --soft --hard",
            "git reset --keep HEAD~1",
            "git reset $x",
        ),
        *("git reset --merge", "git reset -p", "git reset --pathspec-from-file=/etc/x", "git -c alias.x=y reset"),
        *("git -C ../x reset --hard", "git --git-dir=x reset", "git reset --recurse-submodules", "xargs git reset"),
    ):
        assert judged(name, line).action == "ask", line
    assert judged("read-only", "git reset").action == "deny"


def test_a_reason_names_what_decided() -> None:
    reason = judged("trusted", 'eval "$(ssh-agent)"').reason
    assert reason == '`eval` may run `"$(ssh-agent)"`, which is known only when the line runs'
    assert "git push" in judged("trusted", 'git "$x" origin').reason


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("uvx ruff check .", "`uv run ruff`"),
        ("uv tool install ruff", "add it to the project"),
        ("npm i -g x", "add it to the project"),
        ("npm install --global x", "add it to the project"),
        ("npm install lodash", "name it in package.json"),
        ("pip install requests", "`python3 -m venv .venv`"),
        ("python3 -m pip install requests", "`python3 -m venv .venv`"),
        ("cargo install x", "add it to the project"),
    ],
)
def test_a_question_about_an_installation_says_what_would_work(line: str, instead: str) -> None:
    decision = judged("workspace", line)
    assert decision.action == "ask"
    assert instead in decision.reason


def test_the_command_inside_a_wrapper_is_judged() -> None:
    for line in ("timeout 60 ls", "xargs grep -l x", "env A=b ls", "nohup ls", "uv run pytest -q"):
        assert judged("workspace", line, sandboxed=True).action == "allow", line
    for line in ("timeout 60 mytool", "xargs rm", "env PATH=. ls", "uv run mytool", "xargs sort"):
        assert judged("workspace", line, sandboxed=True).action == "ask", line


def test_a_shell_that_is_not_bash_is_judged_by_level_one_alone() -> None:
    assert judged("workspace", "ls | head", is_bash=False).action == "allow"
    assert judged("workspace", "ls 2>&1", is_bash=False).action == "ask"


def test_a_shell_outside_the_workspace_is_asked_about() -> None:
    assert "is outside the workspace" in judged("workspace", "ls", directory=lambda: "/etc").reason
    assert judged("workspace", f"cd {ROOT} && ls", directory=lambda: "/etc").action == "allow"


@pytest.mark.parametrize(("name", "at_most"), [("workspace", 10), ("trusted", 3)])
@pytest.mark.parametrize("sandboxed", [False, True])
def test_a_days_work_asks_fewer_than_one_question_in_ten_commands(name: str, at_most: float, sandboxed: bool) -> None:
    lines = lines_of("day")
    asked = [
        line for line in lines if judged(name, line, sandboxed=sandboxed, is_locked=all_locked).action != "allow"
    ]
    assert len(lines) > 110
    assert 100 * len(asked) / len(lines) < at_most, asked


@pytest.mark.skipif(not DAY.exists(), reason="the lines of a real session are not here")
@pytest.mark.parametrize(("name", "at_most"), [("workspace", 10), ("trusted", 2)])
def test_a_real_days_lines_are_seldom_asked_about(name: str, at_most: float) -> None:
    lines = [line.replace("{root}", ROOT) for line in json.loads(DAY.read_text(encoding="utf-8"))]
    refused = [line for line in lines if judged(name, line, is_locked=only_typescript).action != "allow"]
    assert 100 * len(refused) / len(lines) <= at_most, refused


def test_no_line_that_opens_a_file_elsewhere_is_given_to_bash() -> None:
    """The tests may be run by root: bash would really empty the file."""
    for line in (
        "ls > /tmp/x",
        "ls > ../x",
        "ls >> a/../../x",
        "{ ls; } > /tmp/x",
        "for i in 1; do ls; done > /tmp/x",
    ):
        script = read_script(line)
        assert not isinstance(script, Script) or not observable(script)
    inside = read_script("ls > out 2> /dev/null")
    assert isinstance(inside, Script)
    assert observable(inside)
