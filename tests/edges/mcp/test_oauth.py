"""OAuth: access tokens of an issuer with real keys, good ones and every kind of bad one, on a real server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization

from authorization_server import EC, ED, OTHER_RSA, RESOURCE, RSA, AuthorizationServer, public_jwk
from gripfast.edges.cli.main import main
from gripfast.edges.issuer import Issuer
from gripfast.edges.mcp import oauth
from gripfast.edges.mcp.oauth import OAuth, Verifier
from gripfast.errors import InvalidArgument, Unavailable
from http_server import HANG, INITIALIZE, Server, token_file


def verifier(issuer: AuthorizationServer, **more: Any) -> Verifier:
    return Verifier(Issuer(issuer.url, RESOURCE, **more))


@pytest.mark.anyio
async def test_good_tokens_are_accepted_with_every_kind_of_key(issuer: AuthorizationServer) -> None:
    checks = verifier(issuer)
    for key, algorithm, kid in (
        (RSA, "RS256", "rsa"),
        (RSA, "PS384", "rsa"),
        (EC, "ES256", "ec"),
        (ED, "EdDSA", "ed"),
    ):
        found = await checks.verify_token(issuer.token(key, algorithm, kid, client_id="cli"))
        assert found is not None and (found.subject, found.client_id, found.scopes) == ("ann", "cli", ["tools"])
    assert await checks.verify_token(issuer.token(aud=["https://other.example", RESOURCE])) is not None
    assert await checks.verify_token(issuer.token(exp=int(time.time()) - 5)) is not None  # clocks differ a little
    assert issuer.asked.count("/keys") == 1


def unsigned(issuer: AuthorizationServer, algorithm: str) -> str:
    """A token that says that it needs no signature."""
    head, body, _ = issuer.token().split(".")
    head = base64.urlsafe_b64encode(json.dumps({"alg": algorithm, "typ": "JWT", "kid": "rsa"}).encode()).decode()
    return f"{head.rstrip('=')}.{body}."


def signed_with_the_public_key(issuer: AuthorizationServer) -> str:
    """A token with HS256 whose secret is what everybody knows: the public key."""
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT","kid":"rsa"}').decode().rstrip("=")
    body = issuer.token().split(".")[1]
    made = hmac.new(pem, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


def changed(issuer: AuthorizationServer) -> str:
    head, body, signature = issuer.token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    other = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "root"}).encode()).decode().rstrip("=")
    return f"{head}.{other}.{signature}"


BAD: dict[str, Callable[[AuthorizationServer], str]] = {
    "another audience": lambda one: one.token(aud="https://other.example/mcp"),
    "our origin only": lambda one: one.token(aud="https://tools.example.org"),
    "no audience": lambda one: one.token(aud=None),
    "another issuer": lambda one: one.token(iss="https://evil.example"),
    "no issuer": lambda one: one.token(iss=None),
    "expired": lambda one: one.token(exp=int(time.time()) - 600),
    "no expiry": lambda one: one.token(exp=None),
    "not yet valid": lambda one: one.token(nbf=int(time.time()) + 600),
    "no subject": lambda one: one.token(sub=None),
    "an empty subject": lambda one: one.token(sub=""),
    "an expiry as text": lambda one: one.token(exp=str(int(time.time()) + 600)),
    "bound to a key": lambda one: one.token(cnf={"jkt": "x"}),
    "alg none": lambda one: unsigned(one, "none"),
    "alg None": lambda one: unsigned(one, "None"),
    "HS256 with the public key": signed_with_the_public_key,
    "signed by another key": lambda one: one.token(OTHER_RSA),
    "a key for encryption": lambda one: one.token(OTHER_RSA, kid="for-secrets"),
    "a key of another kind": lambda one: one.token(RSA, "RS256", "ec"),
    "a key of another algorithm": lambda one: one.token(EC, "ES256", "ed"),
    "an unknown key": lambda one: one.token(kid="unknown"),
    "no key named": lambda one: one.token(kid=None),
    "changed afterwards": changed,
    "a token of another type": lambda one: jwt.encode(
        {"iss": one.url, "aud": RESOURCE, "sub": "ann", "exp": int(time.time()) + 600}, RSA, "RS256",
        headers={"kid": "rsa", "typ": "logout+jwt"},
    ),
    "not a token": lambda one: "x",
    "two parts": lambda one: one.token().rpartition(".")[0],
    "nothing": lambda one: "",
    "beyond ASCII": lambda one: "é.é.é",
    "a list as header": lambda one: "W10.W10.",
    "a number as key": lambda one: jwt.encode({"sub": "ann"}, "x" * 32, "HS256", headers={"kid": "5"}),
}  # fmt: skip


@pytest.mark.anyio
async def test_bad_tokens_are_refused(issuer: AuthorizationServer) -> None:
    checks = verifier(issuer)
    for kind, make in BAD.items():
        assert await checks.verify_token(make(issuer)) is None, kind
    assert await checks.verify_token(issuer.token()) is not None
    assert issuer.asked.count("/keys") == 1


@pytest.mark.anyio
async def test_unknown_keys_are_looked_for_once_in_a_while_and_a_new_key_is_found(
    issuer: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(oauth, "monotonic", lambda: now[0])
    checks = verifier(issuer)
    assert await checks.verify_token(issuer.token()) is not None
    issuer.keys.append(public_jwk("RS256", OTHER_RSA, kid="next"))
    for number in range(50):
        assert await checks.verify_token(issuer.token(kid=f"made-up-{number}")) is None
    assert await checks.verify_token(issuer.token(OTHER_RSA, kid="next")) is None
    assert issuer.asked.count("/keys") == 1
    now[0] += oauth.REFETCH_AFTER + 1
    assert await checks.verify_token(issuer.token(OTHER_RSA, kid="next")) is not None
    for number in range(50):
        assert await checks.verify_token(issuer.token(kid=f"made-up-{number}")) is None
    assert issuer.asked.count("/keys") == 2


@pytest.mark.anyio
async def test_without_the_issuer_known_keys_go_on_and_unknown_ones_can_not_be_told(
    issuer: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(oauth, "monotonic", lambda: now[0])
    issuer.is_down = True
    checks = verifier(issuer, jwks_url=f"{issuer.url}/keys")
    with pytest.raises(Unavailable):
        await checks.verify_token(issuer.token())
    issuer.is_down = False
    now[0] += oauth.REFETCH_AFTER + 1
    assert await checks.verify_token(issuer.token()) is not None
    issuer.is_down = True
    now[0] += oauth.FRESH_FOR + 1
    assert await checks.verify_token(issuer.token()) is not None
    assert issuer.asked.count("/keys") == 3


@pytest.mark.anyio
async def test_metadata_of_another_issuer_are_not_believed(issuer: AuthorizationServer) -> None:
    issuer.says_issuer = "https://evil.example"
    with pytest.raises(Unavailable):
        await verifier(issuer).verify_token(issuer.token())
    assert "/keys" not in issuer.asked


@pytest.mark.parametrize("url", ["http://issuer.example", "ftp://issuer.example", "issuer.example", ""])
def test_keys_come_over_https(url: str) -> None:
    with pytest.raises(InvalidArgument):
        Issuer(url or "x", RESOURCE)
    with pytest.raises(InvalidArgument):
        Issuer("https://issuer.example", RESOURCE, url or "x")


@pytest.mark.anyio
async def test_no_subject_takes_the_name_of_another(issuer: AuthorizationServer) -> None:
    found = OAuth(Issuer(issuer.url, RESOURCE))
    subjects = ["ann", "oauth:ann", "a\nnn", "a\\nnn", "x" * 300, "x" * 301, "ánn", "sha256-"]
    names: list[str | None] = []
    for subject in subjects:
        headers = [(b"authorization", f"Bearer {issuer.token(sub=subject)}".encode())]
        names.append((await found.owner({"type": "http", "headers": headers}))[0])
    assert len(set(names)) == len(subjects) and None not in names
    assert all(name and name.startswith("oauth:") and name.isprintable() for name in names)


def test_a_server_tells_clients_where_to_sign_in_and_lets_them_in(
    issuer: AuthorizationServer, tmp_path: Path
) -> None:
    tokens = token_file(tmp_path, f"ann {'a' * 24}\n")
    options = ["--url", RESOURCE, "--oauth-issuer", issuer.url, "--oauth-scope", "tools", "--log-format", "json"]
    with Server(tmp_path, tmp_path, *options, "--token-file", str(tokens)) as server:
        host = {"Host": "tools.example.org"}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG)
        connection.request("POST", "/mcp", INITIALIZE, host)
        answer = connection.getresponse()
        at = "https://tools.example.org/.well-known/oauth-protected-resource/mcp"
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == f'Bearer scope="tools", resource_metadata="{at}"'
        connection.close()
        for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"):
            found, text = server.request("GET", path=path, Authorization="", Host="tools.example.org")
            assert found == 200
            told = json.loads(text)
            assert told["resource"] == RESOURCE and told["scopes_supported"] == ["tools"]
            assert told["authorization_servers"] == [issuer.url]

        def status(token: str, origin: str = "") -> int:
            sent = {"Authorization": f"Bearer {token}", "Host": "tools.example.org", "Origin": origin}
            return server.request("POST", INITIALIZE, "/mcp", **sent)[0]

        assert status(issuer.token()) == 200
        assert status("a" * 24) == 200  # machines may have a token of the file
        assert status(issuer.token(scope="other")) == 403
        assert {status(BAD[kind](issuer)) for kind in ("expired", "alg none", "HS256 with the public key")} == {401}
        assert status(issuer.token(), "http://evil.example") == 403


def test_options_that_say_nothing_together_are_refused(tmp_path: Path) -> None:
    server = ("--http", "127.0.0.1:0", "--root", str(tmp_path))
    for words, message in (
        (("--oauth-issuer", "https://issuer.example"), "needs --url"),
        (("--oauth-scope", "tools"), "need --oauth-issuer"),
        (("--oauth-issuer", "https://i.example", "--url", RESOURCE, "--no-token"), "--no-token accepts everybody"),
        (("--oauth-issuer", "http://i.example", "--url", RESOURCE), "https"),
    ):
        done = CliRunner().invoke(main, ["serve", *server, *words])
        assert done.exit_code == 2 and message in " ".join(done.output.split()), done.output
