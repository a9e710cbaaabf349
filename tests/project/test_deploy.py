"""The files for a team server use options that exist, a configuration that loads, and a unit systemd understands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from gripfast.builtin.config import load_config
from gripfast.edges.cli.main import main
from gripfast.edges.cli.serve import serve

DEPLOY = Path(__file__).parents[2] / "deploy"


def from_dockerfile() -> list[str]:
    (command,) = re.findall(r"^CMD (.*)$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    return json.loads(command)


def from_compose() -> list[str]:
    return compose()["services"]["gripfast"]["command"]


def from_unit() -> list[str]:
    (line,) = re.findall(r"^ExecStart=\S+/gripfast (.*)$", unit(), re.MULTILINE)
    return line.split()


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yml").read_text(encoding="utf-8"))


def unit() -> str:
    return (DEPLOY / "gripfast.service").read_text(encoding="utf-8")


@pytest.mark.parametrize("source", [from_dockerfile, from_compose, from_unit], ids=lambda source: source.__name__)
def test_the_server_is_started_with_options_it_has(source: Any) -> None:
    command, *arguments = source()
    assert command == "serve"
    helped = CliRunner().invoke(main, ["serve", "--help"]).output
    for option in (word for word in arguments if word.startswith("--")):
        assert re.search(rf"^  {option}\b", helped, re.MULTILINE), f"{option} is no option of gripfast serve"
    values = serve.make_context("serve", [*arguments]).params
    assert values["address"] and values["token_file"]
    assert not values["no_token"]


def test_the_configuration_loads_and_asks_before_anything_risky() -> None:
    config = load_config(str(DEPLOY / "gripfast.toml"), [str(DEPLOY)])
    assert not config.ignored
    assert 'rule_set = "workspace"' in (DEPLOY / "gripfast.toml").read_text(encoding="utf-8")
    assert "redis://redis:" in (DEPLOY / "gripfast.toml").read_text(encoding="utf-8")
    assert "redis" in compose()["services"]


def test_files_that_compose_mounts_are_there_or_are_yours_to_make() -> None:
    mounted = [
        volume.split(":")[0] for service in compose()["services"].values() for volume in service.get("volumes", [])
    ]
    files = [name for name in mounted if name.startswith("./")]
    assert files == ["./gripfast.toml", "./Caddyfile"]
    assert all((DEPLOY / name).is_file() for name in files)


def test_only_the_proxy_is_reached_from_outside_and_redis_not_even_from_there() -> None:
    services = compose()["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert services["redis"]["networks"] == ["inside"]
    assert compose()["networks"]["inside"]["internal"] is True


def test_the_image_does_not_run_as_root() -> None:
    users = re.findall(r"^USER (\S+)$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert users == ["10001"]


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    here = unit().replace("/opt/gripfast/bin/gripfast", "/bin/true").replace("=gripfast\n", "=daemon\n", 2)
    file = tmp_path / "gripfast.service"
    file.write_text(here.replace("/srv/project", "/tmp"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, timeout=60)
    assert "gripfast.service" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


def test_the_unit_keeps_the_server_from_the_rest_of_the_machine() -> None:
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "CapabilityBoundingSet="):
        assert f"\n{line}\n" in unit()
