import asyncio
import contextlib
from itertools import pairwise

import aiohttp
import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, Router

from backend.servers.disconnect import CancelOnDisconnect
from backend.servers.middleware import ErrorEnvelope, innermost_error
from tests.loopback import serving


def failing(name, content):
    """A server whose inner server answered with `content` and a status of 400."""

    async def fail(_request):
        error = aiohttp.ClientResponseError(None, (), status=400, message="Bad")
        error.response_content = content
        raise error

    return ErrorEnvelope(Router(routes=[Route("/", fail)]), server_name=name)


async def answer_of(name, content):
    async with serving(failing(name, content)) as url, httpx.AsyncClient() as client:
        return (await client.get(url)).content


CAUSES = [b"""{"error": "it's \\"full\\""}""", b"plain", "ünïcode".encode(), b"\xff\x00"]


@pytest.mark.parametrize("cause", CAUSES)
async def test_an_error_that_passes_many_servers_grows_by_their_names_only(cause):
    answer = cause
    sizes = []
    for name in ("Model___m", "Agent___a", "Outer___o", "Last___l"):
        answer = await answer_of(name, answer)
        sizes.append(len(answer))
    assert max(later - earlier for earlier, later in pairwise(sizes)) < 80
    assert innermost_error(answer.decode()) == cause.decode("utf-8", "replace")
    assert answer.decode().startswith('"Hit an exception in Last___l calling an inner server: Hit an exception in Outer___o ')


class OddError(BaseException):
    """Neither an `Exception` nor one of Python's own."""


async def wait_for_what_was_cancelled():
    other = asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(0)
    other.cancel()
    await other


async def ask_to_exit_in_a_thread():
    def leave():
        raise SystemExit(4)

    await asyncio.to_thread(leave)


def raising(error):
    async def fail():
        raise error

    return fail


NO_EXCEPTIONS = {
    "cancelled": (raising(asyncio.CancelledError("mine")), "CancelledError: mine"),
    "waits for a cancelled task": (wait_for_what_was_cancelled, "asyncio.exceptions.CancelledError"),
    "exits": (raising(SystemExit(3)), "SystemExit: 3"),
    "exits in a thread": (ask_to_exit_in_a_thread, "SystemExit: 4"),
    "interrupts": (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    "odd": (raising(OddError("x")), "OddError: x"),
}


@pytest.mark.parametrize(("fail", "told"), NO_EXCEPTIONS.values(), ids=NO_EXCEPTIONS)
async def test_what_is_no_exception_fails_its_request_and_not_the_server(fail, told, caplog):
    async def handler(_request):
        await fail()

    async def well(_request):
        return PlainTextResponse("well")

    routes = [Route("/fails", handler), Route("/works", well)]
    async with serving(ErrorEnvelope(Router(routes=routes), "Odd___o")) as url, httpx.AsyncClient() as client:
        answer = await client.get(f"{url}/fails")
        assert (answer.status_code, answer.headers["content-type"]) == (500, "application/json")
        assert answer.content == b'"An unknown error occurred"'
        assert (await client.get(f"{url}/works")).text == "well"
    told_lines = [record for record in caplog.records if "/fails" in record.getMessage()]
    assert [record.levelname for record in told_lines] == ["ERROR"]
    assert told_lines[0].getMessage().endswith(told)
    assert "the server stops" not in caplog.text


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError("mine")], ids=type)
async def test_an_answer_that_has_begun_is_broken_off_and_the_server_goes_on(error, caplog):
    async def breaks_off(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"8")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise error

    async def well(_request):
        return PlainTextResponse("well")

    routes = [Mount("/fails", breaks_off), Route("/works", well)]
    async with serving(ErrorEnvelope(Router(routes=routes), "Odd___o")) as url, httpx.AsyncClient() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(f"{url}/fails/")
        assert (await client.get(f"{url}/works")).text == "well"
    assert "the server stops" not in caplog.text


async def test_a_call_in_flight_when_the_server_stops_costs_one_line_and_is_answered(caplog):
    begun = asyncio.Event()

    async def slow(_request):
        begun.set()
        await asyncio.sleep(60)

    application = ErrorEnvelope(Router(routes=[Route("/slow", slow)]), "Slow___s")
    config = uvicorn.Config(
        application, host="127.0.0.1", port=0, log_level="warning", lifespan="off", timeout_graceful_shutdown=0.1
    )
    server = uvicorn.Server(config)
    serving_task = asyncio.create_task(server.serve())
    async with asyncio.timeout(10), httpx.AsyncClient() as client:
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        call = asyncio.create_task(client.get(f"http://127.0.0.1:{port}/slow"))
        await begun.wait()
        server.should_exit = True
        answer = await call
        await serving_task
    assert (answer.status_code, answer.content) == (500, b'"An unknown error occurred"')
    lines = [record.getMessage() for record in caplog.records if record.name == "backend.servers.middleware"]
    assert lines == ["GET /slow: given up, the server stops"]


async def test_a_caller_that_leaves_still_cancels_the_work_and_nobody_is_answered(caplog):
    caplog.set_level("INFO")
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(request):
        await request.body()
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    application = ErrorEnvelope(CancelOnDisconnect(Router(routes=[Route("/slow", slow, methods=["POST"])])), "Slow___s")
    async with serving(application) as url, httpx.AsyncClient() as client, asyncio.timeout(10):
        call = asyncio.create_task(client.post(f"{url}/slow", content=b"{}"))
        await begun.wait()
        await asyncio.sleep(0.1)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        await cancelled.wait()
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("backend.")]
    assert lines == ["POST /slow: given up, the caller left"]
