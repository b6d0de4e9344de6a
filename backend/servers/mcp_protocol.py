"""Model Context Protocol over Streamable HTTP: the small part of it that a server of tools needs.

Stateless: every POST is answered on its own with one JSON document, and no session is kept. `GET` opens a stream on which nothing is said.
The protocol: modelcontextprotocol.io, "Transports" and "Tools".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from backend.io.json_codec import dumps, loads

LATEST_VERSION = "2025-11-25"
VERSIONS = (LATEST_VERSION, "2025-06-18", "2025-03-26", "2024-11-05")
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
_VERSION_HEADER = "mcp-protocol-version"
_STREAM_PING_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool said. `structured` is the same as a JSON object, where it is one."""

    text: str
    structured: dict[str, Any] | None = None
    is_error: bool = False


class RequestRefused(Exception):
    """A request that has no result: JSON-RPC's error code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class ToolServer:
    """The ASGI application of one MCP endpoint.

    `list_tools` gives tool descriptions for a request; `call_tool` runs one. Both are given the request's scope; `call_tool` also
    its `receive`, by which it learns that the client has left.
    """

    name: str
    version: str
    list_tools: Callable[[Scope], list[dict[str, Any]]]
    call_tool: Callable[[str, dict[str, Any], Scope, Receive], Awaitable[ToolOutcome]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            await _idle_stream(receive, send)
        elif scope["method"] == "POST":
            await self._answer(scope, receive, send)
        else:
            await _send_json(send, 405, _error(None, INVALID_REQUEST, "Method Not Allowed"), allow=True)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = Headers(scope=scope).get(_VERSION_HEADER)
        if version is not None and version not in VERSIONS:
            text = f"Unsupported protocol version: {version}. Supported versions: {', '.join(VERSIONS)}"
            await _send_json(send, 400, _error(None, INVALID_REQUEST, text))
            return
        try:
            message = loads(await read_body(receive))
        except ValueError as error:
            await _send_json(send, 400, _error(None, PARSE_ERROR, f"Parse error: {error}"))
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            await _send_json(send, 400, _error(None, INVALID_REQUEST, "Invalid request: not one JSON-RPC 2.0 message"))
            return
        if "id" not in message or "method" not in message:  # notifications, and answers to requests that we never make
            await _send_json(send, 202, None)
            return
        try:
            result = await self._result(str(message["method"]), message.get("params"), scope, receive)
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        except RequestRefused as refusal:
            answer = _error(message["id"], refusal.code, refusal.message)
        await _send_json(send, 200, answer)

    async def _result(self, method: str, params: Any, scope: Scope, receive: Receive) -> dict[str, Any]:
        if params is not None and not isinstance(params, dict):
            raise RequestRefused(INVALID_PARAMS, "Invalid request parameters")
        given = params or {}
        match method:
            case "initialize":
                wanted = given.get("protocolVersion")
                return {
                    "protocolVersion": wanted if wanted in VERSIONS else LATEST_VERSION,
                    "capabilities": {"tools": {"listChanged": False}},
                    "serverInfo": {"name": self.name, "version": self.version},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": self.list_tools(scope)}
            case "tools/call":
                return await self._call(given, scope, receive)
        raise RequestRefused(METHOD_NOT_FOUND, f"Method not found: {method}")

    async def _call(self, params: dict[str, Any], scope: Scope, receive: Receive) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict | None):
            raise RequestRefused(INVALID_PARAMS, "Invalid request parameters: `name` must be text and `arguments` an object")
        outcome = await self.call_tool(name, arguments or {}, scope, receive)
        result: dict[str, Any] = {"content": [{"type": "text", "text": outcome.text}], "isError": outcome.is_error}
        if outcome.structured is not None:
            result["structuredContent"] = outcome.structured
        return result


async def read_body(receive: Receive) -> bytes:
    """The whole body of a request. Of a client that leaves in the middle, what has come."""
    chunks = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        chunks.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    return b"".join(chunks)


async def _idle_stream(receive: Receive, send: Send) -> None:
    """Nothing is ever said here; comments keep the connection alive until the client leaves."""
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b": open\n\n", "more_body": True})
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STREAM_PING_SECONDS):
                if (await receive())["type"] == "http.disconnect":
                    return
                continue
        await send({"type": "http.response.body", "body": b": still open\n\n", "more_body": True})


async def _send_json(send: Send, status: int, value: Any, *, allow: bool = False) -> None:
    body = b"" if value is None else dumps(value)
    headers = [(b"content-length", str(len(body)).encode())]
    if body:
        headers.append((b"content-type", b"application/json"))
    if allow:
        headers.append((b"allow", b"GET, POST"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _error(request_id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
