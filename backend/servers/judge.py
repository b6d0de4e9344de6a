"""Asking a judge model, and keeping a judge that cannot be asked apart from an answer that is worth nothing.

Importable as `nemo_gym.judge`.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi.responses import Response
from pydantic import BaseModel

from backend.errors import GymError
from backend.io.json_codec import dumps
from backend.servers.server_utils import BaseServer, ServerClient, get_response_json, raise_for_status

__all__ = ["JudgeError", "call_judge", "judge_failsafe", "reraise_judge_errors"]

Answer = TypeVar("Answer", bound=BaseModel)
Result = TypeVar("Result")

JUDGE_FAILED = "judge_failed"
_MOST_OF_A_BODY = 500


class JudgeError(GymError):
    """The judge could not be asked, or what it answered is not an answer of its kind."""


async def call_judge(
    server_client: ServerClient, *, server_name: str, url_path: str, json: Any, response_model: type[Answer]
) -> Answer:
    """POST `json` to `url_path` of the judge's model server; its answer as a `response_model`.

    Raises `JudgeError` when the call does not come through, has an error status, or its body is no such answer.
    """

    async def ask() -> Answer:
        response = await server_client.post(server_name=server_name, url_path=url_path, json=json)
        await raise_for_status(response)
        return response_model.model_validate(await get_response_json(response))

    return await reraise_judge_errors(ask())


async def reraise_judge_errors(coro: Awaitable[Result]) -> Result:
    """The result of `coro`; whatever exception it ends with becomes a `JudgeError` that says its type and its message."""
    try:
        return await coro
    except JudgeError:
        raise
    except Exception as error:
        raise JudgeError(f"{type(error).__name__}: {_message_of(error)}") from error


def judge_failsafe(verify_fn: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """`verify_fn` as a handler that answers a `JudgeError` with 200 and a record that the collector puts with the failures.

    The record is the request's body with `reward` 0.0, `_ng_failure_class` and `_ng_failure_judge_error`. The signature stays.
    """

    @functools.wraps(verify_fn)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return await verify_fn(*args, **kwargs)
        except JudgeError as error:
            given = (*args, *kwargs.values())
            body = next((value for value in given if isinstance(value, BaseModel) and not isinstance(value, BaseServer)), None)
            record = body.model_dump(mode="json") if body is not None else {}
            record |= {"reward": 0.0, "_ng_failure_class": JUDGE_FAILED, "_ng_failure_judge_error": str(error)}
            return Response(dumps(record), media_type="application/json")

    return guarded


def _message_of(error: Exception) -> str:
    body = getattr(error, "response_content", None)
    if not body:
        return str(error)
    return f"{error}: {body[:_MOST_OF_A_BODY].decode('utf-8', 'replace')}"
