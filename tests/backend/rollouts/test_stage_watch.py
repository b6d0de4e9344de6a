"""One stage per rollout out of what servers say, and what of it is told."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from backend.io.event_log import read_events
from backend.rollouts import stage_watch
from backend.rollouts.run_events import RolloutStage
from backend.rollouts.stage_watch import Answer, StageWatch, WatchedServer, merge_stages, read_answer, watched_servers
from tests.conftest import Gym, unused_port
from tests.run_trees import write_rows

AGENT = WatchedServer("agent", "responses_api_agents", "http://127.0.0.1:1")
MODEL = WatchedServer("policy_model", "responses_api_models", "http://127.0.0.1:2")
TOOLS = WatchedServer("tools", "resources_servers", "http://127.0.0.1:3")


def work(rollout_id: str | None, what: str, since: float = 0.0, count: int = 1, run: str | None = "ab") -> dict[str, Any]:
    return {"rollout_id": rollout_id, "run": run, "what": what, "since": since, "count": count}


def stage(*answers: tuple[WatchedServer, dict[str, Any]]) -> tuple[str, str] | None:
    merged = merge_stages([Answer(server, (item,), 0.0) for server, item in answers], "ab")
    found = merged.get("3-1")
    return (found.name, found.detail) if found else None


RUN = (AGENT, work("3-1", "POST /run"))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], None),
        ([RUN], ("agent", "agent")),
        ([RUN, (AGENT, work("3-1", "POST /v1/responses", 5.0))], ("agent", "agent")),
        ([RUN, (TOOLS, work("3-1", "POST /seed_session", 5.0))], ("seed session", "tools")),
        ([RUN, (MODEL, work("3-1", "POST /v1/responses", 5.0, count=4))], ("model call 4", "policy_model")),
        ([RUN, (TOOLS, work("3-1", "POST /look_up", 5.0))], ("tool look_up", "tools")),
        ([RUN, (TOOLS, work("3-1", "POST /verify", 5.0))], ("verify", "tools")),
        # A judge is asked while the verifier works: that is still verifying.
        ([RUN, (TOOLS, work("3-1", "POST /verify", 5.0)), (MODEL, work("3-1", "POST /v1/responses", 6.0))], ("verify", "tools")),
        # A tool that asks a model: the call begun last.
        ([RUN, (TOOLS, work("3-1", "POST /ask", 5.0)), (MODEL, work("3-1", "POST /v1/responses", 6.0))], ("model call 1", "policy_model")),
        # The request to the agent may be younger by the clock; what it has called is where the rollout is.
        ([(AGENT, work("3-1", "POST /run", 9.0)), (TOOLS, work("3-1", "POST /look_up", 5.0))], ("tool look_up", "tools")),
        ([(MODEL, work("3-1", "POST /v1/responses", run=None))], ("model call 1", "policy_model")),
        ([(MODEL, work("3-1", "POST /v1/responses", run="cd"))], None),
        ([(MODEL, work(None, "POST /v1/responses"))], None),
    ],
)  # fmt: skip
def test_stages(answers: list[tuple[WatchedServer, dict[str, Any]]], expected: tuple[str, str] | None) -> None:
    assert stage(*answers) == stage(*reversed(answers)) == expected


def test_times_are_by_this_machines_clock() -> None:
    body = json.dumps({"server": "x", "now": 1000.0, "work": [work("3-1", "POST /run", since=990.0)]}).encode()
    answer = read_answer(AGENT, body, now=5000.0)
    assert answer is not None
    assert merge_stages([answer], "ab")["3-1"].since == 4990.0


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b'"mine"', b"[]", b"{}", b'{"now": 1}', b'{"now": "x", "work": []}', b'{"now": 1, "work": [{"rollout_id": "1-1"}]}',
     b'{"now": 1, "work": [{"rollout_id": "1-1", "run": null, "what": "POST /run", "since": "soon", "count": 1}]}'],
)  # fmt: skip
def test_what_is_no_answer(body: bytes) -> None:
    assert read_answer(AGENT, body, 0.0) is None


@given(st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["now", "work", "rollout_id", "run", "what", "since", "count"]), inner)).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_no_answer_breaks_the_watch(body: bytes) -> None:
    answer = read_answer(MODEL, body, 0.0)
    assert answer is None or all(stage.stage for stage in merge_stages([answer], "ab").values())


class Fake:
    """A server that answers what it is told to; counts how often it was asked."""

    def __init__(self) -> None:
        self.work: list[dict[str, Any]] = []
        self.asked = 0
        self.status = 200
        self.seconds = 0.0

    async def answer(self, _request: web.Request) -> web.Response:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return web.json_response({"server": "fake", "now": time.time(), "work": self.work}, status=self.status)


class Watched:
    """A watch on two fake servers, and what it told."""

    def __init__(self, agent: Fake, model: Fake, urls: list[str]) -> None:
        self.agent, self.model = agent, model
        self.in_flight: dict[str, tuple[int, int]] = {}
        self.told: list[RolloutStage] = []
        self.refuses = False
        servers = [
            WatchedServer("agent", "responses_api_agents", urls[0]),
            WatchedServer("model", "responses_api_models", urls[1]),
        ]
        self.watch = StageWatch(servers, "ab", self.in_flight)

    def say(self, event: RolloutStage) -> bool:
        if not self.refuses:
            self.told.append(event)
        return not self.refuses

    async def looks(self, count: int = 3) -> list[tuple[int, int, str]]:
        """Look `count` times at least, and give what was told meanwhile."""
        self.told.clear()
        asked = self.agent.asked
        async with asyncio.timeout(10):
            while self.agent.asked < asked + count:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        return [(event.task, event.rollout, event.stage) for event in self.told]


@pytest.fixture
async def watched(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(stage_watch, "INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(stage_watch, "ANSWER_TIMEOUT_SECONDS", 0.5)
    fakes = [Fake(), Fake()]
    applications = [web.Application() for _ in fakes]
    for fake, application in zip(fakes, applications, strict=True):
        application.router.add_get("/inflight", fake.answer)
    async with TestServer(applications[0]) as one, TestServer(applications[1]) as other:
        state = Watched(*fakes, [str(server.make_url("")).rstrip("/") for server in (one, other)])
        task = asyncio.create_task(state.watch.watch(state.say))
        yield state
        task.cancel()
        (ending,) = await asyncio.gather(task, return_exceptions=True)
        assert ending is None or isinstance(ending, asyncio.CancelledError)


async def test_changes_are_told_once_and_finished_rollouts_never(watched: Watched) -> None:
    began = time.time() - 100
    watched.agent.work = [work("0-0", "POST /run", began), work("0-1", "POST /run", began)]
    watched.in_flight["0-0"] = (0, 0)
    assert await watched.looks() == [(0, 0, "agent")]
    assert watched.told[0].since == pytest.approx(began, abs=1)
    assert await watched.looks() == []
    watched.model.work = [work("0-0", "POST /v1/responses", began + 50)]
    assert await watched.looks() == [(0, 0, "model call 1")]
    assert watched.told[0].since == pytest.approx(began + 50, abs=1)
    assert watched.told[0].detail == "model"
    watched.model.work = []
    assert await watched.looks() == [(0, 0, "agent")]
    assert watched.told[0].since == pytest.approx(time.time(), abs=1)  # back at the agent since now, not since its run began
    watched.model.work = [work("0-0", "POST /v1/responses", began + 60, count=2)]
    del watched.in_flight["0-0"]
    watched.in_flight["0-1"] = (0, 1)
    assert await watched.looks() == [(0, 1, "agent")]


async def test_nobody_is_asked_while_nothing_is_in_flight(watched: Watched) -> None:
    await asyncio.sleep(0.2)
    assert watched.agent.asked == 0


async def test_a_server_that_cannot_tell_is_left_alone(watched: Watched) -> None:
    watched.in_flight["0-0"] = (0, 0)
    watched.model.status = 404
    watched.agent.work = [work("0-0", "POST /run", time.time())]
    assert await watched.looks(4) == [(0, 0, "agent")]
    assert watched.model.asked == 1


async def test_the_watch_ends_when_no_server_can_tell(watched: Watched) -> None:
    watched.in_flight["0-0"] = (0, 0)
    watched.model.status = watched.agent.status = 404
    await watched.looks(1)
    await asyncio.sleep(0.1)
    assert (watched.agent.asked, watched.model.asked) == (1, 1)


async def test_a_server_too_busy_to_answer_keeps_its_rollouts_where_they_were(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.in_flight["0-0"] = (0, 0)
    watched.agent.work = [work("0-0", "POST /run", time.time())]
    watched.model.work = [work("0-0", "POST /v1/responses", time.time())]
    assert await watched.looks() == [(0, 0, "model call 1")]
    watched.model.seconds = 5.0
    assert await watched.looks(2) == []


async def test_only_so_many_changes_are_told_at_once_and_all_in_the_end(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_watch, "MOST_CHANGES_TOLD", 7)
    watched.in_flight.update({f"{number}-0": (number, 0) for number in range(20)})
    watched.agent.work = [work(f"{number}-0", "POST /run", time.time()) for number in range(20)]
    told = await watched.looks(6)
    assert sorted(told) == [(number, 0, "agent") for number in range(20)]


async def test_what_is_refused_is_told_later(watched: Watched) -> None:
    watched.in_flight["0-0"] = (0, 0)
    watched.agent.work = [work("0-0", "POST /run", time.time())]
    watched.refuses = True
    assert await watched.looks(2) == []
    watched.refuses = False
    assert await watched.looks(2) == [(0, 0, "agent")]


def test_servers_of_a_configuration() -> None:
    config = {
        "head_server": {"host": "127.0.0.1", "port": 11000},
        "a": {"responses_api_agents": {"x": {"host": "127.0.0.1", "port": 5}}},
        "m": {"responses_api_models": {"x": {"host": "::1", "port": 6}}},
        "unbound": {"resources_servers": {"x": {"host": "127.0.0.1", "port": None}}},
    }
    assert watched_servers(config) == [
        WatchedServer("a", "responses_api_agents", "http://127.0.0.1:5"),
        WatchedServer("m", "responses_api_models", "http://[::1]:6"),
    ]


SLOW_MODEL = """
import asyncio
from uuid import uuid4

