from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from gripfast.host.shell.environment import command_environment, command_path, program_file


def _environment(source: dict[str, str], roots: tuple[str, ...] = (), allow: tuple[str, ...] = ()) -> dict[str, str]:
    return command_environment(temporary="/tmp", allow=allow, roots=roots, source=source)


def test_a_directory_of_the_workspace_is_not_on_the_path_of_a_command(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    (root / "node_modules" / ".bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root / "node_modules")
    path = f"{root}:{root}/node_modules/.bin:{tmp_path}/link/.bin:{root}/absent:/usr/bin:{tmp_path}"
    assert _environment({"PATH": path}, (str(root),))["PATH"] == f"/usr/bin:{tmp_path}"


def test_a_directory_that_only_begins_like_the_workspace_stays_on_the_path(tmp_path: Path) -> None:
    assert _environment({"PATH": f"{tmp_path}-bin:/usr/bin"}, (str(tmp_path),))["PATH"] == f"{tmp_path}-bin:/usr/bin"


def _sandboxed(root: Path, **source: str) -> str:
    return command_path((str(root),), sandboxed=True, source={"PATH": "/usr/bin", **source})


def test_in_a_sandbox_the_environments_of_the_project_come_first(tmp_path: Path) -> None:
    assert _sandboxed(tmp_path) == "/usr/bin"
    for name in (".venv/bin", "node_modules/.bin"):
        (tmp_path / name).mkdir(parents=True)
    assert _sandboxed(tmp_path) == f"{tmp_path}/.venv/bin:{tmp_path}/node_modules/.bin:/usr/bin"
    own = f"{tmp_path}/.venv/bin:/usr/bin:{tmp_path}/bin"
    assert _sandboxed(tmp_path, PATH=own) == f"{tmp_path}/node_modules/.bin:{own}"


def test_an_active_environment_is_the_one_that_the_user_chose(tmp_path: Path) -> None:
    (tmp_path / "venv/bin").mkdir(parents=True)
    assert _sandboxed(tmp_path, VIRTUAL_ENV="/opt/other") == "/usr/bin"
    assert _sandboxed(tmp_path, VIRTUAL_ENV=sys.prefix) == f"{tmp_path}/venv/bin:/usr/bin"


def test_the_environment_of_this_program_is_not_the_one_that_commands_install_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, project = tmp_path / "ours", tmp_path / "work" / ".venv"
    for place in (ours, project):
        (place / "bin").mkdir(parents=True)
    root = str(tmp_path / "work")
    monkeypatch.setattr(sys, "prefix", str(ours))
    given = _environment({"PATH": f"{ours}/bin:/usr/bin", "VIRTUAL_ENV": str(ours)}, (root,))
    assert "VIRTUAL_ENV" not in given
    assert given["PATH"] == f"/usr/bin:{ours}/bin"
    monkeypatch.setattr(sys, "prefix", str(project))  # installed in the project's own
    given = _environment({"PATH": "/usr/bin", "VIRTUAL_ENV": str(project)}, (root,))
    assert given["VIRTUAL_ENV"] == str(project)
    assert _sandboxed(tmp_path / "work", PATH=f"{project}/bin:/usr/bin") == f"{project}/bin:/usr/bin"


def test_a_program_is_in_the_workspace_if_any_link_to_it_is(tmp_path: Path) -> None:
    root, system = tmp_path / "workspace", tmp_path / "system"
    for folder in (root, system):
        folder.mkdir()
    target = shutil.which("cat")
    assert target is not None
    (root / "ls").symlink_to(target)
    (system / "head").symlink_to(root / "ls")
    (system / "tail").symlink_to(target)
    path = f"{root}:{system}"
    assert program_file("ls", path, [str(root)]) == program_file("head", path, [str(root)]) == f"{root}/ls"
    assert program_file("tail", path, [str(root)]) == os.path.realpath(target)
    assert program_file("absent", path, [str(root)]) is None


def test_relative_places_are_not_on_the_path_of_a_command() -> None:
    assert _environment({"PATH": ".:bin::/usr/bin:"})["PATH"] == "/usr/bin"


@pytest.mark.parametrize("name", ["MAKEFLAGS", "GNUMAKEFLAGS", "CDPATH", "BASHOPTS", "GLOBIGNORE", "POSIXLY_CORRECT"])
def test_variables_that_change_what_a_proved_command_means_never_reach_it(name: str) -> None:
    assert name not in _environment({name: "x", "PATH": "/usr/bin"}, allow=("*",))


@pytest.mark.parametrize("locale", ["zh_CN.GBK", "ja_JP.SJIS", "ja_JP", "zh_TW.Big5", "de_DE.ISO-8859-1@euro"])
def test_bash_reads_its_line_as_utf8_whatever_the_locale_of_the_server(locale: str) -> None:
    """In GBK half a character swallows the backslash after it: `"中\\"; rm x; "` would be two commands."""
    given = _environment({"PATH": "/usr/bin", "LC_ALL": locale, "LC_CTYPE": locale, "LANG": locale})
    assert [given.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")] == [None, None, "C.UTF-8"]


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "de_DE.UTF-8", "en_US.utf8"])
def test_a_locale_that_reads_bytes_as_we_do_is_kept(locale: str) -> None:
    assert _environment({"PATH": "/usr/bin", "LANG": locale})["LANG"] == locale


@pytest.mark.parametrize(
    "value", ["https://user:secret@proxy.example", "https://proxy.example,https://u@x|direct", "socks5://a:b@c:1"]
)
def test_an_address_with_a_login_in_it_does_not_reach_commands(value: str) -> None:
    source = {"GOPROXY": value, "GOROOT": "/usr/go"}
    found = command_environment(temporary="/tmp", source=source)
    assert "GOPROXY" not in found
    assert found["GOROOT"] == "/usr/go"


def test_an_address_without_a_login_reaches_commands() -> None:
    value = "https://proxy.example/@scope,direct"
    assert command_environment(temporary="/tmp", source={"GOPROXY": value})["GOPROXY"] == value
