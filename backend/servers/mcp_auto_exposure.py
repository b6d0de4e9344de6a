"""Offering a resources server's tools over the Model Context Protocol, without a change to the server.

Importable as `nemo_gym.mcp_auto_exposure`. Loaded only where a configuration asks for it (`expose_tools_over_mcp`). Each `/seed_session` gives out
a signed token for its session; a tool call with that token runs the route's handler once, in that session.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

from fastapi import FastAPI
from itsdangerous import BadSignature, URLSafeSerializer
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.errors import name_some
from backend.io.json_codec import dumps, loads
from backend.package_info import __version__
from backend.servers.inflight import ROLLOUT_HEADER
from backend.servers.mcp_protocol import ToolOutcome, ToolServer, read_body
from backend.servers.mcp_tools import ExposureError, MCPTool, check_tools, harvest
from backend.servers.middleware import SESSION_ID_KEY, SessionCookies, signing_key
from backend.servers.process_context import process_context
from backend.servers.resources_server import NEMO_GYM_MCP_METADATA_KEY, SimpleResourcesServer
from backend.servers.server_utils import SimpleServer

__all__ = ["ExposureError", "MCPTool", "install_auto_exposure", "maybe_auto_expose"]

logger = logging.getLogger(__name__)

TOKEN_HEADER = "X-NeMo-Gym-Session-Token"
_TOKEN_SALT = "nemo-gym-mcp-session-token"
_PATH = "/mcp"
_FRAMES_SHOWN = 8


def maybe_auto_expose(server: SimpleServer, app: FastAPI) -> None:
    """Offer the tools of `app` over MCP if it is a resources server's, and its configuration asks for it."""
    if isinstance(server, SimpleResourcesServer) and server.config.expose_tools_over_mcp:
        install_auto_exposure(server, app)


def install_auto_exposure(server: SimpleResourcesServer, app: FastAPI) -> None:
    """Serve the tools of `app` at `/mcp`, give out session tokens at `/seed_session`, and plain tool names at `/verify`.

    Raises `ExposureError` (a ValueError) when the routes cannot be offered as they are.
    """
    _check_surroundings(app)
    harvested, catch_all = harvest(app)
    tools = check_tools(server.mcp_tools(harvested, catch_all) or [])
    # The innermost middleware: the rollout prefix is off the path and the session is there. Tool calls go straight to the routes.
    app.user_middleware.append(Middleware(McpExposure, server=server, tools=tools))


def _check_surroundings(app: FastAPI) -> None:
    taken = [
        path for path in (getattr(route, "path", "") for route in app.routes) if path == _PATH or path.startswith(f"{_PATH}/")
    ]
    if taken:
        raise ExposureError(f"the server has a route of its own at {name_some(taken)}, where its tools would be offered over MCP")
    classes = [entry.cls for entry in app.user_middleware]
    foreign = [getattr(cls, "__name__", str(cls)) for cls in classes if not getattr(cls, "__module__", "").startswith("backend.")]
    if foreign:
        raise ExposureError(
            f"the server has middleware of its own ({name_some(foreign)}), which tool calls over MCP would go around",
            hint="remove it, or set `expose_tools_over_mcp: false`",
        )
    if SessionCookies not in classes:
        raise ExposureError("the server has no sessions for its tools (`setup_session_middleware` was not called)")


class SessionTokens:
    """Signs and reads the tokens that tie a tool call to a session: `{"sid": session id, "tools": allowed names or null}`."""

    def __init__(self, key: str) -> None:
        self._serializer = URLSafeSerializer(key, salt=_TOKEN_SALT)

    def sign(self, session_id: str, tools: list[str] | None) -> str:
        """The token for a session; `tools` None allows all."""
        text = self._serializer.dumps({"sid": session_id, "tools": tools})
        return text if isinstance(text, str) else text.decode()

    def read(self, token: str | None) -> tuple[str, list[str] | None] | None:
        """(session id, allowed tools), or None for a token that is not ours."""
        try:
            payload = self._serializer.loads(token or "")
            return payload["sid"], payload["tools"]
        except (BadSignature, KeyError, TypeError):
            return None


