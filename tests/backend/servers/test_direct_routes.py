"""The short way to plain routes answers what the long way answers."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from pydantic import BaseModel
from starlette.responses import Response

from backend.servers.direct_routes import direct_endpoints, install_direct_routes
from backend.servers.endpoint import add_json_route, answer_invalid_body


class Body(BaseModel):
    """A body with one number."""

    number: int


class Odd(Exception):
    """An error that the application has a handler for."""


def application(direct: bool) -> FastAPI:
    app = FastAPI()
    seen: list[str] = []

    async def double(body: Body) -> dict[str, Any]:
        if body.number == 13:
            raise HTTPException(status_code=409, detail="unlucky", headers={"x-why": "13"})
        if body.number == 15:
            raise Odd("fifteen")
        return {"doubled": body.number * 2}

    async def where(request: Request) -> Response:
        return JSONResponse({"path": request.url.path, "app": request.app is app, "params": request.path_params})

    async def answer_odd(_request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"odd": str(error)}, status_code=450)

    async def any_tool(name: str) -> dict[str, str]:
        return {"tool": name}

    add_json_route(app, "/double", double)
    app.add_route("/where", where, methods=["GET"])
    app.add_api_route("/{name}", any_tool, methods=["POST"])
    add_json_route(app, "/shadowed", double)
    app.add_exception_handler(RequestValidationError, answer_invalid_body)
    app.add_exception_handler(Odd, answer_odd)

    @app.middleware("http")
    async def note(request: Request, call_next: Any) -> Any:
        seen.append(request.url.path)
        response = await call_next(request)
        response.headers["x-seen"] = str(len(seen))
        return response

    if direct:
        install_direct_routes(app)
    return app


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/double", {"number": 4}),
        ("POST", "/double", {"number": "four"}),
        ("POST", "/double", {}),
        ("POST", "/double", {"number": 13}),
        ("POST", "/double", {"number": 15}),
        ("GET", "/double", None),
        ("GET", "/where", None),
        ("HEAD", "/where", None),
        ("POST", "/shadowed", {"number": 4}),
        ("POST", "/other", None),
        ("GET", "/nothing/here", None),
    ],
)
def test_both_ways_answer_alike(method: str, path: str, body: Any) -> None:
    short, long = (
        TestClient(application(direct), raise_server_exceptions=False).request(method, path, json=body)
        for direct in (True, False)
    )
    assert (short.status_code, short.content) == (long.status_code, long.content)
    assert dict(short.headers) == dict(long.headers)


def test_only_routes_that_the_router_would_choose_are_answered_directly() -> None:
    found = direct_endpoints(application(False).router.routes)
    assert set(found) >= {("POST", "/double"), ("GET", "/where"), ("HEAD", "/where")}
    assert ("POST", "/shadowed") not in found
    assert ("POST", "/{name}") not in found
