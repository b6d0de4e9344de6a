"""The short way to servers on this machine: the same answers and errors as aiohttp's client."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from typing import Any

import aiohttp
import pytest
from aiohttp import StreamReader, web
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router

from backend.servers.http_client import RetryRule, close_http_session, http_session, send
from backend.servers.loopback import LoopbackPool, LoopbackResponse
from backend.servers.server_utils import get_response_json, raise_for_status
from tests.loopback import serving

OURS = RetryRule(internal=True, connect_budget_seconds=0.3)
Raw = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
async def session() -> AsyncIterator[None]:
    yield
    await close_http_session()


@asynccontextmanager
async def echo() -> AsyncIterator[str]:
    """A server that answers what it got: path, headers, cookies, body."""

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        told = {"path": request.path, "headers": dict(request.headers), "cookies": dict(request.cookies), "length": len(body)}
        response = web.Response(body=json.dumps(told).encode(), content_type="application/json")
        response.set_cookie("a", "1")
        response.set_cookie("b", "two", path="/")
        return response

    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw(handle: Raw) -> AsyncIterator[str]:
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def saying(*parts: bytes, close: bool = False) -> Raw:
    """A server that answers each request with these bytes, part by part."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            await reader.readexactly(length)
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.001)
            if close:
                break
        writer.close()

    return handle


async def test_the_answer_is_what_aiohttp_gives() -> None:
    async with echo() as url:
        ours = await send("POST", f"{url}/run", OURS, json={"x": "é"}, cookies={"s": "v.1=="}, headers={"X-Id": "7"})
        theirs = await http_session().post(f"{url}/run", json={"x": "é"}, cookies={"s": "v.1=="}, headers={"X-Id": "7"})
        assert isinstance(ours, LoopbackResponse) and not isinstance(theirs, LoopbackResponse)
        assert isinstance(ours, aiohttp.ClientResponse)
        assert (ours.ok, ours.status, ours.reason, ours.method) == (theirs.ok, theirs.status, theirs.reason, theirs.method)
        assert {name: morsel.value for name, morsel in ours.cookies.items()} == {"a": "1", "b": "two"}
        assert ours.cookies == theirs.cookies
        assert ours.headers["content-type"] == theirs.headers["content-type"]
        assert ours.headers.getall("Set-Cookie") == theirs.headers.getall("Set-Cookie")
        assert ours.content_type == theirs.content_type
        assert str(ours.url) == str(theirs.url) == str(ours.real_url)
        mine, other = await ours.json(), await theirs.json()
        assert mine["path"] == other["path"] == "/run"
        assert mine["cookies"] == other["cookies"] == {"s": "v.1=="}
        assert mine["length"] == len('{"x":"é"}'.encode())
        assert mine["headers"]["X-Id"] == "7"
        assert mine["headers"]["Content-Type"] == "application/json"


async def test_the_body_can_be_read_in_every_way_and_twice() -> None:
    async with echo() as url:
        response = await send("POST", f"{url}/a", OURS, json={"k": 1})
        whole = await response.read()
        assert await response.content.read() == whole
        assert await response.text() == whole.decode()
        assert (await response.json())["path"] == "/a"
        assert response.request_info.method == "POST"
        response.raise_for_status()
        assert response.raw_headers[0][0]
        async with response as same:
            assert await same.read() == whole
        assert response.closed


