"""The authorization server whose access tokens a server accepts. Importing this is cheap, unlike `mcp/oauth.py`."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass

METADATA = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True)
class Issuer:
    """The authorization server whose tokens are accepted, for which resource, and with which scopes."""

    url: str
    resource: str
    jwks_url: str | None = None
    audience: str | None = None
    scopes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for url in filter(None, (self.url, self.jwks_url)):
            parts = urlsplit(url)
            local = parts.hostname in ("127.0.0.1", "::1", "localhost")
            if not parts.hostname or parts.scheme not in (("https", "http") if local else ("https",)):
                raise InvalidArgument(f"{url!r} is not a URL with https, which the keys of an issuer must come from")