class McpExposure:
    """ASGI middleware that adds the MCP side of a resources server to its application."""

    def __init__(self, app: ASGIApp, server: SimpleResourcesServer, tools: dict[str, MCPTool]) -> None:
        self.app = app
        self.server = server
        self.tools = tools
        self.tokens = SessionTokens(signing_key(server.get_session_middleware_key(), process_context().session_secret))
        self.endpoint = ToolServer(server.config.name, __version__, self._listing, self._call)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and (path == _PATH or path.startswith(f"{_PATH}/")):
            await self.endpoint(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "POST" and path == "/seed_session":
            await self._seed(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "POST" and path == "/verify":
            await self._verify(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _listing(self, scope: Scope) -> list[dict[str, Any]]:
        known = self.tokens.read(Headers(scope=scope).get(TOKEN_HEADER))
        allowed = known[1] if known else None
        return [tool.listing() for name, tool in self.tools.items() if allowed is None or name in allowed]

    async def _call(self, name: str, arguments: dict[str, Any], scope: Scope, receive: Receive) -> ToolOutcome:
        token = Headers(scope=scope).get(TOKEN_HEADER)
        if not token:
            return _refused(f"Missing {TOKEN_HEADER} for Gym MCP tool call.")
        known = self.tokens.read(token)
        if known is None:
            return _refused("Invalid Gym MCP session token.")
        session_id, allowed = known
        tool = self.tools.get(name)
        if tool is None:
            available = [other for other in self.tools if allowed is None or other in allowed]
            return _refused(f"Unknown tool: {name!r}. Available tools: {available}")
        if allowed is not None and name not in allowed:
            return _refused(f"Tool {name!r} is not allowed for this session.")
        return await self._run(tool, arguments, session_id, scope, receive)

    async def _run(
        self, tool: MCPTool, arguments: dict[str, Any], session_id: str, outer: Scope, receive: Receive
    ) -> ToolOutcome:
        body = dumps(arguments)
        answer = _Answer()
        try:
            await self.app(_tool_scope(outer, tool.path, session_id, body), _Replay(body, receive), answer.send)
        except Exception as error:
            logger.error("MCP tool %s: %s", tool.name, "".join(traceback.format_exception(error, limit=-_FRAMES_SHOWN)).rstrip())
            return _refused(f"HTTP 500 from POST {tool.path}: {error!r}")
        text = answer.body.decode("utf-8", "replace")
        value = _json_or(text, answer)
        if answer.status >= 400:
            detail = value["detail"] if isinstance(value, dict) and set(value) == {"detail"} else value
            said = detail if isinstance(detail, str) else dumps(detail).decode()
            return _refused(f"HTTP {answer.status} from POST {tool.path}: {said}")
        return ToolOutcome(value if isinstance(value, str) else text, value if isinstance(value, dict) else None)

    async def _seed(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        answer = _Answer()
        await self.app(scope, _Replay(body, receive), answer.send)
        value = _json_or(None, answer) if answer.status == 200 else None
        if isinstance(value, dict):
            value[NEMO_GYM_MCP_METADATA_KEY] = self._metadata(scope["session"][SESSION_ID_KEY], loads(body))
            answer.body = dumps(value)
        await answer.pass_on(send)

    def _metadata(self, session_id: str, seed_body: Any) -> dict[str, Any]:
        allowed = self.server.mcp_allowed_tools_for_session(seed_body)
        names = None if allowed is None else list(allowed)
        unknown = [name for name in names or () if name not in self.tools]
        if unknown:
            raise ExposureError(f"`mcp_allowed_tools_for_session` allows tools that are not there: {name_some(unknown)}")
        return {
            "server_name": self.server.config.name,
            "url_path": _PATH,
            "transport": "http",
            "headers": {TOKEN_HEADER: self.tokens.sign(session_id, names)},
        }

    async def _verify(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        original: dict[str, str] = {}
        try:
            row = loads(body)
        except ValueError:
            row = None
        for call in _function_calls(row):
            plain = self.server.normalize_tool_name(call["name"])
            if plain != call["name"]:
                original[call["call_id"]] = call["name"]
                call["name"] = plain
        if not original:
            await self.app(scope, _Replay(body, receive), send)
            return
        body = dumps(row)
        answer = _Answer()
        await self.app(_with_length(scope, body), _Replay(body, receive), answer.send)
        value = _json_or(None, answer) if answer.status == 200 else None
        restored = [call for call in _function_calls(value) if call["call_id"] in original]
        for call in restored:
            call["name"] = original[call["call_id"]]
        if restored:
            answer.body = dumps(value)
        await answer.pass_on(send)


class _Replay:
    """A `receive` that gives one body, then what the real one has to say (that the client left)."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.body: bytes | None = body
        self.receive = receive

    async def __call__(self) -> Message:
        if self.body is None:
            return await self.receive()
        body, self.body = self.body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _Answer:
    """A `send` that keeps a whole answer."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    async def pass_on(self, send: Send) -> None:
        start: Message = {"type": "http.response.start", "status": self.status, "headers": self.headers}
        MutableHeaders(scope=start)["content-length"] = str(len(self.body))
        await send(start)
        await send({"type": "http.response.body", "body": self.body})


def _refused(text: str) -> ToolOutcome:
    return ToolOutcome(text, is_error=True)


def _json_or(otherwise: Any, answer: _Answer) -> Any:
    if "json" not in Headers(raw=answer.headers).get("content-type", ""):
        return otherwise
    try:
        return loads(answer.body)
    except ValueError:
        return otherwise


def _function_calls(row: Any) -> list[dict[str, Any]]:
    """The function calls in the output of a verify request or answer, as far as these have a name and a call id."""
    response = row.get("response") if isinstance(row, dict) else None
    output = response.get("output") if isinstance(response, dict) else None
    return [
        item
        for item in (output if isinstance(output, list) else [])
        if isinstance(item, dict)
        and item.get("type") == "function_call"
        and isinstance(item.get("name"), str)
        and isinstance(item.get("call_id"), str)
    ]


def _tool_scope(outer: Scope, path: str, session_id: str, body: bytes) -> Scope:
    """The scope of `POST path` in a session, as it would be after all middleware."""
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [item for item in outer["headers"] if item[0] == ROLLOUT_HEADER.encode()]
    carried = ("http_version", "scheme", "root_path", "client", "server", "asgi", "state", "app")
    return {
        **{key: outer[key] for key in carried if key in outer},
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "session": {SESSION_ID_KEY: session_id},
    }


def _with_length(scope: Scope, body: bytes) -> Scope:
    others = [item for item in scope["headers"] if item[0] != b"content-length"]
    return {**scope, "headers": [*others, (b"content-length", str(len(body)).encode())]}
