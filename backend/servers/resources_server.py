"""Base class of resources servers: the environment of a rollout, its tools, and the verifier that gives the reward.

Importable as `nemo_gym.base_resources_server`.
"""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from backend.config.config_types import AggregateMetrics, AggregateMetricsRequest, BaseRunServerInstanceConfig, Domain
from backend.metrics.reward_profile import AggregateMetricsMixin
from backend.responses.schema import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from backend.servers.endpoint import add_json_route
from backend.servers.handlers import awaitable
from backend.servers.judge import judge_failsafe
from backend.servers.rollout_correlation import RolloutContextMiddleware
from backend.servers.server_utils import SimpleServer

if TYPE_CHECKING:
    from backend.servers.mcp_tools import CatchAll, MCPTool

__all__ = [
    "NEMO_GYM_MCP_METADATA_KEY",
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

NEMO_GYM_MCP_METADATA_KEY = "mcp"
"""Where `/seed_session` says how to reach the tools over MCP."""


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
    """Whether the tools are offered over MCP as well, at `/mcp`."""


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
    """Nothing, unless a subclass says otherwise. Of servers that offer their tools over MCP, `mcp`: how to reach them in this session."""

    model_config = ConfigDict(extra="allow")

    mcp: dict[str, Any] | None = None

    @model_serializer(mode="wrap")
    def _leave_out_what_is_not_offered(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        if self.mcp is None:
            fields.pop("mcp", None)
        return fields


class SimpleResourcesServer(AggregateMetricsMixin, SimpleServer):
    """A resources server with the documented routes; a subclass implements `verify` and adds its tools in `setup_webserver`."""

    config: BaseResourcesServerConfig

    def setup_webserver(self) -> FastAPI:
        """An application with `/seed_session`, `/verify`, `/aggregate_metrics` and `/reverify_mode`."""
        app = FastAPI()
        self.setup_session_middleware(app)
        app.add_middleware(RolloutContextMiddleware)
        add_json_route(app, "/seed_session", self.seed_session)
        add_json_route(app, "/verify", judge_failsafe(awaitable(self.verify)))
        add_json_route(app, "/aggregate_metrics", self.aggregate_metrics)
        add_json_route(app, "/reverify_mode", self.get_reverify_mode, methods=("GET",))
        return app

    async def seed_session(self, body: BaseSeedSessionRequest) -> BaseSeedSessionResponse:
        """Prepare the session of one rollout. Stateless environments have nothing to prepare."""
        return BaseSeedSessionResponse()

    @abstractmethod
    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        """Judge one finished trajectory."""

    async def get_reverify_mode(self) -> ReverifyMode:
        """How `gym eval reverify` may treat this verifier."""
        return type(self.config).REVERIFY_MODE

    def mcp_tools(self, harvested: list[MCPTool], catchall: CatchAll) -> list[MCPTool] | None:
        """The tools to offer over MCP: the POST routes with a fixed path (`harvested`), unless a subclass chooses.

        `catchall.tool(name, schema, description)` makes a tool of the route `POST /{name}`. None or an empty list offers nothing.
        """
        return harvested

    def mcp_allowed_tools_for_session(self, seed_body: dict[str, Any]) -> list[str] | None:
        """Names of the tools that the session started with `seed_body` (the JSON sent to `/seed_session`) may call; None for all."""
        return None

    def normalize_tool_name(self, name: str) -> str:
        """The name under which `verify` knows the tool that an MCP client calls `name`."""
        return name.removeprefix(f"mcp__{self.config.name}__")
