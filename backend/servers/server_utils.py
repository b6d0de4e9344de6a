"""What servers and agents build on: the client that finds servers by name, and the base class of every server.

Importable as `nemo_gym.server_utils`. Existing tests replace names in this module (`request`, `ServerClient`), so what uses them
looks them up here.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import aiohttp
from aiohttp import ClientResponse
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from multidict import CIMultiDict
from pydantic import BaseModel, ConfigDict, PrivateAttr

from backend.config.config_types import BaseRunServerInstanceConfig, BaseServerConfig
from backend.config.global_config import (
    DEFAULT_HEAD_SERVER_PORT,
    HEAD_SERVER_KEY_NAME,
    get_first_server_config_dict,
    get_global_config_dict,
    known_global_config,
    omegaconf_of_known,
    read_known,
)
from backend.errors import GymError
from backend.io.json_codec import loads
from backend.servers.addresses import server_url
from backend.servers.direct_routes import install_direct_routes
from backend.servers.endpoint import answer_invalid_body
from backend.servers.exchange_log import log_exchange
from backend.servers.http_client import (
    RetryRule,
    client_settings,
    close_http_session,
    configure_http_client,
    debugs_requests,
    has_http_session,
    http_session,
    raise_descriptor_limit,
    send,
)
from backend.servers.inflight import INFLIGHT_PATH, ROLLOUT_HEADER, InflightWork, current_rollout_key
from backend.servers.log_prefix import prefix_output
from backend.servers.middleware import SESSION_ID_KEY, ErrorEnvelope, SessionCookies
from backend.servers.process_context import SETTING_UP, process_context
from backend.servers.ray_cluster import initialize_ray, uses_ray
from backend.servers.rollout_correlation import current_rollout_id, maybe_rollout_id_from_run_body
from backend.servers.server_settings import (
    GlobalAIOHTTPAsyncClientConfig,
    ProfilingMiddlewareConfig,
    ServerInstanceDisplayConfig,
    ServerStatus,
    UvicornLoggingConfig,
)

if TYPE_CHECKING:
    import uvicorn

__all__ = [
    "DEFAULT_HEAD_SERVER_PORT",
    "HEAD_SERVER_KEY_NAME",
    "MAX_NUM_TRIES",
    "SESSION_ID_KEY",
    "BaseServer",
    "BaseServerConfig",
    "ClientResponse",
    "GlobalAIOHTTPAsyncClientConfig",
    "HeadServer",
    "ProfilingMiddlewareConfig",
    "ServerClient",
    "ServerInstanceDisplayConfig",
    "ServerStatus",
    "SimpleServer",
    "UvicornLoggingConfig",
    "apply_rollout_prefix",
    "get_first_server_config_dict",
    "get_global_aiohttp_client",
    "get_nemo_gym_fastapi_num_workers",
    "get_response_json",
    "get_server_url",
    "global_aiohttp_client_exit",
    "initialize_ray",
    "is_global_aiohttp_client_request_debug_enabled",
    "is_global_aiohttp_client_setup",
    "is_nemo_gym_fastapi_entrypoint",
    "is_nemo_gym_fastapi_worker",
    "raise_for_status",
    "request",
    "rollout_path_prefix",
    "set_global_aiohttp_client",
    "setup_server_client",
]

logger = logging.getLogger(__name__)

MAX_NUM_TRIES = 3
_INSTANCE_VARIABLE = "NEMO_GYM_CONFIG_PATH"
_WORKER_VARIABLE = "IS_NEMO_GYM_FASTAPI_WORKER"
_ENTRYPOINT_VARIABLE = "IS_NEMO_GYM_FASTAPI_ENTRYPOINT"
_WORKERS_VARIABLE = "NEMO_GYM_FASTAPI_NUM_WORKERS"
_OWN_GETTER = get_global_config_dict
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
    tries = 1 if _internal else MAX_NUM_TRIES
    rule = RetryRule(connect_retries=_max_connection_retries, resend_tries=tries, internal=_internal)
    sent = kwargs.get("json")
    response = await send(method, url, rule, **kwargs)
    if debugs_requests() and not response.ok:
        await log_exchange(method, url, sent, response, _plain(_process_config()))
    return response


async def raise_for_status(response: ClientResponse) -> None:
    """Raise `aiohttp.ClientResponseError` for a status of 400 and up; the answer's bytes are in its `response_content`."""
    if response.ok:
        return
    content = await response.content.read() if response.content is not None else b""
    try:
        response.raise_for_status()
    except aiohttp.ClientResponseError as error:
        error.response_content = content  # type: ignore[attr-defined]
        # Errors travel between processes, which read-only headers and responses cannot.
        info = error.request_info
        sent: Any = CIMultiDict(info.headers)
        error.request_info = aiohttp.RequestInfo(info.url, info.method, sent, info.real_url)
        error.headers = CIMultiDict(error.headers or ())
        error.history = ()
        error.args = (error.request_info, error.history)
        raise


