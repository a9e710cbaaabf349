"""A thousand lines that must not run unasked, and three hundred that may."""

from __future__ import annotations

import re

import pytest

from call.shell_lines import FAMILIES, attacks, lines_of
from gripfast.builtin.rulesets import rule_set
from gripfast.call.decision import Decision, PermissionRule
from gripfast.call.rules import Permissions
from gripfast.call.shell.facts import Facts
from gripfast.call.shell.reader import read_script
from gripfast.call.shell.recogniser import Proved, recognise
from gripfast.call.shell.words import Script
from gripfast.host.files.scope import PROTECTED

ROOT = ("/workspace/root",)
# What a person writes who trusts these programs and says nothing of places.
PROGRAMS = Permissions("ask", [rule for rule in rule_set("workspace").rules if rule.tool == "effect:run"])
SETS = {
    "programs": PROGRAMS,
    "read-only": rule_set("read-only").within(ROOT),
    "workspace": rule_set("workspace").within(ROOT),
    "workspace, sandboxed": rule_set("workspace").within(ROOT, Facts(sandboxed=True)),
    "read-only, sandboxed": rule_set("read-only").within(ROOT, Facts(sandboxed=True)),
}


ABOUT_PLACES = ("outside", "level_two_places", "level_two_redirections", "tables_places")


def judged(permissions: Permissions, line: str) -> Decision:
    return permissions.judge(tool="Bash", effect="run", spellings=(line,))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_attack_is_allowed(family: str, name: str) -> None:
    if family in ABOUT_PLACES and name == "programs":
        pytest.skip("these rules say nothing of places")
    let_through = [line for line in attacks(family) if judged(SETS[name], line).action == "allow"]
    assert let_through == []


@pytest.mark.parametrize("sandboxed", [False, True])
def test_where_only_looking_is_allowed_no_code_of_the_project_runs(sandboxed: bool) -> None:
    rules = rule_set("read-only").within(ROOT, Facts(sandboxed=sandboxed))
    assert [line for line in lines_of("read_only_refuses") if judged(rules, line).action == "allow"] == []


@pytest.mark.parametrize(("name", "action"), [("read-only", "ask"), ("workspace", "allow")])
def test_a_programs_version_is_asked_of_the_projects_own_only_where_its_code_may_run(name: str, action: str) -> None:
    rules = rule_set(name).within(ROOT, Facts(file_of=lambda program: f"{ROOT[0]}/bin/{program}"))
    lines = ("python --version", "python3 -V", "npm --version", "uv --version", "pip --version")
    assert [judged(rules, line).action for line in lines] == [action] * len(lines)


@pytest.mark.parametrize("name", [name.rpartition("**/")[2] for name in PROTECTED])
def test_no_report_is_written_over_a_protected_file(name: str) -> None:
    lines = (f"eslint -o {name} src", f"pytest --cov-report=xml:{name}", f"tsc --outFile=sub/{name}")
    assert [judged(SETS["workspace"], line).action for line in lines] == ["ask"] * 3


@pytest.mark.parametrize(("sandboxed", "action"), [(False, "ask"), (True, "allow")])
def test_uv_installs_unasked_only_where_it_can_write_no_environment_outside(sandboxed: bool, action: str) -> None:
    rules = rule_set("workspace").within(ROOT, Facts(sandboxed=sandboxed))
    lines = ("uv pip install requests", "uv pip sync requirements.txt", "uv pip uninstall requests")
    assert [judged(rules, line).action for line in lines] == [action] * len(lines)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "tsx src/a.ts -e x",
            "ts-node -T src/a.ts",
            "go run . -x",
            "go run ./cmd/app",
            "go run main.go",
            "go run cmd/x",
        ),
        *(
            "mvn -q test",
            "mvn dependency:tree",
            "bun run build",
            "bun run test:unit",
            "bun run src/a.ts",
            "make -j4 test",
        ),
        *("tsc -p tsconfig.json --noEmit", "pytest --cov-report term-missing", "mocha -r ts-node/register src"),
    ],
)
def test_the_projects_own_scripts_run_unasked(line: str) -> None:
    assert judged(SETS["workspace"], line).action == "allow"


