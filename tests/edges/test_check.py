"""`gripfast check`: the decision, the rule that made it, every command seen; and rules that test themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gripfast.edges.cli import main
from gripfast.edges.rules_reference import with_table

SHELL = '''
from typing import Annotated
from pydantic import Field
from gripfast import tool

@tool(name="Shell", effect="run", subject="command")
def shell(command: Annotated[str, Field(description="A line.")]) -> str:
    """Runs a line."""
    raise AssertionError("check must not run anything")
'''
RULES = """
[permissions]
default_action = "ask"

[[permissions.rule]]
tool = "Shell"
pattern = "ls *"
action = "allow"
examples = ["ls", "ls -la src"]
counterexamples = ["ls --unknown", "lsof"]

[[permissions.rule]]
tool = "effect:run"
pattern = "rm *"
action = "deny"
examples = ["rm x", "sudo rm x", "echo $(rm x)"]

[[permissions.rule]]
tool = "Read"
pattern = "secret/**"
action = "deny"
examples = ["secret/a"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "shell.py").write_text(SHELL)
    (tmp_path / "rules.toml").write_text(RULES)
    return tmp_path


def check(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["check", "--root", "work", "--with", "shell.py", *words], input=stdin)


def decided(line: str, *more: str) -> dict[str, Any]:
    result = check("Shell", json.dumps({"command": line}), "--config", "rules.toml", "--json", *more)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_json_names_the_rule_and_every_command(folder: Path) -> None:
    found = decided("ls 'a b' | ls")
    assert found["decision"] == "allow"
    assert found["rule"] == {"tool": "Shell", "pattern": "ls *", "action": "allow", "source": "rules.toml, rule 1"}
    assert found["commands"] == [["ls", "a b"], ["ls"]]
    assert "rules.toml, rule 1" in found["reason"]


def test_json_of_a_line_that_can_not_be_proved_shows_what_was_seen(folder: Path) -> None:
    found = decided("ls $(id) ${!x}")
    assert (found["decision"], found["rule"]) == ("ask", None)
    assert "can't tell what this line runs" in found["reason"]
    assert ["id"] in found["commands"]
    found = decided("ls $(rm x)")
    assert (found["decision"], found["rule"]["pattern"]) == ("deny", "rm *")


def test_people_get_the_decision_the_reason_and_the_commands(folder: Path) -> None:
    result = check("Shell", '{"command": "ls \'a b\'; mytool"}', "--config", "rules.toml")
    assert result.stdout.splitlines() == [
        "ask: `mytool`: no rule matches it, and the default is ask",
        "  allow: ls 'a b'",
        "    `ls a b`: allowed by the rule Shell `ls *` (rules.toml, rule 1)",
        "  ask: mytool",
        "    `mytool`: no rule matches it, and the default is ask",
    ]


def test_what_is_shown_can_not_act_on_the_terminal(folder: Path) -> None:
    result = check("Shell", json.dumps({"command": "echo '\x1b[2K\u202e'"}), "--config", "rules.toml")
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout


def test_a_path_is_judged_requested_and_real(folder: Path) -> None:
    (folder / "work" / "secret").mkdir()
    (folder / "work" / "secret" / "a").write_text("x")
    (folder / "work" / "link").symlink_to("secret/a")
    for path in ("secret/a", "link", "secret/../link", str(folder / "work" / "link")):
        result = check("Read", json.dumps({"file_path": path}), "--config", "rules.toml", "--json")
        assert json.loads(result.stdout)["decision"] == "deny", path
    result = check("Read", '{"file_path": "other"}', "--config", "rules.toml", "--json")
    assert json.loads(result.stdout)["decision"] == "ask"


def test_arguments_may_come_from_standard_input(folder: Path) -> None:
    result = check("Shell", "-", "--config", "rules.toml", stdin='{"command": "ls"}')
    assert result.stdout.startswith("allow: ")


def test_without_rules_everything_is_allowed_and_that_is_said(folder: Path) -> None:
    found = check("Shell", '{"command": "rm x"}', "--set", "none").stdout
    assert found == "allow: there are no rules, so every tool may run\n"


