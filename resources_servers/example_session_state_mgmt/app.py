"""State that belongs to one rollout: a counter per session, set by the row, moved by tools, compared in the end."""

from __future__ import annotations

from typing import ClassVar

from fastapi import FastAPI, Request
from pydantic import BaseModel, Field

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from resources_servers.example_session_state_mgmt.task_data import TaskData


class StatefulCounterResourcesServerConfig(BaseResourcesServerConfig):
    """Configuration of the server."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.UNSUPPORTED


class StatefulCounterSeedSessionRequest(BaseSeedSessionRequest):
    """What of a row starts a session."""

    initial_count: int


class IncrementCounterRequest(BaseModel):
    """Arguments of `increment_counter`."""

    count: int


class IncrementCounterResponse(BaseModel):
    """What `increment_counter` answers."""

    success: bool


class GetCounterValueResponse(BaseModel):
    """What `get_counter_value` answers."""

    count: int


class StatefulCounterVerifyRequest(TaskData, BaseVerifyRequest):
    """A row with the response; what counts is the session's counter."""


class StatefulCounterResourcesServer(SimpleResourcesServer):
    """Keeps one counter per session, from its seed to its verdict."""

    config: StatefulCounterResourcesServerConfig
    session_id_to_counter: dict[str, int] = Field(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        """The documented routes and the tools."""
        app = super().setup_webserver()
        app.post("/increment_counter")(self.increment_counter)
        app.post("/get_counter_value")(self.get_counter_value)
        return app

    async def seed_session(self, request: Request, body: StatefulCounterSeedSessionRequest) -> BaseSeedSessionResponse:
        """Start the session's counter; a second seed changes nothing."""
        self.session_id_to_counter.setdefault(request.session[SESSION_ID_KEY], body.initial_count)
        return BaseSeedSessionResponse()

    async def increment_counter(self, request: Request, body: IncrementCounterRequest) -> IncrementCounterResponse:
        """Add to the counter."""
        session_id = request.session[SESSION_ID_KEY]
        self.session_id_to_counter[session_id] = self.session_id_to_counter.get(session_id, 0) + body.count
        return IncrementCounterResponse(success=True)

    async def get_counter_value(self, request: Request) -> GetCounterValueResponse:
        """Read the counter."""
        return GetCounterValueResponse(count=self.session_id_to_counter.setdefault(request.session[SESSION_ID_KEY], 0))

    async def verify(self, request: Request, body: StatefulCounterVerifyRequest) -> BaseVerifyResponse:
        """1.0 when the session's counter is where the row expects it. The session ends with its verdict and frees its counter."""
        count = self.session_id_to_counter.pop(request.session[SESSION_ID_KEY], None)
        return BaseVerifyResponse(
            responses_create_params=body.responses_create_params,
            response=body.response,
            reward=float(count == body.expected_count),
        )


if __name__ == "__main__":
    StatefulCounterResourcesServer.run_webserver()
