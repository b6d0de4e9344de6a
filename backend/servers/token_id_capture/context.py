"""The capture of the call that is being answered: its parent is looked for before the model is asked, its tokens are kept after.

A failure of the capture never fails the call; it makes the rollout incomplete, which its training sees.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import BaseModel

from backend.servers.capture_context import CaptureContext, current_capture_context
from backend.servers.token_id_capture.conversation import as_dict, assistant_fingerprint, stamp_continuation
from backend.servers.token_id_capture.lineage import LineageResolution, LineageStore
from backend.servers.token_id_capture.records import (
    TOKEN_FIELDS,
    ParentResolutionStatus,
    TokenEntry,
    cumulative_tokens,
    output_items_of,
    stamp_lineage,
    token_bearer,
    without_token_fields,
)
from backend.servers.token_id_capture.store import TokenSink, TokenSource

logger = logging.getLogger(__name__)

Items = str | Sequence[Any] | None


class _Installed:
    """What a program that embeds a server has put in place of the configured parts."""

    sink: TokenSink | None = None
    source: TokenSource | None = None
    lineage: LineageStore | None = None


_installed = _Installed()
_resolutions: Counter[str] = Counter()
_failures: Counter[str] = Counter()


def install_token_sink(sink: TokenSink | None) -> None:
    """Use `sink` in this process in place of the configured one."""
    _installed.sink = sink


def installed_token_sink() -> TokenSink | None:
    """The sink that was put in place, if any."""
    return _installed.sink


def install_token_source(source: TokenSource | None) -> None:
    """Use `source` in this process in place of the configured one."""
    _installed.source = source


def installed_token_source() -> TokenSource | None:
    """The source that was put in place, if any."""
    return _installed.source


def install_lineage_store(store: LineageStore | None) -> None:
    """Use `store` in this process in place of the configured one."""
    _installed.lineage = store


def installed_lineage_store() -> LineageStore | None:
    """The lineage store that was put in place, if any."""
    return _installed.lineage


def capture_health_snapshot() -> dict[str, Any]:
    """How this process' calls were resolved, and how many captures failed."""
    return {
        "resolutions": {status.value: _resolutions[status.value] for status in ParentResolutionStatus},
        "capture_failures": _failures["capture"],
    }


async def register_call_intent() -> None:
    """Note with the sink that the current call began, where the sink keeps such notes."""
    await _tell_sink("begin_call")


async def give_up_call() -> None:
    """Note with the sink that the current call gave no answer, where the sink keeps such notes."""
    await _tell_sink("give_up_call")


async def _tell_sink(what: str) -> None:
    context = current_capture_context()
    tell: Callable[[str, str], Awaitable[None]] | None = getattr(context and context.token_sink, what, None)
    if context is not None and tell is not None:
        try:
            await tell(context.rollout_id, context.model_call_id)
        except Exception as error:
            await _lost(context, error)


async def resolve_parent(request_messages: Items) -> None:
    """Look for the call that the current one continues, from the request as it came in."""
    context = current_capture_context()
    if context is None:
        return
    items = _as_items(request_messages)
    try:
        if context.lineage_store is not None:
            resolution = await context.lineage_store.resolve(context.rollout_id, items)
        elif assistant_fingerprint(items):
            resolution = LineageResolution(ParentResolutionStatus.UNRESOLVED, reason="no_lineage_store")
        else:
            resolution = LineageResolution(ParentResolutionStatus.ROOT)
    except Exception as error:
        logger.warning("the parent of a call of rollout %s cannot be looked up: %r", context.rollout_id, error)
        resolution = LineageResolution(ParentResolutionStatus.UNRESOLVED, reason="lookup_failed")
    context.parent_resolution = resolution
    _resolutions[resolution.status.value] += 1


async def capture_tokens(response: Any, request_messages: Items = None) -> None:
    """Keep the tokens of the current call's answer (a model or JSON object of either dialect)."""
    context = current_capture_context()
    if context is None or context.committed:
        return
    try:
        value = response.model_dump(mode="json") if isinstance(response, BaseModel) else response
        entry = entry_from_answer(context, value)
        await commit_entry(stamp_continuation(entry, _as_items(request_messages)), parent_resolution=context.parent_resolution)
    except Exception as error:
        await _lost(context, error)


def entry_from_answer(context: CaptureContext, answer: dict[str, Any]) -> TokenEntry:
    """The record of an answer, without its lineage. Raises ValueError when the answer carries no tokens."""
    items = output_items_of(answer)
    found = token_bearer(items)
    if found is None:
        raise ValueError("the model's answer carries no token ids")
    index, bearer = found
    return TokenEntry.model_validate(
        {key: bearer.get(key) for key in TOKEN_FIELDS}
        | {
            "rollout_id": context.rollout_id,
            "model_call_id": context.model_call_id,
            "model": context.model or answer.get("model") or "",
            "output_items": [without_token_fields(item) for item in items],
            "token_item_index": index,
            "response_id": answer.get("id"),
            "created_at": time.time(),
        }
    )


async def commit_entry(entry: TokenEntry, *, parent_resolution: LineageResolution | None = None) -> None:
    """Stamp a record of the current call with its lineage and give it to the sink. Raises what the sink raises."""
    context = current_capture_context()
    if context is None or context.token_sink is None:
        return
    resolution = parent_resolution or LineageResolution(ParentResolutionStatus.UNRESOLVED, reason="not_looked_up")
    match = resolution.match
    whole = cumulative_tokens(entry)
    stamped = stamp_lineage(
        entry, match.model_call_id if match else None, parent_resolution=resolution.status, cumulative=whole
    ).model_copy(
        update={
            "parent_resolution_reason": resolution.reason,
            "prefix_requested": context.prefix_requested,
            "prefix_supplied": context.prefix_supplied,
        }
    )
    if (
        context.delta_records
        and match
        and tuple(entry.prompt_token_ids[: len(match.cumulative_token_ids)]) == match.cumulative_token_ids
    ):
        rest = entry.prompt_token_ids[len(match.cumulative_token_ids) :]
        stamped = stamped.model_copy(update={"prompt_token_ids": rest, "prompt_is_delta": True})
    await context.token_sink.put(stamped)
    context.committed = True
    learn = getattr(context.lineage_store, "put", None)
    if learn is not None:
        await learn(stamped)


async def _lost(context: CaptureContext, error: Exception) -> None:
    _failures["capture"] += 1
    logger.warning("the tokens of a call of rollout %s are lost: %r", context.rollout_id, error)
    if context.token_sink is not None:
        try:
            await context.token_sink.mark_incomplete(context.rollout_id, context.model_call_id)
        except Exception as second:
            logger.warning("rollout %s cannot be marked incomplete: %r", context.rollout_id, second)


def _as_items(messages: Items) -> list[dict[str, Any]]:
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return [as_dict(item) for item in messages or ()]
