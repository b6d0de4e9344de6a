"""Base class of resources servers: the environment of a rollout, its tools, and the verifier that gives the reward.

Importable as `nemo_gym.base_resources_server`.
"""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from typing import ClassVar

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict

from backend.config.config_types import AggregateMetrics, AggregateMetricsRequest, BaseRunServerInstanceConfig, Domain
from backend.metrics.reward_profile import AggregateMetricsMixin
from backend.responses.schema import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from backend.servers.endpoint import add_json_route
from backend.servers.middleware import RolloutPathPrefix
from backend.servers.server_utils import SimpleServer

__all__ = [
    "AggregateMetrics",
    "AggregateMetricsRequest",
    "BaseMultiRewardVerifyResponse",
    "BaseResourcesServerConfig",
    "BaseRunRequest",
    "BaseSeedSessionRequest",
    "BaseSeedSessionResponse",
    "BaseVerifyRequest",
    "BaseVerifyResponse",
    "NeMoGymResponse",
    "ReverifyMode",
    "SimpleResourcesServer",
]


class ReverifyMode(StrEnum):
    """Whether a stored response can be verified again."""

    STATELESS = "stateless"
    """The verifier is a function of the request body and the server's configuration."""
    UNSUPPORTED = "unsupported"
    """The verifier reads state of the rollout's session, which is gone."""
    UNKNOWN = "unknown"


class BaseResourcesServerConfig(BaseRunServerInstanceConfig):
    """Config block of a resources server; subclasses add their fields."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.UNKNOWN

    domain: Domain | None = None
    expose_tools_over_mcp: bool = False


class BaseRunRequest(BaseModel):
    """One row of a data set, as it is sent to an agent; subclasses add what their verifier needs."""

    responses_create_params: NeMoGymResponseCreateParamsNonStreaming


class BaseVerifyRequest(BaseRunRequest):
    """A row and the agent's whole trajectory as one response."""

    response: NeMoGymResponse


class BaseVerifyResponse(BaseVerifyRequest):
    """The verify request, judged."""

    reward: float
    failure_reason: str | None = None


class BaseMultiRewardVerifyResponse(BaseVerifyResponse):
    """A judgement in several named parts."""

    reward_components: dict[str, float]


class BaseSeedSessionRequest(BaseModel):
    """What starts a session: the whole row; subclasses name the fields they read."""


class BaseSeedSessionResponse(BaseModel):
    """Nothing, unless a subclass says otherwise."""

    model_config = ConfigDict(extra="allow")


class SimpleResourcesServer(AggregateMetricsMixin, SimpleServer):
    """A resources server with the documented routes; a subclass implements `verify` and adds its tools in `setup_webserver`."""

    config: BaseResourcesServerConfig

    def setup_webserver(self) -> FastAPI:
        """An application with `/seed_session`, `/verify`, `/aggregate_metrics` and `/reverify_mode`."""
        app = FastAPI()
        self.setup_session_middleware(app)
        app.add_middleware(RolloutPathPrefix)
        add_json_route(app, "/seed_session", self.seed_session)
        add_json_route(app, "/verify", self.verify)
        add_json_route(app, "/aggregate_metrics", self.aggregate_metrics)
        add_json_route(app, "/reverify_mode", self.reverify_mode, methods=("GET",))
        return app

    async def seed_session(self, body: BaseSeedSessionRequest) -> BaseSeedSessionResponse:
        """Prepare the session of one rollout. Stateless environments have nothing to prepare."""
        return BaseSeedSessionResponse()

    @abstractmethod
    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        """Judge one finished trajectory."""

    async def reverify_mode(self) -> str:
        """How `gym eval reverify` may treat this verifier."""
        return type(self.config).REVERIFY_MODE.value
