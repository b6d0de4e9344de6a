"""Components as tests see them: a server made from its classes, and a client of its real application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from nemo_gym.config_types import BaseServerConfig
from nemo_gym.server_utils import ServerClient, SimpleServer
from tests.loopback import serving

HEAD = BaseServerConfig(host="127.0.0.1", port=0)


def make_server(server_class: type[Any], config: dict[str, Any] | None = None, others: dict[str, Any] | None = None) -> Any:
    """A server of `server_class`. `config` holds the fields of its block; `others` is the whole configuration, by instance name."""
    config_class = server_class.model_fields["config"].annotation
    block = {"host": "127.0.0.1", "port": 0, "entrypoint": "app.py", "name": "under_test", **(config or {})}
    return server_class(config=config_class(**block), server_client=ServerClient(HEAD, others or {}))


def application_of(server: SimpleServer) -> Any:
    """The server's application with what is around its routes when it runs."""
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    return app


@asynccontextmanager
async def client_of(server: SimpleServer) -> AsyncIterator[httpx.AsyncClient]:
    """A client that keeps the session's cookie."""
    transport = httpx.ASGITransport(app=application_of(server))
    async with httpx.AsyncClient(transport=transport, base_url="http://component") as client:
        yield client


async def ask(server: SimpleServer, path: str, body: dict[str, Any]) -> httpx.Response:
    """The answer of `server`, behind a real socket, to one POST."""
    async with serving(application_of(server)) as url, httpx.AsyncClient(timeout=30) as client:
        return await client.post(url + path, json=body)


def place(kind: str, url: str) -> dict[str, Any]:
    """The block of an instance of `kind` that is served at `url`."""
    host, _, port = url.removeprefix("http://").partition(":")
    return {kind: {"any": {"host": host, "port": int(port)}}}


def message(text: str, role: str = "assistant") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "m", "role": role, "status": "completed", "content": [part]}


def call(name: str, arguments: str, call_id: str = "c1") -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}


def response_of(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": "r",
        "created_at": 0,
        "model": "m",
        "object": "response",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **fields,
    }


def judged(*output: dict[str, Any], tools: list[dict[str, Any]] | None = None, **row: Any) -> dict[str, Any]:
    """The body of `/verify`: a row with a response."""
    params: dict[str, Any] = {"input": [{"role": "user", "content": "?"}]}
    if tools is not None:
        params["tools"] = tools
    return {"responses_create_params": params, "response": response_of(*output), **row}
