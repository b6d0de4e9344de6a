"""Typed groups of global keys that concern servers and their client; each ignores the keys of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from backend.servers.http_client import ClientSettings

ServerStatus = Literal["success", "connection_error", "timeout", "unknown_error"]
_DEFAULTS = ClientSettings()


class GlobalAIOHTTPAsyncClientConfig(BaseModel):
    """Limits of the process-wide HTTP session, and its TCP keepalive (seconds, number of probes)."""

    model_config = ConfigDict(extra="ignore")

    global_aiohttp_connector_limit: int = _DEFAULTS.connector_limit
    global_aiohttp_connector_limit_per_host: int = _DEFAULTS.connector_limit_per_host
    global_aiohttp_client_request_debug: bool = False
    """Log request and answer of failed exchanges."""
    global_aiohttp_tcp_keepalive_idle_seconds: int = _DEFAULTS.keepalive_idle_seconds
    global_aiohttp_tcp_keepalive_interval_seconds: int = _DEFAULTS.keepalive_interval_seconds
    global_aiohttp_tcp_keepalive_probes: int = _DEFAULTS.keepalive_probes


class ProfilingMiddlewareConfig(BaseModel):
    """Whether servers measure where their time goes, and the folder of the results."""

    model_config = ConfigDict(extra="ignore")

    profiling_enabled: bool = False
    profiling_results_dirpath: Path | None = None


class UvicornLoggingConfig(BaseModel):
    """Whether servers log every request."""

    model_config = ConfigDict(extra="ignore")

    uvicorn_logging_show_200_ok: bool = False


class ServerInstanceDisplayConfig(BaseModel):
    """One server as the head server lists it; `name` is the implementation, `process_name` the instance."""

    config_path: str | None = None
    dir_path: str | None = None
    entrypoint: str | None = None
    host: str | None = None
    name: str | None = None
    pid: int | None = None
    port: int | None = None
    process_name: str | None = None
    server_type: str | None = None
    start_time: float | None = None
    """Unix seconds."""
    status: ServerStatus | None = None
    uptime_seconds: float | None = None
    url: str | None = None
