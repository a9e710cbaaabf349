"""An authorization server on loopback: its keys and metadata, and people who sign in with PKCE."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import secrets
import threading
import time
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

RESOURCE = "https://tools.example.org/mcp"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def public_jwk(algorithm: str, key: Any, **more: str) -> dict[str, Any]:
    found = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    return {**found, **more}


class AuthorizationServer:
    """An issuer of access tokens: its metadata, its keys, and how often they were asked for. `person` signs in
    whenever a client asks."""

    def __init__(self) -> None:
        self.keys = [
            public_jwk("RS256", RSA, kid="rsa", use="sig"),
            public_jwk("ES256", EC, kid="ec"),
            public_jwk("EdDSA", ED, kid="ed", alg="EdDSA"),
            public_jwk("RS256", OTHER_RSA, kid="for-secrets", use="enc"),
        ]
        self.says_issuer: str | None = None
        self.is_down = False
        self.person = "ann"
        self.scope = "tools"
        self.asked: list[str] = []
        self.refused: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._web.server_address[1]}"
        threading.Thread(target=self._web.serve_forever, daemon=True).start()

    def answer(self, path: str) -> dict[str, Any] | None:
        if path in ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"):
            return {
                "issuer": self.says_issuer or self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        return {"keys": self.keys} if path == "/keys" else None

    def register(self, wanted: dict[str, Any]) -> dict[str, Any]:
        return {**wanted, "client_id": secrets.token_hex(8), "token_endpoint_auth_method": "none"}

    def authorize(self, asked: dict[str, str]) -> str | None:
        """Where the person's browser is sent after signing in; None for a request that is not valid."""
        is_good = asked.get("response_type") == "code" and asked.get("code_challenge_method") == "S256"
        if not is_good or not asked.get("code_challenge") or not asked.get("resource"):
            self.refused.append(f"authorize {asked}")
            return None
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked.get('state', '')})}"

    def give_token(self, form: dict[str, str]) -> dict[str, Any] | None:
        """An access token for a code, which works once and with its verifier."""
        asked = self._codes.pop(form.get("code", ""), {})
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        same = all(form.get(name) == asked.get(name) for name in ("redirect_uri", "client_id", "resource"))
        if not asked or not same or challenge != asked["code_challenge"]:
            self.refused.append(f"token {form}")
            return None
        token = self.token(aud=asked["resource"], sub=self.person, scope=self.scope, client_id=asked["client_id"])
        return {"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": self.scope}

    def token(self, key: Any = RSA, algorithm: str = "RS256", kid: str | None = "rsa", **claims: Any) -> str:
        known = {"iss": self.url, "aud": RESOURCE, "sub": "ann", "exp": int(time.time()) + 600, "scope": "tools"}
        given = {name: value for name, value in {**known, **claims}.items() if value is not None}
        return jwt.encode(given, key, algorithm, headers={"kid": kid} if kid else {})

    def __enter__(self) -> AuthorizationServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._web.shutdown()
        self._web.server_close()


def _handler(server: AuthorizationServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            server.asked.append(parts.path)
            if parts.path == "/authorize":
                place = server.authorize(dict(parse_qsl(parts.query)))
                self.send_response(302 if place else 400)
                self.send_header("Location", place or "")
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self.respond(server.answer(self.path), 404)

        def do_POST(self) -> None:
            server.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if self.path == "/register":
                self.respond(server.register(json.loads(body)), 400)
            else:
                form = dict(parse_qsl(body))
                server.asked[-1] += f" {form.get('grant_type')}"
                self.respond(server.give_token(form) if self.path == "/token" else None, 400)

        def respond(self, answer: dict[str, Any] | None, otherwise: int) -> None:
            body = json.dumps(answer or {"error": "invalid_grant"}).encode()
            self.send_response(500 if server.is_down else 200 if answer else otherwise)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    return Handler
