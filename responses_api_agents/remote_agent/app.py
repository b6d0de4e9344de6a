"""Rollouts by somebody else's agent: a service with `/v1/responses`, whose calls of the environment's tools are run here.

A service outside fails in its own ways, so no failure is an error of the run: each becomes a row with reward 0.0 that says what
happened and goes to the failures file.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any
from uuid import uuid4

import aiohttp
from fastapi import Request, Response
from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyResponse
from nemo_gym.base_responses_api_agent import (
    AggregateMetrics,
    AggregateMetricsRequest,
    BaseResponsesAPIAgentConfig,
    SimpleResponsesAPIAgent,
)
from nemo_gym.config_types import ResourcesServerRef
from nemo_gym.global_config import (
    ATTEMPT_INDEX_KEY_NAME,
    ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    SKILLS_REF_KEY_NAME,
    TASK_INDEX_KEY_NAME,
)
from nemo_gym.openai_utils import (
    NeMoGymFunctionCallOutput,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseOutputText,
)
from nemo_gym.server_utils import get_response_json
from responses_api_agents.remote_agent.remote_service import RemoteService, RemoteServiceError, normalize_remote_url
from responses_api_agents.simple_agent.exchange import (
    Cookies,
    cookies_of,
    own_answer,
    post,
    set_cookies,
)
from responses_api_agents.simple_agent.loop import Conversation, Limits, converse, function_calls
from responses_api_agents.simple_agent.tool_calls import ToolOutcome, call_environment

REMOTE_AGENT_FAILURE_CLASS = "remote_agent_error"
AGGREGATE_SECONDS = 600.0

# A file of rollouts may be run again as rows: what an earlier run said about them must not count as this one's.
_OF_EARLIER_RUNS = ("reward", "response", "error")
_IDENTITY_KEYS = (TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME, ATTEMPT_INDEX_KEY_NAME, ROLLOUT_ID_KEY_NAME)

_log = logging.getLogger(__name__)


class RemoteAgentConfig(BaseResponsesAPIAgentConfig):
    """Configuration of the agent."""

    agent_base_url: str
    resources_server: ResourcesServerRef
    concurrency: int = Field(default=32, ge=1)
    """Rollouts at the service at a time; the others wait."""
    remote_responses_timeout_secs: float = Field(default=1800.0, gt=0)
    """Seconds for one answer of the service."""
    run_timeout_secs: float = Field(default=2100.0, gt=0)
    """Seconds for one rollout, without its wait for a place."""
    max_steps: int | None = None
    """Calls of the service per rollout; null: as many as it takes."""

    @field_validator("agent_base_url")
    @classmethod
    def _normalized(cls, url: str) -> str:
        return normalize_remote_url(url)


class RemoteAgentRunRequest(BaseRunRequest):
    """A row with whatever fields its environment needs."""

    model_config = ConfigDict(extra="allow")


class RemoteAgentVerifyResponse(BaseVerifyResponse):
    """What the resources server answered with all its fields, or a row that says what failed."""

    model_config = ConfigDict(extra="allow")


class _ServiceAndEnvironment:
    """The service that a rollout asks and the environment whose tools it calls, with the cookies of each."""

    def __init__(self, agent: RemoteAgent, environment_cookies: Cookies) -> None:
        config = agent.config
        self.agent = agent
        self.service = RemoteService(config.agent_base_url, config.remote_responses_timeout_secs)
        self.environment_cookies = environment_cookies
        self.service_cookies: Cookies = {}

    async def ask(self, request: dict[str, Any]) -> NeMoGymResponse:
        return await self.service.respond(request, self.service_cookies)

    async def call_tool(self, call: NeMoGymResponseFunctionToolCall) -> ToolOutcome:
        server = self.agent.config.resources_server.name
        return await call_environment(self.agent.server_client, server, call, self.environment_cookies)

    def calls_to_run(self, answer: NeMoGymResponse) -> list[NeMoGymResponseFunctionToolCall]:
        """Calls without an output: the others are the service's own tools. Of calls with one id, the last counts."""
        done = {item.call_id for item in answer.output if isinstance(item, NeMoGymFunctionCallOutput)}
        return list({call.call_id: call for call in function_calls(answer.output) if call.call_id not in done}.values())


