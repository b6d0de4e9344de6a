"""The schema's names, and the client of OpenAI-compatible endpoints.

Importable as `nemo_gym.openai_utils`. Failures of an endpoint are *bounded and honest*: what may pass is tried again for a while,
the first failure is reported at once, and what is raised in the end carries the endpoint's own status and words.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from pydantic import BaseModel, Field, PrivateAttr, ValidationError
from yarl import URL

from backend.io.json_codec import loads
from backend.io.redact import PLACEHOLDERS, Redactor, collect_secrets
from backend.responses.schema import *  # noqa: F403 - this module is all names of the schema, by contract
from backend.servers.addresses import split_credentials
from backend.servers.server_utils import MAX_NUM_TRIES, request

logger = logging.getLogger(__name__)

RATE_LIMIT_ERROR_CODES = [429, 502, 503, 504, 520]
"""Overload: worth waiting for, within the budget."""
RETRY_ERROR_CODES = [*RATE_LIMIT_ERROR_CODES, 500]

MAX_KEPT_BODY_CHARS = 2000
"""How much of an endpoint's error is carried on."""
DEFAULT_TIMEOUT_SECONDS = 3600.0
"""Longer than any answer takes, queues of a busy endpoint included; an endpoint that has vanished must not hold a rollout forever."""
BAD_ANSWER_STATUS = 502
"""Status given to an answer of 200 that holds an error, or nothing usable."""
_MAX_LOGGED_CHARS = 200
_SEED = re.compile(rb"\bseed\b")
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 8.0
_SECONDS_BETWEEN_REPORTS = 1.0


Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class _Failure:
    kind: str
    """`rate_limit` and `connection` are retried within the time budget, `server_error` a few times, `final` never."""
    error: Exception
    status: int | None = None
    message: str = ""
    retry_after: float | None = None


