"""The three dialects of a model server: Responses, Chat Completions and Anthropic's Messages, each also as a stream.

A stream replays a finished answer: the model is called first, so a request that is wrong is refused with a status, and streaming
needs nothing of the author's two handlers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any

import aiohttp
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope, Send

from backend.io.json_codec import dumps
from backend.responses.chat_stream import chat_completion_sse, sanitize_streaming_chat_body
from backend.responses.messages import message_from_response, message_sse, responses_body_from_messages
from backend.responses.params import NeMoGymResponseCreateParamsNonStreaming
from backend.responses.streaming import (
    sanitize_streaming_responses_body,
    synthesize_responses_failure_sse,
    synthesize_responses_sse,
    validate_streaming_responses_params,
)
from backend.servers.api_document import any_object
from backend.servers.capture_context import current_capture_context
from backend.servers.endpoint import (
    Handler,
    TypedHandler,
    add_endpoint,
    add_json_route,
    invalid_body,
    read_json,
    typed_handler,
    validate_body,
)
from backend.servers.middleware import UPSTREAM_STATUS_HEADER, upstream_status

logger = logging.getLogger(__name__)

RESPONSES_PATH = "/v1/responses"
CHAT_PATH = "/v1/chat/completions"
MESSAGES_PATH = "/v1/messages"
EVENT_STREAM = "text/event-stream"
MAX_MESSAGE_CHARS = 2000


class EventStream(Response):
    """An answer of server-sent events, each sent as a piece of its own.

    Starlette's `StreamingResponse` would take every event of a plain iterator from a thread.
    """

    media_type = EVENT_STREAM

    def __init__(self, events: Iterable[str], headers: dict[str, str] | None = None) -> None:
        super().__init__(headers={"cache-control": "no-cache", **(headers or {})})
        del self.headers["content-length"]
        self.events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for event in self.events:
            await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def add_model_routes(app: FastAPI, responses: Handler, chat_completions: Handler) -> None:
    """Serve the author's two handlers at the routes of all three dialects.

    A handler of a form that cannot be typed (see `typed_handler`) is registered with FastAPI as it is, and does not stream.
    """
    typed_responses, typed_chat = (
        _capturing(typed_handler(responses), "input"),
        _capturing(typed_handler(chat_completions), "messages"),
    )
    if typed_responses is None or typed_responses.adapter is None:
        add_json_route(app, RESPONSES_PATH, responses)
    else:
        add_endpoint(app, RESPONSES_PATH, _responses_endpoint(typed_responses), responses)
        add_endpoint(app, MESSAGES_PATH, _messages_endpoint(typed_responses), responses, described_as=any_object)
    if typed_chat is None or typed_chat.adapter is None:
        add_json_route(app, CHAT_PATH, chat_completions)
    else:
        add_endpoint(app, CHAT_PATH, _chat_endpoint(typed_chat), chat_completions)


def _capturing(typed: TypedHandler | None, asked: str) -> TypedHandler | None:
    """`typed` with the capture of its tokens around it, for calls that have one; `asked` is the body's field with the conversation."""
    if typed is None or typed.body_name is None:
        return typed
    handler, body_name = typed.handler, typed.body_name

    async def captured(**arguments: Any) -> Any:
        if current_capture_context() is None:
            return await handler(**arguments)
        from backend.servers.token_id_capture import context as capture

        # A handler may change its body, and what was asked must be recognised again in the next request.
        items = copy(getattr(arguments[body_name], asked, None))
        await capture.register_call_intent()
        await capture.resolve_parent(items)
        try:
            result = await handler(**arguments)
        except BaseException:
            await capture.give_up_call()
            raise
        await capture.capture_tokens(result, items)
        return result

    return replace(typed, handler=captured)


def _responses_endpoint(handler: TypedHandler) -> Callable[[Request], Any]:
    body_class: Any = handler.body_class
    if not issubclass(body_class, NeMoGymResponseCreateParamsNonStreaming):
        body_class = NeMoGymResponseCreateParamsNonStreaming

    async def endpoint(request: Request) -> Response:
        body = _object(await read_json(request))
        if not body.get("stream"):
            return await handler.answer(request, validate_body(body, _adapter(handler), include_url=True))
        clean, names = sanitize_streaming_responses_body(body, body_class)
        try:
            params = validate_streaming_responses_params(clean, body_class)
        except ValidationError as error:
            raise invalid_body(error, body, include_url=True) from None
        try:
            return await handler.answer(
                request, params, _in_form(lambda answer: EventStream(synthesize_responses_sse(answer, names)))
            )
        except Exception as error:
            return _failed_stream(request, error)

    return endpoint


def _chat_endpoint(handler: TypedHandler) -> Callable[[Request], Any]:
    body_class: Any = handler.body_class

    async def endpoint(request: Request) -> Response:
        body = _object(await read_json(request))
        if body.get("stream") is not True:
            return await handler.answer(request, validate_body(body, _adapter(handler)))
        clean, with_usage = sanitize_streaming_chat_body(body, body_class)
        params = validate_body(clean, _adapter(handler))
        form = _in_form(lambda answer: EventStream(chat_completion_sse(answer, include_usage=with_usage)))
        return await handler.answer(request, params, form)

    return endpoint


def _messages_endpoint(handler: TypedHandler) -> Callable[[Request], Any]:
    """One call in Anthropic's dialect, by way of the Responses dialect."""

    async def endpoint(request: Request) -> Response:
        body = _object(await read_json(request))
        params = validate_body(responses_body_from_messages(body), _adapter(handler))

        def form(answer: dict[str, Any]) -> Response:
            message = message_from_response(answer, body.get("model"))
            if body.get("stream"):
                return EventStream(message_sse(message))
            return Response(dumps(message), media_type="application/json")

        return await handler.answer(request, params, _in_form(form))

    return endpoint


def _adapter(handler: TypedHandler) -> Any:
    return handler.adapter


def _object(body: Any) -> dict[str, Any]:
    if isinstance(body, dict):
        return body
    mistake = {"type": "dict_type", "loc": ("body",), "msg": "Input should be a valid dictionary", "input": body}
    raise RequestValidationError([mistake], body=body)


def _in_form(form: Callable[[dict[str, Any]], Response]) -> Callable[[Any], Response]:
    """`form` on a handler's result as a JSON object; a finished response of the author's stays as it is."""

    def formed(result: Any) -> Response:
        if isinstance(result, Response):
            return result
        return form(result.model_dump(mode="json") if isinstance(result, BaseModel) else result)

    return formed


def _failed_stream(request: Request, error: Exception) -> EventStream:
    """The client wanted a stream, so it is told in one; the status that the endpoint gave travels in a header."""
    headers: dict[str, str] = {}
    if isinstance(error, aiohttp.ClientResponseError):
        content = getattr(error, "response_content", b"").decode("utf-8", "replace")
        message = f"the model endpoint answered {error.status}: {content or error.message}"
        headers[UPSTREAM_STATUS_HEADER] = upstream_status(error)
    else:
        message = str(getattr(error, "detail", None) or error) or repr(error)
    logger.warning("%s %s: the call failed: %r", request.method, request.url.path, error)
    return EventStream(synthesize_responses_failure_sse(message[:MAX_MESSAGE_CHARS]), headers)
