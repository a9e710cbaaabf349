"""OAuth: the server as a protected resource. An authorization server that you run signs the access tokens (JWT), and
this module checks them with its public keys.

RFC 9068 (access tokens), RFC 8414 (where the keys are), RFC 9728 (what clients are told).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from pydantic import AnyHttpUrl, ConfigDict, TypeAdapter
from starlette.requests import HTTPConnection
from starlette.routing import Router
from starlette.types import Scope

from gripfast.clock import monotonic
from gripfast.edges.issuer import METADATA, Issuer
from gripfast.errors import Unavailable
from gripfast.framework.context import LOGGER
from gripfast.text.escape import escaped

ALGORITHMS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""Signatures that are accepted, and the kind of key each needs. None can be made with a public key."""
TYPES = ("jwt", "at+jwt", "application/at+jwt")
FETCH_SECONDS = 5.0
REFETCH_AFTER = 30.0
"""Seconds between two requests for the keys, however many unknown keys tokens name."""
FRESH_FOR = 3600.0
LARGEST = 1 << 20
_AS_GIVEN = TypeAdapter(AnyHttpUrl, config=ConfigDict(url_preserve_empty_path=True))
"""A URL without a slash added: clients compare an issuer letter by letter (RFC 8414, section 3.3)."""
LEEWAY = 30
"""Seconds that the clocks of two machines may differ."""


class Keys:
    """The issuer's public keys, fetched when they are needed and at most once in a while."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._keys: dict[str | None, Mapping[str, Any]] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._lock = anyio.Lock()

    async def find(self, kid: str | None) -> Mapping[str, Any] | None:
        """The key of this name; None if the issuer has none. Raises Unavailable if there are no keys to look at."""
        if kid not in self._keys or self._age(self._fetched_at) > FRESH_FOR:
            await self._refresh(kid)
        if not self._keys:
            raise Unavailable("the keys of the authorization server can't be fetched; try again later")
        return self._keys.get(kid)

    def _age(self, moment: float | None) -> float:
        return float("inf") if moment is None else monotonic() - moment

    async def _refresh(self, kid: str | None) -> None:
        async with self._lock:
            fresh = kid in self._keys and self._age(self._fetched_at) <= FRESH_FOR
            if fresh or self._age(self._tried_at) < REFETCH_AFTER:
                return
            self._tried_at = monotonic()
            try:
                self._keys = await self._fetched()
                self._fetched_at = monotonic()
            except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, TypeError, KeyError) as fault:
                kept = "the last ones are used" if self._keys else "nobody can sign in"
                LOGGER.error("the issuer's keys can't be fetched, %s: %s", kept, escaped(f"{fault}"[:200]))

    async def _fetched(self) -> dict[str | None, Mapping[str, Any]]:
        async with httpx2.AsyncClient(timeout=FETCH_SECONDS) as web:
            url = self._issuer.jwks_url or await self._found(web)
            keys = (await _json(web, url))["keys"]
        kinds = set(ALGORITHMS.values())
        usable = [key for key in keys if key.get("kty") in kinds and key.get("use", "sig") == "sig"]
        if not usable:
            raise ValueError("there is no key for signatures")
        return {key.get("kid"): key for key in usable}

    async def _found(self, web: httpx2.AsyncClient) -> str:
        """Where the issuer says its keys are."""
        parts = urlsplit(self._issuer.url)
        base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        places = (
            f"{base}/.well-known/oauth-authorization-server{path}",
            f"{base}/.well-known/openid-configuration{path}",
            f"{base}{path}/.well-known/openid-configuration",
        )
        for place in dict.fromkeys(places):
            try:
                known = await _json(web, place)
            except (httpx2.HTTPStatusError, ValueError):
                continue
            if known.get("issuer") != self._issuer.url:
                raise ValueError(f"{place} is about another issuer")
            return Issuer(self._issuer.url, "", known["jwks_uri"]).jwks_url or ""
        raise ValueError(f"{self._issuer.url} has no metadata with `jwks_uri`; name the keys with --oauth-jwks")


async def _json(web: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    async with web.stream("GET", url, headers={"Accept": "application/json"}) as answer:
        if answer.is_redirect:
            raise ValueError(f"{url} redirects, which is not followed")
        answer.raise_for_status()
        data = b""
        async for chunk in answer.aiter_bytes():
            data += chunk
            if len(data) > LARGEST:
                raise ValueError(f"{url} has over {LARGEST} bytes")
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError(f"{url} did not return a JSON object")
    return cast("dict[str, Any]", found)


class Verifier:
    """Checks access tokens. A `TokenVerifier` of the SDK."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self._keys = Keys(issuer)

    async def verify_token(self, token: str) -> AccessToken | None:
        """The token's claims, or None if it is not a good token. Raises Unavailable if that can't be decided now."""
        try:
            header = jwt.get_unverified_header(token)
            algorithm, kind = header.get("alg"), f"{header.get('typ') or 'jwt'}".lower()
            if algorithm not in ALGORITHMS or kind not in TYPES or "crit" in header:
                return None
            key = await self._keys.find(header.get("kid"))
            if key is None or key["kty"] != ALGORITHMS[algorithm] or key.get("alg", algorithm) != algorithm:
                return None
            return self._checked(token, jwt.PyJWK(dict(key), algorithm), algorithm)
        except (jwt.PyJWTError, ValueError, TypeError) as fault:
            LOGGER.debug("an access token was refused: %s", escaped(f"{fault}"[:200]))
            return None

    def _checked(self, token: str, key: jwt.PyJWK, algorithm: str) -> AccessToken | None:
        claims = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=self.issuer.audience or self.issuer.resource,
            issuer=self.issuer.url,
            leeway=LEEWAY,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        if not isinstance(claims["exp"], int | float) or not claims["sub"] or "cnf" in claims:
            return (
                None  # a token that is bound to a key (`cnf`) is worth nothing without a proof, which nobody asks for
            )
        scope = claims.get("scope", claims.get("scp", ""))
        scopes = scope.split() if isinstance(scope, str) else [str(one) for one in scope]
        subject = str(claims["sub"])
        client = str(claims.get("client_id") or claims.get("azp") or subject)
        # No `expires_at`: the expiry was checked above, and the SDK would check it again without a leeway.
        return AccessToken(token="", client_id=client, scopes=scopes, resource=self.issuer.resource, subject=subject)