class NeMoGymAsyncOpenAI(BaseModel):
    """Client of one OpenAI-compatible endpoint; each method sends its keyword arguments as the JSON body and returns the answer.

    Connection failures and the statuses in `RATE_LIMIT_ERROR_CODES` are tried again for `retry_budget_seconds` with growing, jittered
    pauses, or after the `Retry-After` that the endpoint asks for; a status of 500 and an error in the body of a 200 three
    times in all; every other status not at all. Raises `aiohttp.ClientResponseError` with `.status` and `.response_content`
    (the first 2000 characters of the body), the connection error, or TimeoutError. A caller that is cancelled gives up at once, and
    so does what the endpoint does for it: the connection is closed. An endpoint that refuses a `seed` by name is asked without one.
    """

    base_url: str
    """May hold `user:password@`; that is sent as basic authentication where there is no key, and stands in no message."""
    api_key: str
    """Sent as a bearer token. With credentials in the URL, a placeholder such as `dummy` is no key."""
    internal: bool = False
    max_connection_retries: int | None = None
    """Upper bound of retries after connection failures; None leaves it to the budget."""
    default_headers: dict[str, str] = Field(default_factory=dict)
    retry_budget_seconds: float = 60.0
    timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    """For one attempt, from connecting to the last byte; None waits for as long as the connection stands."""

    _last_report: float = PrivateAttr(default=float("-inf"))
    _refuses_seed: bool = PrivateAttr(default=False)

    async def create_models(self) -> Any:
        """`GET /models`."""
        return await self._call("GET", self._url("/models"), None)

    async def create_chat_completion(self, **body: Any) -> dict[str, Any]:
        """`POST /chat/completions`; an answer without choices is a failure."""
        return await self._ask("/chat/completions", body, must_have="choices")

    async def create_completion(self, **body: Any) -> dict[str, Any]:
        """`POST /completions`; an answer without choices is a failure."""
        return await self._ask("/completions", body, must_have="choices")

    async def create_response(self, **body: Any) -> dict[str, Any]:
        """`POST /responses`; an answer without a list of output items is a failure."""
        return await self._ask("/responses", body, must_have="output")

    async def create_tokenize(self, **body: Any) -> dict[str, Any]:
        """`POST /tokenize`, which vLLM serves beside `/v1`."""
        return await self._call("POST", self._url("").removesuffix("/v1") + "/tokenize", body)

    def _url(self, path: str) -> str:
        return split_credentials(self.base_url)[0].rstrip("/") + path

    def _authorization(self) -> str:
        _, basic = split_credentials(self.base_url)
        has_key = bool(self.api_key) and self.api_key.lower() not in PLACEHOLDERS
        return basic if basic and not has_key else f"Bearer {self.api_key}"

    def validated(self, answer_class: type[Answer], answer: dict[str, Any]) -> Answer:
        """An answer as `answer_class`; one of another form raises `aiohttp.ClientResponseError` naming the first wrong fields."""
        try:
            return answer_class.model_validate(answer)
        except ValidationError as error:
            details = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:3])
            url = URL(self._url(""))
            info = aiohttp.RequestInfo(url, "POST", CIMultiDictProxy(CIMultiDict()), url)
            text = f"the endpoint's answer is not a {answer_class.__name__}: {details}"
            raise _response_error(info, BAD_ANSWER_STATUS, "", self._masked(text)) from None

    async def _ask(self, path: str, body: dict[str, Any], must_have: str) -> dict[str, Any]:
        """An answer to `body`; once an endpoint has refused a seed and nothing else, no call has one, which is told once."""
        if self._refuses_seed:
            body.pop("seed", None)
        try:
            return await self._call("POST", self._url(path), body, must_have)
        except aiohttp.ClientResponseError as error:
            refused = error.status in (400, 422) and body.pop("seed", None) is not None
            if not (refused and _SEED.search(error.response_content)):  # type: ignore[attr-defined]
                raise
            status = error.status
        answer = await self._call("POST", self._url(path), body, must_have)
        if not self._refuses_seed:
            self._refuses_seed = True
            logger.warning(
                "[model_refusal url=%s status=%d] the endpoint refuses `seed`: calls go without it, so repeats may be alike",
                self._masked(self._url(path)),
                status,
            )
        return answer

    async def _call(self, method: str, url: str, body: dict[str, Any] | None, must_have: str | None = None) -> Any:
        began = time.monotonic()
        tries = 0
        tries_by_kind = {"server_error": 0, "connection": 0, "rate_limit": 0}
        while True:
            outcome = await self._exchange(method, url, body, must_have)
            if not isinstance(outcome, _Failure):
                return outcome
            if outcome.kind == "final":
                raise outcome.error
            tries += 1
            tries_by_kind[outcome.kind] += 1
            pause = self._pause(outcome, tries_by_kind[outcome.kind], tries, time.monotonic() - began)
            self._report(url, outcome, tries)
            if pause is None:
                raise outcome.error
            await asyncio.sleep(pause)

    def _pause(self, failure: _Failure, tries_of_kind: int, tries: int, elapsed: float) -> float | None:
        """Seconds until the next try; None when there is none."""
        if failure.kind == "server_error" and tries_of_kind >= MAX_NUM_TRIES:
            return None
        limit = self.max_connection_retries
        if failure.kind == "connection" and limit is not None and tries_of_kind > limit:
            return None
        if failure.retry_after is not None:
            pause = failure.retry_after
        else:
            ceiling = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(tries - 1, 10))
            pause = random.uniform(ceiling / 2, ceiling)
        return pause if elapsed + pause <= self.retry_budget_seconds else None

    async def _exchange(self, method: str, url: str, body: dict[str, Any] | None, must_have: str | None) -> Any:
        headers = {**self.default_headers, "Authorization": self._authorization()}
        try:
            # This client has a retry rule of its own, so the transport below makes one attempt.
            async with asyncio.timeout(self.timeout_seconds) as limit:
                response = await request(method, url, _internal=True, _max_connection_retries=0, json=body, headers=headers)
                content = await response.read()
        except aiohttp.ClientSSLError as error:
            return _Failure("final", error)
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError) as error:
            failure: Exception = error
            if limit.expired():
                failure = TimeoutError(f"no complete answer from {self._masked(url)} within {self.timeout_seconds:g} s")
            return _Failure("connection", failure, message=str(failure) or repr(failure))
        if response.status >= 400:
            return self._status_failure(response, content)
        try:
            answer = loads(content)
        except ValueError:
            text = "the endpoint's answer is not JSON; is the base URL right? It begins: "
            return _Failure("final", self._error(response, BAD_ANSWER_STATUS, text + _start(content)))
        if must_have and (not isinstance(answer, dict) or not _usable(answer, must_have)):
            return self._answer_failure(response, answer, content, must_have)
        return answer

    def _status_failure(self, response: aiohttp.ClientResponse, content: bytes) -> _Failure:
        status = response.status
        text = _start(content)
        error = self._error(response, status, text)
        if status not in RETRY_ERROR_CODES or "insufficient_quota" in text:
            return _Failure("final", error)
        kind = "rate_limit" if status in RATE_LIMIT_ERROR_CODES else "server_error"
        return _Failure(kind, error, status, text, _retry_after(response.headers.get("Retry-After")))

    def _answer_failure(self, response: aiohttp.ClientResponse, answer: Any, content: bytes, must_have: str) -> _Failure:
        """A 200 that is none: some routers put the status of the provider behind them into the body."""
        problem = answer.get("error") if isinstance(answer, dict) else None
        code = problem.get("code") if isinstance(problem, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else BAD_ANSWER_STATUS
        text = f"the endpoint answered {response.status} without `{must_have}`: {_start(content)}"
        kind = "rate_limit" if status == 429 else "server_error" if status >= 500 else "final"
        return _Failure(kind, self._error(response, status, text), status, text)

    def _error(self, response: aiohttp.ClientResponse, status: int, text: str) -> aiohttp.ClientResponseError:
        return _response_error(_without_headers(response.request_info), status, response.reason or "", self._masked(text))

    def _report(self, url: str, failure: _Failure, tries: int) -> None:
        now = time.monotonic()
        if now - self._last_report < _SECONDS_BETWEEN_REPORTS:
            return
        self._last_report = now
        logger.warning(
            "[model_retry url=%s status=%s kind=%s try=%d max_tries=%s error_msg=%s]",
            self._masked(url),
            failure.status,
            failure.kind,
            tries,
            MAX_NUM_TRIES if failure.kind == "server_error" else f"within_{self.retry_budget_seconds:g}s",
            self._masked(" ".join(failure.message.split()))[:_MAX_LOGGED_CHARS],
        )

    def _masked(self, text: str) -> str:
        return Redactor([*collect_secrets(self.base_url), self.api_key, *self.default_headers.values()]).text(text)


def _response_error(info: aiohttp.RequestInfo, status: int, reason: str, text: str) -> aiohttp.ClientResponseError:
    error = aiohttp.ClientResponseError(request_info=info, history=(), status=status, message=reason)
    error.response_content = text[:MAX_KEPT_BODY_CHARS].encode()  # type: ignore[attr-defined]
    return error


def _usable(answer: dict[str, Any], must_have: str) -> bool:
    value = answer.get(must_have)
    return isinstance(value, list) and (bool(value) or (must_have == "output" and not answer.get("error")))


def _start(content: bytes) -> str:
    return content[: 4 * MAX_KEPT_BODY_CHARS].decode("utf-8", "replace")[:MAX_KEPT_BODY_CHARS]


def _retry_after(value: str | None) -> float | None:
    """Seconds that a `Retry-After` header (a number, or an HTTP date) asks to wait."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds)


def _without_headers(info: aiohttp.RequestInfo) -> aiohttp.RequestInfo:
    """Request info that can be logged and pickled: the headers hold the key."""
    return aiohttp.RequestInfo(info.url, info.method, CIMultiDictProxy(CIMultiDict()), info.real_url)