async def get_response_json(response: ClientResponse) -> Any:
    """The answer's body as JSON."""
    return loads(await response.read())


def get_global_aiohttp_client() -> aiohttp.ClientSession:
    """The process-wide session of the running loop."""
    return http_session()


def set_global_aiohttp_client(config: GlobalAIOHTTPAsyncClientConfig) -> aiohttp.ClientSession:
    """Use the limits of `config` from now on; the session of the running loop."""
    configure_http_client(client_settings(config.model_dump()))
    return http_session()


def is_global_aiohttp_client_setup() -> bool:
    """Whether the process-wide session is open in the running loop, or in any where none runs."""
    return has_http_session()


def is_global_aiohttp_client_request_debug_enabled() -> bool:
    """Whether failed exchanges are logged with what was sent and answered (`global_aiohttp_client_request_debug`)."""
    return debugs_requests()


async def global_aiohttp_client_exit() -> None:
    """Close the process-wide session of the running loop."""
    await close_http_session()


def rollout_path_prefix(rollout_id: str, token_capture: bool = False) -> str:
    """The path prefix that ties a request to a rollout."""
    return f"/ng-rollout/{rollout_id}" + ("/training-token-capture" if token_capture else "")


def apply_rollout_prefix(base_url: str, rollout_id: str | None, token_capture: bool = False) -> str:
    """`base_url` (or path) with the rollout prefix in front of its path; unchanged without an id."""
    if not rollout_id:
        return base_url
    scheme, separator, rest = base_url.partition("://")
    if not separator:
        return rollout_path_prefix(rollout_id, token_capture) + base_url
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}{rollout_path_prefix(rollout_id, token_capture)}{slash}{path}"


def get_server_url(server_name: str) -> str:
    """Base URL of a server instance of this process' configuration."""
    return _base_url(get_first_server_config_dict(_process_config(), server_name))


def is_nemo_gym_fastapi_worker() -> bool:
    """Whether this process is one of several uvicorn workers of a server."""
    return os.environ.get(_WORKER_VARIABLE) == "1"


def get_nemo_gym_fastapi_num_workers() -> int:
    """How many uvicorn workers this process' server has; 1 outside of any."""
    return int(os.environ.get(_WORKERS_VARIABLE) or 1)


def is_nemo_gym_fastapi_entrypoint(file: str) -> bool:
    """Whether `file` is the entry point of the server whose worker this process is."""
    wanted = os.environ.get(_ENTRYPOINT_VARIABLE)
    return bool(wanted) and Path(file).resolve().as_posix().endswith(str(wanted))


@dataclass(frozen=True, slots=True)
class _Known:
    """What `known_global_config` has given, for a client to keep until it is asked for the OmegaConf object."""

    config: dict[Any, Any]


