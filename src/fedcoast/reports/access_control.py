"""Who may see the live page: this machine alone, or whoever brings the token."""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

COOKIE = "fedcoast"
_PIECE = 64 * 1024  # bytes of an answer that wait for one viewer
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class AccessControl:
    """Lets a request through, or answers it itself.

    Without a token only requests that call this machine by its own name pass, so that no page from elsewhere can reach
    it under a name of its own (DNS rebinding). With one, every request must bring it: in the address, once, in an
    `Authorization: Bearer` header, or in the cookie that the address is exchanged for.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], token: str | None = None) -> None:
        self._app = app
        self._token = token
        self._pass = "" if token is None else hashlib.sha256(f"fedcoast live {token}".encode()).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if self._token is None:
            if is_loopback(_host(headers.get("host", ""))):
                await self._app(scope, receive, _with_safe_headers(send))
            else:
                await _answer(send, 403, "this page is for its own machine; open it as http://127.0.0.1 or localhost")
            return
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if _same(given, self._token):
            cookie = f"{COOKIE}={self._pass}; HttpOnly; SameSite=Strict; Path=/"
            await _answer(send, 303, "", [(b"location", b"./"), (b"set-cookie", cookie.encode())])
        elif _same(_bearer(headers), self._token) or _same(_cookie(headers), self._pass):
            await self._app(scope, receive, _with_safe_headers(send))
        else:
            await _answer(send, 401, "this page needs its token: open …/?token=TOKEN, as `fedcoast serve` printed it")


def _same(given: str, expected: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own: a name of somebody else's can lead here, an address cannot.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("localhost.evil.com")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host(header: str) -> str:
    """A host without its port, empty if there is anything else.

    >>> _host("localhost:80"), _host("[::1]:80"), _host("127.0.0.1"), _host("[::1].evil.com")
    ('localhost', '::1', '127.0.0.1', '')
    """
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::[0-9]{1,5})?", header)
    return "" if found is None else (found[1] or found[2]).lower()


def _bearer(headers: dict[str, str]) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _cookie(headers: dict[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _with_safe_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            names = {name for name, _ in headers}
            message = {**message, "headers": headers + [header for header in _HEADERS if header[0] not in names]}
        if message["type"] == "http.response.body":
            rest = memoryview(message.get("body", b""))
            while len(rest) > _PIECE:  # the next piece waits until the viewer has taken most of the last one
                await send({"type": "http.response.body", "body": bytes(rest[:_PIECE]), "more_body": True})
                rest = rest[_PIECE:]
            message = {**message, "body": bytes(rest)}
        await send(message)

    return with_headers


async def _answer(send: Send, status: int, text: str, extra: list[tuple[bytes, bytes]] | None = None) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *(extra or [])]
    await _with_safe_headers(send)({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode() + b"\n"})
