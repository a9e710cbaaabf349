"""Rules from the start: which hold without a configuration, what chooses others, and what an "always" may keep."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from gripfast.builtin.config import load_config, rules_by_name
from gripfast.builtin.rulesets import RULE_SETS, rule_set
from gripfast.builtin.tools import TOOLS
from gripfast.call.decision import PermissionRule
from gripfast.call.hooks import Answer, Question
from gripfast.edges.settings import SessionSettings
from gripfast.errors import InvalidArgument
from gripfast.framework.definition import tool

pytestmark = pytest.mark.anyio


@tool
def greeting() -> str:
    """Says hello."""
    return "hello"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "gripfast.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_without_a_configuration_the_set_is_chosen_by_the_sandbox(tmp_path: Path, work: Path) -> None:
    off = config(tmp_path, 'sandbox = "off"\n')
    assert SessionSettings((str(work),), config_file=off).config().rules == "workspace"
    assert load_config(off, rules=rules_by_name(None, runs=False)).rules == "trusted"


def test_a_name_chooses_a_set_and_none_chooses_none(tmp_path: Path, work: Path) -> None:
    off = config(tmp_path, 'sandbox = "off"\n')
    assert SessionSettings((str(work),), config_file=off, rules="read-only").config().rules == "read-only"
    bare = SessionSettings((str(work),), config_file=off, rules="none")
    assert bare.config().permissions is None
    assert bare.rules_in_words() == "none: every tool runs"
    with pytest.raises(InvalidArgument, match="no rules named 'strict'"):
        SessionSettings((str(work),), config_file=off, rules="strict").config()


def test_rules_of_the_users_own_come_before_those_of_the_set_that_is_named(tmp_path: Path, work: Path) -> None:
    rule = '[[permissions.rule]]\ntool = "Bash"\npattern = "mytool *"\naction = "deny"\n'
    own = f'[permissions]\nrule_set = "trusted"\n{rule}'
    found = SessionSettings((str(work),), config_file=config(tmp_path, own), rules="workspace").config()
    assert found.permissions is not None
    for line, action in (("mytool", "deny"), ("ls", "allow"), ("other", "ask")):
        assert found.permissions.judge(tool="Bash", effect="run", spellings=(line,)).action == action


def test_a_file_in_the_workspace_narrows_the_default_too(tmp_path: Path, work: Path) -> None:
    (work / ".gripfast.toml").write_text('[permissions]\nrule_set = "read-only"\n', encoding="utf-8")
    found = SessionSettings((str(work),), config_file=config(tmp_path, 'sandbox = "off"\n')).config()
    assert found.permissions is not None
    assert found.permissions.judge(tool="Write", effect="write", spellings=("a",)).action == "deny"


async def test_bash_says_which_rules_hold(tmp_path: Path, work: Path) -> None:
    settings = SessionSettings((str(work),), config_file=config(tmp_path, 'sandbox = "off"\n'))
    session, _ = settings.session()
    async with session:
        assert (
            "Rules: what leaves the workspace and unknown programs are asked about."
            in session.tools["Bash"].description
        )


class Person:
    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answers.pop(0)


async def test_always_for_the_leading_words_covers_what_follows_and_no_other_command(
    tmp_path: Path, work: Path
) -> None:
    person = Person("always_leading", False, False, False)
    settings = SessionSettings((str(work),), config_file=config(tmp_path, 'sandbox = "off"\n'))
    session, _ = settings.session(ask=person)
    async with session:
        for line in ("mytool a", "mytool b --x", "ls; mytool c"):
            assert "Permission denied" not in (await session.call("Bash", {"command": line})).text
        assert len(person.asked) == 1
        assert person.asked[0].widths()["always_leading"].startswith("`mytool …`, whatever follows")
        assert "remember" not in person.asked[0].widths()
        for line in ("mytool a; other", "mytool /etc/passwd > /etc/x", "other"):
            assert (await session.call("Bash", {"command": line})).is_error
    assert len(person.asked) == 4


async def test_what_runs_its_words_or_is_about_a_place_has_no_leading_words(tmp_path: Path, work: Path) -> None:
    lines = ("bash -c x", "sudo ls", "find . -delete", "rm ../x", "cat /etc/passwd", "ls > ../x", "$x", 'mytool "$x"')
    lines += ("git push --receive-pack=./x .", "git push --exec ./x .", "git push --rece=./x .")
    person = Person(*[False for _ in lines])
    settings = SessionSettings((str(work),), config_file=config(tmp_path, 'sandbox = "off"\n'))
    session, _ = settings.session(ask=person)
    async with session:
        for line in lines:
            await session.call("Bash", {"command": line})
    assert [question.leading for question in person.asked] == [() for _ in lines]


async def test_what_is_remembered_is_a_rule_in_the_users_own_file(work: Path) -> None:
    settings = SessionSettings((str(work),), rules="workspace", remember=True)
    session, _ = settings.session(ask=Person("remember"))
    async with session:
        await session.call("Bash", {"command": "mytool run x"})
    written = work.parent / "config" / "gripfast" / "gripfast.toml"
    assert 'pattern = "mytool *"' in written.read_text(encoding="utf-8")
    found = SessionSettings((str(work),)).config()
    assert found.rules == "workspace"
    assert found.permissions is not None
    assert found.permissions.judge(tool="Bash", effect="run", spellings=("mytool --y",)).action == "allow"


async def test_a_tool_that_the_user_adds_runs_by_default_and_is_asked_about_under_a_named_set(
    tmp_path: Path, work: Path
) -> None:
    off = config(tmp_path, 'sandbox = "off"\n')
    tools = (*TOOLS, greeting)
    for rules, answer in ((None, "hello"), ("workspace", "Permission denied: greeting: no rule matches it")):
        session, _ = SessionSettings((str(work),), tools, config_file=off, rules=rules).session()
        async with session:
            assert (await session.call("greeting")).text.startswith(answer)


@pytest.mark.parametrize("name", RULE_SETS)
def test_every_rule_of_a_ready_made_set_passes_the_checks_of_a_rule(name: str) -> None:
    for rule in rule_set(name).rules:
        given = {field.name: getattr(rule, field.name) for field in fields(rule)}
        assert PermissionRule(**given) == rule
