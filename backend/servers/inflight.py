"""What a server is working on, by rollout, and how a request says which rollout it is for.

Calls between our servers carry `x-gym-rollout-id: <rollout id>[@<run>]`, below the hands of environment code. The run's tag keeps
two runs apart that use the same servers and the same ids. A server with several workers tells the work of the one that is asked.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.io.json_codec import dumps
from backend.servers.rollout_correlation import (
    ROLLOUT_ID_PATTERN,
    ROLLOUT_PREFIX,
    current_rollout_id,
    is_rollout_id,
    maybe_rollout_id_from_run_body,
    rollout_context,
)

INFLIGHT_PATH = "/inflight"
LIVENESS = "GET /"
ROLLOUT_HEADER = "x-gym-rollout-id"
_HEADER_NAME = ROLLOUT_HEADER.encode()
_KEY = re.compile(rf"{ROLLOUT_ID_PATTERN.pattern}(@[0-9a-f]+)?".encode())
_LONGEST_KEY = 300
_LONGEST_PATH = 200
_ROLLOUTS_COUNTED = 10_000
_SERVER_ERROR = 500
_KINDS_COUNTED = 64
"""Per rollout: a server whose paths hold ids must not fill the memory."""


class _Work:
    """One request that is being answered."""

    __slots__ = ("began", "count", "key", "what")

    def __init__(self, key: str | None, what: str) -> None:
        self.key = key
        self.what = what
        self.began = time.monotonic()
        self.count = 0


_current: ContextVar[_Work | None] = ContextVar("work_in_flight", default=None)


def rollout_key(rollout_id: str, run: str | None) -> str:
    """The header's value for a rollout of the run with the tag `run` (hexadecimal digits)."""
    return f"{rollout_id}@{run}" if run else rollout_id


def current_rollout_key() -> str | None:
    """The header's value for calls made in the current context; None when they are for no rollout."""
    work = _current.get()
    carried = work.key if work is not None else None
    current = current_rollout_id()
    if carried is None or current is None:
        return carried or current
    rollout_id, _, run = carried.partition("@")
    return carried if rollout_id == current else rollout_key(current, run)


@contextmanager
def run_body_context(body: Any) -> Iterator[None]:
    """Inside, the rollout that a `/run` body describes is the current one, and the request in flight counts as its work."""
    rollout_id = maybe_rollout_id_from_run_body(body)
    work = _current.get()
    if work is not None and work.key is None and is_rollout_id(rollout_id):
        work.key, work.count = rollout_id, 1
    with rollout_context(rollout_id):
        yield


class InflightWork:
    """Keeps the requests that are being answered, and gives them at `GET /inflight`.

    `{"server": name, "now": seconds since the epoch, "work": [{"rollout_id", "run", "what", "since", "count"}, …]}`: `what` is method
    and path, `count` says the how-manieth such call of this rollout it is. Work without a known rollout has a null id. Beside them
    `requests` (answered since the server began, without `GET /`) and `errors` (those with a status of 500 and up).
    `answers` is False where the application has a route of that name itself.
    """

    def __init__(self, app: ASGIApp, server_name: str, *, answers: bool = True) -> None:
        self.app = app
        self.server_name = server_name
        self.answers = answers
        self._requests = 0
        self._errors = 0
        self._work: dict[_Work, None] = {}
        self._counts: OrderedDict[str | None, dict[str, int]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["path"] == INFLIGHT_PATH and scope["method"] == "GET" and self.answers:
            await self._answer(send)
            return
        work = self._begin(scope)
        token = _current.set(work)

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start" and work.what != LIVENESS:
                self._requests += 1
                self._errors += message["status"] >= _SERVER_ERROR
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        finally:
            _current.reset(token)
            del self._work[work]
            if work.key is not None and work.what == "POST /run":
                self._counts.pop(work.key, None)  # the rollout is over; at other servers the oldest counts give way

    def snapshot(self) -> dict[str, Any]:
        """What `GET /inflight` answers."""
        work = []
        now, moment = time.time(), time.monotonic()
        for item in self._work:
            rollout_id, _, run = (item.key or "").partition("@")
            entry = {"rollout_id": rollout_id or None, "run": run or None, "what": item.what}
            work.append(entry | {"since": now - (moment - item.began), "count": item.count})
        counts = {"requests": self._requests, "errors": self._errors}
        return {"server": self.server_name, "now": now, **counts, "work": work}

    def _begin(self, scope: Scope) -> _Work:
        path = scope["path"]
        key = None
        for name, value in scope["headers"]:
            if name == _HEADER_NAME:
                key = value.decode() if len(value) <= _LONGEST_KEY and _KEY.fullmatch(value) else None
        match = ROLLOUT_PREFIX.match(path)
        if match and is_rollout_id(match["id"]):
            path = match["rest"]
            if key is None or key.partition("@")[0] != match["id"]:
                key = match["id"]
        work = _Work(key, f"{scope['method']} {path[:_LONGEST_PATH]}")
        work.count = self._count(key, work.what)
        self._work[work] = None
        return work

    def _count(self, key: str | None, what: str) -> int:
        """The how-manieth call of this kind it is; counts of the rollouts that were silent for longest are forgotten first."""
        counts = self._counts.get(key)
        if counts is None:
            if len(self._counts) >= _ROLLOUTS_COUNTED:
                self._counts.popitem(last=False)
            counts = self._counts[key] = {}
        else:
            self._counts.move_to_end(key)
        count = counts.get(what, 0) + 1
        if count == 1 and len(counts) >= _KINDS_COUNTED:
            counts.clear()
        counts[what] = count
        return count

    async def _answer(self, send: Send) -> None:
        body = dumps(self.snapshot())
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
