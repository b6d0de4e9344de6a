"""Asking a head server, with nothing but the standard library: `gym env status` must not pay for an HTTP stack."""

from __future__ import annotations

import http.client
import json
from typing import Any

from backend.errors import GymError
from backend.servers.addresses import server_url

TIMEOUT_SECONDS = 5.0


class HeadServerUnreachable(GymError):
    """Nothing that speaks like a head server answers at the address."""


def fetch_json(host: str, port: int, path: str, timeout: float = TIMEOUT_SECONDS) -> Any:
    """The JSON answer of `GET http://host:port/path`.

    Raises `OSError` (refused, timed out, …) or `ValueError` (not 200, not JSON).
    """
    connection: http.client.HTTPConnection | None = None
    try:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        return json.loads(body)
    except http.client.HTTPException as error:
        raise ValueError(str(error) or type(error).__name__) from error
    finally:
        if connection is not None:
            connection.close()


def fetch_live_config(host: str, port: int) -> dict[str, Any]:
    """The configuration with which the servers behind a head server run (secrets masked).

    Raises `HeadServerUnreachable`.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = fetch_json(host, port, "/global_config_dict_yaml")
        config = yaml.load(text, Loader=loader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise _unreachable(host, port, error) from error
    if not isinstance(config, dict):
        raise _unreachable(host, port, ValueError("its configuration is not a mapping"))
    return config


def _unreachable(host: str, port: int, error: Exception) -> HeadServerUnreachable:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return HeadServerUnreachable(
        f"no head server answers at {server_url(host, port)} ({reason})",
        hint="start the servers with `gym env start`, or give the right address with "
        "`++head_server.host=… ++head_server.port=…` or in env.yaml",
    )