from fastapi import Body

from nemo_gym.base_responses_api_model import BaseResponsesAPIModelConfig, SimpleResponsesAPIModel
from nemo_gym.openai_utils import (
    NeMoGymChatCompletion, NeMoGymChatCompletionCreateParamsNonStreaming, NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming,
)


class SlowModel(SimpleResponsesAPIModel):
    config: BaseResponsesAPIModelConfig

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        await asyncio.sleep(1.6)
        asked_before = any(getattr(item, "type", None) == "function_call_output" for item in body.input)
        if asked_before:
            text = {"type": "output_text", "text": "done", "annotations": []}
            item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
        else:
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look_up", "arguments": "{}", "status": "completed"}
        return NeMoGymResponse(
            id=f"resp_{uuid4().hex}", created_at=1.0, model="slow", object="response", output=[item], parallel_tool_calls=True,
            tool_choice="auto", tools=[],
        )

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming = Body()) -> NeMoGymChatCompletion:
        raise NotImplementedError


if __name__ == "__main__":
    SlowModel.run_webserver()
"""

SLOW_TOOLS = """
import asyncio

from fastapi import FastAPI

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig, BaseSeedSessionRequest, BaseSeedSessionResponse, BaseVerifyRequest, BaseVerifyResponse,
    SimpleResourcesServer,
)


