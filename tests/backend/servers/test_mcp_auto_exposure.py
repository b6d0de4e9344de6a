"""Tools over MCP: what is offered, what a call means, whose session it is in, and what is refused at the start."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import Depends, FastAPI, Header, Request
from pydantic import BaseModel

from backend.servers.mcp_auto_exposure import SessionTokens, install_auto_exposure, maybe_auto_expose
from backend.servers.mcp_tools import ExposureError
from backend.servers.resources_server import BaseSeedSessionResponse
from tests.loopback import serving
from tests.tool_server import ToolServer, tool_server

HEADER = "X-NeMo-Gym-Session-Token"
RESPONSE = {
    "id": "resp_1", "created_at": 1.0, "model": "m", "object": "response", "output": [], "parallel_tool_calls": True,
    "tool_choice": "auto", "tools": [],
}  # fmt: skip


class Client:
    """A rollout's view of the server: a cookie jar, a token, and JSON-RPC by hand."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.token: str | None = None

    async def seed(self, **row: Any) -> dict[str, Any]:
        answer = await self.http.post("/seed_session", json=row)
        assert answer.status_code == 200
        offered = answer.json()["mcp"]
        self.token = offered["headers"][HEADER]
        return offered

    async def rpc(self, method: str, params: Any = None, **headers: str) -> Any:
        body = {"jsonrpc": "2.0", "id": 7, "method": method} | ({"params": params} if params is not None else {})
        sent = ({HEADER: self.token} if self.token else {}) | headers
        answer = await self.http.post("/mcp", json=body, headers=sent)
        assert answer.status_code == 200 and answer.json()["id"] == 7
        return answer.json()

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return (await self.rpc("tools/call", {"name": name, "arguments": arguments}))["result"]

    async def failure(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        assert result["isError"] is True
        return result["content"][0]["text"]


@asynccontextmanager
async def client_of(server: Any, *, whole: bool = True) -> AsyncIterator[Client]:
    """A client of `server`, with all that `run_webserver` sets up unless not `whole`."""
    app = server.setup_webserver()
    maybe_auto_expose(server, app)
    if whole:
        server.setup_liveness(app)
        server.setup_exception_middleware(app)
        server.setup_inflight(app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gym") as http:
        yield Client(http)


async def test_nothing_is_offered_unless_asked_for() -> None:
    server = tool_server()
    server.config.expose_tools_over_mcp = False
    async with client_of(server) as client:
        assert (await client.http.post("/seed_session", json={})).json() == {}
        dispatched = await client.http.post("/mcp", json={"method": "tools/list"})
        assert dispatched.json()["name"] == "mcp"


async def test_a_client_introduces_itself_and_lists_the_tools() -> None:
    async with client_of(tool_server()) as client:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        answer = (await client.rpc("initialize", hello))["result"]
        assert answer["protocolVersion"] == "2025-06-18"
        assert answer["serverInfo"]["name"] == "tools" and "tools" in answer["capabilities"]
        done = await client.http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (done.status_code, done.content) == (202, b"")
        assert (await client.rpc("ping"))["result"] == {}

        tools = {tool["name"]: tool for tool in (await client.rpc("tools/list"))["result"]["tools"]}
        assert list(tools) == ["add", "anything", "slow", "words", "bytes", "broken", "taken", "look_up"]
        assert tools["add"]["description"] == "Adds to the session's sum."
        assert tools["add"]["inputSchema"]["required"] == ["left"]
        assert tools["anything"]["inputSchema"] == {"type": "object", "additionalProperties": True}
        assert tools["look_up"]["inputSchema"] == {"type": "object", "properties": {"key": {"type": "string"}}}
        assert tools["look_up"]["description"] == "Finds a key."


@pytest.mark.parametrize("asked", ["1999-01-01", None, 7])
async def test_an_unknown_protocol_version_is_answered_with_ours(asked: Any) -> None:
    async with client_of(tool_server()) as client:
        assert (await client.rpc("initialize", {"protocolVersion": asked}))["result"]["protocolVersion"] == "2025-11-25"


async def test_a_call_happens_in_the_session_of_its_token() -> None:
    server = tool_server()
    async with client_of(server) as first, client_of(server) as second:
        offered = await first.seed()
        assert offered == {
            "server_name": "tools", "url_path": "/mcp", "transport": "http", "headers": {HEADER: first.token},
        }  # fmt: skip
        result = await first.call("add", left=3, right=4)
        assert result == {
            "content": [{"type": "text", "text": '{"total":107}'}], "structuredContent": {"total": 107}, "isError": False,
        }  # fmt: skip
        over_http = await first.http.post("/add", json={"left": 1})
        assert over_http.json() == {"total": 108}
        await second.seed()
        assert (await second.call("add", left=1))["structuredContent"] == {"total": 101}
        dispatched = (await first.call("look_up", key="k"))["structuredContent"]
        assert dispatched["name"] == "look_up" and dispatched["body"] == {"key": "k"}
        assert dispatched["session"] in server.sums


async def test_a_token_of_another_instance_or_run_is_invalid() -> None:
    server = tool_server()
    async with client_of(server) as client, client_of(tool_server(name="other")) as other:
        await other.seed()
        client.token = other.token
        assert await client.failure("add", left=1) == "Invalid Gym MCP session token."
        for guessed in ("ToolServer___tools", "tools", ""):
            client.token = SessionTokens(guessed).sign("s", None)
            assert await client.failure("add", left=1) == "Invalid Gym MCP session token."
        client.token = None
        assert await client.failure("add", left=1) == f"Missing {HEADER} for Gym MCP tool call."
    assert server.sums == {}


async def test_a_session_can_be_narrowed_to_some_tools() -> None:
    async with client_of(tool_server()) as client:
        await client.seed(allowed=["words", "add"])
        assert [tool["name"] for tool in (await client.rpc("tools/list"))["result"]["tools"]] == ["add", "words"]
        assert (await client.call("add", left=1))["isError"] is False
        assert await client.failure("slow") == "Tool 'slow' is not allowed for this session."
        assert await client.failure("none") == "Unknown tool: 'none'. Available tools: ['add', 'words']"
        await client.seed(allowed=[])
        assert (await client.rpc("tools/list"))["result"]["tools"] == []


async def test_what_a_session_allows_must_be_there() -> None:
    async with client_of(tool_server()) as client:
        answer = await client.http.post("/seed_session", json={"allowed": ["nowhere"]})
        assert answer.status_code == 500 and "nowhere" in answer.json()


@pytest.mark.parametrize("whole", [True, False])
async def test_answers_and_failures_of_every_kind(whole: bool) -> None:
    server = tool_server()
    async with client_of(server, whole=whole) as client:
        await client.seed()
        text = await client.call("words")
        assert text["content"][0]["text"] == "sunny and warm" and "structuredContent" not in text
        pairs = await client.call("anything", b=1, a=[2])
        assert pairs["content"][0]["text"] == '[["a",[2]],["b",1]]' and "structuredContent" not in pairs
        assert (await client.call("bytes"))["content"][0]["text"] == "\ufffd\ufffd\x00"
        assert (await client.call("slow"))["structuredContent"] == {"done": True}
        assert server.threads != ["MainThread"]

        assert await client.failure("broken") == "HTTP 500 from POST /broken: KeyError('gone')"
        assert await client.failure("taken") == "HTTP 409 from POST /taken: taken"
        invalid = await client.failure("add", left="x")
        assert invalid.startswith("HTTP 422 from POST /add: ")
        errors = json.loads(invalid.removeprefix("HTTP 422 from POST /add: "))
        assert [error["loc"] for error in errors] == [["body", "left"]]


async def test_what_is_no_call_gets_the_protocols_errors() -> None:
    async with client_of(tool_server()) as client:
        assert (await client.rpc("resources/list"))["error"]["code"] == -32601
        assert (await client.rpc("tools/call", {"arguments": {}}))["error"]["code"] == -32602
        assert (await client.rpc("tools/call", {"name": "add", "arguments": [1]}))["error"]["code"] == -32602
        assert (await client.rpc("tools/call", ["add"]))["error"]["code"] == -32602
        for content, code in ((b"{", -32700), (b"[]", -32600), (b'{"id": 1, "method": "ping"}', -32600)):
            answer = await client.http.post("/mcp", content=content)
            assert answer.status_code == 400 and answer.json()["error"]["code"] == code
        wrong = await client.http.post("/mcp", json={}, headers={"mcp-protocol-version": "1999-01-01"})
        assert wrong.status_code == 400 and "1999-01-01" in wrong.json()["error"]["message"]
        assert (await client.http.delete("/mcp")).status_code == 405
        assert (await client.http.put("/mcp/x")).status_code == 405
        below = await client.http.post("/mcp/", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert below.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_the_rollout_prefix_reaches_it_too() -> None:
    async with client_of(tool_server()) as client:
        await client.seed()
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "words"}}
        answer = await client.http.post("/ng-rollout/3-1/mcp", json=body, headers={HEADER: client.token or ""})
        assert answer.json()["result"]["content"][0]["text"] == "sunny and warm"
        seeded = await client.http.post("/ng-rollout/3-1/seed_session", json={})
        assert seeded.json()["mcp"]["url_path"] == "/mcp"


async def test_a_seed_that_fails_stays_as_it_is() -> None:
    async with client_of(tool_server()) as client:
        assert (await client.http.post("/seed_session", json={"allowed": 3})).status_code == 422
        assert (await client.http.post("/seed_session", content=b"{")).status_code == 422


async def test_verify_sees_plain_names_and_answers_with_the_agents() -> None:
    def call(name: str, call_id: str) -> dict[str, str]:
        return {"type": "function_call", "name": name, "call_id": call_id, "arguments": "{}"}

    output = [call("mcp__tools__add", "c1"), call("add", "c2"), call("mcp__other__add", "c3")]
    row = {"responses_create_params": {"input": "?"}, "response": {**RESPONSE, "output": output}}
    async with client_of(tool_server()) as client:
        answer = (await client.http.post("/verify", json=row)).json()
        assert answer["seen"] == ["add", "add", "mcp__other__add"]
        assert [item["name"] for item in answer["response"]["output"]] == ["mcp__tools__add", "add", "mcp__other__add"]
        untouched = (await client.http.post("/verify", json={**row, "response": RESPONSE})).json()
        assert untouched["seen"] == [] and untouched["reward"] == 1.0
        assert (await client.http.post("/verify", content=b"{")).status_code == 422
        assert (
            await client.http.post("/verify", json={"response": {"output": [3, {"type": "function_call"}]}})
        ).status_code == 422


async def test_an_idle_stream_stays_open() -> None:
    server = tool_server()
    app = server.setup_webserver()
    maybe_auto_expose(server, app)
    async with serving(app) as url, httpx.AsyncClient() as http:
        async with http.stream("GET", f"{url}/mcp", headers={"accept": "text/event-stream"}) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert (await anext(stream.aiter_lines())).startswith(":")
        assert (await http.post(f"{url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 200


class Body(BaseModel):
    x: int


def refusal(add_routes: Any, kind: type[ToolServer] = ToolServer) -> str:
    class Changed(kind):  # type: ignore[misc, valid-type]
        def setup_webserver(self) -> FastAPI:
            app = super().setup_webserver()
            app.router.routes = [route for route in app.router.routes if getattr(route, "path", "") != "/{name}"]
            add_routes(app)
            return app

        def mcp_tools(self, harvested: list[Any], catchall: Any) -> list[Any]:
            return harvested

    server = tool_server(Changed)
    with pytest.raises(ValueError, match=r".") as caught:
        install_auto_exposure(server, server.setup_webserver())
    assert isinstance(caught.value, ExposureError)
    return str(caught.value)


async def needs_query(body: Body, limit: int) -> None: ...
async def needs_header(body: Body, agent: str = Header()) -> None: ...
async def needs_dependency(body: Body, more: int = Depends(lambda: 1)) -> None: ...
async def two_bodies(first: Body, second: Body) -> None: ...
async def optional_body(body: Body | None = None) -> None: ...
async def any_arguments(*args: Any) -> None: ...


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (needs_query, "query parameters (limit)"),
        (needs_header, "reads headers (agent)"),
        (needs_dependency, "dependencies"),
        (two_bodies, "several bodies (first, second)"),
        (optional_body, "optional"),
        (any_arguments, "any number of arguments"),
    ],
)
def test_handlers_that_mcp_cannot_serve_are_refused_by_name(handler: Any, said: str) -> None:
    text = refusal(lambda app: app.post("/odd")(handler))
    assert "`odd`" in text and said in text and "mcp_tools" in text


def test_other_refusals() -> None:
    async def tool(request: Request) -> None: ...
    async def numbered(number: int) -> None: ...

    assert "letters, digits" in refusal(lambda app: app.post("/a/b")(tool))
    assert "two tools of this name" in refusal(lambda app: app.post("/add")(tool))
    assert "/mcp" in refusal(lambda app: app.get("/mcp/own")(tool))
    assert "two catch-all routes" in refusal(lambda app: (app.post("/{a}")(tool), app.post("/{b:path}")(tool)))

    async def odd_middleware(request: Request, call_next: Any) -> Any:
        return await call_next(request)

    assert "middleware of its own" in refusal(lambda app: app.middleware("http")(odd_middleware))

    class Numbered(ToolServer):
        def setup_webserver(self) -> FastAPI:
            app = super().setup_webserver()
            app.router.routes = [route for route in app.router.routes if getattr(route, "path", "") != "/{name}"]
            app.post("/{number}")(numbered)
            return app

    server = tool_server(Numbered)
    with pytest.raises(ExposureError, match="no text"):
        install_auto_exposure(server, server.setup_webserver())


def test_reserved_names_and_a_missing_dispatcher_are_refused() -> None:
    class Reserved(ToolServer):
        def mcp_tools(self, harvested: list[Any], catchall: Any) -> list[Any]:
            return [catchall.tool("verify", {})]

    class NoDispatcher(ToolServer):
        def setup_webserver(self) -> FastAPI:
            app = super().setup_webserver()
            app.router.routes = [route for route in app.router.routes if getattr(route, "path", "") != "/{name}"]
            return app

    for kind, said in ((Reserved, "reserved"), (NoDispatcher, "this server has none")):
        server = tool_server(kind)
        with pytest.raises(ExposureError, match=said):
            install_auto_exposure(server, server.setup_webserver())


@pytest.mark.parametrize("chosen", [None, []])
async def test_a_server_may_offer_nothing(chosen: Any) -> None:
    class Silent(ToolServer):
        def mcp_tools(self, harvested: list[Any], catchall: Any) -> Any:
            return chosen

    async with client_of(tool_server(Silent)) as client:
        assert (await client.rpc("tools/list"))["result"]["tools"] == []
        await client.seed()
        assert await client.failure("add", left=1) == "Unknown tool: 'add'. Available tools: []"


def test_the_seed_answer_has_a_field_for_it_that_is_not_sent_empty() -> None:
    assert BaseSeedSessionResponse().model_dump() == {} and BaseSeedSessionResponse().mcp is None
    assert BaseSeedSessionResponse.model_validate({"mcp": {"url_path": "/mcp"}, "env_id": 3}).model_dump() == {
        "mcp": {"url_path": "/mcp"}, "env_id": 3,
    }  # fmt: skip
    assert BaseSeedSessionResponse().model_dump_json() == "{}"
