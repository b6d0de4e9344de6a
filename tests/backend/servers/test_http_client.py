"""The process-wide client: what is sent again, and what never is."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import pytest

from backend.servers.http_client import RetryRule, close_http_session, send
from backend.servers.server_utils import ServerClient, get_response_json, raise_for_status, request


async def serve(handle: Any) -> tuple[asyncio.Server, str]:
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
async def session() -> Any:
    yield
    await close_http_session()


@pytest.mark.usefixtures("session")
async def test_a_request_that_may_have_arrived_is_not_sent_twice() -> None:
    received = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await reader.readuntil(b"\r\n\r\n")
        received += 1
        writer.close()

    server, url = await serve(hang_up)
    async with server:
        with pytest.raises(aiohttp.ClientError):
            await request("POST", f"{url}/run", _internal=True, json={"a": 1})
        assert received == 1
        with pytest.raises(aiohttp.ClientError):
            await request("POST", f"{url}/v1", json={"a": 1})
        assert received == 1 + 3


@pytest.mark.usefixtures("session")
async def test_connecting_is_retried_within_its_budget(free_port: int, caplog: pytest.LogCaptureFixture) -> None:
    began = time.monotonic()
    with pytest.raises(aiohttp.ClientConnectorError):
        await send("GET", f"http://127.0.0.1:{free_port}/", RetryRule(connect_budget_seconds=0.5))
    assert time.monotonic() - began < 2
    assert f"[request_retry url=http://127.0.0.1:{free_port}/ error=" in caplog.text
    with pytest.raises(aiohttp.ClientConnectorError):
        await request("GET", f"http://127.0.0.1:{free_port}/", _max_connection_retries=0)


@pytest.mark.usefixtures("session")
async def test_a_server_that_comes_up_late_is_reached(free_port: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\ncontent-type: application/json\r\n\r\n" + b'{"ok":true}')
        await writer.drain()
        writer.close()

    async def later() -> asyncio.Server:
        await asyncio.sleep(0.4)
        return await asyncio.start_server(answer, "127.0.0.1", free_port)

    starting = asyncio.create_task(later())
    response = await request("GET", f"http://127.0.0.1:{free_port}/", _internal=True)
    assert await get_response_json(response) == {"ok": True}
    (await starting).close()


@pytest.mark.usefixtures("session")
async def test_an_error_status_keeps_its_body() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 418 Teapot\r\ncontent-length: 5\r\n\r\nshort")
        await writer.drain()
        writer.close()  # from Python 3.12 on, leaving the server waits for its connections

    server, url = await serve(refuse)
    async with server:
        response = await request("GET", url)
        assert not response.ok
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await raise_for_status(response)
    assert caught.value.status == 418
    assert caught.value.response_content == b"short"  # type: ignore[attr-defined]


class Recording(ServerClient):
    """Names the URL instead of asking it."""

    async def request(self, server_name: str, url_path: str, method: str, **kwargs: Any) -> Any:
        base, kind = self._target(server_name)
        return base + (self._observed_path(kind, url_path, kwargs.get("json")) if self._observing else url_path)


CONFIG = {
    "observability_enabled": True,
    "rs": {"resources_servers": {"x": {"host": "127.0.0.1", "port": 1}}},
    "model": {"responses_api_models": {"y": {"host": "127.0.0.1", "port": 2}}},
}


async def test_observed_calls_carry_the_rollout() -> None:
    from backend.servers.rollout_correlation import rollout_context

    client = Recording(None, CONFIG)  # type: ignore[arg-type]
    with rollout_context("0-1"):
        assert await client.post("model", "/v1/responses") == "http://127.0.0.1:2/ng-rollout/0-1/v1/responses"
        assert await client.post("rs", "/some_tool") == "http://127.0.0.1:1/ng-rollout/0-1/some_tool"
    assert await client.post("model", "/v1/responses") == "http://127.0.0.1:2/v1/responses"
    body = {"_ng_task_index": 4, "_ng_rollout_index": 2}
    assert await client.post("rs", "/verify", json=body) == "http://127.0.0.1:1/ng-rollout/4-2/verify"
    unobserved = Recording(None, CONFIG | {"observability_enabled": False})  # type: ignore[arg-type]
    with rollout_context("0-1"):
        assert await unobserved.post("model", "/v1/responses") == "http://127.0.0.1:2/v1/responses"
