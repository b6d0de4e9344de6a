"""The process-wide client: what is sent again, and what never is."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from backend.servers.http_client import (
    CLIENT_KEEPALIVE_SECONDS,
    ClientSettings,
    RetryRule,
    close_http_session,
    configure_http_client,
    send,
)
from backend.servers.openai_utils import NeMoGymAsyncOpenAI
from backend.servers.serve import SERVER_KEEPALIVE_SECONDS
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


def test_our_client_lets_idle_connections_go_before_our_servers_do() -> None:
    assert CLIENT_KEEPALIVE_SECONDS <= SERVER_KEEPALIVE_SECONDS / 2


async def answer_and_close_when_idle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that closes a connection after one idle second."""
    body = b'{"choices": [{"message": {"role": "assistant", "content": "x"}}]}'
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        while True:
            async with asyncio.timeout(1):
                head = await reader.readuntil(b"\r\n\r\n")
                length = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                await reader.readexactly(sum(length))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    writer.close()


@pytest.mark.slow
@pytest.mark.usefixtures("session")
async def test_connections_that_a_server_closes_when_idle_cost_no_call(caplog: pytest.LogCaptureFixture) -> None:
    server, url = await serve(answer_and_close_when_idle)
    model = NeMoGymAsyncOpenAI(base_url=f"{url}/v1", api_key="k")

    async def one(number: int) -> None:
        for _ in range(4):
            if number % 4 == 0:
                await model.create_chat_completion(model="m", messages=[])
            else:
                rule = RetryRule(internal=number % 4 < 3)
                await (await send("GET" if number % 2 else "POST", f"{url}/verify", rule, data=b"{}")).read()
            await asyncio.sleep(5)

    async with server:
        await asyncio.gather(*(one(number) for number in range(52)))
    assert caplog.text == ""  # nothing had to be tried again


@pytest.fixture
def deaf_after_reading() -> Iterator[str]:
    """The address of a server that reads a request and then receives nothing more, not even probes: its packets are dropped."""
    drop_everything = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # a filter that returns 0
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def accept() -> None:
            connection, _ = listener.accept()
            kept.append(connection)
            connection.recv(1 << 16)
            attach_filter = 26
            connection.setsockopt(socket.SOL_SOCKET, attach_filter, struct.pack("HL", 1, ctypes.addressof(drop_everything)))

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for connection in kept:
            connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="dropping the packets of one connection needs a socket filter")
@pytest.mark.slow
@pytest.mark.usefixtures("session")
async def test_a_server_that_vanishes_with_a_request_is_noticed_by_probes(deaf_after_reading: str) -> None:
    configure_http_client(ClientSettings(keepalive_idle_seconds=1, keepalive_interval_seconds=1, keepalive_probes=2))
    try:
        async with asyncio.timeout(60):
            with pytest.raises(aiohttp.ClientOSError, match="timed out"):
                await send("POST", f"{deaf_after_reading}/run", RetryRule(), json={"a": 1})
    finally:
        configure_http_client(ClientSettings())


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