def test_a_workspace_that_tries_to_widen_is_named(folder: Path) -> None:
    (folder / "work" / ".gripfast.toml").write_text('[permissions]\ndefault_action = "allow"')
    result = check("Shell", '{"command": "mytool"}', "--config", "rules.toml")
    assert result.stdout.startswith("ask: ")
    assert "ignored: " in result.stderr
    assert "can only narrow" in result.stderr


def test_the_examples_of_rules_are_tests(folder: Path) -> None:
    result = check("--rules", "--config", "rules.toml")
    assert (result.exit_code, result.stdout) == (0, "8 examples, 0 not judged as the rules say\n")
    wrong = RULES.replace('["ls", "ls -la src"]', '["ls --unknown"]').replace('"lsof"', '"ls src"')
    (folder / "rules.toml").write_text(wrong)
    result = check("--rules", "--config", "rules.toml")
    assert result.exit_code == 1
    assert "`ls --unknown`: expected allow, got ask" in result.stderr
    assert "`ls src`: is a counterexample, but this rule matches it (allow)" in result.stderr
    found = json.loads(check("--rules", "--config", "rules.toml", "--json").stdout)
    assert (found["tried"], len(found["faults"])) == (7, 2)


def test_a_rule_for_a_tool_that_is_not_there_stops_a_check_as_it_stops_a_call(folder: Path) -> None:
    (folder / "rules.toml").write_text(RULES.replace('tool = "Shell"', 'tool = "Shel"'))
    result = check("Bash", '{"command": "ls"}', "--config", "rules.toml")
    assert result.exit_code == 2
    assert "no tool named `Shel`" in result.stderr


def test_an_example_for_a_tool_that_is_not_there_is_a_fault(folder: Path) -> None:
    (folder / "rules.toml").write_text(RULES.replace('tool = "Shell"', 'tool = "Shel"'))
    result = check("--rules", "--config", "rules.toml")
    assert result.exit_code == 1
    assert "no tool named Shel" in result.stderr


def test_without_rules_of_ones_own_there_is_nothing_to_try(folder: Path) -> None:
    result = check("--rules")
    assert result.exit_code == 0
    assert "0 examples, 0 not judged as the rules say; you have no rules of your own" in result.stdout
    assert json.loads(check("--rules", "--json").stdout) == {"tried": 0, "faults": []}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["Nothing", "{}"], "no tool named `Nothing`"),
        (["Shell", "{"], "JSON"),
        (["Shell", '{"comand": "ls"}'], "command"),
        (["Shell", '{"command": "ls"}', "--config", "missing.toml"], "missing.toml: No such file"),
        ([], "give a tool"),
        (["Shell", "{}", "--rules"], "give a tool"),
    ],
)
def test_bad_usage_exits_2_and_says_what(folder: Path, words: list[str], told: str) -> None:
    result = check(*words)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_broken_config_is_bad_usage_and_never_an_answer(folder: Path) -> None:
    (folder / "rules.toml").write_text(RULES + "\n[permisions]\n")
    result = check("Shell", '{"command": "ls"}', "--config", "rules.toml", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "`permisions`: unknown key" in result.stderr


def test_the_guides_table_of_the_sets_is_what_they_do() -> None:
    page = Path(__file__).parents[2] / "docs" / "guides" / "choosing-rules.md"
    text = page.read_text(encoding="utf-8")
    assert with_table(text) == text, "run scripts/docs"


def test_a_log_is_judged_line_by_line_with_the_share_of_each_answer(folder: Path) -> None:
    for name, text in (
        ("log.json", '["ls", "ls -la\\nmytool", "git push"]'),
        ("log.txt", "ls\nmytool\n\ngit push\n"),
    ):
        (folder / name).write_text(text, encoding="utf-8")
        result = check("--log", str(folder / name), "--set", "workspace")
        shares = ["allow: 1 of 3 (33.3 %)", "ask: 2 of 3 (66.7 %)", "deny: 0 of 3 (0.0 %)"]
        assert result.stdout.splitlines()[-3:] == shares


def test_a_shell_line_is_judged_as_it_is_written(tmp_path: Path) -> None:
    for words in (["git push"], ["Bash", "git push"], ["Bash", '{"command": "git push"}']):
        done = CliRunner().invoke(main, ["check", *words, "--root", str(tmp_path), "--set", "trusted"])
        assert done.output.startswith("ask: `git push`")
