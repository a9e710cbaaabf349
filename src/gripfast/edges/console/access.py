"""Who may use the console: whoever opened its one-time link in this browser, from this page.

The link has a random key that works once. Opening it sets a cookie that scripts can't read and that no other site can
send along, and gives the page a secret in the address's fragment, which browsers never send. A cookie alone is not
enough: it belongs to a host whatever the port, so a server that a command starts on another port can receive it. The
secret is kept by the browser for this very address and stands in a header of every request for data. Every request
must name this address as its host; one that changes something must come from its page. We write neither key nor
secret to a file that a command can read, but browsers may; so a server also refuses all that commands send
(`for_people` in `app.py`).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from secrets import token_urlsafe

PATH = "/console"
COOKIE = "gripfast_console"
HEADER = "x-gripfast-console"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OPEN_LINK = "open the link that `gripfast console` prints; each link works once"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class ConsoleAccess:
    """The keys of one console. `hosts` are the values of the Host header that name it."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self.hosts = hosts
        self._links: set[str] = set()
        self._cookie = token_urlsafe(32)
        self._secret = token_urlsafe(32)

    def link(self, question: str = "") -> str:
        """A link that opens the console once."""
        key = token_urlsafe(32)
        self._links.add(key)
        shown = f"&question={question}" if question else ""
        return f"http://{self.hosts[0]}{PATH}?key={key}{shown}"

    def redeem(self, key: str) -> tuple[str, str] | None:
        """The cookie and the secret for a link's key, which works once; None for any other."""
        found = [link for link in self._links if hmac.compare_digest(link.encode(), key.encode())]
        self._links.difference_update(found)
        return (self._cookie, self._secret) if found else None

    def data_refusal(self, method: str, headers: Mapping[str, str], cookie: str | None) -> str | None:
        """Why a request for data or a change is refused; None if it is not."""
        secret = headers.get(HEADER, "")
        if not hmac.compare_digest(secret.encode(), self._secret.encode()):
            return _OPEN_LINK
        return self.refusal(method, headers, cookie)

    def refusal(self, method: str, headers: Mapping[str, str], cookie: str | None) -> str | None:
        """Why a request for the page itself is refused; None if it is not."""
        if headers.get("host") not in self.hosts:
            return "this console does not accept that Host header"
        origin = headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return "another site may not use this console"
        if cookie is None or not hmac.compare_digest(cookie.encode(), self._cookie.encode()):
            return _OPEN_LINK
        if method != "GET" and origin is None:
            return "changes are accepted only from the page"
        return None

    def is_named(self, headers: Mapping[str, str]) -> bool:
        return headers.get("host") in self.hosts
