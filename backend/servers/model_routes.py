"""The three dialects of a model server: Responses, Chat Completions and Anthropic's Messages, each also as a stream.

A stream replays a finished answer: the model is called first, so a request that is wrong is refused with a status, and streaming
needs nothing of the author's two handlers.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from typing import Any, Protocol

import aiohttp
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope, Send

from backend.io.json_codec import dumps
from backend.responses.chat import NeMoGymChatCompletionCreateParamsNonStreaming
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
from backend.servers.endpoint import add_endpoint, add_json_route, invalid_body, read_json, validate_body
from backend.servers.handlers import Handler, TypedHandler, as_it_is, side_response, typed_handler, with_side
from backend.servers.middleware import UPSTREAM_STATUS_HEADER, upstream_status

logger = logging.getLogger(__name__)

RESPONSES_PATH = "/v1/responses"
CHAT_PATH = "/v1/chat/completions"
MESSAGES_PATH = "/v1/messages"
EVENT_STREAM = "text/event-stream"
MAX_MESSAGE_CHARS = 2000
_SIDE = "gym.side_response"
"""Where in a request's scope the headers are that an author's handler sets."""


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


class ModelServer(Protocol):
    """What these routes need of a model server: the author's two handlers, and how they are called."""

    @property
    def responses(self) -> Handler:
        """The author's handler in the Responses dialect."""

    @property
    def chat_completions(self) -> Handler:
        """The author's handler in the Chat-Completions dialect."""

    @property
    def _invoke_responses(self) -> Handler: ...

    @property
    def _invoke_chat_completions(self) -> Handler: ...


def add_model_routes(app: FastAPI, server: ModelServer, defaults: type) -> None:
    """Serve the routes of all three dialects by the server's hooks; `defaults` is the class whose own hooks are these here.

    A hook that the author replaced is a handler like any other. An author's `responses` or `chat_completions` of a form that cannot
    be typed (see `typed_handler`) is registered with FastAPI as it is, and does not stream.
    """

    def add(
        path: str, hook: str, author: Handler, *, described_as: Handler | None = None, otherwise: Handler | None = None
    ) -> None:
        if getattr(type(server), hook) is not getattr(defaults, hook):
            add_json_route(app, path, getattr(server, hook))
        elif takes_body(author):
            add_endpoint(app, path, _dispatching(getattr(server, hook)), author, described_as=described_as)
        elif otherwise is not None:
            add_json_route(app, path, otherwise)

    add(RESPONSES_PATH, "responses_dispatch", server.responses, otherwise=server.responses)
    add(MESSAGES_PATH, "messages", server.responses, described_as=any_object)
    add(CHAT_PATH, "chat_completions_dispatch", server.chat_completions, otherwise=server.chat_completions)


def takes_body(handler: Handler) -> bool:
    """Whether a handler is of a plain form and takes a body."""
    typed = typed_handler(handler)
    return typed is not None and typed.adapter is not None


def _dispatching(dispatch: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return as_it_is(await dispatch(request, _object(await read_json(request))))

    return endpoint


async def invoke(handler: Handler, request: Request, params: Any, asked: str) -> Any:
    """The result of an author's handler for validated `params`, with the capture of its tokens around it, for calls that have one.

    `asked` is the field of `params` with the conversation.
    """
    typed = _typed(handler)
    side = None
    if typed.form.response_name:
        side = request.scope[_SIDE] = side_response()
    if current_capture_context() is None:
        return await typed.call(request, params, side)
    from backend.servers.token_id_capture import context as capture

    # A handler may change its body, and what was asked must be recognised again in the next request.
    items = copy(getattr(params, asked, None))
    await capture.register_call_intent()
    await capture.resolve_parent(items)
    try:
        result = await typed.call(request, params, side)
    except BaseException:
        await capture.give_up_call()
        raise
    await capture.capture_tokens(result, items)
    return result


async def answer_responses(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
    """A request in the Responses dialect: strict, or, with a true `stream`, cleaned, and answered with events.

    Raises FastAPI's `RequestValidationError`; what fails later is told in the stream, where there is one.
    """
    typed = _typed(server.responses)
    if not body.get("stream"):
        params = validate_body(body, _adapter(typed), include_url=True)
        return _finished(request, await server._invoke_responses(request, params), as_it_is)
    body_class: Any = typed.body_class
    if not issubclass(body_class, NeMoGymResponseCreateParamsNonStreaming):
        body_class = NeMoGymResponseCreateParamsNonStreaming
    clean, names = sanitize_streaming_responses_body(body, body_class)
    try:
        params = validate_streaming_responses_params(clean, body_class)
    except ValidationError as error:
        raise invalid_body(error, body, include_url=True) from None
    if typed.body_class is dict:
        params = params.model_dump(exclude_unset=True)
    try:
        result = await server._invoke_responses(request, params)
        return _finished(request, result, _in_form(lambda answer: EventStream(synthesize_responses_sse(answer, names))))
    except Exception as error:
        return _failed_stream(request, error)


async def answer_chat_completions(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
    """A request in the Chat-Completions dialect: strict, or, where `stream` is true, cleaned, and answered with events.

    Raises FastAPI's `RequestValidationError`, and what the handler raises.
    """
    typed = _typed(server.chat_completions)
    if body.get("stream") is not True:
        params = validate_body(body, _adapter(typed))
        return _finished(request, await server._invoke_chat_completions(request, params), as_it_is)
    body_class: Any = NeMoGymChatCompletionCreateParamsNonStreaming if typed.body_class is dict else typed.body_class
    clean, with_usage = sanitize_streaming_chat_body(body, body_class)
    params = validate_body(clean, _adapter(typed))
    form = _in_form(lambda answer: EventStream(chat_completion_sse(answer, include_usage=with_usage)))
    return _finished(request, await server._invoke_chat_completions(request, params), form)


async def answer_messages(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
    """One call in Anthropic's dialect, by way of the Responses dialect. Raises as `answer_responses` does without a stream."""
    params = validate_body(responses_body_from_messages(body), _adapter(_typed(server.responses)))

    def form(answer: dict[str, Any]) -> Response:
        message = message_from_response(answer, body.get("model"))
        if body.get("stream"):
            return EventStream(message_sse(message))
        return Response(dumps(message), media_type="application/json")

    return _finished(request, await server._invoke_responses(request, params), _in_form(form))


def _typed(handler: Handler) -> TypedHandler:
    typed = typed_handler(handler)
    if typed is None or typed.adapter is None:
        raise TypeError(f"{getattr(handler, '__qualname__', handler)} does not take one body, and perhaps a request")
    return typed


def _finished(request: Request, result: Any, form: Callable[[Any], Response]) -> Response:
    """A handler's result in its form, with the headers that it has set; a finished response of the author's stays as it is."""
    answer = form(result)
    if answer is result:
        return answer
    return with_side(answer, request.scope.pop(_SIDE, None))


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
