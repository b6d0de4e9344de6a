"""What servers and agents build on: the client that finds servers by name, and the base class of every server.

Importable as `nemo_gym.server_utils`. Existing tests replace names in this module (`request`, `ServerClient`), so what uses them
looks them up here.
"""

from __future__ import annotations

import logging
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import ClientResponse
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from multidict import CIMultiDict
from pydantic import BaseModel, ConfigDict

from backend.config.config_types import BaseRunServerInstanceConfig, BaseServerConfig
from backend.config.global_config import (
    DEFAULT_HEAD_SERVER_PORT,
    HEAD_SERVER_KEY_NAME,
    get_first_server_config_dict,
    get_global_config_dict,
)
from backend.errors import GymError
from backend.io.json_codec import loads
from backend.servers.addresses import server_url
from backend.servers.endpoint import answer_invalid_body
from backend.servers.http_client import RetryRule, close_http_session, http_session, raise_descriptor_limit, send
from backend.servers.inflight import INFLIGHT_PATH, ROLLOUT_HEADER, InflightWork, current_rollout_key
from backend.servers.middleware import SESSION_ID_KEY, ErrorEnvelope, SessionCookies
from backend.servers.process_context import process_context
from backend.servers.rollout_correlation import current_rollout_id, maybe_rollout_id_from_run_body

__all__ = [
    "DEFAULT_HEAD_SERVER_PORT",
    "HEAD_SERVER_KEY_NAME",
    "MAX_NUM_TRIES",
    "SESSION_ID_KEY",
    "BaseServer",
    "BaseServerConfig",
    "ClientResponse",
    "ServerClient",
    "SimpleServer",
    "apply_rollout_prefix",
    "get_first_server_config_dict",
    "get_global_aiohttp_client",
    "get_response_json",
    "get_server_url",
    "global_aiohttp_client_exit",
    "is_nemo_gym_fastapi_entrypoint",
    "is_nemo_gym_fastapi_worker",
    "raise_for_status",
    "request",
    "rollout_path_prefix",
]

logger = logging.getLogger(__name__)

MAX_NUM_TRIES = 3
_INSTANCE_VARIABLE = "NEMO_GYM_CONFIG_PATH"
_WORKER_VARIABLE = "IS_NEMO_GYM_FASTAPI_WORKER"
_ENTRYPOINT_VARIABLE = "IS_NEMO_GYM_FASTAPI_ENTRYPOINT"
_MODEL_ROUTES = ("/v1/responses", "/v1/chat/completions", "/v1/messages")


async def request(
    method: str,
    url: str,
    _internal: bool = False,
    _max_connection_retries: int | None = None,
    **kwargs: Any,
) -> ClientResponse:
    """Send a request with the process-wide session; any HTTP status is returned.

    Connecting is retried for up to 15 s, or `_max_connection_retries` times. A request that may have been received is sent again
    (3 tries) only to a server outside, never to one of ours: its handler may have side effects.
    """
    rule = RetryRule(connect_retries=_max_connection_retries, resend_tries=1 if _internal else MAX_NUM_TRIES)
    return await send(method, url, rule, **kwargs)


async def raise_for_status(response: ClientResponse) -> None:
    """Raise `aiohttp.ClientResponseError` for a status of 400 and up; the answer's bytes are in its `response_content`."""
    if response.ok:
        return
    content = await response.content.read() if response.content is not None else b""
    error = aiohttp.ClientResponseError(
        request_info=response.request_info,
        history=(),
        status=response.status,
        message=response.reason or "",
        headers=dict(response.headers) if response.headers is not None else None,  # type: ignore[arg-type]
    )
    error.response_content = content  # type: ignore[attr-defined]
    raise error


async def get_response_json(response: ClientResponse) -> Any:
    """The answer's body as JSON."""
    return loads(await response.read())


def get_global_aiohttp_client() -> aiohttp.ClientSession:
    """The process-wide session of the running loop."""
    return http_session()


async def global_aiohttp_client_exit() -> None:
    """Close the process-wide session of the running loop."""
    await close_http_session()


def rollout_path_prefix(rollout_id: str, token_capture: bool = False) -> str:
    """The path prefix that ties a request to a rollout."""
    return f"/ng-rollout/{rollout_id}" + ("/training-token-capture" if token_capture else "")


