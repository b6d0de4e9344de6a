"""One uvicorn server on the socket that the supervisor bound, reporting when it answers."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from backend.servers.process_context import process_context

BACKLOG = 8192
SERVER_KEEPALIVE_SECONDS = 30
GRACEFUL_SHUTDOWN_SECONDS = 0.5
"""A float where uvicorn declares an int: it hands the number to `asyncio.wait_for`, and a whole second is long for a stop."""


class _ReportingServer(uvicorn.Server):
    """Tells the supervisor as soon as connections are accepted.

    Where there is one, the signal that ends it is not raised again as soon as it has closed: what an author does after serving, and what
    was registered to be done at exit, would be lost. The process raises it when all that is done.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if not self.should_exit:
            process_context().report_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        context = process_context()
        with super().capture_signals():
            yield
            if context.listener is not None and self._captured_signals:
                context.ended_by = self._captured_signals[0]
                self._captured_signals.clear()


def serve(app: ASGIApp, *, host: str, port: int, config: Mapping[str, Any], access_log: bool | None = None) -> None:
    """Serve `app` until a signal ends this process; on the inherited listening socket, else on `host` and `port`."""
    context = process_context()
    shows_access = bool(config.get("uvicorn_logging_show_200_ok", False)) if access_log is None else access_log
    settings = uvicorn.Config(
        app,
        host=host,
        port=port,
        http="httptools",
        loop="uvloop",
        ws="none",
        lifespan="auto",
        log_level="debug" if config.get("verbose") else "warning",
        access_log=shows_access,
        backlog=BACKLOG,
        timeout_keep_alive=SERVER_KEEPALIVE_SECONDS,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,  # type: ignore[arg-type]
        timeout_worker_healthcheck=int(config.get("uvicorn_timeout_worker_healthcheck", 30)),
    )
    server = _ReportingServer(settings)
    server.run(sockets=[context.listener] if context.listener is not None else None)