async def test_chunked_answers_and_interim_ones() -> None:
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    parts = (b"HTTP/1.1 100 Continue\r\n\r\n", chunked[:20], chunked[20:], b"4\r\nab", b"cd\r\n", b"2\r\nef\r\n0\r\n\r\n")
    async with raw(saying(*parts)) as url:
        for _ in range(2):
            response = await send("POST", f"{url}/", OURS, json={"k": 1})
            assert (response.status, await response.read()) == (200, b"abcdef")


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    head = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
    async with raw(saying(head, b'{"a"', b": 1}", close=True)) as url:
        for _ in range(2):
            response = await send("POST", f"{url}/v1/chat/completions", OURS, json={"k": 1})
            assert isinstance(response, LoopbackResponse) and await response.json() == {"a": 1}
    for nothing in (b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n"):
        async with raw(saying(nothing, close=True)) as url:
            assert await (await send("POST", f"{url}/", OURS, json={"k": 1})).read() == b""
    async with raw(saying(b"HTTP/1.1 100 Continue\r\n\r\n", close=True)) as url:
        with pytest.raises(aiohttp.ClientPayloadError):
            await send("POST", f"{url}/", OURS, json={"k": 1})


async def test_redirects_are_followed() -> None:
    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/new")

    async def new(request: web.Request) -> web.Response:
        return web.json_response({"got": await request.json()})

    application = web.Application()
    application.add_routes([web.post("/old", moved), web.post("/new", new)])
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        response = await send("POST", f"{url}/old", OURS, json={"k": 1})
        assert response.status == 200 and response.url.path == "/new" and await response.json() == {"got": {"k": 1}}
    finally:
        await runner.cleanup()


async def test_an_error_status_keeps_body_and_reason() -> None:
    async with raw(saying(b"HTTP/1.1 418 I'm a teapot\r\ncontent-length: 5\r\n\r\nshort")) as url:
        response = await send("POST", f"{url}/", OURS, json={"k": 1})
        assert (response.status, response.reason, await response.read()) == (418, "I'm a teapot", b"short")
        with pytest.raises(aiohttp.ClientResponseError, match="418"):
            response.raise_for_status()


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ((), aiohttp.ServerDisconnectedError),
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf",), aiohttp.ClientPayloadError),
        ((b"this is no HTTP at all\r\n\r\n",), aiohttp.ClientPayloadError),
    ],
)
async def test_a_broken_exchange_is_told_in_aiohttps_words(parts: tuple[bytes, ...], error: type[Exception]) -> None:
    received = 0
    answer = saying(*parts, close=True)

    async def counting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        received += 1
        await answer(reader, writer)

    async with raw(counting) as url:
        with pytest.raises(error):
            await send("POST", f"{url}/", OURS, json={"k": 1})
    assert received == 1


async def test_nobody_there_is_told_in_aiohttps_words(free_port: int) -> None:
    with pytest.raises(aiohttp.ClientConnectorError):
        await send("POST", f"http://127.0.0.1:{free_port}/", OURS, json={"k": 1})


async def test_connections_are_kept_and_those_of_a_cancelled_call_are_not() -> None:
    connections = 0
    hold = asyncio.Event()
    closed = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                closed.set()
                break
            if b"/slow" in head:
                hold.set()
                continue
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with raw(handle) as url:
        for _ in range(3):
            await send("POST", f"{url}/", OURS)
        assert connections == 1
        call = asyncio.create_task(send("POST", f"{url}/slow", OURS))
        await hold.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(5):
            await closed.wait()
        await send("POST", f"{url}/", OURS)
        assert connections == 2


async def test_a_closed_idle_connection_is_not_used_again() -> None:
    async with raw(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", close=True)) as url:
        for _ in range(3):
            assert await (await send("POST", f"{url}/", OURS)).read() == b"ok"


async def test_no_more_connections_than_the_limit() -> None:
    at_once = most = 0

    async def slowly(_request: web.Request) -> web.Response:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return web.Response(text="ok")

    application = web.Application()
    application.router.add_post("/", slowly)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    pool = LoopbackPool(limit_per_host=3, keepalive_seconds=15, connect_timeout=5)
    answers = await asyncio.gather(*[pool.post(url, {"data": b"x"}) for _ in range(20)])
    pool.close()
    await runner.cleanup()
    assert [answer.status for answer in answers if answer is not None] == [200] * 20
    assert most == 3


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("http://example.org:80/x", {}),
        ("https://127.0.0.1:80/x", {}),
        ("http://127.0.0.1:80/x?y=1", {}),
        ("http://127.0.0.1:80/ü", {}),
        ("http://127.0.0.1:80/a b", {}),
        ("http://127.0.0.1:80/x\r\nInjected: 1", {}),
        ("http://127.0.0.1:80/x", {"timeout": 3}),
        ("http://127.0.0.1:80/x", {"data": {"form": "data"}}),
        ("http://127.0.0.1:80/x", {"headers": {"X": "a\r\nInjected: 1"}}),
        ("http://127.0.0.1:80/x", {"cookies": {"s": 'needs "quotes"'}}),
    ],
)
async def test_what_is_no_plain_post_on_this_machine_is_left_to_aiohttp(url: str, arguments: dict[str, Any]) -> None:
    assert await LoopbackPool(1, 1, 1).post(url, arguments) is None


