"""The standard loop: ask the model, run the tools it calls, give it their outputs, until it answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any

from fastapi import Request, Response
from pydantic import ConfigDict, ValidationError

from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyResponse
from nemo_gym.base_responses_api_agent import (
    AggregateMetrics,
    AggregateMetricsRequest,
    BaseResponsesAPIAgentConfig,
    SimpleResponsesAPIAgent,
)
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.openai_utils import (
    NeMoGymEasyInputMessage,
    NeMoGymFunctionCallOutput,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseUsage,
    accumulate_response_usage,
)
from nemo_gym.server_utils import ClientResponse, get_response_json, raise_for_status
from responses_api_agents.simple_agent.tool_calls import RefusedToolCall, tool_arguments, tool_path

Cookies = dict[str, str]


class SimpleAgentConfig(BaseResponsesAPIAgentConfig):
    """Configuration of the agent."""

    resources_server: ResourcesServerRef
    model_server: ModelServerRef
    max_steps: int | None = None
    """Model calls per rollout; null: as many as it takes."""
    max_idle_turns: int = 8
    """Turns in a row with neither a tool call nor a message (reasoning only) after which the rollout ends as it is."""


class SimpleAgentRunRequest(BaseRunRequest):
    """A row with whatever fields its environment needs."""

    model_config = ConfigDict(extra="allow")


class SimpleAgentVerifyResponse(BaseVerifyResponse):
    """What the resources server answered, with all its fields."""

    model_config = ConfigDict(extra="allow")


_NO_SUCH_TOOL = 404


@dataclass(slots=True)
class _Conversation:
    """One pass through the loop."""

    request: dict[str, Any]
    """Body of the next model call: the caller's, its `input` growing by every new item."""
    environment_cookies: Cookies
    model_cookies: Cookies = field(default_factory=dict)
    items: list[Any] = field(default_factory=list)
    """Everything new, in order."""
    usage: NeMoGymResponseUsage | None = None

    def add(self, items: Iterable[Any]) -> None:
        for item in items:
            self.items.append(item)
            self.request["input"].append(item.model_dump(exclude_unset=True))


