"""The report as a page that grows while the federation trains.

One follower and one rendered state, shared by all who look. A browser is notified of news (server-sent
events) and fetches it; when the server is down it reconnects by itself.
"""

import asyncio
import hashlib
import json
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from fedcoast.errors import BadSetting
from fedcoast.reports.access_control import AccessControl, is_loopback
from fedcoast.reports.connections import LimitedConnections
from fedcoast.reports.following import RunFollower
from fedcoast.reports.page import live_page, plotly_js, view
from fedcoast.storage.files import read_plain

PORT = 8471
LEAST_TOKEN = 16
_log = logging.getLogger(__name__)
_POLL, _POLL_IN_TROUBLE, _LONGEST_READ, _LONGEST_WAIT, _HEARTBEAT = 0.2, 1.0, 1.0, 0.5, 10.0


class Live:
    """What all viewers share: the last rendered state, and a signal for the next."""

    def __init__(self, follower: RunFollower) -> None:
        self.follower = follower
        self.view: dict[str, Any] = {}
        self.body = b"{}"
        self.version = ""
        self._changed = asyncio.Event()  # set once, and replaced, with every new version
        self._render()

    async def run(self) -> None:
        """Follow the run until the server stops; reading and drawing happen outside the event loop."""
        while True:
            try:
                if await asyncio.to_thread(self.follower.catch_up, _LONGEST_READ):
                    await asyncio.to_thread(self._render)
                    changed, self._changed = self._changed, asyncio.Event()
                    changed.set()
            except Exception:  # viewers keep what they see, and the operator learns why it does not grow
                _log.exception("this state of the run cannot be shown; the next one will be tried")
            if not self.follower.behind:
                await asyncio.sleep(_POLL_IN_TROUBLE if self.follower.trouble else _POLL)

    def _render(self) -> None:
        state = {**view(self.follower.report()), "status": status(self.follower)}
        body = json.dumps(state, allow_nan=False).encode()
        self.view, self.body, self.version = state, body, hashlib.sha256(body).hexdigest()[:16]

    async def news(self, closing: Callable[[], bool]) -> AsyncIterator[str]:
        """The current version and every later one; now and then a comment, so that a dead connection is noticed."""
        sent, silent = "", 0.0
        yield "retry: 500\n\n"
        while not closing():
            changed = self._changed  # bound before the version is read, so that no change slips between
            if self.version != sent:
                sent, silent = self.version, 0.0
                yield f"data: {sent}\n\n"
                continue
            with suppress(TimeoutError):  # asyncio.wait_for can lose the cancellation of a viewer that leaves
                async with asyncio.timeout(_LONGEST_WAIT):
                    await changed.wait()
            silent += _LONGEST_WAIT
            if silent >= _HEARTBEAT:
                silent = 0.0
                yield ": still here\n\n"


def status(follower: RunFollower) -> dict[str, str]:
    """The state of the run, for people."""
    last = follower.assessor.last_round
    position = "no round yet" if last is None else f"round {last}"
    if follower.trouble:
        return {"state": "waiting", "text": f"Waiting ({position}): {follower.trouble}"}
    return {"state": "live", "text": f"{'Catching up' if follower.behind else 'Live'}: {position}"}


def application(live: Live, token: str | None = None, closing: Callable[[], bool] = lambda: False) -> Starlette:
    """The page, its state and its news, behind access control."""

    async def index(request: Request) -> Response:
        text, policy = live_page(live.view)
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    async def state(request: Request) -> Response:
        return Response(live.body, media_type="application/json")

    async def events(request: Request) -> Response:
        return StreamingResponse(live.news(closing), media_type="text/event-stream")

    async def library(request: Request) -> Response:
        return Response(plotly_js(), media_type="text/javascript", headers={"Cache-Control": "private, max-age=3600"})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        following = asyncio.create_task(live.run())
        try:
            yield
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    paths = {"/": index, "/view": state, "/events": events, "/plotly.js": library}
    app = Starlette(routes=[Route(path, answer, methods=["GET"]) for path, answer in paths.items()], lifespan=lifespan)
    app.add_middleware(AccessControl, token=token)
    return app


def serve(
    follower: RunFollower,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the live page until interrupted; `ready` is called with its address.

    Only this machine can see it, unless there is a token, which every request must then bring.
    """
    serve_application(lambda closing: application(Live(follower), token, closing), host, port, token, ready)


def serve_application(
    make: Callable[[Callable[[], bool]], Starlette],
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve an application until interrupted; it is made with a function that says whether the server is closing."""
    check(host, token)
    listening = _listen(host, port)
    config = uvicorn.Config(
        lambda: make(lambda: server.should_exit),
        factory=True,
        log_level="warning",
        access_log=False,  # it would write tokens down
        ws="none",
        http=LimitedConnections,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    name = f"[{host}]" if ":" in host else host
    ready(f"http://{name}:{listening.getsockname()[1]}/" + (f"?token={quote(token, safe='')}" if token else ""))
    with listening:
        server.run(sockets=[listening])


def read_token(file: Path | None) -> str | None:
    """The token in a file, or in FEDCOAST_TOKEN. The command line has none: every user of a machine can read it."""
    if file is None:
        return os.environ.get("FEDCOAST_TOKEN")
    try:
        return read_plain(file, follow=True).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file} cannot be read as a token ({error}); it holds one line of text") from error


def check(host: str, token: str | None) -> None:
    """Refuse options that would show contributions to anybody on the network."""
    if token is None and not is_loopback(host):
        raise BadSetting(
            f"{host} can be reached from other machines, and the page names who hurts; give it a token of at"
            f" least {LEAST_TOKEN} characters (--token-file FILE, or FEDCOAST_TOKEN in the environment),"
            " or serve on 127.0.0.1 and reach it through ssh -L"
        )
    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise BadSetting(
            f"a token must have at least {LEAST_TOKEN} printable ASCII characters; make one with:"
            " python -c 'import secrets; print(secrets.token_urlsafe())'"
        )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if not 0 <= port <= 65535:
            raise OSError("a port is a number up to 65535")
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadSetting(f"cannot listen on {host}, port {port} ({error}); choose others (--host, --port)") from None