async def test_cookies_of_an_answer_can_be_sent_on() -> None:
    async with echo() as url:
        first = await send("POST", f"{url}/", OURS)
        told = await (await send("POST", f"{url}/", OURS, cookies=first.cookies)).json()
        assert told["cookies"] == {"a": "1", "b": "two"}
        quoted = SimpleCookie()
        quoted["q"] = "a b"
        told = await (await send("POST", f"{url}/", OURS, cookies=quoted)).json()
        assert told["cookies"] == {"q": "a b"}


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=3000), st.lists(st.integers(1, 400), max_size=8), st.booleans())
def test_any_body_in_any_pieces_arrives_whole(body: bytes, cuts: list[int], chunked: bool) -> None:
    if chunked:
        framed = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:1000], body[1000:]) if part) + b"0\r\n\r\n"
        answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + framed
    else:
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    pieces = []
    for cut in cuts:
        pieces.append(answer[:cut])
        answer = answer[cut:]
    pieces.append(answer)

    async def exchange() -> bytes:
        async with raw(saying(*filter(None, pieces))) as url:
            pool = LoopbackPool(1, 15, 5)
            response = await pool.post(f"{url}/", {"data": b"q"})
            pool.close()
            assert response is not None
            return await response.read()

    assert asyncio.run(exchange()) == body


