"""The configuration: read whole or refused with the place; a file in the workspace only takes away."""

from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path

import pytest

from gripfast.builtin.config import Config, load_config, parse_config, refuse_unknown_tools
from gripfast.builtin.rulesets import RULE_SETS, rule_set
from gripfast.call.decision import Action
from gripfast.call.examples import check_examples
from gripfast.call.rules import Permissions
from gripfast.errors import InvalidArgument
from gripfast.host.files.scope import PROTECTED
from gripfast.host.program.config import LARGEST, config_texts

FULL = """
deny = ["secrets/**"]
protect = [".git"]
encoding = "shift_jis"
sandbox = "require"
env = ["MY_VARIABLE", "APP_*"]
store = "redis://localhost"
require_read = false
profile = "agent"

[permissions]
default_action = "ask"
inside_only = true

[[permissions.rule]]
tool = "Bash"
pattern = "mytool *"
action = "allow"
examples = ["mytool -v x"]
counterexamples = ["mytool --evil"]

[[permissions.rule]]
tool = "*"
pattern = ".env"
action = "deny"

[programs.mytool]
options = ["-v", "--level="]
operands = "inside"

[programs."git fetch"]
operands = "none"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's config directory and a workspace, side by side."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "gripfast").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    return tmp_path


def users_own(folder: Path, text: str) -> None:
    (folder / "config" / "gripfast" / "gripfast.toml").write_text(text)


def workspace_says(folder: Path, text: str) -> None:
    (folder / "work" / ".gripfast.toml").write_text(text)


def loaded(folder: Path) -> Config:
    return load_config(roots=[str(folder / "work")])


def bash(config: Config, line: str) -> Action:
    assert config.permissions is not None
    return config.permissions.judge(tool="Bash", effect="run", spellings=(line,)).action


def reading(config: Config, path: str) -> Action:
    assert config.permissions is not None
    return config.permissions.judge(tool="Read", effect="read", spellings=(path,)).action


# --- where ---


def test_without_a_file_everything_has_its_default(folder: Path) -> None:
    assert loaded(folder) == Config()
    assert Config().permissions is None
    assert Config().protect == PROTECTED


@pytest.mark.parametrize("place", ["config/gripfast/gripfast.toml", "config/gripfast.toml"])
def test_the_users_file_is_found_in_the_config_directory(folder: Path, place: str) -> None:
    (folder / place).write_text("require_read = false")
    assert loaded(folder) == Config(require_read=False, files=(str(folder / place),))


def test_two_files_of_the_user_are_refused(folder: Path) -> None:
    users_own(folder, "")
    (folder / "config" / "gripfast.toml").write_text("")
    with pytest.raises(InvalidArgument, match=r"two configurations: .*keep one"):
        loaded(folder)


def test_without_xdg_it_is_the_dot_config_of_the_home_directory(tmp_path: Path) -> None:
    (tmp_path / ".config" / "gripfast").mkdir(parents=True)
    (tmp_path / ".config" / "gripfast" / "gripfast.toml").write_text("a")
    found = config_texts(None, [], {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "relative/is/ignored"})
    assert [(text.text, text.trusted) for text in found] == [("a", True)]
    assert config_texts(None, [], {}) == []


def test_a_file_that_is_named_takes_the_place_of_the_users(folder: Path) -> None:
    users_own(folder, "not toml at all")
    named = folder / "team.toml"
    named.write_text("require_read = false")
    assert load_config(str(named)).files == (str(named),)
    with pytest.raises(InvalidArgument, match="No such file"):
        load_config(str(folder / "missing.toml"))


def test_a_workspace_file_that_is_named_is_trusted(folder: Path) -> None:
    workspace_says(folder, "require_read = false")
    path = str(folder / "work" / ".gripfast.toml")
    config = load_config(path, [str(folder / "work")])
    assert (config.require_read, config.files, config.ignored) == (False, (path,), ())


# --- what ---


def test_every_key_is_read() -> None:
    config = parse_config(FULL, "x.toml")
    assert config.permissions is not None
    rules = config.permissions.rules
    assert (config.deny, config.protect, config.encoding) == (("secrets/**",), (".git",), "shift_jis")
    assert (config.sandbox, config.env, config.store) == ("require", ("MY_VARIABLE", "APP_*"), "redis://localhost")
    assert (config.require_read, config.profile) == (False, "agent")
    assert (config.permissions.default_action, config.permissions.inside_only) == ("ask", True)
    assert [rule.source for rule in rules] == ["x.toml, rule 1", "x.toml, rule 2"]
    assert (rules[0].examples, rules[0].counterexamples) == (("mytool -v x",), ("mytool --evil",))
    assert bash(config, "mytool -v --level 3 src") == "allow"
    assert bash(config, "mytool --evil") == "ask"
    assert bash(config, "mytool ../x") == "ask"


def test_protect_may_be_lifted_by_the_user() -> None:
    assert parse_config("protect = []").protect == ()


@pytest.mark.parametrize("name", RULE_SETS)
def test_a_rule_set_is_taken_by_name_with_own_rules_before_it(name: str) -> None:
    rule = '[[permissions.rule]]\ntool = "Bash"\npattern = "mytool *"\naction = "allow"\n'
    config = parse_config(f'[permissions]\nrule_set = "{name}"\n{rule}')
    assert config.permissions is not None
    assert config.permissions.default_action == rule_set(name).default_action
    assert bash(config, "mytool x") == "allow"
    assert bash(config, "ls -la") == "allow"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("deny = [", r"x\.toml: not TOML: .*end of document"),
        ("a = 1\nb = \nc = 2", r"not TOML: .*line 2, column 5"),
        ("deny = []\ndeny = []", "not TOML: Cannot overwrite"),
        ("denny = []", r"`denny`: unknown key; did you mean `deny`\?"),
        ("[permision]", "unknown key; did you mean `permissions`"),
        ('encoding = "utf-7"', "`encoding`: encoding 'utf-7' doesn't keep ASCII text"),
        ("zzz = 1", "unknown key; use one of permissions, programs, deny"),
        ("[permissions]", r"\[permissions\] needs `default_action`"),
        ('[permissions]\ndefault_action = "alow"', "`permissions.default_action`.*'alow'"),
        ("[permissions]\ndefault_action = true", "`permissions.default_action`"),
        ('[permissions]\ndefault = "ask"', "`permissions.default`: unknown key; did you mean `default_action`"),
        ('[permissions]\nrule_set = "safe"', "use one of read-only, workspace, trusted"),
        (
            '[permissions]\ndefault_action = "ask"\n[[permissions.rule]]\ntool = "Bash"\naction = "allow"\n'
            '[[permissions.rule]]\ntool = "Bash"\naction = "yes"',
            r"`permissions.rule\[2\].action`.*'yes'",
        ),
        ('[permissions]\ndefault_action = "ask"\nrule = [{tool = "Bash"}]', r"`permissions.rule\[1\].action`: field"),
        (
            '[permissions]\ndefault_action = "ask"\nrule = [{tool = "Bash", action = "deny", patern = "x"}]',
            r"`permissions.rule\[1\].patern`: unknown key; did you mean `pattern`",
        ),
        (
            '[permissions]\ndefault_action = "ask"\nrule = [{tool = "Bash", action = "deny", pattern = "ls ["}]',
            r"`permissions.rule\[1\]`: the glob pattern .* '\[' is not closed",
        ),
        (
            '[permissions]\ndefault_action = "ask"\nrule = [{tool = "Bash", action = "deny", pattern = ""}]',
            "empty pattern",
        ),
        ('sandbox = "maybe"', "`sandbox`.*'maybe'"),
        ("require_read = 1", "`require_read`.*boolean, not 1"),
        ('deny = "x"', "`deny`.*list, not 'x'"),
        ('deny = ["["]', "`deny`: the path pattern"),
        ('protect = [""]', "`protect`"),
        ('encoding = "klingon"', "`encoding`: unknown encoding 'klingon'"),
        ('env = ["A B"]', "`env`: 'A B' is not a variable's name"),
        ('profile = ""', "`profile`"),
        ("[programs.x]\noptions = []", "no effect without"),
        ('[permissions]\ndefault_action="ask"\n[programs.x]\noptions=["v"]', "`programs.x`: 'v' is not an option"),
        ('[permissions]\ndefault_action="ask"\n[programs.x]\noptions=["-vv"]', "style = 'words'"),
        ('[permissions]\ndefault_action="ask"\n[programs.x]\noperands="most"', "use one of any, paths"),
        ('[permissions]\ndefault_action="ask"\n[programs.x]\nstyle="odd"', "use gnu or words"),
        ('[permissions]\ndefault_action="ask"\n[programs."a b c d"]', "one to three words"),
        ("x = " + "[" * 5000, "nested too deeply|not TOML"),
    ],
)
@pytest.mark.parametrize("inside_the_workspace", [False, True])
def test_a_file_that_is_wrong_stops_the_start_and_says_where(
    folder: Path, text: str, where: str, inside_the_workspace: bool
) -> None:
    if inside_the_workspace and ("no effect" in where or "needs" in where):
        pytest.skip("harmless where it can only narrow")
    path = folder / "work" / ".gripfast.toml" if inside_the_workspace else folder / "x.toml"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=where.replace(r"x\.toml", r"\.toml")) as caught:
        load_config(None if inside_the_workspace else str(path), [str(folder / "work")])
    assert caught.value.message.startswith(str(path))


def test_all_faults_of_a_file_are_told_together() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_config('denny = []\nsandbox = "maybe"')
    assert "denny" in caught.value.message
    assert "maybe" in caught.value.message


def test_files_that_are_no_files_are_refused(folder: Path) -> None:
    users_own(folder, "")
    inside = folder / "work" / ".gripfast.toml"
    inside.symlink_to(folder / "config" / "gripfast" / "gripfast.toml")
    assert loaded(folder).ignored == ()  # the user's own file, by another name, is read once
    inside.unlink()
    inside.symlink_to("/etc/hostname")
    with pytest.raises(InvalidArgument, match="symbolic links"):
        loaded(folder)
    inside.unlink()
    os.mkfifo(inside)
    with pytest.raises(InvalidArgument, match="not a regular file"):
        loaded(folder)
    inside.unlink()
    inside.mkdir()
    with pytest.raises(InvalidArgument, match="not a regular file"):
        loaded(folder)
    inside.rmdir()
    inside.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(InvalidArgument, match="no configuration needs"):
        loaded(folder)
    inside.write_bytes(b"a = '\xff'")
    with pytest.raises(InvalidArgument, match=r"not UTF-8 \(byte 5\)"):
        loaded(folder)


def test_a_rule_about_a_tool_that_is_not_there_stops_the_start() -> None:
    rules = '[permissions]\nrule_set = "workspace"\nrule = [{tool = "bsh", pattern = "rm *", action = "deny"}]'
    config = parse_config(rules, "x.toml")
    with pytest.raises(InvalidArgument, match=r"x\.toml, rule 1: no tool named `bsh`; did you mean `Bash`\?"):
        refuse_unknown_tools(config.permissions, ["Read", "Bash"])
    refuse_unknown_tools(parse_config(rules.replace("bsh", "bASH")).permissions, ["Read", "Bash"])
    refuse_unknown_tools(None, [])


# --- narrowing ---


def test_a_workspace_file_takes_away(folder: Path) -> None:
    users_own(folder, '[permissions]\nrule_set = "trusted"')
    workspace_says(
        folder,
        'deny = ["private/**"]\nprotect = ["Makefile"]\nsandbox = "require"\nrequire_read = true\n'
        'encoding = "euc_jp"\n'
        '[permissions]\nrule = [{tool = "Bash", pattern = "curl *", action = "deny"}]',
    )
    config = loaded(folder)
    assert config.ignored == ()
    assert config.deny == ("private/**",)
    assert config.protect == (*PROTECTED, "Makefile")
    assert (config.sandbox, config.require_read, config.encoding) == ("require", True, "euc_jp")
    assert bash(config, "curl x") == "deny"
    assert bash(config, "mytool x") == "allow"


def test_a_workspace_file_that_tries_to_widen_is_named_and_ignored(folder: Path) -> None:
    users_own(folder, 'sandbox = "require"\n[permissions]\ndefault_action = "ask"\ninside_only = true')
    workspace_says(
        folder,
        'protect = []\nsandbox = "off"\nrequire_read = false\nenv = ["X"]\nstore = "redis://evil"\nprofile = "full"\n'
        '[permissions]\ndefault_action = "allow"\ninside_only = false\n'
        'rule = [{tool = "Bash", pattern = "*", action = "allow", any_options = true}]\n'
        '[programs.evil]\noptions = ["*"]',
    )
    config = loaded(folder)
    told = "\n".join(config.ignored)
    assert len(config.ignored) == 10
    for key in ("protect", "sandbox", "require_read", "env", "store", "profile", "default_action", "inside_only"):
        assert f"`{key}" in told
    assert "`permissions.rule[1]` (allow Bash `*`)" in told
    assert "`programs`" in told
    assert all(str(folder / "work" / ".gripfast.toml") in note for note in config.ignored)
    assert (config.protect, config.sandbox, config.require_read, config.env) == (PROTECTED, "require", True, ())
    assert (config.store, config.profile) == (None, None)
    assert bash(config, "mytool x") == "ask"
    assert bash(config, "ls") == "ask"


@pytest.mark.parametrize("mine", ["allow", "ask", "deny"])
@pytest.mark.parametrize("theirs", ["allow", "ask", "deny"])
@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_no_workspace_rule_ever_gives_more_than_the_user_gave(
    folder: Path, mine: Action, theirs: Action, default: Action
) -> None:
    users_own(folder, f'[permissions]\ndefault_action = "{mine}"')
    alone = load_config()
    workspace_says(
        folder,
        f'[permissions]\ndefault_action = "{default}"\nrule = [{{tool = "*", pattern = "*", action = "{theirs}"}}]',
    )
    narrowed = loaded(folder)
    strictness = ("allow", "ask", "deny").index
    for line in ("mytool x", "ls", "ls $x", "sudo x"):
        assert strictness(bash(narrowed, line)) >= strictness(bash(alone, line))
    assert strictness(reading(narrowed, "a")) >= strictness(reading(alone, "a"))


def test_a_workspace_file_narrows_also_where_the_user_has_no_rules(folder: Path) -> None:
    workspace_says(folder, '[permissions]\nrule_set = "read-only"')
    config = loaded(folder)
    assert isinstance(config.permissions, Permissions)
    assert bash(config, "ls") == "allow"
    assert bash(config, "mytool") == "deny"


@pytest.mark.parametrize("page", ["docs/concepts/permissions.md", "docs/guides/choosing-rules.md"])
def test_what_the_pages_show_is_a_configuration(page: str) -> None:
    text = (Path(__file__).parent.parent.parent / page).read_text(encoding="utf-8")
    blocks = [
        textwrap.dedent(block) for block in re.findall(r"^ *```toml\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    ]
    assert blocks
    for block in blocks:
        parse_config(block if "[permissions]" in block else f'[permissions]\ndefault_action = "ask"\n{block}')


def test_the_example_of_the_guide_keeps_its_own_examples() -> None:
    text = (Path(__file__).parent.parent.parent / "docs/guides/choosing-rules.md").read_text(encoding="utf-8")
    config = parse_config(text.split("```toml\n")[1].split("```")[0])
    assert config.permissions is not None
    tried = list(check_examples(config.permissions, lambda tool: "run"))
    assert (len(tried), [trial.fault for trial in tried if trial.fault]) == (3, [])