def _name(subject: str) -> str:
    """A subject as it can be shown, if it is a plain name; otherwise another name that only it has."""
    if subject.isprintable() and subject.isascii() and 0 < len(subject) <= 128:
        return subject
    return f"sha256-{hashlib.sha256(subject.encode('utf-8', 'surrogatepass')).hexdigest()}"


class OAuth:
    """Who sends a request, by its access token, and what clients are told about the authorization server."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        resource = _AS_GIVEN.validate_python(issuer.resource)
        self._backend = BearerAuthBackend(Verifier(issuer), resource_server_url=resource)
        self.metadata_url = str(build_resource_metadata_url(resource))
        issuers = [_AS_GIVEN.validate_python(issuer.url)]
        routes = create_protected_resource_routes(resource, issuers, list(issuer.scopes) or None, "gripfast")
        self.metadata = Router(routes)

    async def owner(self, scope: Scope) -> tuple[str | None, bool]:
        """The owner of the token in a request, None for a bad one; and whether it has the scopes that are needed.
        Raises Unavailable if that can't be told. The name of an owner is never one of a token file."""
        found = await self._backend.authenticate(HTTPConnection(scope))
        if found is None:
            return None, False
        credentials, user = found
        subject = user.access_token.subject or ""
        return f"oauth:{_name(subject)}", set(self._issuer.scopes) <= set(credentials.scopes)

    def at_root(self, scope: Scope) -> Scope:
        """A request for the metadata, also where a client looks that does not know our path."""
        if scope["path"].rstrip("/") != METADATA:
            return scope
        return {**scope, "path": urlsplit(self.metadata_url).path}

    def challenge(self, error: str = "") -> str:
        """The header WWW-Authenticate of a refusal."""
        parts = [f'error="{error}"'] if error else []
        parts += [f'scope="{" ".join(self._issuer.scopes)}"'] if self._issuer.scopes else []
        return "Bearer " + ", ".join([*parts, f'resource_metadata="{self.metadata_url}"'])
