"""Real servers on loopback for tests: an endpoint that answers from a script, and any ASGI application."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from aiohttp import web
from aiohttp.test_utils import TestServer

from backend.io.json_codec import dumps, loads


@dataclass
class Reply:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: Any


class Endpoint:
    """Gives its replies in order, the last one again and again; a reply may be a function of the request."""

    def __init__(self, *replies: Reply | Callable[[Request], Reply]) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.base_url = ""

    async def answer(self, request: web.Request) -> web.Response:
        raw = await request.read()
        seen = Request(request.path, dict(request.headers), loads(raw) if raw else None)
        self.requests.append(seen)
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        reply = reply if isinstance(reply, Reply) else reply(seen)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(reply.delay)
        self.in_flight -= 1
        body = reply.body if isinstance(reply.body, bytes) else dumps(reply.body)
        return web.Response(status=reply.status, body=body, headers={"Content-Type": "application/json", **reply.headers})


@asynccontextmanager
async def endpoint(*replies: Reply | Callable[[Request], Reply]) -> AsyncIterator[Endpoint]:
    """An endpoint below `/v1` of a free port."""
    upstream = Endpoint(*replies)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", upstream.answer)
    async with TestServer(application) as server:
        upstream.base_url = f"http://127.0.0.1:{server.port}/v1"
        yield upstream


@asynccontextmanager
async def serving(application: Any) -> AsyncIterator[str]:
    """`application` behind uvicorn on a free port; gives its base URL."""
    server = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


def chat_answer(text: str | None = "Hello", **message: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "upstream",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28},
    }


def responses_answer(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": "upstream",
        "status": "completed",
        "output": [{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 20,
            "output_tokens": 8,
            "total_tokens": 28,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        **fields,
    }


@contextmanager
def serving_in_thread(application: Any) -> Iterator[str]:
    """`application` behind uvicorn in a thread, for tests that are not asynchronous; gives its base URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off", timeout_keep_alive=30))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 10
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.005)
        assert server.started
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(5)
