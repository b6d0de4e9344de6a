"""POST to a server of ours on this machine, at a fifth of what aiohttp's client costs.

Three of the four calls of a rollout stay on this machine, and aiohttp's client is the largest part of what they cost. What comes back
is an `aiohttp.ClientResponse`, so that callers see no difference. Whatever is not a plain POST over `127.0.0.1` is left to aiohttp.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Mapping
from functools import lru_cache
from http.cookies import Morsel
from typing import Any, cast

import aiohttp
import httptools
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import ContentEncodingError
from aiohttp.http_parser import DeflateBuffer
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

_TARGET = re.compile(r"http://(127\.0\.0\.1|localhost):(\d{1,5})(/[A-Za-z0-9\-._~!$&'()*+,;=:@/]*)\Z")
_UNSAFE = re.compile(r"[^\x20-\x7e]")
_SAFE_COOKIE = re.compile(r"[!#-+\--:<-\[\]-~]*\Z")
_KNOWN_ARGUMENTS = frozenset({"data", "headers", "cookies"})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_DECODED_BY_AIOHTTP = frozenset({"gzip", "deflate", "br", "zstd"})


class LoopbackResponse(aiohttp.ClientResponse):
    """An answer whose body has been read already."""

    def __init__(
        self, url: URL, status: int, reason: str, headers: CIMultiDict[str], body: bytes, sent: CIMultiDict[str]
    ) -> None:
        self.method = "POST"
        self.status = status
        self.reason = reason
        self.version = aiohttp.HttpVersion11
        self._real_url = self._url = url
        self._headers = CIMultiDictProxy(headers)
        self._raw_cookie_headers = tuple(headers.getall("Set-Cookie", ())) or None
        self._body = body
        self._sent = sent
        self._cache: dict[str, Any] = {}
        self._traces = []
        self._loop = asyncio.get_running_loop()
        self._content: StreamReader | None = None

    @property
    def content(self) -> StreamReader:  # type: ignore[override]
        """The body as a stream."""
        if self._content is None:
            self._content = _stream(self._loop)
            chunked = "Transfer-Encoding" in self._headers
            if chunked:  # one chunk, for callers of `iter_chunks` that wait for the end of each
                self._content.begin_http_chunk_receiving()
            self._content.feed_data(self._body or b"")
            if chunked:
                self._content.end_http_chunk_receiving()
            self._content.feed_eof()
        return self._content

    def decompress(self, encoding: str) -> None:
        """Put what was compressed in place of the body. Broken data is told to whoever reads it, as a `ClientPayloadError`.

        Raises `aiohttp.ClientResponseError` for an encoding whose library is not installed.
        """
        stream = _stream(self._loop)
        try:
            decoder = DeflateBuffer(stream, encoding)
        except ContentEncodingError as error:
            raise aiohttp.ClientResponseError(self.request_info, (), status=error.code, message=error.message) from error
        piece = self._body or b""
        try:
            while decoder.feed_data(piece, len(piece)):
                piece = b""  # there is more to come out of what went in
            decoder.feed_eof()
        except ContentEncodingError as error:
            # For a deflate stream without its end aiohttp has no answer of its own: it raises at once or waits forever, as the packets fall.
            broken = aiohttp.ClientPayloadError(str(error))
            broken.__cause__ = error
            stream.set_exception(broken)
            self._body, self._content = None, stream
        else:
            self._body = stream.read_nowait()

    @property
    def request_info(self) -> aiohttp.RequestInfo:
        """What was asked."""
        return aiohttp.RequestInfo(self._url, self.method, CIMultiDictProxy(self._sent), self._url)

    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers as they came."""
        return tuple((name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in self._headers.items())


class LoopbackPool:
    """Connections of one event loop to servers on this machine, kept open while they are used."""

    def __init__(self, limit_per_host: int, keepalive_seconds: float, connect_timeout: float) -> None:
        self._limit = limit_per_host
        self._keepalive = keepalive_seconds
        self._connect_timeout = connect_timeout
        self._idle: dict[tuple[str, int], list[_Connection]] = {}
        self._slots: dict[tuple[str, int], asyncio.Semaphore] = {}

    async def post(self, url: str, arguments: Mapping[str, Any]) -> aiohttp.ClientResponse | None:
        """The answer to a POST; None when it is not one for this transport: another kind of request, nobody listens there, a redirect.

        Raises `aiohttp.ServerDisconnectedError` or `aiohttp.ClientPayloadError` for a connection that breaks; then the server may have
        received the request. Raises `aiohttp.ClientResponseError` for an answer in an encoding that this process cannot undo.
        """
        target = _TARGET.match(url)
        if target is None or not arguments.keys() <= _KNOWN_ARGUMENTS:
            return None
        host, port, path = target[1], int(target[2]), target[3]
        headers = _sent_headers(host, port, arguments)
        if headers is None:
            return None
        body = arguments.get("data") or b""
        slots = self._slots.get((host, port))
        if slots is None:
            slots = self._slots[host, port] = asyncio.Semaphore(self._limit)
        async with slots:
            connection = await self._connection(host, port)
            if connection is None:
                return None
            try:
                status, reason, received, content = await connection.exchange(_head(path, headers, len(body)), body)
            except BaseException:
                connection.close()
                raise
            if connection.reusable:
                connection.idle_since = time.monotonic()
                self._idle.setdefault((host, port), []).append(connection)
            else:
                connection.close()
        if status in _REDIRECTS and "Location" in received:
            return None  # aiohttp knows what is to be sent there; nothing has been done yet
        answer = LoopbackResponse(_url(url), status, reason, received, content, headers)
        encodings = received.getall("Content-Encoding", None)
        if encodings and (encoding := encodings[-1].strip().lower()) in _DECODED_BY_AIOHTTP:
            answer.decompress(encoding)
        return answer

    async def _connection(self, host: str, port: int) -> _Connection | None:
        idle = self._idle.get((host, port))
        while idle:
            connection = idle.pop()
            if connection.usable and time.monotonic() - connection.idle_since < self._keepalive:
                return connection
            connection.close()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, opened = await loop.create_connection(_Connection, host, port)
        except (OSError, TimeoutError):
            return None  # aiohttp tells what is wrong, in its own words
        return opened

    def close(self) -> None:
        """Close what is open and unused."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()


Answer = tuple[int, str, CIMultiDict[str], bytes]


class _Connection(asyncio.Protocol):
    """One connection; one exchange at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.reusable = False
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._reason = b""
        self._headers: CIMultiDict[str] = CIMultiDict()
        self._body: list[bytes] = []
        self._begun = self._ends_with_connection = False

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def exchange(self, head: bytes, body: bytes) -> Answer:
        """Send one request and wait for the whole answer."""
        assert self._transport is not None
        self._parser = httptools.HttpResponseParser(self)
        self.reusable = self._begun = self._ends_with_connection = False
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.writelines((head, body) if body else (head,))  # from 3.12 on, asyncio never gets rid of an empty piece
        return await self._waiter

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not say that it is one

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self._waiter is None or self._waiter.done():
            self.close()  # nothing was asked
            return
        self._begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(aiohttp.ClientPayloadError(f"the answer is no HTTP: {error}"))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        if self._ends_with_connection and error is None:
            self.on_message_complete()
            self.reusable = False
        elif self._begun:
            self._fail(aiohttp.ClientPayloadError("the connection was closed before the whole answer had come"))
        else:
            self._fail(aiohttp.ServerDisconnectedError())

    def on_status(self, status: bytes) -> None:
        self._reason += status

    def on_message_begin(self) -> None:
        self._reason = b""
        self._headers = CIMultiDict()
        self._body = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.add(name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))

    def on_headers_complete(self) -> None:
        # The end of the connection is the end of such an answer, as servers of HTTP/1.0 write it (RFC 9112, 6.3).
        self._ends_with_connection = "Content-Length" not in self._headers and "Transfer-Encoding" not in self._headers

    def on_body(self, part: bytes) -> None:
        self._body.append(part)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        self._ends_with_connection = False
        status = self._parser.get_status_code()
        if 100 <= status < 200:  # the real answer is still to come
            return
        self.reusable = self._parser.should_keep_alive()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result((status, self._reason.decode("latin-1"), self._headers, b"".join(self._body)))
        self._parser = None

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)