def apply_rollout_prefix(url: str, rollout_id: str | None, token_capture: bool = False) -> str:
    """`url` (or path) with the rollout prefix in front of its path; unchanged without an id."""
    if not rollout_id:
        return url
    scheme, separator, rest = url.partition("://")
    if not separator:
        return rollout_path_prefix(rollout_id, token_capture) + url
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}{rollout_path_prefix(rollout_id, token_capture)}{slash}{path}"


def get_server_url(server_name: str) -> str:
    """Base URL of a server instance of this process' configuration."""
    return _base_url(get_first_server_config_dict(get_global_config_dict(), server_name))


def is_nemo_gym_fastapi_worker() -> bool:
    """Whether this process is one of several uvicorn workers of a server."""
    return os.environ.get(_WORKER_VARIABLE) == "1"


def is_nemo_gym_fastapi_entrypoint(file_path: str) -> bool:
    """Whether `file_path` is the entry point of the server whose worker this process is."""
    wanted = os.environ.get(_ENTRYPOINT_VARIABLE)
    return bool(wanted) and Path(file_path).resolve().as_posix().endswith(str(wanted))


class ServerClient:
    """Sends requests to server instances by their name.

    With `observability_enabled`, calls to resources servers and to the model routes carry the current rollout's id in their path.
    """

    def __init__(self, head_server_config: BaseServerConfig, global_config_dict: Any) -> None:
        self.head_server_config = head_server_config
        self.global_config_dict = global_config_dict
        self._base_urls: dict[str, tuple[str, str]] = {}
        self._observing = bool(global_config_dict.get("observability_enabled")) if hasattr(global_config_dict, "get") else False

    @classmethod
    def load_from_global_config(cls, head_server_config: BaseServerConfig | None = None) -> Self:
        """A client for this process' configuration; outside a server, for the one that the head server gives out.

        Raises ValueError when the head server cannot be reached.
        """
        config = get_global_config_dict()
        head = head_server_config or cls.load_head_server_config(config)
        if os.environ.get(_INSTANCE_VARIABLE):
            return cls(head, config)
        from backend.servers.head_client import fetch_live_config

        try:
            return cls(head, fetch_live_config(head.host, head.port))
        except GymError as error:
            raise ValueError(str(error)) from error

    @staticmethod
    def load_head_server_config(config: Mapping[str, Any] | None = None) -> BaseServerConfig:
        """Address of the head server in a configuration (this process' own by default)."""
        source = get_global_config_dict() if config is None else config
        head = source.get(HEAD_SERVER_KEY_NAME) or {}
        return BaseServerConfig(host=head.get("host") or "127.0.0.1", port=head.get("port") or DEFAULT_HEAD_SERVER_PORT)

    def _build_server_base_url(self, server_config_dict: Any) -> str:
        return _base_url(server_config_dict)

    def _resolve_base_url(self, server_name: str) -> str:
        return self._target(server_name)[0]

    def _target(self, server_name: str) -> tuple[str, str]:
        known = self._base_urls.get(server_name)
        if known is None:
            block = get_first_server_config_dict(self.global_config_dict, server_name)
            kind = next(iter(self.global_config_dict[server_name]))
            known = self._base_urls[server_name] = (self._build_server_base_url(block), str(kind))
        return known

    async def request(self, server_name: str, url_path: str, method: str, **kwargs: Any) -> ClientResponse:
        """Send a request to `url_path` of a server instance. A model given as `json=` is sent with the fields that were set."""
        base_url, kind = self._target(server_name)
        body = kwargs.get("json")
        if isinstance(body, BaseModel):
            kwargs["json"] = body.model_dump(exclude_unset=True)
        if self._observing:
            url_path = self._observed_path(kind, url_path, kwargs.get("json"))
        if key := current_rollout_key():
            kwargs["headers"] = CIMultiDict(kwargs.get("headers") or ())
            kwargs["headers"][ROLLOUT_HEADER] = key
        return await request(method=method, url=f"{base_url}{url_path}", _internal=True, **kwargs)

    async def get(self, server_name: str, url_path: str, **kwargs: Any) -> ClientResponse:
        """`GET url_path` of a server instance."""
        return await self.request(server_name=server_name, url_path=url_path, method="GET", **kwargs)

    async def post(self, server_name: str, url_path: str, **kwargs: Any) -> ClientResponse:
        """`POST url_path` of a server instance."""
        return await self.request(server_name=server_name, url_path=url_path, method="POST", **kwargs)

    def _observed_path(self, kind: str, url_path: str, body: Any) -> str:
        if url_path.startswith("/ng-rollout/"):
            return url_path
        rollout_id = current_rollout_id()
        if kind == "resources_servers":
            if rollout_id is None and url_path == "/verify" and isinstance(body, Mapping):
                rollout_id = maybe_rollout_id_from_run_body(body)
        elif kind != "responses_api_models" or url_path not in _MODEL_ROUTES:
            return url_path
        return apply_rollout_prefix(url_path, rollout_id)