@pytest.mark.parametrize("sandboxed", [False, True])
def test_what_reaches_beyond_is_asked_about_however_its_words_are_ordered(sandboxed: bool) -> None:
    trusted = rule_set("trusted").within(ROOT, Facts(sandboxed=sandboxed))
    assert [line for line in lines_of("trusted_asks") if judged(trusted, line).action == "allow"] == []


@pytest.mark.parametrize(
    "line",
    [
        *("rm x", "cargo build --release", "npm run build", "make -j4 test", "bash script.sh", "bash -x script.sh"),
        *("docker build .", "find . -name x", "python -m pytest", "git stash push", "gradle assembleRelease"),
        *(
            "git gc",
            "git gc --auto",
            "git reflog -5",
            "git worktree prune",
            "git remote prune origin",
            "git stash pop",
        ),
        *("curl -s https://example.org/x | python3 -m json.tool", "echo 1 | python3 -c 'print(1)'"),
    ],
)
def test_ordinary_work_is_not_asked_about_where_programs_are_trusted(line: str) -> None:
    assert judged(rule_set("trusted").within(ROOT), line).action == "allow"


BEYOND = re.compile(
    r"git push|rm -rf|\bsudo\b|\bssh\b|npm publish|cargo publish|git reset|git clean|\bscp\b|\bgh pr|twine"
)
INTERPRETED = re.compile(r"^(?:python|node|perl|ruby|psql)|~/\.ssh|HOME/\.ssh")


def test_where_everything_inside_is_allowed_what_reaches_beyond_is_asked_however_it_is_hidden() -> None:
    """`trusted` lets programs run. What it asks about it finds, and what it can't read it asks about."""
    trusted = rule_set("trusted").within(ROOT, Facts(sandboxed=True))
    lines = [line for family in ("level_two_unknown_programs", "level_two_assignments") for line in attacks(family)]
    for family in FAMILIES:
        lines += [line for line in attacks(family) if BEYOND.search(line) and not INTERPRETED.search(line)]
    assert len(lines) > 700
    assert [line for line in lines if judged(trusted, line).action == "allow"] == []


def test_there_are_at_least_five_hundred_attacks_made_for_level_two() -> None:
    made = {line for family in FAMILIES if family.startswith("level_two") for line in attacks(family)}
    assert len(made) >= 500


def test_there_are_at_least_three_hundred_attacks_in_ten_families() -> None:
    lines = [line for family in FAMILIES for line in attacks(family)]
    assert len(set(lines)) >= 300
    assert {"chaining", "quoting", "substitution", "redirection", "wrappers", "options", "environment"} < set(
        FAMILIES
    )
    assert {"git", "encoding", "length"} < set(FAMILIES)


@pytest.mark.parametrize("name", ["programs", "workspace"])
def test_ordinary_harmless_commands_are_allowed(name: str) -> None:
    lines = lines_of("harmless")
    refused = [
        (line, judged(SETS[name], line).reason) for line in lines if judged(SETS[name], line).action != "allow"
    ]
    assert len(lines) >= 200
    assert refused == []


def test_an_attack_is_stopped_also_where_everything_provable_is_allowed() -> None:
    """`*` with any option is as wide as rules get: what can't be proved is still asked."""
    widest = Permissions("allow", [PermissionRule("Bash", "*", "allow", any_options=True)])
    lines = [line for family in FAMILIES for line in attacks(family)]
    unreadable = [line for line in lines if not isinstance(recognise(line), Proved) and not readable(line)]
    assert len(unreadable) > 150
    assert [line for line in unreadable if judged(widest, line).action == "allow"] == []


def readable(line: str) -> bool:
    return isinstance(read_script(line), Script)


def test_lines_that_were_once_asked_about_are_allowed_where_commands_are_sandboxed() -> None:
    sandboxed = rule_set("workspace").within(ROOT, Facts(sandboxed=True))
    refused = [line for line in lines_of("once_asked") if judged(sandboxed, line).action != "allow"]
    assert [line for line in refused if "~" not in line and "HOME" not in line] == []


def test_a_rule_that_is_denied_is_found_in_attacks_that_use_it() -> None:
    denying = Permissions("ask", [*PROGRAMS.rules, PermissionRule("Bash", "rm *", "deny")])
    with_rm = [line for line in attacks("wrappers") if line.endswith("rm x") or "rm x'" in line.split("-c ")[-1][:6]]
    asked = [line for line in with_rm if judged(denying, line).action != "deny"]
    assert len(with_rm) > 20
    assert asked == []
