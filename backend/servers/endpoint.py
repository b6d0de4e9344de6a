"""Routes that read JSON, validate once and answer bytes.

FastAPI's own body and response models cost 2.4 to 3.5 times as much per request. Authors keep their signatures; what they register
themselves with `app.post` stays FastAPI's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from backend.io.json_codec import loads
from backend.servers.api_document import describe
from backend.servers.handlers import Handler, typed_handler

BodyContext = Callable[[Any], AbstractContextManager[Any]]


def add_json_route(
    app: FastAPI,
    path: str,
    handler: Handler,
    *,
    methods: tuple[str, ...] = ("POST",),
    context: BodyContext | None = None,
) -> None:
    """Serve `handler` at `path`: its body argument is validated from the request's JSON, its result by the annotated result.

    With `context`, the handler runs inside the context manager that `context(decoded body)` gives.

    A handler of another form than `typed_handler` knows is registered with FastAPI as it is. Invalid bodies get FastAPI's 422;
    a result that is no such result raises FastAPI's `ResponseValidationError` (answered with 500).
    """
    typed = typed_handler(handler)
    if typed is None or (context is not None and typed.adapter is None):
        route_class = _route_within(context) if context else None
        app.router.add_api_route(path, handler, methods=list(methods), route_class_override=route_class)
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


def _route_within(context: BodyContext) -> type[APIRoute]:
    """FastAPI's route with everything it does inside `context(decoded body)`; a body that is no JSON is left to FastAPI to refuse."""

    class RouteWithin(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def within(request: Request) -> Response:
                try:
                    decoded = loads(await request.body())
                except ValueError:
                    return await handle(request)
                with context(decoded):
                    return await handle(request)

            return within

    return RouteWithin
