"""One model call while it passes by, and the line that a capture file gets for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import aiohttp
from starlette.types import Message

from backend.io.json_codec import loads
from backend.responses.stream_answers import UNREADABLE, StreamedAnswer, answer_from_stream, ends_stream
from backend.servers.capture_context import current_capture_context
from backend.servers.middleware import UPSTREAM_STATUS_HEADER

_STATUS_HEADER = UPSTREAM_STATUS_HEADER.encode()


class ModelCall:
    """What is known of one call: fed with its messages, asked for its line at the end."""

    def __init__(self, dialect: str, model_ref: Mapping[str, str]) -> None:
        context = current_capture_context()
        self.model_call_id = context.model_call_id if context else uuid4().hex
        self.dialect = dialect
        self.model_ref = model_ref
        self.started_at = time.time()
        self.began = time.perf_counter()
        self.first_answer: float | None = None
        self.request = bytearray()
        self.answer = bytearray()
        self.streamed = False
        self.raised = False
        self.status: int | None = None
        self.category: str | None = None

    def take_start(self, message: Message) -> None:
        """The beginning of the answer. A stream that tells of a failure carries the upstream's status in a header."""
        headers = dict(message.get("headers", []))
        upstream = headers.get(_STATUS_HEADER, b"")
        self.status = int(upstream) if upstream.isdigit() else message["status"]
        self.streamed = headers.get(b"content-type", b"").startswith(b"text/event-stream")

    def add_answer(self, piece: bytes) -> bool:
        """A piece of the answer; tells whether it ends a stream."""
        if self.first_answer is None:
            self.first_answer = time.perf_counter()
        self.answer += piece
        return self.streamed and ends_stream(self.dialect, piece.decode("utf-8", "replace"))

    def take_error(self, error: Exception) -> None:
        """A failure without an answer. An upstream's failure keeps its status and words, although the caller gets a 500."""
        self.raised = True
        if isinstance(error, aiohttp.ClientResponseError):
            self.status = error.status
            self.answer = bytearray(getattr(error, "response_content", b""))
            return
        self.answer = bytearray(repr(error).encode())
        if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
            self.category = "timeout"
        elif isinstance(error, aiohttp.ClientConnectionError | ConnectionError):
            self.category = "connection"
        else:
            self.category = "exception"

    def line(self) -> dict[str, Any]:
        """The call as a line. Times are Unix seconds, latencies milliseconds; `response_raw` stands where `response` says less."""
        now = time.perf_counter()
        request = _json_object(self.request)
        text = self.answer.decode("utf-8", "replace")
        read = self._read_answer(text)
        line: dict[str, Any] = {
            "model_call_id": self.model_call_id,
            "dialect": self.dialect,
            "model_ref": self.model_ref,
            "started_at": self.started_at,
            "completed_at": self.started_at + now - self.began,
            "latency_ms": self._milliseconds(now),
            "latency_ttft_ms": None if self.first_answer is None else self._milliseconds(self.first_answer),
            "status_code": self.status,
            "error_category": self.category or error_category(self.status) or read.problem,
            "request": request,
            "response": read.answer,
        }
        if request is None:
            line["request_raw"] = self.request.decode("utf-8", "replace")
        if text and (read.answer is None or self.streamed):
            line["response_raw"] = text
        return line

    def _read_answer(self, text: str) -> StreamedAnswer:
        if self.raised:
            return StreamedAnswer(None, None)
        if self.streamed:
            try:
                return answer_from_stream(self.dialect, text)
            except (TypeError, AttributeError, KeyError, ValueError):  # an author's own stream may hold anything
                return StreamedAnswer(None, UNREADABLE)
        answer = _json_object(self.answer)
        return StreamedAnswer(answer, None if answer is not None else UNREADABLE)

    def _milliseconds(self, moment: float) -> float:
        return round((moment - self.began) * 1000, 2)


def error_category(status: int | None) -> str | None:
    """The class of a failed call by its status; None for one that succeeded or has no status."""
    if status is None or status < 400:
        return None
    named = {401: "auth", 403: "auth", 404: "not_found", 408: "timeout", 429: "rate_limit", 504: "timeout"}
    return named.get(status) or ("client_error" if status < 500 else "upstream_error")


def _json_object(data: bytes | bytearray) -> dict[str, Any] | None:
    try:
        value = loads(bytes(data))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
