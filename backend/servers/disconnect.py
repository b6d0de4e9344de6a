"""A caller that leaves takes its work along: what was begun for it is cancelled, and so is what that work waits for."""

from __future__ import annotations

import asyncio
import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

SECONDS_UNWATCHED = 0.05
"""A watch is a task of its own and costs 0.1 ms of CPU: what is answered faster does without one."""


class CancelOnDisconnect:
    """Cancels the handler of a request whose caller has gone, so that no model is asked for an answer that nobody reads.

    Plain ASGI, and only where handlers have no effects beyond their answer: a verifier is left to finish.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        handling = asyncio.current_task()
        assert handling is not None  # an ASGI application always runs in a task
        timer: asyncio.TimerHandle | None = None
        watch: asyncio.Future[Message] | None = None
        gone = finished = False

        def caller_left(watching: asyncio.Future[Message]) -> None:
            nonlocal gone
            if not finished and not watching.cancelled() and not watching.exception():
                gone = True
                handling.cancel()

        def begin_watch() -> asyncio.Future[Message]:
            nonlocal watch
            if watch is None:
                watch = asyncio.ensure_future(receive())
                watch.add_done_callback(caller_left)
            return watch

        async def watched_receive() -> Message:
            nonlocal timer
            if timer is not None:
                return await asyncio.shield(begin_watch())
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                # All that can still come is the news that the caller left.
                timer = asyncio.get_running_loop().call_later(SECONDS_UNWATCHED, begin_watch)
            return message

        async def watched_send(message: Message) -> None:
            nonlocal finished
            finished = finished or (message["type"] == "http.response.body" and not message.get("more_body"))
            await send(message)

        try:
            await self.app(scope, watched_receive, watched_send)
        except asyncio.CancelledError:
            if not gone:
                raise
            handling.uncancel()
            logger.info("%s %s: given up, the caller left", scope["method"], scope["path"])
        finally:
            finished = True
            if timer is not None:
                timer.cancel()
            if watch is not None:
                watch.cancel()
