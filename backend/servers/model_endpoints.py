"""The endpoints behind model servers: which there are, and whether anything answers there."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from backend.config.resolution import ServerInstance
from backend.errors import GymError
from backend.io.redact import Redactor
from backend.servers.addresses import split_credentials
from backend.servers.http_client import http_session
from backend.servers.server_events import ModelEndpointState

PROBE_TIMEOUT_SECONDS = 5.0
PROBE_INTERVAL_SECONDS = 3.0
DEFAULT_WAIT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A base URL and the configuration key it comes from."""

    url: str
    key: str

    @property
    def shown(self) -> str:
        """The address without credentials."""
        return Redactor().text(self.url)

    @property
    def probe_url(self) -> str:
        """What is asked: the list of models of an OpenAI-style address, else the address itself."""
        base = self.url.rstrip("/")
        return f"{base}/models" if base.endswith("/v1") else self.url


def model_endpoints(servers: Sequence[ServerInstance]) -> list[ModelEndpoint]:
    """Every non-empty `*base_url` setting of the model servers, each address once."""
    found: dict[str, ModelEndpoint] = {}
    for server in servers:
        if server.kind != "responses_api_models":
            continue
        for key, value in server.block.items():
            if str(key).endswith("base_url"):
                for url in value if isinstance(value, list | tuple) else [value]:
                    if url:
                        _check_url(str(url), f"{server.name}.{key}")
                        found.setdefault(str(url).rstrip("/"), ModelEndpoint(str(url), f"{server.name}.{key}"))
    return list(found.values())


def _check_url(url: str, key: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # brackets without an end, a port that is no number
        usable = False
    if not usable:
        encode = "; in a user or password, write / as %2F, @ as %40, : as %3A" if "@" in url else ""
        raise GymError(
            f"{key} is not an http:// or https:// URL: {Redactor().text(url)}",
            hint=f"give --model-url one such as http://localhost:8000/v1{encode}",
        )


def endpoint_wait_seconds(config: Mapping[str, Any]) -> float:
    """The key `model_endpoint_readiness_timeout_seconds`; 0 or less means not to wait."""
    value = config.get("model_endpoint_readiness_timeout_seconds", DEFAULT_WAIT_SECONDS)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise GymError(f"model_endpoint_readiness_timeout_seconds must be a number, not {value!r}")
    return float(value)


async def wait_for_endpoints(
    endpoints: Sequence[ModelEndpoint], limit_seconds: float
) -> AsyncGenerator[ModelEndpointState, None]:
    """Probe all endpoints until each answers, telling every change of state.

    Any HTTP status and any TLS error is an answer. An unknown host is told and not waited for. Raises `GymError` naming what has
    not answered after `limit_seconds`.
    """
    began = time.monotonic()
    waiting = list(endpoints)
    told: dict[str, str] = {}
    while waiting:
        states = await asyncio.gather(*(_probe(endpoint) for endpoint in waiting))
        for state in states:
            if told.get(state.url) != state.state:
                told[state.url] = state.state
                yield state
        waiting = [endpoint for endpoint, state in zip(waiting, states, strict=True) if state.state == "unreachable"]
        if not waiting:
            return
        left = limit_seconds - (time.monotonic() - began)
        if left <= 0:
            reasons = {state.url: state.reason for state in states}
            raise GymError(
                f"no model endpoint answered within {limit_seconds:g} s: "
                + ", ".join(f"{endpoint.shown} (from {endpoint.key}): {reasons[endpoint.shown]}" for endpoint in waiting),
                hint="start the model server, or correct the address with --model-url; "
                "++model_endpoint_readiness_timeout_seconds=… waits longer, 0 not at all",
            )
        await asyncio.sleep(min(PROBE_INTERVAL_SECONDS, left))


async def _probe(endpoint: ModelEndpoint) -> ModelEndpointState:
    try:
        timeout = aiohttp.ClientTimeout(total=PROBE_TIMEOUT_SECONDS)
        url, authorization = split_credentials(endpoint.probe_url)
        headers = {"Authorization": authorization} if authorization else None
        async with http_session().get(url, timeout=timeout, headers=headers, allow_redirects=False):
            return ModelEndpointState(endpoint.shown, endpoint.key, "answering")
    except (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError):
        return ModelEndpointState(endpoint.shown, endpoint.key, "answering")
    except aiohttp.ClientConnectorDNSError as error:
        return ModelEndpointState(endpoint.shown, endpoint.key, "unknown host", error.os_error.strerror or "name not known")
    except TimeoutError:
        return ModelEndpointState(endpoint.shown, endpoint.key, "unreachable", f"no answer within {PROBE_TIMEOUT_SECONDS:g} s")
    except (aiohttp.ClientConnectorError, OSError) as error:
        reason = getattr(error, "os_error", error)
        if isinstance(reason, socket.gaierror):
            return ModelEndpointState(endpoint.shown, endpoint.key, "unknown host", reason.strerror or "name not known")
        return ModelEndpointState(endpoint.shown, endpoint.key, "unreachable", _words_for(reason))
    except aiohttp.InvalidURL as error:
        raise GymError(
            f"{endpoint.key} is not a URL: {endpoint.shown}", hint="give one such as http://localhost:8000/v1"
        ) from error
    except aiohttp.ClientError:
        return ModelEndpointState(endpoint.shown, endpoint.key, "answering")


def _words_for(error: OSError) -> str:
    """What the system calls the error; event loops put the address into its place."""
    return os.strerror(error.errno) if error.errno else str(error)