class ServerClient:
    """Sends requests to server instances by their name.

    With `observability_enabled`, calls to resources servers and to the model routes carry the current rollout's id in their path.
    """

    def __init__(self, head_server_config: BaseServerConfig, global_config_dict: Any) -> None:
        self.head_server_config = head_server_config
        if type(global_config_dict) is _Known:
            self._known = global_config_dict.config
        else:
            self.global_config_dict = global_config_dict
        config = known_config(self)
        self._base_urls: dict[str, tuple[str, str]] = {}
        self._observing = bool(config.get("observability_enabled")) if hasattr(config, "get") else False

    def __getattr__(self, name: str) -> Any:
        if name == "global_config_dict" and "_known" in vars(self):  # the OmegaConf object is made for code that asks for it
            self.global_config_dict = omegaconf_of_known(self._known)
            return self.global_config_dict
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *(("global_config_dict",) if "_known" in vars(self) else ())}

    @classmethod
    def model_construct(cls, **fields: Any) -> Self:
        """A client of these fields only; existing tests make some that know a configuration and nothing else."""
        head = fields.get("head_server_config") or BaseServerConfig(host="127.0.0.1", port=DEFAULT_HEAD_SERVER_PORT)
        return cls(head, fields.get("global_config_dict") or {})

    @classmethod
    def load_from_global_config(cls, head_server_config: BaseServerConfig | None = None) -> Self:
        """A client for this process' configuration; outside a server, for the one that the head server gives out.

        Raises ValueError when the head server cannot be reached.
        """
        config = _process_config()
        head = head_server_config or cls.load_head_server_config(config)
        if os.environ.get(_INSTANCE_VARIABLE):
            if type(config) is not dict or config is not known_global_config():
                return cls(head, config)
            keeps_it = cls.__init__ is __class__.__init__ and not hasattr(cls, "global_config_dict")  # type: ignore[name-defined]
            return cls(head, _Known(config) if keeps_it else get_global_config_dict())
        from backend.servers.head_client import fetch_live_config

        try:
            return cls(head, fetch_live_config(head.host, head.port))
        except GymError as error:
            raise ValueError(str(error)) from error

    @staticmethod
    def load_head_server_config(config: Mapping[str, Any] | None = None) -> BaseServerConfig:
        """Address of the head server in a configuration (this process' own by default)."""
        source = _process_config() if config is None else config
        head = source.get(HEAD_SERVER_KEY_NAME) or {}
        return BaseServerConfig(host=head.get("host") or "127.0.0.1", port=head.get("port") or DEFAULT_HEAD_SERVER_PORT)

    def poll_for_status(self, server_name: str) -> ServerStatus:
        """Whether a server instance answers within 2 s. Blocks."""
        from backend.servers.server_status import server_health

        return server_health(self._resolve_base_url(server_name))

    def _build_server_base_url(self, server_config_dict: Any) -> str:
        return _base_url(server_config_dict)

    def _resolve_base_url(self, server_name: str) -> str:
        return self._target(server_name)[0]

    def _target(self, server_name: str) -> tuple[str, str]:
        known = self._base_urls.get(server_name)
        if known is None:
            config = known_config(self)
            block = get_first_server_config_dict(config, server_name)
            kind = next(iter(config[server_name]))
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


def setup_server_client(head_server_config: BaseServerConfig | None = None) -> ServerClient:
    """A client for the servers that are up, with the HTTP limits of their configuration."""
    client = ServerClient.load_from_global_config(head_server_config)
    configure_http_client(client_settings(known_config(client)))
    return client


def known_config(client: Any) -> Any:
    """The configuration of a client, to read from: `global_config_dict` where it has one of its own, else what is known in this process.

    Existing tests hand over clients without a configuration; theirs is empty.
    """
    fields = getattr(client, "__dict__", {})
    if "_known" in fields and "global_config_dict" not in fields:
        return read_known(fields["_known"])
    return getattr(client, "global_config_dict", None) or {}


def _process_config() -> Any:
    """The configuration of this process, to read from. Where an existing test has replaced the function that gives it, what that gives."""
    if get_global_config_dict is _OWN_GETTER and (known := known_global_config()) is not None:
        return known
    return get_global_config_dict()


def _base_url(block: Any) -> str:
    return server_url(block["host"], block["port"])


