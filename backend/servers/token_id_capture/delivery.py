"""Gives the record of a finished rollout its recorded tokens, and lets the records of its calls go once that is safe.

A record whose response carries token ids already is left as it is: they are what the policy sampled. Whatever else a record needs for
training and does not get makes it masked, never fails it. The calls' records go only after the rollout's record is durable, and only
when it holds all that they could still tell.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from backend.servers.token_id_capture.records import token_bearer
from backend.servers.token_id_capture.store import TokenCaptureSnapshot, TokenSource
from backend.servers.token_id_capture.trajectories import TERMINAL_CALL_KEY, trajectories_from_source

logger = logging.getLogger(__name__)

TOKEN_CAPTURE_KEY = "_ng_token_capture"
"""Of a record: how its capture went, or an `error` that left it without tokens."""
MASK_SAMPLE_KEY = "mask_sample"
"""Of a record: true keeps it out of the training loss."""

NO_ROLLOUT_ID = "no_rollout_id"
NO_RECORDS = "no_records"
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class TokenHandoff:
    """What came of one record, and which frozen records of calls it stands for."""

    rollout_id: str
    masked: bool
    snapshot_id: str | None = None
    """Of the records that are not needed any more; None when they have to stay."""
    version: int = 0

    @property
    def can_retire(self) -> bool:
        """Whether the records of the calls may go as soon as the rollout's record is durable."""
        return self.snapshot_id is not None


def rollout_carries_token_ids(record: Mapping[str, Any]) -> bool:
    """Whether the response in a record has an item with token ids."""
    return token_bearer(_items(record)) is not None


async def finalize_rollout_token_capture(
    result: MutableMapping[str, Any], source: TokenSource, rollout_id: str | None
) -> TokenHandoff:
    """Freeze the records of a rollout's calls and put the delivered chain into `result`, an agent's answer to `/run`.

    `response.output` becomes the chain's items, `_ng_token_capture` the capture's health, `mask_sample` true where the reward may
    belong to other tokens. The chain is the one of the call that `_ng_terminal_model_call_id`, the response's id or its last words name.
    """
    if rollout_id is None:
        return _unusable(result, "", NO_ROLLOUT_ID)
    try:
        if rollout_carries_token_ids(result):
            return await _beside_own_tokens(result, source, rollout_id)
        response = result.get("response")
        terminal = result.get(TERMINAL_CALL_KEY)
        built = await trajectories_from_source(
            rollout_id,
            source,
            verified_response=response if isinstance(response, dict) else None,
            explicit_terminal_call_id=terminal if isinstance(terminal, str) else None,
        )
    except Exception as error:  # a source of the user's may raise anything
        logger.warning("the recorded tokens of rollout %s cannot be used: %r", rollout_id, error)
        return _unusable(result, rollout_id, UNREADABLE, repr(error))
    if built is None:
        return _unusable(result, rollout_id, NO_RECORDS)
    if built["rebuilt_response"]["output"]:
        known = response if isinstance(response, dict) else built["rebuilt_response"]
        result["response"] = {**known, "output": built["rebuilt_response"]["output"]}
    result[TOKEN_CAPTURE_KEY] = built["metrics"]
    if built["mask_sample"]:
        result[MASK_SAMPLE_KEY] = True
        return TokenHandoff(rollout_id, masked=True)
    return TokenHandoff(rollout_id, bool(result.get(MASK_SAMPLE_KEY)), **built["_capture_snapshot"])


async def retire_rollout_token_capture(handoff: TokenHandoff, source: TokenSource) -> bool:
    """Have the source forget the records that a durable record has taken over; False when it has others by now, or cannot."""
    if handoff.snapshot_id is None:
        return False
    try:
        return await source.drop(handoff.rollout_id, snapshot_id=handoff.snapshot_id, version=handoff.version)
    except Exception as error:  # as above; the records stay, which harms nobody
        logger.warning("the recorded tokens of rollout %s cannot be removed: %r", handoff.rollout_id, error)
        return False


async def _beside_own_tokens(result: Mapping[str, Any], source: TokenSource, rollout_id: str) -> TokenHandoff:
    """The recorded calls are superfluous only where the response holds everything that was generated in them."""
    masked = bool(result.get(MASK_SAMPLE_KEY))
    snapshot = await source.freeze(rollout_id)
    if snapshot.incomplete or not await asyncio.to_thread(_holds_all, result, snapshot):
        return TokenHandoff(rollout_id, masked)
    return TokenHandoff(rollout_id, masked, snapshot.snapshot_id, snapshot.version)


def _holds_all(result: Mapping[str, Any], snapshot: TokenCaptureSnapshot) -> bool:
    own = {_generation(item) for item in _items(result) if token_bearer([item]) is not None}
    return all(tuple(entry.generation_token_ids) in own for entry in snapshot.entries)


def _generation(item: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(item["generation_token_ids"])


def _items(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    response = record.get("response")
    output = response.get("output") if isinstance(response, Mapping) else None
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


def _unusable(result: MutableMapping[str, Any], rollout_id: str, error: str, detail: str | None = None) -> TokenHandoff:
    result[TOKEN_CAPTURE_KEY] = {"error": error, **({"detail": detail} if detail else {})}
    result[MASK_SAMPLE_KEY] = True
    return TokenHandoff(rollout_id, masked=True)
