"""The protocol's own client library against our endpoint."""

from __future__ import annotations

import httpx
import pytest

from backend.servers.mcp_auto_exposure import maybe_auto_expose
from tests.loopback import serving
from tests.tool_server import tool_server

mcp = pytest.importorskip("mcp", reason="the package `mcp` is not installed (extra `compat`)")


async def test_the_client_library_talks_to_us() -> None:
    from mcp.client.streamable_http import streamablehttp_client

    server = tool_server()
    app = server.setup_webserver()
    maybe_auto_expose(server, app)
    server.setup_exception_middleware(app)
    async with serving(app) as url, httpx.AsyncClient() as http:
        offered = (await http.post(f"{url}/seed_session", json={})).json()["mcp"]
        async with (
            streamablehttp_client(url + offered["url_path"], headers=offered["headers"]) as (read, write, _),
            mcp.ClientSession(read, write) as session,
        ):
            hello = await session.initialize()
            assert hello.serverInfo.name == "tools"
            tools = (await session.list_tools()).tools
            assert [tool.name for tool in tools][:2] == ["add", "anything"]
            answer = await session.call_tool("add", {"left": 5})
            assert answer.isError is False and answer.structuredContent == {"total": 105}
            refused = await session.call_tool("look_down", {})
            assert refused.isError is True and "Unknown tool: 'look_down'" in refused.content[0].text
            await session.send_ping()
