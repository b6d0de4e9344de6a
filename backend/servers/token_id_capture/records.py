"""The record of one model call for training: the tokens that the model read and wrote, and which call it continues."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from backend.responses.base import REQUIRED_TOKEN_FIELDS, TOKEN_FIELDS, carries_token_fields
from backend.servers.rollout_correlation import is_rollout_id

TOKEN_ENTRY_MIN_SCHEMA_VERSION = 1
TOKEN_ENTRY_RECORD_SCHEMA_VERSION = 1


class ParentResolutionStatus(StrEnum):
    """What is known of the call that a call continues."""

    ROOT = "root"
    """Nothing was generated before: it begins a conversation."""
    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    """It continues something, but not verifiably one recorded call."""


class TokenEntry(BaseModel):
    """One call. Fields of later versions are kept; a version that this code cannot read is refused."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    schema_version: int = TOKEN_ENTRY_RECORD_SCHEMA_VERSION
    rollout_id: str
    model_call_id: str
    model: str = ""
    prompt_token_ids: list[int]
    """All of the prompt's tokens, or with `prompt_is_delta` those after the parent's tokens."""
    generation_token_ids: list[int]
    generation_log_probs: list[float]
    routed_experts: Any | None = None
    output_items: list[dict[str, Any]]
    """What was generated, as items of the Responses API without token fields."""
    token_item_index: int | None = None
    """Which of them the tokens belong to."""
    response_id: str | None = None
    created_at: float = 0.0
    parent_call_id: str | None = None
    cum_len: int | None = None
    """Number of all tokens, prompt and generation."""
    digest: str | None = None
    """Of all tokens."""
    parent_resolution: ParentResolutionStatus | None = None
    continuation_fingerprint: str = ""
    """Of all that was generated in the conversation so far, this call included."""
    continuation_context_len: int = 0
    """Number of turns before what this call generated."""
    continuation_context_digest: str = ""
    """Of those turns."""
    parent_resolution_reason: str = ""
    fingerprint_version: int | None = None
    prompt_is_delta: bool = False
    prefix_requested: bool = False
    """The endpoint was asked to begin with the parent's tokens."""
    prefix_supplied: bool = False
    """The endpoint has shown that it did."""

    @model_validator(mode="after")
    def _of_a_known_version(self) -> TokenEntry:
        if self.schema_version > TOKEN_ENTRY_RECORD_SCHEMA_VERSION:
            raise ValueError(f"a token record of schema version {self.schema_version}: this version reads up to 1")
        return self


def compute_digest(token_ids: Iterable[int]) -> str:
    """SHA-256 of token ids, 8 bytes each."""
    ids = list(token_ids)
    return hashlib.sha256(struct.pack(f"<{len(ids)}q", *ids)).hexdigest()


def cumulative_tokens(entry: TokenEntry) -> list[int]:
    """All tokens after the call: prompt, then generation. The entry must hold its whole prompt."""
    return [*entry.prompt_token_ids, *entry.generation_token_ids]


def stamp_lineage(
    entry: TokenEntry,
    parent_call_id: str | None,
    *,
    parent_resolution: ParentResolutionStatus | None = None,
    cumulative: Sequence[int] | None = None,
) -> TokenEntry:
    """`entry` with its parent, and with length and digest of all its tokens."""
    tokens = cumulative_tokens(entry) if cumulative is None else cumulative
    status = parent_resolution or (ParentResolutionStatus.RESOLVED if parent_call_id else ParentResolutionStatus.ROOT)
    update = {"parent_call_id": parent_call_id, "cum_len": len(tokens), "digest": compute_digest(tokens)}
    return entry.model_copy(update={**update, "parent_resolution": status})


def extract_token_fields(response_json: dict[str, Any]) -> dict[str, Any] | None:
    """The token fields of an answer of either dialect; None when it has none, or not all of the three that are required."""
    found = token_bearer(output_items_of(response_json))
    return None if found is None else {key: found[1].get(key) for key in TOKEN_FIELDS}


def token_bearer(items: Sequence[dict[str, Any]]) -> tuple[int, dict[str, Any]] | None:
    """The last item with token fields, and its place."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if carries_token_fields(item) and all(item.get(key) is not None for key in REQUIRED_TOKEN_FIELDS):
            return index, item
    return None


def output_items_of(response_json: dict[str, Any]) -> list[dict[str, Any]]:
    """What an answer generated, as items; of a chat completion, the first choice's message and calls."""
    if "choices" not in response_json:
        return [item for item in response_json.get("output") or [] if isinstance(item, dict)]
    choices = response_json.get("choices") or [{}]
    message = choices[0].get("message") or {}
    tokens = {key: message[key] for key in TOKEN_FIELDS if message.get(key) is not None}
    calls = [
        {"type": "function_call", "call_id": call.get("id"), **(call.get("function") or {})}
        for call in message.get("tool_calls") or []
    ]
    items: list[dict[str, Any]] = []
    if message.get("content") or not calls:
        items.append({"type": "message", "role": "assistant", "content": message.get("content") or ""})
    items.extend(calls)
    items[-1] = items[-1] | tokens
    return items


def without_token_fields(item: dict[str, Any]) -> dict[str, Any]:
    """An item as it was said."""
    return {key: value for key, value in item.items() if key not in TOKEN_FIELDS}


def validate_rollout_id(rollout_id: str) -> str:
    """`rollout_id` itself; raises ValueError for an id that must not become part of a file name."""
    if not is_rollout_id(rollout_id):
        raise ValueError(f"not a rollout id: {rollout_id!r}")
    return rollout_id
