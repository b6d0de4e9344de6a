"""The head server: tells which servers run where, and with which configuration."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse

from backend.io.redact import Redactor
from backend.servers.api_document import describe
from backend.servers.serve import serve


def head_application(config: Mapping[str, Any], instances: Sequence[Mapping[str, Any]]) -> FastAPI:
    """The head server's three routes. Secrets in the configuration are masked unless `head_server.expose_secrets` is true."""
    head = config.get("head_server") or {}
    app = FastAPI(title="gym head server")

    @functools.cache  # and not before somebody asks: the head server is to be ready as early as the others
    def text() -> str:
        from backend.config.yaml_text import to_yaml

        shown = dict(config) if head.get("expose_secrets") else Redactor.for_tree(config).tree(config)
        return to_yaml(shown)

    async def alive() -> dict[str, str]:
        return {"status": "ok"}

    async def global_config_dict_yaml() -> str:
        return text()

    async def server_instances() -> list[dict[str, Any]]:
        return [dict(instance) for instance in instances]

    _add(app, "/", alive, headers={"x-gym-server": "head_server"})
    _add(app, "/global_config_dict_yaml", global_config_dict_yaml)
    _add(app, "/server_instances", server_instances)
    return app


def _add(app: FastAPI, path: str, result: Callable[[], Awaitable[Any]], headers: Mapping[str, str] | None = None) -> None:
    """Answer `path` with what `result` gives. FastAPI's own way would import the whole of pydantic's version 1 to look at its type."""

    async def answer(_request: Request) -> JSONResponse:
        return JSONResponse(await result(), headers=headers)

    app.add_route(path, answer, methods=["GET"], include_in_schema=False)
    describe(app, path, result, ("GET",))


def serve_head(config: Mapping[str, Any], instances: Sequence[Mapping[str, Any]]) -> None:
    """Serve the head server in this process until a signal ends it."""
    head = config.get("head_server") or {}
    serve(
        head_application(config, instances),
        host=head.get("host") or "127.0.0.1",
        port=head.get("port") or 0,
        config=config,
        access_log=bool(config.get("verbose")),
    )
