"""The OpenAPI document of an app some of whose routes answer bytes: they are described as FastAPI would describe their handlers.

It is made when somebody asks for it, at `/openapi.json` or `/docs`; until then a route costs a line in a list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import FastAPIError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

_Handler = Callable[..., Awaitable[Any]]


def describe(app: FastAPI, path: str, handler: _Handler, methods: tuple[str, ...]) -> None:
    """Have `path` in the document, with the body and the result that the signature of `handler` names."""
    described: list[tuple[str, _Handler, tuple[str, ...]]] | None = getattr(app.state, "described", None)
    if described is None:
        described = app.state.described = []

        def document() -> dict[str, Any]:
            if app.openapi_schema is None:
                routes = [_as_fastapi_would(*route) for route in described]
                app.openapi_schema = get_openapi(title=app.title, version=app.version, routes=[*routes, *app.routes])
            return app.openapi_schema

        app.openapi = document  # type: ignore[method-assign]  # FastAPI's way of extending the document
    described.append((path, handler, methods))


async def any_object(body: dict[str, Any]) -> dict[str, Any]:
    """Stands in the document for a handler that takes and gives JSON objects of which no more is said."""
    return body


def _as_fastapi_would(path: str, handler: _Handler, methods: tuple[str, ...]) -> APIRoute:
    try:
        return APIRoute(path, handler, methods=list(methods))
    except FastAPIError:  # the result is nothing that pydantic knows
        return APIRoute(path, handler, methods=list(methods), response_model=None)
