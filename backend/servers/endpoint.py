"""Routes that read JSON, validate once and answer bytes.

FastAPI's own body and response models cost 2.4 to 3.5 times as much per request. Authors keep their signatures; what they register
themselves with `app.post` stays FastAPI's.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, TypeAdapter, ValidationError

from backend.io.json_codec import dumps, loads
from backend.servers.api_document import describe

Handler = Callable[..., Awaitable[Any]]
_JSON = "application/json"


def add_json_route(
    app: FastAPI,
    path: str,
    handler: Handler,
    *,
    methods: tuple[str, ...] = ("POST",),
    context: Callable[[Any], AbstractContextManager[Any]] | None = None,
) -> None:
    """Serve `handler` at `path`: its body argument is validated from the request's JSON, its result is sent as JSON.

    With `context`, the handler runs inside the context manager that `context(decoded body)` gives.

    `handler` may take, in any order, a `Request`, a `Response` (for headers and cookies) and one body. A handler with other
    parameters is registered with FastAPI as it is. Invalid bodies get FastAPI's 422.
    """
    typed = typed_handler(handler)
    if typed is None:
        app.add_api_route(path, handler, methods=list(methods))
        return

    async def endpoint(request: Request) -> Response:
        if typed.adapter is None:
            return await typed.answer(request)
        decoded = await read_json(request)
        body = validate_body(decoded, typed.adapter)
        if context is None:
            return await typed.answer(request, body)
        with context(decoded):
            return await typed.answer(request, body)

    add_endpoint(app, path, endpoint, handler, methods)


def add_endpoint(
    app: FastAPI,
    path: str,
    endpoint: Callable[[Request], Awaitable[Response]],
    handler: Handler,
    methods: tuple[str, ...] = ("POST",),
    *,
    described_as: Handler | None = None,
) -> None:
    """Serve `endpoint` at `path` under the name and docstring of the author's `handler`.

    The OpenAPI document shows the body and result of `described_as`, by default the handler's.
    """
    endpoint.__name__ = getattr(handler, "__name__", "endpoint")
    endpoint.__doc__ = handler.__doc__
    app.add_route(path, endpoint, methods=list(methods))
    describe(app, path, described_as or handler, methods)


@dataclass(frozen=True, slots=True)
class TypedHandler:
    """An author's handler and what its arguments are called; `adapter` validates its body."""

    handler: Handler
    body_name: str | None
    body_class: type[BaseModel] | None
    adapter: TypeAdapter[Any] | None
    request_name: str | None
    response_name: str | None

    async def answer(self, request: Request, body: Any = None, form: Callable[[Any], Response] | None = None) -> Response:
        """The handler's result for a validated body, in the form that `form` gives it (`to_response` by default)."""
        arguments: dict[str, Any] = {}
        if self.body_name:
            arguments[self.body_name] = body
        if self.request_name:
            arguments[self.request_name] = request
        side = Response()
        if self.response_name:
            arguments[self.response_name] = side
        result = await self.handler(**arguments)
        answer = (form or to_response)(result)
        if self.response_name:
            _carry_headers(side, answer)
        return answer


async def read_json(request: Request) -> Any:
    """The request's body as JSON; raises FastAPI's `RequestValidationError` (answered with 422)."""
    try:
        return loads(await request.body())
    except ValueError as error:
        detail = {
            "type": "json_invalid",
            "loc": ("body", getattr(error, "pos", 0)),
            "msg": "JSON decode error",
            "input": {},
            "ctx": {"error": getattr(error, "msg", str(error))},
        }
        raise RequestValidationError([detail]) from None


def validate_body(value: Any, adapter: TypeAdapter[Any], *, include_url: bool = False) -> Any:
    """A decoded body as the adapter's type; raises FastAPI's `RequestValidationError` (answered with 422)."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise invalid_body(error, value, include_url=include_url) from None


def invalid_body(error: ValidationError, value: Any, *, include_url: bool = False) -> RequestValidationError:
    """A validation error as FastAPI's, with places counted from the body; `include_url` links each to its explanation."""
    details = error.errors(include_url=include_url)
    return RequestValidationError([{**item, "loc": ("body", *item["loc"])} for item in details], body=value)


def to_response(result: Any) -> Response:
    """`result` as an answer: responses as they are, models by pydantic, everything else by the JSON codec."""
    if isinstance(result, Response):
        return result
    if isinstance(result, BaseModel):
        return Response(result.model_dump_json(), media_type=_JSON)
    return Response(dumps(result), media_type=_JSON)


async def answer_invalid_body(_request: Request, error: Exception) -> JSONResponse:
    """The 422 of a body that does not validate. Values that JSON cannot express are shown as text instead of failing."""
    errors = error.errors() if isinstance(error, RequestValidationError) else [{"msg": str(error)}]
    return JSONResponse({"detail": _expressible(errors)}, status_code=422)


def _expressible(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _expressible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_expressible(item) for item in value]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if value is None or isinstance(value, str | int | bool):
        return value
    return str(value)


def typed_handler(handler: Handler) -> TypedHandler | None:
    """What `handler` takes, or None when it takes anything but a `Request`, a `Response` and one body model."""
    hints = typing.get_type_hints(handler, include_extras=True)
    body: str | None = None
    request: str | None = None
    response: str | None = None
    for name, parameter in inspect.signature(handler).parameters.items():
        annotation = hints.get(name)
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            return None
        if inspect.isclass(annotation) and issubclass(annotation, Request):
            request = name
        elif inspect.isclass(annotation) and issubclass(annotation, Response):
            response = name
        elif inspect.isclass(annotation) and issubclass(annotation, BaseModel) and body is None:
            body = name
        else:
            return None
    return TypedHandler(
        handler, body, hints[body] if body else None, TypeAdapter(hints[body]) if body else None, request, response
    )


def _carry_headers(side: Response, answer: Response) -> None:
    for key, value in side.raw_headers:
        if key not in (b"content-length", b"content-type"):
            answer.raw_headers.append((key, value))