class BaseServer(BaseModel, ABC):
    """A server and its configuration; the annotation of `config` in a subclass is what its config block is validated against."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    config: BaseServerConfig

    @classmethod
    def load_config_from_global_config(cls) -> Any:
        """This process' server block, validated as the class' own config type. Raises `GymError` naming each wrong field."""
        from pydantic import ValidationError

        name = os.environ.get(_INSTANCE_VARIABLE)
        if not name:
            raise GymError("this process was not told which server it is", hint="start servers with `gym env start`")
        block = get_first_server_config_dict(_process_config(), name)
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

    config: BaseRunServerInstanceConfig
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

    def setup_profiling(self, app: FastAPI, profiling_config: ProfilingMiddlewareConfig) -> None:
        """Measure from now on, and write the results of that whenever `GET /stats` is asked for; the answer is their folder."""
        from starlette.requests import Request
        from starlette.responses import JSONResponse

        from backend.servers.profiling import Profiler

        if profiling_config.profiling_results_dirpath is None:
            raise GymError("profiling_enabled needs profiling_results_dirpath, a folder for the results")
        folder = Path(profiling_config.profiling_results_dirpath) / f"{type(self).__name__}___{self.config.name}"
        profiler = Profiler(name=self.config.name.replace("/", "_"), base_profile_dir=folder)
        profiler.start()

        async def stats(_request: Request) -> JSONResponse:
            return JSONResponse({"profile": str(await asyncio.to_thread(profiler.dump))})

        app.add_route("/stats", stats, methods=["GET"])

    def prefix_server_logs(self) -> None:
        """Put the instance's name in front of each line of output, unless a supervisor reads the output and does so."""
        if process_context().report is None:
            prefix_output(self.config.name)

    def set_ulimit(self, target_soft_limit: int = 65_535) -> None:
        """Raise the soft limit of open files."""
        raise_descriptor_limit(target_soft_limit)

    @classmethod
    def run_webserver(cls) -> FastAPI | None:
        """Serve this class as the server instance that the environment names, until the process is told to stop.

        In a worker of several, returns the application instead.
        """
        from backend.servers.serve import serve

        process_context().report_phase(SETTING_UP)
        if uses_ray():
            initialize_ray()
        server = cls(config=cls.load_config_from_global_config(), server_client=ServerClient.load_from_global_config())
        if process_context().dry_run:
            return None
        server.prefix_server_logs()
        app = server.setup_webserver()
        if getattr(server.config, "expose_tools_over_mcp", False):
            from backend.servers.mcp_auto_exposure import maybe_auto_expose

            maybe_auto_expose(server, app)
        server.setup_liveness(app)
        server.set_ulimit()
        server.setup_exception_middleware(app)
        server.setup_inflight(app)
        profiling = ProfilingMiddlewareConfig.model_validate(_plain(_process_config()))
        if profiling.profiling_enabled:
            server.setup_profiling(app, profiling)
        install_direct_routes(app)
        if is_nemo_gym_fastapi_worker():
            return app
        serve(app, host=server.config.host, port=server.config.port or 0, config=_process_config())
        return None


class HeadServer(BaseServer):
    """A head server for this process' configuration, for programs that start servers themselves."""

    _instances: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    def set_server_instances(self, instances: Sequence[ServerInstanceDisplayConfig | Mapping[str, Any]]) -> None:
        """The servers that `GET /server_instances` tells of from now on."""
        self._instances[:] = [ServerInstanceDisplayConfig.model_validate(instance).model_dump() for instance in instances]

    def setup_webserver(self) -> FastAPI:
        """The application with the three routes of a head server."""
        from backend.servers.head_server import head_application

        return head_application(_plain(_process_config()), self._instances)

    @classmethod
    def run_webserver(cls) -> tuple[uvicorn.Server, threading.Thread, HeadServer]:
        """Serve at the head address of the configuration, in a thread that ends with the process. Set `should_exit` to end it."""
        import uvicorn

        head = cls(config=ServerClient.load_head_server_config())
        config = uvicorn.Config(head.setup_webserver(), host=head.config.host, port=head.config.port, log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, name="head server", daemon=True)
        thread.start()
        return server, thread, head


def _plain(block: Any) -> dict[str, Any]:
    if "omegaconf" in sys.modules:
        from omegaconf import OmegaConf

        if OmegaConf.is_config(block):
            return OmegaConf.to_container(block, resolve=True)  # type: ignore[return-value]
    return copy.deepcopy(dict(block))
