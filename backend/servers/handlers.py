"""Authors' handlers: what they take, how they are called, and what becomes of their results.

The plain forms are understood here, because FastAPI's way costs several times as much; every other form is left to FastAPI.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response, params
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import ResponseValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticUndefined
from starlette.concurrency import run_in_threadpool

from backend.io.json_codec import dumps

Handler = Callable[..., Any]
"""A coroutine function, or a plain function, which is run in a thread."""

_JSON = "application/json"
_UNKNOWN_RESULT = TypeAdapter(Any)
_FORMS_KEPT = 256


@dataclass(frozen=True, slots=True)
class Form:
    """What a handler's arguments are called; `adapter` validates its body, `result` what it returns (None: nothing is said of that)."""

    body_name: str | None
    body_class: type[Any] | None
    adapter: TypeAdapter[Any] | None
    request_name: str | None
    response_name: str | None
    result: TypeAdapter[Any] | None
    in_thread: bool


@dataclass(frozen=True, slots=True)
class TypedHandler:
    """An author's handler of a plain form."""

    handler: Handler
    form: Form

    @property
    def adapter(self) -> TypeAdapter[Any] | None:
        """Validates the body; None for handlers that take none."""
        return self.form.adapter

    @property
    def body_class(self) -> type[Any] | None:
        """The class of the body."""
        return self.form.body_class

    async def call(self, request: Request, body: Any = None, side: Response | None = None) -> Any:
        """The handler's own result for a validated body. `side` is for the headers and cookies of handlers that set some."""
        form = self.form
        arguments: dict[str, Any] = {}
        if form.body_name:
            arguments[form.body_name] = body
        if form.request_name:
            arguments[form.request_name] = request
        if form.response_name:
            arguments[form.response_name] = side or side_response()
        if not form.in_thread:
            return await self.handler(**arguments)
        result = await run_in_threadpool(self.handler, **arguments)
        return await result if inspect.isawaitable(result) else result

    async def answer(self, request: Request, body: Any = None) -> Response:
        """The answer that FastAPI would make of the handler's result for a validated body.

        Raises `ResponseValidationError` for a result that is not what the handler's annotation says.
        """
        side = side_response() if self.form.response_name else None
        result = await self.call(request, body, side)
        if isinstance(result, Response):
            return result
        return with_side(to_response(result, self.form.result), side)


def side_response() -> Response:
    """A response for a handler to put its headers, cookies and status into, as FastAPI hands it over."""
    side = Response()
    del side.headers["content-length"]
    side.status_code = None  # type: ignore[assignment]  # so that a status which the author sets can be told
    return side


def with_side(answer: Response, side: Response | None) -> Response:
    """`answer` with what the handler has put into `side`."""
    if side is None:
        return answer
    for key, value in side.raw_headers:
        if key not in (b"content-length", b"content-type"):
            answer.raw_headers.append((key, value))
    if side.status_code:
        answer.status_code = side.status_code
        if side.status_code < 200 or side.status_code in (204, 205, 304):  # those that go without a body
            answer.body = b""
            del answer.headers["content-length"]
    return answer


def to_response(result: Any, adapter: TypeAdapter[Any] | None) -> Response:
    """A handler's result as FastAPI would answer it: validated and written by its annotated type, else by its own.

    An instance of the annotated class (or of a subclass) is not validated again: pydantic takes it as it is, in a microsecond, and
    so does FastAPI. Only the type that it is written as matters then: fields that just a subclass has stay behind.
    """
    if adapter is None and isinstance(result, BaseModel):  # the same as below, in a third of the time
        return Response(result.model_dump_json(by_alias=True), media_type=_JSON)
    if adapter is None:
        return JSONResponse(jsonable_encoder(result))
    try:
        value = adapter.validate_python(result, from_attributes=True)
    except ValidationError as error:
        details = [{**item, "loc": ("response", *item["loc"])} for item in error.errors(include_url=False)]
        raise ResponseValidationError(errors=details, body=result) from None
    return Response(adapter.dump_json(value, by_alias=True), media_type=_JSON)


def as_it_is(result: Any) -> Response:
    """A result of which no type is asked: models by pydantic, everything else by the JSON codec."""
    if isinstance(result, Response):
        return result
    if isinstance(result, BaseModel):
        return Response(result.model_dump_json(), media_type=_JSON)
    return Response(dumps(result), media_type=_JSON)


def typed_handler(handler: Handler) -> TypedHandler | None:
    """`handler` and its form, or None when it takes anything but a `Request`, a `Response` and one required, unembedded JSON body.

    The body is a pydantic model or `dict`. Also None: generators, and annotations that name what is not there.
    """
    function = getattr(handler, "__func__", None)
    form = _form_of_method(function) if inspect.isfunction(function) else _form_of(handler)
    return None if form is None else TypedHandler(handler, form)


def awaitable(handler: Handler) -> Handler:
    """`handler` as a coroutine function of the same signature, for callers that await it."""
    if _runs_on_the_loop(handler):
        return handler

    @functools.wraps(handler)
    async def in_thread(*args: Any, **kwargs: Any) -> Any:
        result = await run_in_threadpool(handler, *args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    return in_thread


@functools.lru_cache(_FORMS_KEPT)
def _form_of_method(function: Handler) -> Form | None:
    return _form_of(function, skipped=1)


def _form_of(handler: Handler, skipped: int = 0) -> Form | None:
    """The form of a handler without its first `skipped` parameters."""
    if any(kind(inspect.unwrap(handler)) for kind in (inspect.isgeneratorfunction, inspect.isasyncgenfunction)):
        return None
    try:
        hints = typing.get_type_hints(handler, include_extras=True)
    except (NameError, TypeError):
        return None
    body: str | None = None
    request: str | None = None
    response: str | None = None
    for parameter in list(inspect.signature(handler).parameters.values())[skipped:]:
        name, annotation = parameter.name, hints.get(parameter.name)
        if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            return None
        if not inspect.isclass(annotation):
            return None
        if issubclass(annotation, Request) and request is None:
            request = name
        elif issubclass(annotation, Response) and response is None:
            response = name
        elif (issubclass(annotation, BaseModel) or annotation is dict) and body is None and _is_plain_body(parameter.default):
            body = name
        else:
            return None
    body_class = hints[body] if body else None
    adapter = TypeAdapter(hints[body]) if body else None
    return Form(body, body_class, adapter, request, response, _result_adapter(hints), not _runs_on_the_loop(handler))


def _is_plain_body(default: Any) -> bool:
    if default is inspect.Parameter.empty:
        return True
    return (
        type(default) is params.Body
        and default.default in (PydanticUndefined, ...)
        and default.default_factory is None
        and not (default.embed or default.alias or default.validation_alias or default.metadata)
        and default.media_type == _JSON
    )


def _result_adapter(hints: dict[str, Any]) -> TypeAdapter[Any] | None:
    """What FastAPI would make the response model of; None where it would make none, and for what pydantic does not know."""
    if "return" not in hints:
        return None
    result = hints["return"]
    if result is type(None) or (inspect.isclass(result) and issubclass(result, Response)):
        return None
    if result is Any:
        return _UNKNOWN_RESULT
    try:
        return TypeAdapter(result)
    except PydanticUserError:
        return None


def _runs_on_the_loop(handler: Handler) -> bool:
    ways = (handler, inspect.unwrap(handler), getattr(handler, "__call__", None))  # noqa: B004  # how it is called, not whether
    return any(inspect.iscoroutinefunction(way) or asyncio.iscoroutinefunction(way) for way in ways)
