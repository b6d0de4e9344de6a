"""Ray, for the few servers whose code uses it. Importing it takes a second and starting it half a minute, so nobody else does."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from backend.config.global_config import RAY_HEAD_NODE_ADDRESS_KEY_NAME, known_global_config
from backend.errors import GymError


def uses_ray() -> bool:
    """Whether code in this process has imported Ray."""
    return "ray" in sys.modules


def initialize_ray() -> None:
    """Join the cluster at `ray_head_node_address`, or start one where none is configured; nothing when this process has one already.

    Raises `GymError` where Ray is not installed or the cluster cannot be joined.
    """
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        raise GymError("this server needs Ray, which is not installed", hint="install the extra `ray`") from None
    if ray.is_initialized():
        return
    config: Any = known_global_config() or {}
    address = config.get(RAY_HEAD_NODE_ADDRESS_KEY_NAME)
    try:
        ray.init(ignore_reinit_error=True, **({"address": str(address)} if address else {}))
    except (ConnectionError, RuntimeError) as error:
        raise GymError(
            f"Ray cannot be reached at {address}: {error}" if address else f"Ray cannot be started: {error}",
            hint="the cluster needs the same versions of Ray and Python; with token authentication set RAY_AUTH_MODE=token",
        ) from error