def _sent_headers(host: str, port: int, arguments: Mapping[str, Any]) -> CIMultiDict[str] | None:
    """The headers to send, or None when a value needs aiohttp's care."""
    if not isinstance(arguments.get("data", b""), bytes | None):
        return None
    # No Accept-Encoding, unlike aiohttp: a server that compresses when asked would spend CPU on both sides to save bytes that never
    # leave this machine. Callers get the same content, as a server that compresses unasked, or because they asked, is understood.
    headers = CIMultiDict({"Host": f"{host}:{port}", "Accept": "*/*"})
    for name, value in (arguments.get("headers") or {}).items():
        if not isinstance(value, str) or _UNSAFE.search(value) or _UNSAFE.search(name):
            return None
        headers[name] = value
    cookies = arguments.get("cookies")
    if cookies:
        pairs = []
        for name, value in cookies.items():
            text = value.coded_value if isinstance(value, Morsel) else value
            if not isinstance(text, str) or not _SAFE_COOKIE.match(text) or not _SAFE_COOKIE.match(name):
                return None
            pairs.append(f"{name}={text}")
        headers["Cookie"] = "; ".join(pairs)
    return headers


def _head(path: str, headers: Mapping[str, str], length: int) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    return f"POST {path} HTTP/1.1\r\n{lines}Content-Length: {length}\r\n\r\n".encode("latin-1")


def _stream(loop: asyncio.AbstractEventLoop) -> StreamReader:
    """A stream that takes any amount at once: there is no connection behind it that could be told to wait."""
    return StreamReader(BaseProtocol(loop), sys.maxsize, loop=loop)


@lru_cache(maxsize=1024)
def _url(url: str) -> URL:
    return URL(url)
