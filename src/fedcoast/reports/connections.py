"""Connections of the live page: limited in number, and closed when a request does not come in time."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
STALLED_SECONDS = 30.0
MOST_CONNECTIONS = 1000


def most_connections() -> int:
    """The limit, or half of the files that this process may open, whichever is less."""
    try:
        import resource
    except ImportError:  # pragma: no cover (a platform without it)
        return MOST_CONNECTIONS
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, files // 2))


class LimitedConnections(H11Protocol):
    """HTTP as uvicorn speaks it, for a server that strangers may reach.

    A connection must bring a whole request within `HEADER_SECONDS`, and another one within that time after an answer.
    If there are too many connections, the one that has waited longest without a request is closed; if all are being
    answered, the new one is refused. A viewer that takes nothing of its answer for `STALLED_SECONDS` is dropped.
    """

    _waiting: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= most_connections() and not self._make_room():
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        self._wait()

    def _make_room(self) -> bool:
        idle: list[Any] = [one for one in self.connections if getattr(one, "_waiting", None) is not None]
        if not idle:
            return False
        oldest = min(idle, key=lambda one: one._waiting.when())
        self.connections.discard(oldest)
        oldest._stop_waiting()
        oldest.transport.abort()
        return True

    def _wait(self) -> None:
        self._stop_waiting()
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:  # a request is whole, and being answered
            self._stop_waiting()

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()
        if self.cycle is not None and not self.cycle.response_complete:  # the next request had come already
            self._stop_waiting()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_stalling()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_stalling()
        super().resume_writing()

    def _stop_stalling(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_stalling()
        if self.flow is not None:
            super().connection_lost(exc)