class SimpleAgent(SimpleResponsesAPIAgent):
    """An agent for environments whose tools are routes of their resources server."""

    config: SimpleAgentConfig

    async def responses(
        self, request: Request, response: Response, body: NeMoGymResponseCreateParamsNonStreaming
    ) -> NeMoGymResponse:
        """The loop. Returns the last model response with all new items as its output and the usage of all calls.

        The caller's cookies go to the resources server; those that both servers set are set on the reply.
        """
        conversation = _Conversation(_first_request(body), _cookies_of(request))
        model_path = self.url_path_for_request("/v1/responses", request)
        steps = idle_turns = 0
        while True:
            answer = await self._ask_model(conversation, model_path)
            steps += 1
            conversation.add(answer.output)
            conversation.usage = accumulate_response_usage(conversation.usage, answer.usage)
            if answer.incomplete_details is not None:
                break
            calls = [item for item in answer.output if isinstance(item, NeMoGymResponseFunctionToolCall)]
            if not calls and any(map(_is_message_of_the_model, answer.output)):
                break
            outcomes = [await self._call_tool(call, conversation) for call in calls]
            conversation.add([output for output, _ in outcomes])
            idle_turns = 0 if any(reached for _, reached in outcomes) else idle_turns + 1
            if idle_turns >= self.config.max_idle_turns or (self.config.max_steps and steps >= self.config.max_steps):
                break
        for name, value in {**conversation.environment_cookies, **conversation.model_cookies}.items():
            response.set_cookie(name, value)
        return answer.model_copy(update={"output": conversation.items, "usage": conversation.usage})

    async def run(self, request: Request, body: SimpleAgentRunRequest) -> SimpleAgentVerifyResponse:
        """One rollout: seed the session, run the loop, verify (or give the configured reward when verification is skipped)."""
        cookies = _cookies_of(request)
        seeded = await self._post_to_environment("/seed_session", body.model_dump(exclude_unset=True), cookies)
        await raise_for_status(seeded)

        side = Response()
        inner = _request_to_self(request, self.url_path_for_run("/v1/responses", body), cookies)
        trajectory = await self.responses(inner, side, body.responses_create_params)
        for header in side.headers.getlist("set-cookie"):
            cookies.update(_values(SimpleCookie(header)))

        judged = {**body.model_dump(), "response": trajectory.model_dump()}
        if self.config.skip_verification:
            judged |= {"reward": self.config.skip_verification_reward, "verification_skipped": True}
            return SimpleAgentVerifyResponse.model_validate(judged)
        verified = await self._post_to_environment("/verify", judged, cookies)
        await raise_for_status(verified)
        return SimpleAgentVerifyResponse.model_validate(await get_response_json(verified))

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """What the resources server makes of the rollouts: it knows the environment's own metrics."""
        answer = await self.server_client.post(
            server_name=self.config.resources_server.name, url_path="/aggregate_metrics", json=body
        )
        await raise_for_status(answer)
        return AggregateMetrics.model_validate(await get_response_json(answer))

    async def _ask_model(self, conversation: _Conversation, path: str) -> NeMoGymResponse:
        name = self.config.model_server.name
        answer = await self.server_client.post(
            server_name=name, url_path=path, json=conversation.request, cookies=conversation.model_cookies
        )
        await raise_for_status(answer)
        conversation.model_cookies.update(_values(answer.cookies))
        try:
            return NeMoGymResponse.model_validate(await get_response_json(answer))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
        except ValueError as error:
            reason = f"not JSON: {error}"
        raise RuntimeError(f"the answer of model server `{name}` is no response object: {reason}")

    async def _call_tool(
        self, call: NeMoGymResponseFunctionToolCall, conversation: _Conversation
    ) -> tuple[NeMoGymFunctionCallOutput, bool]:
        """A tool's answer as the model will see it, whatever its status, for models can mend their calls; and whether there is such a tool."""
        try:
            path, arguments = tool_path(call.name), tool_arguments(call.arguments)
        except RefusedToolCall as refusal:
            output, reached = refusal.output, False
        else:
            answer = await self._post_to_environment(path, arguments, conversation.environment_cookies)
            output, reached = (await answer.read()).decode("utf-8", "replace"), answer.status != _NO_SUCH_TOOL
        return NeMoGymFunctionCallOutput(type="function_call_output", call_id=call.call_id, output=output), reached

    async def _post_to_environment(self, path: str, body: Any, cookies: Cookies) -> ClientResponse:
        """The answer of the resources server. Its cookies are added to `cookies`, not put in their place: an error sets none."""
        answer = await self.server_client.post(
            server_name=self.config.resources_server.name, url_path=path, json=body, cookies=cookies
        )
        cookies.update(_values(answer.cookies))
        return answer


def _first_request(body: NeMoGymResponseCreateParamsNonStreaming) -> dict[str, Any]:
    if isinstance(body.input, str):
        body = body.model_copy(update={"input": [NeMoGymEasyInputMessage(role="user", content=body.input, type="message")]})
    return body.model_dump(exclude_unset=True)


def _is_message_of_the_model(item: Any) -> bool:
    if isinstance(item, NeMoGymResponseOutputMessage):
        return True
    return isinstance(item, NeMoGymEasyInputMessage) and item.role == "assistant"


def _request_to_self(request: Request, path: str, cookies: Cookies) -> Request:
    """`request` as if it had come to `path` with `cookies`, so that a subclass' own `responses` sees what it would over HTTP."""
    headers = [(name, value) for name, value in request.scope["headers"] if name != b"cookie"]
    if cookies:
        sent = SimpleCookie(cookies).output(attrs=[], header="", sep=";").strip()
        headers.append((b"cookie", sent.encode("latin-1", "replace")))
    return Request({**request.scope, "path": path, "raw_path": path.encode(), "headers": headers})


def _cookies_of(request: Request) -> Cookies:
    try:
        return _values(SimpleCookie(request.headers.get("cookie", "")))
    except CookieError:
        return {}


def _values(cookies: SimpleCookie) -> Cookies:
    return {name: morsel.value for name, morsel in cookies.items()}


if __name__ == "__main__":
    SimpleAgent.run_webserver()
