"""Base class of model servers: adapters from the Responses and Chat-Completions routes to some model.

Importable as `nemo_gym.base_responses_api_model`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from fastapi import Body, FastAPI, Request

from backend.config.config_types import BaseRunServerInstanceConfig
from backend.config.global_config import TOKEN_ID_CAPTURE_BLOCK
from backend.responses.schema import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
)
from backend.servers.disconnect import CancelOnDisconnect
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
from backend.servers.model_routes import (
    add_model_routes,
    answer_chat_completions,
    answer_messages,
    answer_responses,
    invoke,
)
from backend.servers.server_utils import BaseServer, SimpleServer, known_config

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

_CaptureMiddleware = ModelCallCapture
"""The name by which existing tests recognise it."""


class BaseResponsesAPIModelConfig(BaseRunServerInstanceConfig):
    """Config block of a model server; subclasses add their fields."""


class BaseResponsesAPIModel(BaseServer):
    """A model server, however it serves."""

    config: BaseResponsesAPIModelConfig


class SimpleResponsesAPIModel(BaseResponsesAPIModel, SimpleServer):
    """A model server with the documented routes; a subclass implements `responses` and `chat_completions`.

    Each may also take a leading `request: Request`. Without `stream`, bodies are strict: an unknown field is answered with 422.
    What stands between a route and them may be replaced too: `responses_dispatch`, `chat_completions_dispatch` and `messages`.
    """

    config: BaseResponsesAPIModelConfig

    def setup_webserver(self) -> FastAPI:
        """An application with `/v1/responses`, `/v1/chat/completions` and `/v1/messages`, all also below the rollout prefix."""
        app = FastAPI()
        self.setup_session_middleware(app)
        add_model_routes(app, self, SimpleResponsesAPIModel)
        capture = ModelCallCaptureConfig.from_global_config(known_config(self.server_client))
        folder = capture.model_call_capture_dir if capture.observability_enabled else None
        app.add_middleware(
            ModelCallCapture,
            server_name=self.config.name,
            store=CaptureStore(folder) if folder else None,
        )
        self._capture_token_ids(app)
        return app

    def setup_exception_middleware(self, app: FastAPI) -> None:
        """Answer whatever a handler raises with the documented envelope, and give up calls whose caller has left."""
        app.add_middleware(CancelOnDisconnect)
        super().setup_exception_middleware(app)

    def _capture_token_ids(self, app: FastAPI) -> None:
        if not known_config(self.server_client).get(TOKEN_ID_CAPTURE_BLOCK):
            return
        from backend.servers.token_id_capture.config import checked_config, require_shared_lineage
        from backend.servers.token_id_capture.middleware import TokenCapture

        config = checked_config(known_config(self.server_client))
        sink = config.build_sink()
        if sink is not None:
            lineage = config.build_lineage_store()
            require_shared_lineage(lineage, self.config.num_workers or 1)
            app.add_middleware(
                TokenCapture,
                token_sink=sink,
                lineage_store=lineage,
                delta_records=config.token_id_capture.delta_records,
            )

    @abstractmethod
    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """One call of the model in the Responses dialect."""

    @abstractmethod
    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        """One call of the model in the Chat-Completions dialect."""

    async def responses_dispatch(self, request: Request, body: dict[str, Any] = Body()) -> Any:
        """`POST /v1/responses`: `body` is the request's JSON object. Raises FastAPI's `RequestValidationError` (answered with 422)."""
        return await answer_responses(self, request, body)

    async def chat_completions_dispatch(self, request: Request, body: dict[str, Any] = Body()) -> Any:
        """`POST /v1/chat/completions`, in the same way."""
        return await answer_chat_completions(self, request, body)

    async def messages(self, request: Request, body: dict[str, Any] = Body()) -> Any:
        """`POST /v1/messages`: Anthropic's dialect, answered by `responses`."""
        return await answer_messages(self, request, body)

    async def _invoke_responses(self, request: Request, params: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """`responses`, in the form that its author gave it, with the capture of its tokens; dispatching methods call this."""
        result: NeMoGymResponse = await invoke(self.responses, request, params, "input")
        return result

    async def _invoke_chat_completions(
        self, request: Request, params: NeMoGymChatCompletionCreateParamsNonStreaming
    ) -> NeMoGymChatCompletion:
        """`chat_completions`, in the same way."""
        result: NeMoGymChatCompletion = await invoke(self.chat_completions, request, params, "messages")
        return result
