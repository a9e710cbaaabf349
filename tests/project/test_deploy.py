"""The files for a team server use options that exist, a configuration that loads, and a unit systemd understands."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from gripfast.builtin.config import load_config
from gripfast.edges.cli.main import main
from gripfast.edges.cli.serve import serve
from gripfast.errors import ToolError
from gripfast.host.stores.redis_store import RedisStore
from http_server import HANG, INITIALIZE, Server, token_file

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


def test_the_configuration_loads_asks_before_anything_risky_and_has_a_password_for_redis() -> None:
    config = load_config(str(DEPLOY / "gripfast.toml"), [str(DEPLOY)])
    assert not config.ignored
    assert config.store == "redis://:PASSWORD@redis:6379/0"
    assert 'rule_set = "workspace"' in (DEPLOY / "gripfast.toml").read_text(encoding="utf-8")


def test_redis_lets_nobody_in_without_the_password(tmp_path: Path) -> None:
    """Commands of agents run in the server's container, from where Redis can be reached."""
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server here")
    shell, option, script = compose()["services"]["redis"]["command"]
    with tempfile.TemporaryDirectory(prefix="gripfast-compose-") as place:
        here = f"redis-server - --port 0 --unixsocket {place}/redis.sock"
        script = script.replace("$$", "$").replace("redis-server -", here, 1)
        variables = {"PATH": os.environ["PATH"], "REDIS_PASSWORD": "s3cret"}
        with subprocess.Popen([shell, option, script], cwd=place, env=variables, stdout=subprocess.DEVNULL) as server:
            try:
                deadline = time.monotonic() + HANG
                while not Path(place, "redis.sock").exists():
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                with pytest.raises(ToolError):
                    RedisStore(f"unix://{place}/redis.sock").ping()
                RedisStore(f"unix://:s3cret@{place}/redis.sock").ping()
            finally:
                server.terminate()
                assert server.wait(HANG) == 0  # redis-server itself is asked to end, not a shell before it


def test_files_that_compose_mounts_are_there_or_are_yours_to_make() -> None:
    mounted = [
        volume.split(":")[0] for service in compose()["services"].values() for volume in service.get("volumes", [])
    ]
    files = [name for name in mounted if name.startswith("./")]
    assert files == ["./secrets", "./Caddyfile"]
    assert (DEPLOY / "Caddyfile").is_file()  # the tokens are yours to make


