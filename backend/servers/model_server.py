"""Base class of model servers: adapters from the Responses and Chat-Completions routes to some model.

Importable as `nemo_gym.base_responses_api_model`.
"""

from __future__ import annotations

from abc import abstractmethod

from fastapi import Body, FastAPI

from backend.config.config_types import BaseRunServerInstanceConfig
from backend.responses.schema import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
)
from backend.servers.endpoint import add_json_route
from backend.servers.model_call_capture import (
    CaptureStore,
    ModelCallCapture,
    ModelCallCaptureConfig,
    observability_enabled_from_config,
)
from backend.servers.model_call_records import (
    ModelCallRecord,
    aggregate_model_call_metrics,
    merge_model_call_capture_into_record,
    read_model_call_records,
)
from backend.servers.server_utils import BaseServer, SimpleServer

__all__ = [
    "BaseResponsesAPIModel",
    "BaseResponsesAPIModelConfig",
    "Body",
    "CaptureStore",
    "ModelCallCaptureConfig",
    "ModelCallRecord",
    "SimpleResponsesAPIModel",
    "aggregate_model_call_metrics",
    "merge_model_call_capture_into_record",
    "observability_enabled_from_config",
    "read_model_call_records",
]


class BaseResponsesAPIModelConfig(BaseRunServerInstanceConfig):
    """Config block of a model server; subclasses add their fields."""


class BaseResponsesAPIModel(BaseServer):
    """A model server, however it serves."""

    config: BaseResponsesAPIModelConfig


class SimpleResponsesAPIModel(BaseResponsesAPIModel, SimpleServer):
    """A model server with the documented routes; a subclass implements `responses` and `chat_completions`.

    Each may also take a leading `request: Request`. Bodies are strict: an unknown field is answered with 422, and so is `stream`.
    """

    def setup_webserver(self) -> FastAPI:
        """An application with `/v1/responses` and `/v1/chat/completions`, both also below the rollout prefix."""
        app = FastAPI()
        self.setup_session_middleware(app)
        add_json_route(app, "/v1/responses", self.responses)
        add_json_route(app, "/v1/chat/completions", self.chat_completions)
        capture = ModelCallCaptureConfig.from_global_config(self.server_client.global_config_dict)
        folder = capture.model_call_capture_dir if capture.observability_enabled else None
        app.add_middleware(
            ModelCallCapture,
            server_name=self.config.name,
            store=CaptureStore(folder) if folder else None,
        )
        return app

    @abstractmethod
    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """One call of the model in the Responses dialect."""

    @abstractmethod
    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        """One call of the model in the Chat-Completions dialect."""
