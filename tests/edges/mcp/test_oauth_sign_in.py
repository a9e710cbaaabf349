"""Signing in: the MCP SDK's own OAuth client, an authorization server on loopback, and a real gripfast server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from authorization_server import AuthorizationServer
from fleet_servers import free_port
from http_server import HANG, INITIALIZE, Server

pytestmark = pytest.mark.anyio
REDIRECT = "http://127.0.0.1:9/callback"


@dataclass
class Kept:
    """What a client remembers between two starts."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    visited: list[str] = field(default_factory=list[str])

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def signed_in(url: str, kept: Kept) -> AsyncGenerator[Client]:
    """A client that sends its person to the authorization server when it needs to."""
    arrived: dict[str, list[str]] = {}

    async def browser(address: str) -> None:
        kept.visited.append(address)
        async with httpx2.AsyncClient(timeout=HANG) as person:
            answer = await person.get(address)
        arrived.update(parse_qs(urlsplit(answer.headers["location"]).query))

    async def callback() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=arrived["code"][0], state=arrived["state"][0])

    about = OAuthClientMetadata(client_name="tests", redirect_uris=[AnyUrl(REDIRECT)])
    auth = OAuthClientProvider(url, about, kept, browser, callback)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=HANG) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def test_nobody_gets_in_without_a_token_where_people_sign_in(server: Server) -> None:
    for token in ("", "Bearer", "Bearer x", "Basic eDp5"):
        assert server.request("POST", INITIALIZE, Authorization=token)[0] == 401


@pytest.fixture
def server(issuer: AuthorizationServer, tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    port = free_port()
    options = ["--http", f"127.0.0.1:{port}", "--url", f"http://127.0.0.1:{port}/mcp", "--oauth-scope", "tools"]
    with Server(tmp_path, tmp_path, *options, "--oauth-issuer", issuer.url) as made:
        yield made


async def test_a_client_that_knows_only_the_address_signs_its_person_in_and_works(
    issuer: AuthorizationServer, server: Server
) -> None:
    kept = Kept()
    async with signed_in(server.url, kept) as client:
        answer = await client.call_tool("Read", {"file_path": "a.txt"})
        assert not answer.is_error
    assert "oauth:ann" in server.log(" Read ")
    (asked,) = kept.visited
    query = parse_qs(urlsplit(asked).query)
    assert query["resource"] == [server.url]
    assert query["code_challenge_method"] == ["S256"]
    assert query["scope"] == ["tools"]
    assert "/register" in issuer.asked
    assert issuer.asked.count("/token authorization_code") == 1
    assert issuer.refused == []
    async with signed_in(server.url, kept) as client:  # later: without the person
        assert not (await client.call_tool("Read", {"file_path": "a.txt"})).is_error
    assert len(kept.visited) == 1


async def test_two_people_who_sign_in_have_sessions_of_their_own(issuer: AuthorizationServer, server: Server) -> None:
    ann, bob = Kept(), Kept()
    async with signed_in(server.url, ann) as client:
        await client.call_tool("Read", {"file_path": "a.txt"})
        issuer.person = "bob"
        async with signed_in(server.url, bob) as other:
            refused = await other.call_tool("Write", {"file_path": "a.txt", "content": "bob"})
            assert refused.is_error
            assert "NOT_READ" in str(refused.content)
    assert "oauth:bob" in server.log(" Write ")


async def test_a_token_without_the_scope_lets_nobody_in(issuer: AuthorizationServer, server: Server) -> None:
    issuer.scope = "mail"
    with pytest.raises((OAuthFlowError, httpx2.HTTPStatusError, ExceptionGroup)):
        async with signed_in(server.url, Kept()) as client:
            await client.call_tool("Read", {"file_path": "a.txt"})
