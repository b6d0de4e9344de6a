"""A resources server with tools of every shape, for the tests of what is offered over MCP."""

from __future__ import annotations

import threading
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from backend.servers.resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from backend.servers.server_utils import SESSION_ID_KEY, ServerClient


class AddRequest(BaseModel):
    left: int
    right: int = 0


class Sum(BaseModel):
    total: int


class SeedRequest(BaseSeedSessionRequest):
    allowed: list[str] | None = None


class SeenNames(BaseVerifyResponse):
    seen: list[str]


class ToolServer(SimpleResourcesServer):
    """Adds up per session; has a tool for each way to answer and to fail."""

    sums: dict[str, int] = Field(default_factory=dict)
    threads: list[str] = Field(default_factory=list)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/add", response_model=Sum)(self.add)
        app.post("/anything")(self.anything)
        app.post("/slow")(self.slow)
        app.post("/words")(self.words)
        app.post("/bytes")(self.raw)
        app.post("/broken")(self.broken)
        app.post("/taken")(self.taken)
        app.get("/state")(self.state)
        app.post("/{name}")(self.dispatch)
        return app

    def mcp_tools(self, harvested: list[Any], catchall: Any) -> list[Any]:
        return [*harvested, catchall.tool("look_up", {"properties": {"key": {"type": "string"}}}, "Finds a key.")]

    def mcp_allowed_tools_for_session(self, seed_body: dict[str, Any]) -> list[str] | None:
        return seed_body.get("allowed")

    async def seed_session(self, request: Request, body: SeedRequest) -> BaseSeedSessionResponse:  # type: ignore[override]
        self.sums[request.session[SESSION_ID_KEY]] = 100
        return BaseSeedSessionResponse()

    async def add(self, request: Request, body: AddRequest) -> Any:
        """Adds to the session's sum."""
        session = request.session[SESSION_ID_KEY]
        self.sums[session] = self.sums.get(session, 0) + body.left + body.right
        return {"total": self.sums[session], "secret": "left out by the response model"}

    async def anything(self, body: dict[str, Any]) -> list[Any]:
        return sorted(body.items())

    def slow(self) -> dict[str, bool]:
        self.threads.append(threading.current_thread().name)
        return {"done": True}

    async def words(self) -> str:
        return "sunny and warm"

    async def raw(self) -> Response:
        return Response(b"\xff\xfe\x00", media_type="application/octet-stream")

    async def broken(self) -> PlainTextResponse:
        raise KeyError("gone")

    async def taken(self) -> None:
        raise HTTPException(status_code=409, detail="taken")

    async def state(self) -> dict[str, int]:
        return self.sums

    async def dispatch(self, name: str, body: dict[str, Any], request: Request) -> dict[str, Any]:
        return {"name": name, "body": body, "session": request.session[SESSION_ID_KEY]}

    async def verify(self, body: BaseVerifyRequest) -> SeenNames:
        names = [item.name for item in body.response.output if item.type == "function_call"]
        return SeenNames(**body.model_dump(), reward=1.0, seen=names)


def tool_server(kind: type[SimpleResourcesServer] = ToolServer, name: str = "tools") -> Any:
    config = BaseResourcesServerConfig(host="127.0.0.1", port=1, entrypoint="app.py", name=name, expose_tools_over_mcp=True)
    return kind(config=config, server_client=ServerClient.__new__(ServerClient))
