"""Base class of agents: the loop that talks to the model and calls the environment's tools.

Importable as `nemo_gym.base_responses_api_agent`.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from fastapi import Body, FastAPI, Request
from pydantic import BaseModel

from backend.config.config_types import AggregateMetrics, AggregateMetricsRequest, BaseRunServerInstanceConfig
from backend.config.global_config import get_first_server_config_dict
from backend.metrics.reward_profile import AggregateMetricsMixin
from backend.responses.schema import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from backend.servers.addresses import server_url
from backend.servers.disconnect import CancelOnDisconnect
from backend.servers.endpoint import add_json_route
from backend.servers.inflight import run_body_context
from backend.servers.model_call_capture import observability_enabled_from_config
from backend.servers.resources_server import BaseRunRequest, BaseVerifyResponse
from backend.servers.rollout_correlation import ROLLOUT_PREFIX, maybe_rollout_id_from_run_body
from backend.servers.server_utils import SimpleServer, apply_rollout_prefix, known_config

__all__ = [
    "AggregateMetrics",
    "AggregateMetricsRequest",
    "BaseResponsesAPIAgentConfig",
    "Body",
    "SimpleResponsesAPIAgent",
]


class BaseResponsesAPIAgentConfig(BaseRunServerInstanceConfig):
    """Config block of an agent; subclasses add their fields."""

    skip_verification: bool = False
    skip_verification_reward: float = 0.0
    token_id_capture: bool = False


class SimpleResponsesAPIAgent(AggregateMetricsMixin, SimpleServer):
    """An agent with the documented routes; a subclass implements `responses` (the loop) and `run` (one whole rollout)."""

    config: BaseResponsesAPIAgentConfig

    def setup_webserver(self) -> FastAPI:
        """An application with `/v1/responses` (also below the rollout prefix), `/run` and `/aggregate_metrics`."""
        app = FastAPI()
        self.setup_session_middleware(app)
        for prefix in ("", "/ng-rollout/{rollout_id}", "/ng-rollout/{rollout_id}/training-token-capture"):
            add_json_route(app, f"{prefix}/v1/responses", self.responses)
        add_json_route(app, "/run", self.run, context=run_body_context)
        aggregate = self._aggregate_unless_skipped if self.config.skip_verification else self.aggregate_metrics
        add_json_route(app, "/aggregate_metrics", aggregate)
        return app

    def setup_exception_middleware(self, app: FastAPI) -> None:
        """Answer whatever a handler raises with the documented envelope, and give up rollouts whose caller has left."""
        app.add_middleware(CancelOnDisconnect)
        super().setup_exception_middleware(app)

    @abstractmethod
    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """The agent's loop: from an input to the whole trajectory as one response."""

    @abstractmethod
    async def run(self, body: BaseRunRequest) -> BaseVerifyResponse:
        """One rollout: seed the session, run the loop, verify."""

    async def _aggregate_unless_skipped(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        if self.config.skip_verification:
            warnings.warn("verification was skipped: there is nothing to aggregate", RuntimeWarning, stacklevel=2)
            return AggregateMetrics()
        return await self.aggregate_metrics(body)

    def rollout_id_from_run(self, body: BaseModel | dict[str, Any]) -> str | None:
        """The rollout's id, when calls are observed or their tokens captured; else None."""
        if not self._capture_correlation_enabled():
            return None
        return maybe_rollout_id_from_run_body(body if isinstance(body, dict) else body.model_dump(exclude_unset=True))

    def url_path_for_run(self, url_path: str, body: BaseModel | dict[str, Any]) -> str:
        """`url_path` below the prefix of the rollout that `body` describes."""
        return apply_rollout_prefix(url_path, self.rollout_id_from_run(body), self._token_id_capture_enabled())

    def base_url_for_run(self, base_url: str, body: BaseModel | dict[str, Any]) -> str:
        """`base_url` with the prefix of the rollout that `body` describes."""
        return apply_rollout_prefix(base_url, self.rollout_id_from_run(body), self._token_id_capture_enabled())

    def url_path_for_request(self, url_path: str, request: Request | None) -> str:
        """`url_path` below the prefix under which `request` came in; as it is where there is no request."""
        if request is None:
            return url_path
        path = request.url.path
        match = ROLLOUT_PREFIX.match(path) if isinstance(path, str) else None
        parameters = request.path_params
        rollout_id = match["id"] if match else parameters.get("rollout_id") if isinstance(parameters, Mapping) else None
        return apply_rollout_prefix(url_path, rollout_id, bool(match and match["capture"]))

    def resolve_model_base_url(self, model_server_name: str, rollout_id: str | None = None) -> str:
        """An OpenAI-style base URL (ending in `/v1`) of a model server, for clients that build their own requests."""
        block = get_first_server_config_dict(known_config(self.server_client), model_server_name)
        base = server_url(block["host"], block["port"])
        return f"{apply_rollout_prefix(base, rollout_id, self._token_id_capture_enabled())}/v1"

    def _capture_correlation_enabled(self) -> bool:
        """Whether anything is recorded of this agent's rollouts, so that its calls must say which rollout they are for."""
        return self._model_call_capture_enabled() or self._token_id_capture_enabled()

    def _model_call_capture_enabled(self) -> bool:
        """Whether the model servers record the calls of this agent's rollouts; existing agents ask this."""
        return observability_enabled_from_config(known_config(self.server_client))

    def _token_id_capture_enabled(self) -> bool:
        """Whether the model servers record the tokens of this agent's rollouts; existing agents ask this."""
        capture = known_config(self.server_client).get("token_id_capture") or {}
        return capture.get("enabled") is True and (capture.get("all_agents") is True or self.config.token_id_capture)