def _base_url(block: Any) -> str:
    return server_url(block["host"], block["port"])


class BaseServer(BaseModel, ABC):
    """A server and its configuration; the annotation of `config` in a subclass is what its config block is validated against."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    config: BaseRunServerInstanceConfig

    @classmethod
    def load_config_from_global_config(cls) -> Any:
        """This process' server block, validated as the class' own config type. Raises `GymError` naming each wrong field."""
        from pydantic import ValidationError

        name = os.environ.get(_INSTANCE_VARIABLE)
        if not name:
            raise GymError("this process was not told which server it is", hint="start servers with `gym env start`")
        block = get_first_server_config_dict(get_global_config_dict(), name)
        config_class: Any = cls.model_fields["config"].annotation
        try:
            return config_class.model_validate({**_plain(block), "name": name})
        except ValidationError as error:
            details = [f"  {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
            raise GymError(
                f"the configuration of server `{name}` does not fit {config_class.__name__}", details=details
            ) from None


class SimpleServer(BaseServer):
    """A FastAPI server with session cookies, error envelopes and liveness; subclasses add routes in `setup_webserver`."""

    server_client: ServerClient

    @abstractmethod
    def setup_webserver(self) -> FastAPI:
        """The application with all its routes."""

    def get_session_middleware_key(self) -> str:
        """Name of the session cookie; part of its signing key."""
        return f"{type(self).__name__}___{self.config.name}"

    def setup_session_middleware(self, app: FastAPI) -> None:
        """Give each request a session id."""
        app.add_middleware(
            SessionCookies,
            cookie_name=self.get_session_middleware_key(),
            secret=process_context().session_secret,
        )

    def setup_exception_middleware(self, app: FastAPI) -> None:
        """Answer whatever a handler raises with the documented envelope."""
        app.add_middleware(ErrorEnvelope, server_name=f"{type(self).__name__}___{self.config.name}")
        app.add_exception_handler(RequestValidationError, answer_invalid_body)

    def setup_liveness(self, app: FastAPI) -> None:
        """`GET /` answers `{"status": "ok"}`, and says in a header which server that is."""
        from starlette.requests import Request
        from starlette.responses import JSONResponse

        name = self.config.name

        async def alive(_request: Request) -> JSONResponse:
            return JSONResponse({"status": "ok"}, headers={"x-gym-server": name})

        if not any(getattr(route, "path", None) == "/" for route in app.routes):
            app.add_route("/", alive, methods=["GET"])

    def setup_inflight(self, app: FastAPI) -> None:
        """`GET /inflight` answers which rollouts this server works for, unless the application has such a route itself."""
        taken = any(getattr(route, "path", None) == INFLIGHT_PATH for route in app.routes)
        app.add_middleware(InflightWork, server_name=self.config.name, answers=not taken)

    def set_ulimit(self, target_soft_limit: int = 65_535) -> None:
        """Raise the soft limit of open files."""
        raise_descriptor_limit(target_soft_limit)

    @classmethod
    def run_webserver(cls) -> FastAPI | None:
        """Serve this class as the server instance that the environment names, until the process is told to stop.

        In a worker of several, returns the application instead.
        """
        from backend.servers.serve import serve

        server = cls(config=cls.load_config_from_global_config(), server_client=ServerClient.load_from_global_config())
        if process_context().dry_run:
            return None
        app = server.setup_webserver()
        server.setup_liveness(app)
        server.set_ulimit()
        server.setup_exception_middleware(app)
        server.setup_inflight(app)
        if is_nemo_gym_fastapi_worker():
            return app
        serve(app, host=server.config.host, port=server.config.port or 0, config=get_global_config_dict())
        return None


def _plain(block: Any) -> dict[str, Any]:
    if "omegaconf" in sys.modules:
        from omegaconf import OmegaConf

        if OmegaConf.is_config(block):
            return OmegaConf.to_container(block, resolve=True)  # type: ignore[return-value]
    return dict(block)
