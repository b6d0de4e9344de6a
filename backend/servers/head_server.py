"""The head server: tells which servers run where, and with which configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from backend.io.redact import Redactor
from backend.servers.serve import serve


def head_application(config: Mapping[str, Any], instances: Sequence[Mapping[str, Any]]) -> FastAPI:
    """The head server's three routes. Secrets in the configuration are masked unless `head_server.expose_secrets` is true."""
    head = config.get("head_server") or {}
    shown = dict(config) if head.get("expose_secrets") else Redactor.for_tree(config).tree(config)
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    app = FastAPI(title="gym head server")

    @app.get("/")
    async def alive() -> JSONResponse:
        return JSONResponse({"status": "ok"}, headers={"x-gym-server": "head_server"})

    @app.get("/global_config_dict_yaml")
    async def global_config_dict_yaml() -> str:
        return text

    @app.get("/server_instances")
    async def server_instances() -> list[dict[str, Any]]:
        return [dict(instance) for instance in instances]

    return app


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