class SlowTools(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/look_up")(self.look_up)
        return app

    async def seed_session(self, body: BaseSeedSessionRequest) -> BaseSeedSessionResponse:
        await asyncio.sleep(1.6)
        return BaseSeedSessionResponse()

    async def look_up(self) -> str:
        await asyncio.sleep(1.6)
        return "found"

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        await asyncio.sleep(1.6)
        return BaseVerifyResponse(**body.model_dump(), reward=1.0)


if __name__ == "__main__":
    SlowTools.run_webserver()
"""

SLOW_CONFIG = """
tools:
  resources_servers:
    slow: {entrypoint: app.py, domain: other, datasets: [{name: rows, type: validation, license: MIT, jsonl_fpath: rows.jsonl}]}
policy_model:
  responses_api_models:
    slow: {entrypoint: app.py}
agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: tools}
      model_server: {type: responses_api_models, name: policy_model}
"""

STAGES = [
    ("seed session", "tools"),
    ("model call 1", "policy_model"),
    ("tool look_up", "tools"),
    ("model call 2", "policy_model"),
    ("verify", "tools"),
]


def make_slow_tree(folder: Path) -> None:
    for kind, source in (("responses_api_models", SLOW_MODEL), ("resources_servers", SLOW_TOOLS)):
        component = folder / kind / "slow"
        component.mkdir(parents=True)
        (component / "app.py").write_text(source)
        (component / "requirements.txt").write_text("")
    (folder / "slow.yaml").write_text(SLOW_CONFIG)
    write_rows(folder / "rows.jsonl", [{}, {}])


def stages_of(events: Path, task: int) -> list[tuple[str, str]]:
    said = [event for event in read_events(events) if event.get("task") == task]
    assert [event["type"] for event in said if event["type"] != "rollout.stage"] == ["rollout.started", "rollout.finished"]
    assert said[-1]["type"] == "rollout.finished"
    stages = [event for event in said if event["type"] == "rollout.stage"]
    times = [event["since"] for event in stages]
    assert times == sorted(times)
    assert all(0 <= event["t"] - event["since"] < 2.5 for event in stages)
    return [(event["stage"], event["detail"]) for event in stages if event["stage"] != "agent"]


@pytest.mark.slow
def test_a_slow_rollout_is_followed_through_its_stages(gym: Gym) -> None:
    make_slow_tree(gym.cwd)
    result = gym.run("eval", "run", "--config", "slow.yaml", "--output", "r.jsonl", "--split", "validation")
    assert result.returncode == 0, result.stderr
    for task in (0, 1):
        assert stages_of(gym.cwd / "r_run" / "events.ndjson", task) == STAGES


@pytest.mark.slow
def test_runs_on_servers_that_are_up_are_followed_too(gym: Gym) -> None:
    make_slow_tree(gym.cwd)
    head = f"++head_server.port={unused_port()}"
    gym.start("env", "start", "--config", "slow.yaml", head)
    gym.wait_for("servers ready!")
    for number in (1, 2):  # the servers have seen the same ids before
        words = ("--no-serve", "--agent", "agent", "--input", "rows.jsonl", "--output", f"o/{number}.jsonl", head)
        result = gym.run("eval", "run", *words)
        assert result.returncode == 0, result.stderr
        assert stages_of(gym.cwd / "o" / f"{number}_run" / "events.ndjson", 1) == STAGES
