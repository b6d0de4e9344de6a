"""A short way from a server's middlewares to its plain routes.

Starlette's exception layer, FastAPI's exit stack, and the walk along all routes cost a sixth of what a small request costs. A request for
a fixed path with a coroutine as its endpoint needs none of them, unless it fails: then Starlette's own layer answers.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Endpoint = Callable[[Request], Awaitable[Response]]


def install_direct_routes(app: FastAPI) -> None:
    """Let `app` answer its plain routes directly. To be called when it has all its routes and middlewares."""
    app.user_middleware.append(Middleware(DirectRoutes, application=app))


class DirectRoutes:
    """Innermost middleware: calls the endpoint of a plain route itself, and passes everything else on."""

    def __init__(self, app: ASGIApp, application: FastAPI) -> None:
        self.app = app
        self._handlers = {key: value for key, value in application.exception_handlers.items() if key not in (500, Exception)}
        self._router = application.router
        self._endpoints = direct_endpoints(application.router.routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = None
        if scope["type"] == "http" and not scope.get("root_path"):
            endpoint = self._endpoints.get((scope["method"], scope["path"]))
        if endpoint is None:
            await self.app(scope, receive, send)
            return
        scope.update(endpoint=endpoint, path_params={}, router=self._router)
        started = False

        async def noting_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            response = await endpoint(Request(scope, receive, send))
            await response(scope, receive, noting_send)
        except Exception as error:
            if started:
                raise
            await self._answer_as_starlette(error, scope, receive, send)

    async def _answer_as_starlette(self, error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
        async def fail(_scope: Scope, _receive: Receive, _send: Send) -> None:
            raise error

        await ExceptionMiddleware(fail, handlers=self._handlers)(scope, receive, send)


def direct_endpoints(routes: list[BaseRoute]) -> dict[tuple[str, str], Endpoint]:
    """Endpoints by method and path, of those routes that the router itself would choose for exactly that path."""
    found: dict[tuple[str, str], Endpoint] = {}
    for route in routes:
        if type(route) is not Route or "{" in route.path or not inspect.iscoroutinefunction(route.endpoint):
            continue
        for method in route.methods or ():
            if _first_match(routes, method, route.path) is route:
                found[method, route.path] = route.endpoint
    return found


def _first_match(routes: list[BaseRoute], method: str, path: str) -> BaseRoute | None:
    scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
    return next((route for route in routes if route.matches(scope)[0] is Match.FULL), None)