def answering(body: bytes, status: str = "200 OK", **headers: str) -> Raw:
    """A server that answers each request with this body."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return saying(f"HTTP/1.1 {status}\r\n{lines}content-length: {len(body)}\r\n\r\n".encode() + body)


async def _by_pieces_of_a_thousand(content: StreamReader) -> list[bytes]:
    pieces = []
    while piece := await content.read(1000):
        pieces.append(piece)
    return pieces


async def _as_it_comes(content: StreamReader) -> list[bytes]:
    pieces = []
    while piece := await content.readany():
        pieces.append(piece)
    return pieces


async def _exactly_ten_then_the_rest(content: StreamReader) -> list[bytes]:
    return [await content.readexactly(10), await content.read()]


async def _by_lines(content: StreamReader) -> list[bytes]:
    pieces = []
    while line := await content.readline():
        pieces.append(line)
    return pieces


async def _at_once(content: StreamReader) -> list[bytes]:
    return [await content.read()]


READINGS: dict[str, Callable[[StreamReader], Awaitable[list[bytes]]]] = {
    "read": _at_once,
    "read(n)": _by_pieces_of_a_thousand,
    "readany": _as_it_comes,
    "readexactly": _exactly_ten_then_the_rest,
    "readline": _by_lines,
    "iter_chunked": lambda content: _collected(content.iter_chunked(4096)),
    "iter_any": lambda content: _collected(content.iter_any()),
    "iter_lines": lambda content: _collected(content),
    "iter_chunks": lambda content: _parts_only(content),
}


async def _collected(pieces: Any) -> list[bytes]:
    return [piece async for piece in pieces]


async def _parts_only(content: StreamReader) -> list[bytes]:
    return [part async for part, _ in content.iter_chunks()]


SIXTEEN = b"0123456789abcde\n"


@pytest.mark.parametrize("length", [16, 65_536, 131_072, 131_088, 800_000])
async def test_each_way_of_reading_works_for_any_size(length: int) -> None:
    body = SIXTEEN * (length // 16)
    async with raw(answering(body)) as url:
        for name, reading in READINGS.items():
            response = await send("POST", f"{url}/", OURS, json={"k": 1})
            pieces = await reading(response.content)
            assert b"".join(pieces) == body, name
            assert response.content.at_eof(), name
            assert max(map(len, pieces)) <= {"read(n)": 1000, "readline": 16, "iter_lines": 16, "iter_chunked": 4096}.get(
                name, length
            )
            assert await response.read() == body and await response.text() == body.decode()


@pytest.mark.parametrize("framing", ["content-length: 0\r\n\r\n", "transfer-encoding: chunked\r\n\r\n0\r\n\r\n"])
async def test_each_way_of_reading_works_for_nothing(framing: str) -> None:
    async with raw(saying(f"HTTP/1.1 200 OK\r\n{framing}".encode())) as url:
        for name, reading in READINGS.items():
            response = await send("POST", f"{url}/", OURS, json={"k": 1})
            if name == "readexactly":
                with pytest.raises(asyncio.IncompleteReadError):
                    await reading(response.content)
            else:
                assert b"".join(await reading(response.content)) == b"", name
            assert response.content.at_eof()
            assert (await response.read(), await response.text()) == (b"", "")


async def test_fifty_megabytes_and_a_line_of_a_megabyte() -> None:
    body = b"x" * 999_999 + b"\n" + b"y" * 49_000_000
    async with raw(answering(body)) as url:
        response = await send("POST", f"{url}/", OURS, json={"k": 1})
        assert await response.content.readline() == b"x" * 999_999 + b"\n"
        assert await response.content.read(49_000_000) == b"y" * 49_000_000
        assert response.content.at_eof()
        assert await response.read() == body


async def test_a_chunked_body_has_the_end_of_a_chunk() -> None:
    async with raw(saying(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n")) as url:
        response = await send("POST", f"{url}/", OURS)
        assert [piece async for piece in response.content.iter_chunks()] == [(b"abcdef", True)]


@pytest.mark.parametrize("length", [0, 200_000])
async def test_a_response_that_was_let_go_is_as_aiohttps(length: int) -> None:
    async with raw(answering(b"x" * length)) as url:
        for let_go in ("release", "close"):
            response = await send("POST", f"{url}/", OURS)
            getattr(response, let_go)()
            getattr(response, let_go)()
            assert response.closed
            with pytest.raises(aiohttp.ClientConnectionError, match="Connection closed"):
                await response.content.read()
        async with await send("POST", f"{url}/", OURS) as response:
            assert len(await response.content.read()) == length
        with pytest.raises(aiohttp.ClientConnectionError, match="Connection closed"):
            await response.content.read()


async def test_a_large_error_is_raised_with_its_whole_body() -> None:
    body = b'{"detail":"' + b"x" * 400_000 + b'"}'
    async with raw(answering(body, status="422 Unprocessable Entity")) as url:
        with pytest.raises(aiohttp.ClientResponseError, match="422") as raised:
            await raise_for_status(await send("POST", f"{url}/", OURS, json={"k": 1}))
    assert raised.value.response_content == body  # type: ignore[attr-defined]


PLAIN = b'{"a":1}'


def deflated(body: bytes, wbits: int) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(PLAIN)),
        ("GZip", gzip.compress(PLAIN)),
        ("gzip", gzip.compress(b'{"a"') + gzip.compress(b":1}")),
        ("deflate", zlib.compress(PLAIN)),
        ("deflate", deflated(PLAIN, -15)),
        ("identity", PLAIN),
    ],
    ids=["gzip", "in capitals", "two members", "deflate", "deflate without its head", "identity"],
)
async def test_a_compressed_answer_is_read_as_what_was_compressed(encoding: str, packed: bytes) -> None:
    async with raw(answering(packed, Content_Type="application/json", Content_Encoding=encoding)) as url:
        for client in (send("POST", f"{url}/", OURS, json={"k": 1}), http_session().post(f"{url}/", json={"k": 1})):
            response = await client
            assert response.headers["Content-Encoding"] == encoding
            assert await response.content.read(3) == b'{"a'
            assert await response.content.read() == b'":1}'
        response = await send("POST", f"{url}/", OURS, json={"k": 1})
        assert isinstance(response, LoopbackResponse)
        assert await response.json() == await get_response_json(response) == {"a": 1}
        assert (await response.read(), await response.text(), await response.content.read()) == (PLAIN, '{"a":1}', PLAIN)


async def test_a_large_compressed_answer_and_an_empty_one() -> None:
    body = SIXTEEN * 500_000
    async with raw(answering(gzip.compress(body, 1), Content_Encoding="gzip")) as url:
        response = await send("POST", f"{url}/", OURS)
        assert b"".join([piece async for piece in response.content.iter_chunked(100_000)]) == await response.read() == body
    for encoding in ("gzip", "deflate"):
        async with raw(answering(b"", Content_Encoding=encoding)) as url:
            assert await (await send("POST", f"{url}/", OURS)).read() == b""


async def test_an_error_that_is_compressed_is_raised_with_what_was_compressed() -> None:
    async with raw(answering(gzip.compress(b"too much"), status="400 Bad Request", Content_Encoding="gzip")) as url:
        with pytest.raises(aiohttp.ClientResponseError, match="400") as raised:
            await raise_for_status(await send("POST", f"{url}/", OURS))
    assert raised.value.response_content == b"too much"  # type: ignore[attr-defined]


@pytest.mark.parametrize("encoding", ["x-gzip", "gzip, gzip", "ünknown"])
async def test_an_encoding_that_aiohttp_leaves_alone_is_left_alone(encoding: str) -> None:
    packed = gzip.compress(PLAIN)
    async with raw(answering(packed, Content_Encoding=encoding)) as url:
        ours, theirs = await send("POST", f"{url}/", OURS), await http_session().post(f"{url}/")
        assert await ours.read() == await theirs.read() == packed


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", PLAIN),
        ("gzip", gzip.compress(PLAIN) + b"more"),
        ("gzip", gzip.compress(PLAIN)[:-8] + bytes(8)),
        ("deflate", zlib.compress(PLAIN)[:-4] + bytes(4)),
    ],
    ids=["no gzip", "something behind it", "wrong checksum", "wrong sum"],
)
async def test_broken_compressed_data_is_told_in_aiohttps_words(encoding: str, packed: bytes) -> None:
    connections = 0
    answer = answering(packed, Content_Encoding=encoding)

    async def counting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await answer(reader, writer)

    readings: list[Callable[[aiohttp.ClientResponse], Awaitable[Any]]] = [
        aiohttp.ClientResponse.read,
        aiohttp.ClientResponse.text,
        get_response_json,
        lambda response: response.content.read(),
        lambda response: response.content.readline(),
    ]
    async with raw(counting) as url:
        theirs = await http_session().post(f"{url}/")
        with pytest.raises(aiohttp.ClientPayloadError) as told_by_aiohttp:
            await theirs.read()
        for reading in readings:
            response = await send("POST", f"{url}/", OURS)
            assert response.status == 200
            for _ in range(2):
                with pytest.raises(aiohttp.ClientPayloadError) as told:
                    await reading(response)
                assert str(told.value) == str(told_by_aiohttp.value)
                assert type(told.value.__cause__) is type(told_by_aiohttp.value.__cause__)
    assert connections == 2  # aiohttp's and ours: the answer came whole, so its connection is used again


async def test_a_deflated_answer_without_its_end_is_an_error() -> None:
    async with raw(answering(zlib.compress(PLAIN)[:6], Content_Encoding="deflate")) as url:
        with pytest.raises(aiohttp.ClientPayloadError):
            await (await send("POST", f"{url}/", OURS)).read()


async def test_an_encoding_without_its_library_is_told_in_aiohttps_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiohttp.http_parser.HAS_BROTLI", False)
    async with raw(answering(b"anything", Content_Encoding="br")) as url:
        told = []
        for client in (send("POST", f"{url}/", OURS), http_session().post(f"{url}/")):
            with pytest.raises(aiohttp.ClientResponseError) as raised:
                await client
            told.append((raised.value.status, raised.value.message, str(raised.value.request_info.url)))
        assert told[0] == told[1] == (400, "Can not decode content-encoding: brotli (br). Please install `Brotli`", f"{url}/")


async def test_a_server_that_compresses_when_asked_is_not_asked_unless_the_caller_asks() -> None:
    async def answer(_request: Any) -> PlainTextResponse:
        return PlainTextResponse("text " * 1000)

    async with serving(GZipMiddleware(Router(routes=[Route("/", answer, methods=["POST"])]))) as url:
        for headers, encoding in (({}, None), ({"Accept-Encoding": "gzip"}, "gzip")):
            response = await send("POST", f"{url}/", OURS, headers=headers)
            assert isinstance(response, LoopbackResponse)
            assert response.headers.get("Content-Encoding") == encoding
            assert await response.text() == "text " * 1000
