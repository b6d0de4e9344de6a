"""One call of a foreign `/v1/responses` service, and every way in which it can fail, in words."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from pydantic import ValidationError

from nemo_gym.openai_utils import NeMoGymResponse
from nemo_gym.server_utils import get_global_aiohttp_client
from responses_api_agents.simple_agent.exchange import Cookies, cookie_values, invalid_response_reason

CONNECTION_TRIES = 3
SECONDS_BETWEEN_TRIES = 0.5
_EXCERPT_CHARS = 500

_log = logging.getLogger(__name__)


class RemoteServiceError(Exception):
    """The service gave no usable answer. `terminal`: asking again would not help."""

    def __init__(self, message: str, *, terminal: bool = False) -> None:
        super().__init__(message)
        self.terminal = terminal


def normalize_remote_url(url: str) -> str:
    """The root URL of a service, without a slash at its end.

    Raises ValueError for a URL that is not http or https, names no host, or has a query, a fragment or credentials; the message
    never repeats these.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("agent_base_url must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("agent_base_url must not hold credentials")
    if "?" in url or "#" in url:
        raise ValueError("agent_base_url must not have a query or a fragment")
    return url.rstrip("/")


class RemoteService:
    """A service at `base_url` that answers `/v1/responses` within `timeout_seconds`."""

    def __init__(self, base_url: str, timeout_seconds: float) -> None:
        self.base_url = base_url
        self.url = f"{base_url}/v1/responses"
        self.timeout_seconds = timeout_seconds

    async def respond(self, request: dict[str, Any], cookies: Cookies) -> NeMoGymResponse:
        """The service's answer to a request body; its cookies are added to `cookies`. Raises `RemoteServiceError`."""
        answer = await self._send(json.dumps(request, ensure_ascii=False).encode(), cookies)
        try:
            content = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RemoteServiceError(f"{self.url}: reading the response body failed: {_named(error)}") from error
        if 300 <= answer.status < 400:
            target = answer.headers.get("Location", "an unnamed place")
            raise RemoteServiceError(f"{self.url} answered HTTP {answer.status}: it redirects to {target}; configure that URL")
        if answer.status >= 400:
            excerpt = content[: 4 * _EXCERPT_CHARS].decode("utf-8", "replace")[:_EXCERPT_CHARS]
            raise RemoteServiceError(f"{self.url} answered HTTP {answer.status}: {excerpt}")
        cookies.update(cookie_values(answer.cookies))
        return self._response_object(content)

    async def _send(self, body: bytes, cookies: Cookies) -> aiohttp.ClientResponse:
        """The answer, whatever its status. Only broken connections are tried again: a service that was slow has been asked."""
        timeout = aiohttp.ClientTimeout(total=self.timeout_seconds)
        headers = {"Content-Type": "application/json"}
        for further_tries in reversed(range(CONNECTION_TRIES)):
            try:
                return await get_global_aiohttp_client().request(
                    "POST", self.url, data=body, headers=headers, cookies=cookies, timeout=timeout, allow_redirects=False
                )
            except TimeoutError as error:
                raise RemoteServiceError(f"{self.url} timed out after {self.timeout_seconds}s") from error
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                if not further_tries:
                    hint = f"Is your service running at {self.base_url}?"
                    raise RemoteServiceError(f"{self.url} cannot be reached: {_named(error)}. {hint}") from error
                _log.warning("%s: %s; trying again", self.url, _named(error))
            await asyncio.sleep(SECONDS_BETWEEN_TRIES)
        raise AssertionError("unreachable")

    def _response_object(self, content: bytes) -> NeMoGymResponse:
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise RemoteServiceError(f"{self.url}: the response body is not valid JSON: {error}") from error
        if not isinstance(answer, dict):
            raise RemoteServiceError(f"{self.url}: expected a JSON object, got {type(answer).__name__}")
        try:
            return NeMoGymResponse.model_validate(answer)
        except ValidationError as error:
            reason = invalid_response_reason(error)
            raise RemoteServiceError(f"{self.url}: invalid Responses API object: {reason}", terminal=True) from error


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