class RemoteAgent(SimpleResponsesAPIAgent):
    """An agent that leaves the thinking to a service and runs the tools that it asks for."""

    config: RemoteAgentConfig

    _places: asyncio.Semaphore = PrivateAttr()
    _warned: set[str] = PrivateAttr(default_factory=set)

    def model_post_init(self, context: Any) -> None:
        """Open as many places as the service may have rollouts."""
        super().model_post_init(context)
        self._places = asyncio.Semaphore(self.config.concurrency)

    @property
    def sem(self) -> asyncio.Semaphore:
        """The places at the service."""
        return self._places

    async def responses(
        self, request: Request, response: Response, body: NeMoGymResponseCreateParamsNonStreaming
    ) -> NeMoGymResponse:
        """The loop. The service's last answer with all new items as its output; raises `RemoteServiceError`.

        The caller's cookies go to the resources server, and those that it set are set on the reply; the service's are its own.
        """
        parties = _ServiceAndEnvironment(self, cookies_of(request))
        result = await converse(Conversation.begin(body), parties, Limits(max_steps=self.config.max_steps))
        if result.usage is None:
            self._warn_once("the service reports no usage: its tokens are not counted")
        set_cookies(response, parties.environment_cookies)
        return result

    async def run(self, request: Request, body: RemoteAgentRunRequest) -> RemoteAgentVerifyResponse:
        """One rollout: seed the session, run the loop, verify. Never raises for what fails; see the module's first lines."""
        body = _without_earlier_results(body)
        if (body.model_extra or {}).get(SKILLS_REF_KEY_NAME):
            self._warn_once("rows have a skills_ref: skills are not handed to a service, it has to bring its own")
        async with self.sem:
            limit = asyncio.timeout(self.config.run_timeout_secs)  # made here: its time runs from now on
            try:
                async with limit:
                    return await self._run_once(request, body)
            except TimeoutError as error:
                seconds = self.config.run_timeout_secs
                told = f"the rollout took longer than run_timeout_secs ({seconds:g} s)" if limit.expired() else _named(error)
                return _failure(body, told)
            except RemoteServiceError as error:
                return _failure(body, str(error), terminal=error.terminal)
            except Exception as error:
                return _failure(body, _named(error))

    async def _run_once(self, request: Request, body: RemoteAgentRunRequest) -> RemoteAgentVerifyResponse:
        cookies = cookies_of(request)
        await self._post_to_environment("/seed_session", body.model_dump(exclude_unset=True), cookies)
        result = await own_answer(self, RemoteAgent, request, "/v1/responses", None, body.responses_create_params, cookies)
        judged = {**body.model_dump(), "response": result.model_dump()}
        if self.config.skip_verification:
            judged |= {"reward": self.config.skip_verification_reward, "verification_skipped": True}
        else:
            judged = await self._post_to_environment("/verify", judged, cookies)
        return RemoteAgentVerifyResponse.model_validate(judged)

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """What the resources server makes of the rollouts; TimeoutError after `AGGREGATE_SECONDS`."""
        async with asyncio.timeout(AGGREGATE_SECONDS):
            answer = await post(self.server_client, self.config.resources_server.name, "/aggregate_metrics", body)
            return AggregateMetrics.model_validate(await get_response_json(answer))

    async def _post_to_environment(self, path: str, body: Any, cookies: Cookies) -> Any:
        server = self.config.resources_server.name
        try:
            answer = await post(self.server_client, server, path, body, cookies)
            return await get_response_json(answer)
        except aiohttp.ClientResponseError as error:
            told = getattr(error, "response_content", b"").decode("utf-8", "replace")
            raise RemoteServiceError(f"{path} of `{server}` answered HTTP {error.status}: {told[:500]}") from error

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)


def _without_earlier_results(body: RemoteAgentRunRequest) -> RemoteAgentRunRequest:
    """The row without the results and routing marks of an earlier run."""
    extra = {
        key: value
        for key, value in (body.model_extra or {}).items()
        if key not in _OF_EARLIER_RUNS and (key in _IDENTITY_KEYS or not key.startswith("_ng_"))
    }
    return RemoteAgentRunRequest(responses_create_params=body.responses_create_params, **extra)


def _failure(body: RemoteAgentRunRequest, error: str, *, terminal: bool = False) -> RemoteAgentVerifyResponse:
    """The row with reward 0.0, what happened, and the marks that send it to the failures file."""
    _log.warning("rollout failed: %s", error)
    text = NeMoGymResponseOutputText(text=f"The remote agent failed: {error}", annotations=[])
    response = NeMoGymResponse(
        id=f"resp_{uuid4().hex}",
        created_at=time.time(),
        model="remote_agent",
        output=[NeMoGymResponseOutputMessage(id=f"msg_{uuid4().hex}", content=[text])],
        parallel_tool_calls=False,
        tool_choice="none",
        tools=[],
        status="failed",
    )
    row = body.model_dump() | {"response": response, "reward": 0.0, "error": error}
    row["_ng_failure_class"] = REMOTE_AGENT_FAILURE_CLASS
    if terminal:
        row["_ng_failure_terminal"] = True
    return RemoteAgentVerifyResponse.model_validate(row)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


if __name__ == "__main__":
    RemoteAgent.run_webserver()