def test_only_the_proxy_is_reached_from_outside_and_redis_not_even_from_there() -> None:
    services = compose()["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert services["redis"]["networks"] == ["inside"]
    assert compose()["networks"]["inside"]["internal"] is True


def test_what_the_server_remembers_is_on_volumes_that_any_user_can_write_to() -> None:
    """A container that is made anew goes on with the record, the questions and the outputs of the last one."""
    image, server = (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), compose()["services"]["gripfast"]
    places = re.findall(r"XDG_(?:STATE|CACHE)_HOME=(\S+)", image)
    assert len(places) == 2
    volumes = dict(volume.split(":")[1::-1] for volume in server["volumes"])
    assert {volumes[place] for place in places} <= set(compose()["volumes"])
    assert f"install -d -m 1777 {' '.join(places)}" in image  # a new volume is as the directory in the image
    assert not [place for place in server["tmpfs"] if place.startswith(("/var", *places))]
    assert not [name for name in server["environment"] if name.startswith("XDG_")]


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


def test_a_reload_reads_the_tokens_again() -> None:
    assert "ExecReload=/bin/kill -HUP $MAINPID\n" in unit()
    assert not re.search(r"^LoadCredential", unit(), re.MULTILINE)  # a copy, which no reload changes
    assert "/run/gripfast/tokens" in from_compose()
    mounted = compose()["services"]["gripfast"]["volumes"]
    assert "./secrets:/run/gripfast:ro" in mounted  # a directory: a file that is replaced is seen


def test_redis_keeps_what_it_was_given() -> None:
    command = " ".join(compose()["services"]["redis"]["command"])
    assert "--appendonly yes" in command and "--maxmemory-policy noeviction" in command


def test_compose_understands_its_file(tmp_path: Path) -> None:
    for program in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(program[0]) and subprocess.run([*program, "version"], capture_output=True).returncode == 0:
            break
    else:
        pytest.skip("there is no compose here")
    done = subprocess.run(
        [*program, "-f", str(DEPLOY / "compose.yml"), "config"], capture_output=True, text=True, timeout=120,
        env={**os.environ, "HOST": "tools.example.org", "PROJECT": str(tmp_path), "UID_GID": "1000:1000",
             "REDIS_PASSWORD": "s3cret"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "https://tools.example.org/mcp" in done.stdout


@pytest.fixture
def certificate() -> Iterator[Path]:
    """A certificate in a directory of its own, whose name is short enough for a socket in it."""
    if shutil.which("nginx") is None or shutil.which("openssl") is None:
        pytest.skip("there is no nginx or openssl here")
    home = Path(tempfile.mkdtemp(prefix="gf", dir="/tmp"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tools.example.org",
         "-addext", "subjectAltName=DNS:tools.example.org", "-keyout", home / "privkey.pem",
         "-out", home / "fullchain.pem"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    yield home / "fullchain.pem"
    shutil.rmtree(home)


def nginx_in(home: Path, server: int) -> list[str]:
    """nginx with our file, which only names another port and other places. It listens on a socket in `home`."""
    site = (DEPLOY / "nginx.conf").read_text(encoding="utf-8").replace("/etc/ssl/gripfast", str(home))
    site = site.replace("listen [::]:443 ssl http2;", "").replace("listen 443 ", f"listen unix:{home}/tls ")
    (home / "site.conf").write_text(site.replace("127.0.0.1:8765", f"127.0.0.1:{server}"), encoding="utf-8")
    temporary = " ".join(f"{kind}_temp_path {home}/{kind};" for kind in ("client_body", "proxy"))
    unused = " ".join(f"{kind}_temp_path {home}/{kind};" for kind in ("fastcgi", "uwsgi", "scgi"))
    http = f"http {{ access_log off; {temporary} {unused} include {home}/site.conf; }}"
    user = "user root;" if os.geteuid() == 0 else ""
    main = f"{user} daemon off; pid {home}/nginx.pid; error_log stderr; events {{}} {http}"
    (home / "nginx.conf").write_text(main, encoding="utf-8")
    return ["nginx", "-e", "stderr", "-p", str(home), "-c", str(home / "nginx.conf")]


def test_nginx_understands_its_file(certificate: Path) -> None:
    done = subprocess.run([*nginx_in(certificate.parent, 1), "-t"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_client_works_through_nginx_with_tls(certificate: Path, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    tokens = token_file(tmp_path, f"ann {'a' * 24}\n")
    options = ["--token-file", str(tokens), "--url", "https://tools.example.org/mcp"]
    server = Server(tmp_path / "root", tmp_path, *options)
    home = certificate.parent
    proxy = subprocess.Popen(nginx_in(home, server.port), stderr=subprocess.DEVNULL)
    trust = ssl.create_default_context(cafile=str(certificate))

    def request(method: str, path: str, token: str = "a" * 24) -> tuple[int, str]:
        with socket.socket(socket.AF_UNIX) as plain:
            plain.settimeout(HANG)
            plain.connect(str(home / "tls"))
            connection = http.client.HTTPConnection("tools.example.org", timeout=HANG)
            connection.sock = trust.wrap_socket(plain, server_hostname="tools.example.org")
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            body = INITIALIZE if method == "POST" else None
            connection.request(method, path, body, {**headers, "Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            found = answer.status, answer.read().decode()
            connection.close()
            return found

    try:
        ended = time.monotonic() + HANG
        while not (home / "nginx.pid").exists() and proxy.poll() is None and time.monotonic() < ended:
            time.sleep(0.05)
        assert proxy.poll() is None
        status, text = request("POST", "/mcp")
        assert status == 200 and '"serverInfo"' in text
        assert request("POST", "/mcp", "b" * 24)[0] == 401
        assert request("GET", "/readyz")[0] == 200
        assert request("GET", "/metrics")[0] == 404
    finally:
        proxy.terminate()
        proxy.wait(HANG)
        server.close()


def test_systemd_finds_the_unit_well_confined(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    file = tmp_path / "gripfast.service"
    file.write_text(unit(), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=40", "--no-pager", file],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    if "unrecognized option" in done.stderr or "Unknown" in done.stderr:
        pytest.skip("this systemd can't look at a file")
    assert done.returncode == 0, done.stdout[-300:] + done.stderr


def test_the_unit_keeps_the_server_from_the_rest_of_the_machine() -> None:
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "CapabilityBoundingSet="):
        assert f"\n{line}\n" in unit()
