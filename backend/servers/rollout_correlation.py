"""Which rollout a piece of work belongs to: the id made from a `/run` body, and the id of the current context.

Importable by existing code as `nemo_gym.rollout_correlation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from backend.errors import GymError
from backend.io.row_keys import ATTEMPT, ROLLOUT, ROLLOUT_ID, TASK

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

ROLLOUT_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Ids go into URL paths and file names; the whole id must match."""
ROLLOUT_PREFIX = re.compile(r"^/ng-rollout/(?P<id>[^/]+)(?P<capture>/training-token-capture)?(?P<rest>/.*)$")

_current: ContextVar[str | None] = ContextVar("rollout_id", default=None)


class RolloutIdError(GymError, ValueError):
    """A row's explicit `_ng_rollout_id` cannot be used."""


def current_rollout_id() -> str | None:
    """The id of the rollout that this task works for; None outside of any."""
    return _current.get()


@contextmanager
def rollout_context(rollout_id: str | None) -> Iterator[str | None]:
    """Make `rollout_id` the current one inside the `with` block and in the tasks started there."""
    token = _current.set(rollout_id)
    try:
        yield rollout_id
    finally:
        _current.reset(token)


def is_rollout_id(value: Any) -> bool:
    """Whether `value` is text that can serve as a rollout id."""
    return isinstance(value, str) and ROLLOUT_ID_PATTERN.fullmatch(value) is not None


class RolloutContextMiddleware:
    """Lets every route also be reached below `/ng-rollout/<rollout id>`, with that rollout as the current one.

    An id of another form is not found.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = ROLLOUT_PREFIX.match(scope["path"]) if scope["type"] == "http" else None
        if match is None or not is_rollout_id(match["id"]):
            await self.app(scope, receive, send)
            return
        rest = (match["capture"] or "") + match["rest"]
        with rollout_context(match["id"]):
            await self.app({**scope, "path": rest, "raw_path": rest.encode()}, receive, send)


def maybe_rollout_id_from_run_body(body: Any) -> str | None:
    """The rollout id of a `/run` body, a mapping or a pydantic model.

    The explicit `_ng_rollout_id`, else `<task>-<rollout>` from the two indices, else None; `-a<n>` follows when the attempt index
    is above 0. Raises `RolloutIdError` (a ValueError) for an explicit id that is not text of letters, digits, `.`, `_` and `-`.
    """
    explicit = _field(body, ROLLOUT_ID)
    if explicit is not None:
        if not is_rollout_id(explicit):
            raise RolloutIdError(
                f"_ng_rollout_id must match {ROLLOUT_ID_PATTERN.pattern}, not {explicit!r}",
                hint="start with a letter or a digit and use only letters, digits, `.`, `_` and `-`",
            )
        rollout_id = explicit
    else:
        task, rollout = _field(body, TASK), _field(body, ROLLOUT)
        if task is None or rollout is None:
            return None
        rollout_id = f"{task}-{rollout}"
    attempt = _field(body, ATTEMPT)
    return f"{rollout_id}-a{attempt}" if isinstance(attempt, int) and attempt > 0 else rollout_id


def _field(body: Any, key: str) -> Any:
    if isinstance(body, Mapping):
        return body.get(key)
    # A pydantic field cannot have a leading underscore: the key is an extra, or the alias of a field.
    extras = getattr(body, "model_extra", None) or {}
    if key in extras:
        return extras[key]
    declared = getattr(type(body), "model_fields", {})
    return next((getattr(body, name) for name, field in declared.items() if field.alias == key), None)
