"""Telling what was sent and answered when an exchange failed, for whoever debugs a client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import aiohttp

from backend.io.redact import Redactor

logger = logging.getLogger(__name__)

_MOST_CHARACTERS = 4000


async def log_exchange(method: str, url: str, sent: Any, response: aiohttp.ClientResponse, config: Mapping[str, Any]) -> None:
    """Log both bodies of an exchange, with the secrets of `config` masked; the answer stays readable."""
    redactor = Redactor.for_tree(config)
    answer = (await response.read()).decode("utf-8", "replace")
    shown = [redactor.text(str(text))[:_MOST_CHARACTERS] for text in (url, sent, answer)]
    logger.warning("%s %s answered %d; sent: %s; answered: %s", method, shown[0], response.status, *shown[1:])
