"""What stands around every server's routes: error envelopes and session cookies.

Plain ASGI classes: Starlette's `BaseHTTPMiddleware` would cost 0.3 ms per request and layer.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import json
import logging
import re
import secrets
import traceback
from http.cookies import CookieError, SimpleCookie
from typing import Any
from uuid import uuid4

import aiohttp
from itsdangerous import BadSignature, TimestampSigner
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.io.json_codec import dumps, loads

logger = logging.getLogger(__name__)

SESSION_ID_KEY = "session_id"
SESSION_MAX_AGE_SECONDS = 14 * 24 * 3600
UPSTREAM_STATUS_HEADER = "x-gym-upstream-status"
UNKNOWN_ERROR = "An unknown error occurred"
_KNOWN_COOKIES = 10_000
_RUN_SECRET = secrets.token_hex(32)

_MOST_HOPS = 8
_QUOTED_ANSWER = re.compile(r"(?:Hit an exception in \S+ calling an inner server: )+(?P<body>b['\"].*)", re.DOTALL)


class ErrorEnvelope:
    """Turns whatever a handler raises into the documented answer; nothing escapes to the server loop.

    An inner server's error status becomes 500 with a JSON string that quotes the inner body, and its status goes into a header. What is
    no `Exception` (`SystemExit`, say) fails its request and not the server.
    """

    def __init__(self, app: ASGIApp, server_name: str) -> None:
        self.app = app
        self.server_name = server_name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watching_send(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watching_send)
        except Exception as error:
            if started:
                raise
            await self._answer(error, scope, send)
        except GeneratorExit:  # nobody runs this coroutine any more, so it can send nothing
            raise
        except BaseException as error:
            if _is_cancelled_by_others(error):
                # The server is stopping: one line instead of uvicorn's traceback for every call that was in flight.
                logger.warning("%s %s: given up, the server stops", scope["method"], scope["path"])
            elif started:
                raise
            else:
                logger.error("%s %s: %s", scope["method"], scope["path"], _last_frames(error))
            if not started:
                await _send_error(UNKNOWN_ERROR, [], send)

    async def _answer(self, error: Exception, scope: Scope, send: Send) -> None:
        headers: list[tuple[bytes, bytes]] = []
        if isinstance(error, aiohttp.ClientResponseError):
            inner = getattr(error, "response_content", b"")
            status = upstream_status(error)
            # A client that gave up (too many redirects, say) has a status of 0 and no body; its own words are all there is.
            quoted = _quoted(inner) if inner or error.status else repr(str(error).encode())
            text = f"Hit an exception in {self.server_name} calling an inner server: {quoted}"
            if status != "0":
                headers.append((UPSTREAM_STATUS_HEADER.encode(), status.encode()))
            logger.warning("%s %s: an inner server answered %d: %s", scope["method"], scope["path"], error.status, inner[:300])
        else:
            text = repr(error)
            logger.error("%s %s: %s", scope["method"], scope["path"], _last_frames(error))
        await _send_error(text, headers, send)


async def _send_error(text: str, headers: list[tuple[bytes, bytes]], send: Send) -> None:
    body = dumps(text)
    await send({"type": "http.response.start", "status": 500, "headers": [(b"content-type", b"application/json"), *headers]})
    await send({"type": "http.response.body", "body": body})


def _is_cancelled_by_others(error: BaseException) -> bool:
    """Whether the running task was told to stop, as opposed to a handler that raises `CancelledError` or waits for what was cancelled."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _quoted(body: bytes) -> str:
    """An inner server's answer in ours: an answer that quotes one itself as it is, for each quoting doubles the backslashes."""
    try:
        text = loads(body)
    except ValueError:
        return repr(body)
    return text if isinstance(text, str) and _QUOTED_ANSWER.match(text) else repr(body)


def _last_frames(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-8)).rstrip()


def upstream_status(error: aiohttp.ClientResponseError) -> str:
    """The status that started it: it survives every hop, so that whoever reports the failure can tell 401 from 500."""
    return (error.headers.get(UPSTREAM_STATUS_HEADER) if error.headers else None) or str(error.status)


def innermost_error(body: str) -> str:
    """What the server at the bottom answered, out of an answer that quotes an inner server's answer, at any depth."""
    for _ in range(_MOST_HOPS):
        try:
            unquoted = loads(body)
        except ValueError:
            return body
        match = _QUOTED_ANSWER.match(unquoted) if isinstance(unquoted, str) else None
        if match is None:
            return unquoted if isinstance(unquoted, str) else body
        try:
            inner = ast.literal_eval(match["body"])
        except (ValueError, SyntaxError):
            return body
        body = inner.decode("utf-8", "replace")
    return body


def signing_key(cookie_name: str, secret: str | None = None) -> str:
    """What a server's session cookies and tokens are signed with: nobody outside can guess it. `secret` is the run's, where there is one."""
    return f"{cookie_name}:{secret or _RUN_SECRET}"


class SessionCookies:
    """Gives every request a session id in `request.session`, carried by a signed cookie that each answer repeats.

    The cookie holds base64 JSON `{"session_id": …}`, signed with a key that is random for each run.
    """

    def __init__(self, app: ASGIApp, cookie_name: str, secret: str | None = None) -> None:
        self.app = app
        self.cookie_name = cookie_name
        self.signer = TimestampSigner(signing_key(cookie_name, secret))
        self.verified: dict[str, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        cookie, session = self._session_of(scope)
        scope["session"] = session

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                value = cookie if scope["session"] is session and len(session) == 1 else self._sign(scope["session"])
                headers.append(
                    "set-cookie",
                    f"{self.cookie_name}={value}; path=/; Max-Age={SESSION_MAX_AGE_SECONDS}; httponly; samesite=lax",
                )
                headers.add_vary_header("Cookie")
            await send(message)

        await self.app(scope, receive, send_with_cookie)

    def _session_of(self, scope: Scope) -> tuple[str, dict[str, Any]]:
        value = _cookie_value(Headers(scope=scope).get("cookie"), self.cookie_name)
        if value:
            known = self.verified.get(value)
            if known is not None:
                return value, {SESSION_ID_KEY: known}
            try:
                data = self.signer.unsign(value, max_age=SESSION_MAX_AGE_SECONDS)
                session = json.loads(base64.b64decode(data))
                session_id = session[SESSION_ID_KEY]
            except (BadSignature, ValueError, KeyError, TypeError):
                return self._new_session()
            if len(session) == 1:
                self._remember(value, session_id)
            return value, session
        return self._new_session()

    def _new_session(self) -> tuple[str, dict[str, Any]]:
        session = {SESSION_ID_KEY: str(uuid4())}
        value = self._sign(session)
        self._remember(value, session[SESSION_ID_KEY])
        return value, session

    def _sign(self, session: dict[str, Any]) -> str:
        return self.signer.sign(base64.b64encode(json.dumps(session).encode())).decode()

    def _remember(self, value: str, session_id: str) -> None:
        if len(self.verified) >= _KNOWN_COOKIES:
            self.verified.pop(next(iter(self.verified)))
        self.verified[value] = session_id


def _cookie_value(header: str | None, name: str) -> str | None:
    if not header or name not in header:
        return None
    try:
        morsel = SimpleCookie(header).get(name)
    except CookieError:
        return None
    return morsel.value if morsel else None
