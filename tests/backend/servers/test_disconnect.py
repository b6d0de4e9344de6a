import asyncio

import aiohttp
import pytest
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, Router

from backend.config.config_types import BaseServerConfig
from backend.servers.agent_server import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from backend.servers.disconnect import CancelOnDisconnect
from backend.servers.model_server import BaseResponsesAPIModelConfig, SimpleResponsesAPIModel
from backend.servers.openai_utils import NeMoGymAsyncOpenAI
from backend.servers.server_utils import ServerClient
from tests.loopback import serving


class Handler:
    """Works for a while, and notes how it ended."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.begun = 0
        self.ends = []

    async def answer(self, request):
        body = await request.body()
        self.begun += 1
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        self.ends.append("finished")
        return PlainTextResponse(str(len(body)))

    async def stream(self, request):
        async def pieces():
            try:
                while True:
                    yield b"x" * 1000
                    await asyncio.sleep(0.02)
            finally:
                self.ends.append("stopped")

        return StreamingResponse(pieces())

    def application(self):
        return CancelOnDisconnect(Router(routes=[Route("/", self.answer, methods=["POST"]), Route("/stream", self.stream)]))


async def eventually(condition, seconds=5.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("body", [b"", b"x" * 10, b"x" * 3_000_000])
@pytest.mark.parametrize("seconds", [0.0, 0.2])
async def test_who_stays_has_the_answer_again_and_again(body, seconds):
    handler = Handler(seconds)
    async with serving(handler.application()) as url, aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.post(url, data=body) as answer:
                assert (answer.status, await answer.text()) == (200, str(len(body)))
    assert handler.ends == ["finished"] * 3


async def test_who_leaves_takes_the_work_along_within_a_moment():
    handler = Handler(30)
    async with serving(handler.application()) as url, aiohttp.ClientSession() as session:
        calls = [asyncio.create_task(session.post(url, data=b"x")) for _ in range(20)]
        await eventually(lambda: handler.begun == 20)
        for call in calls:
            call.cancel()
        await eventually(lambda: len(handler.ends) == 20)
        async with session.get(f"{url}/nothing") as answer:
            assert answer.status == 404
    assert handler.ends == ["cancelled"] * 20


async def test_a_stream_ends_with_its_reader():
    handler = Handler(0)
    async with serving(handler.application()) as url, aiohttp.ClientSession() as session:
        async with session.get(f"{url}/stream") as answer:
            await answer.content.readexactly(3000)
        await eventually(lambda: handler.ends == ["stopped"])
    assert handler.ends == ["stopped"]


async def test_a_server_that_stops_still_cancels_from_outside():
    """Only the caller's leaving is swallowed; whoever else cancels the request sees it cancelled."""
    begun = asyncio.Event()

    async def application(scope, receive, send):
        await receive()
        begun.set()
        await asyncio.sleep(30)

    async def receive():
        if begun.is_set():
            await asyncio.sleep(30)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        raise AssertionError("nothing is answered")

    task = asyncio.create_task(CancelOnDisconnect(application)({"type": "http", "method": "GET", "path": "/"}, receive, send))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class PassingAgent(SimpleResponsesAPIAgent):
    config: BaseResponsesAPIAgentConfig

    async def responses(self, body):
        raise NotImplementedError

    async def run(self, body: dict) -> dict:
        answer = await self.server_client.post("policy_model", "/v1/responses", json={"input": "hi"})
        return await answer.json()


class AskingModel(SimpleResponsesAPIModel):
    config: BaseResponsesAPIModelConfig
    endpoint: str

    async def responses(self, body: dict) -> dict:
        return await NeMoGymAsyncOpenAI(base_url=self.endpoint, api_key="k").create_response(**body)

    async def chat_completions(self, body: dict) -> dict:
        raise NotImplementedError


def application(server):
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    return app


async def test_from_the_collector_to_the_endpoint_nothing_goes_on():
    """Collector, agent, model server, endpoint: when the first hangs up, the last one's connection closes."""
    asked, closed = asyncio.Event(), asyncio.Event()

    async def silent(reader, writer):
        await reader.read(100_000)
        asked.set()
        await reader.read()
        closed.set()
        writer.close()

    block = {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py", "name": "x"}
    head = BaseServerConfig(host="127.0.0.1", port=1)
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as upstream:
        endpoint = f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}/v1"
        model = AskingModel(config=BaseResponsesAPIModelConfig(**block), server_client=ServerClient(head, {}), endpoint=endpoint)
        async with serving(application(model)) as model_url:
            host, port = model_url.removeprefix("http://").split(":")
            place = {"policy_model": {"responses_api_models": {"impl": {"host": host, "port": int(port)}}}}
            agent = PassingAgent(config=BaseResponsesAPIAgentConfig(**block), server_client=ServerClient(head, place))
            async with serving(application(agent)) as agent_url, aiohttp.ClientSession() as session:
                call = asyncio.create_task(session.post(f"{agent_url}/run", json={"x": 1}))
                async with asyncio.timeout(5):
                    await asked.wait()
                    call.cancel()
                    await closed.wait()
    assert closed.is_set()
