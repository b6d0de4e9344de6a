"""Which recorded call a request continues, verifiably."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from backend.io.json_codec import loads
from backend.servers.token_id_capture.conversation import Turn, fingerprint_of, turns_digest, turns_of
from backend.servers.token_id_capture.records import (
    ParentResolutionStatus,
    TokenEntry,
    compute_digest,
    validate_rollout_id,
)

NO_MATCH = "no_match"
AMBIGUOUS = "ambiguous"
MAX_ROLLOUTS = 512
MAX_CACHED_ROLLOUTS = 4096
MAX_TOKENS = 8_000_000
"""Token ids in memory, about 36 bytes each; beyond them the rollouts that were silent for longest are forgotten."""

HEAD_BYTES = 256
"""Enough to hold the ids of a record."""


@dataclass(frozen=True, slots=True)
class LineageMatch:
    """The call that is continued, and all its tokens."""

    model_call_id: str
    cumulative_token_ids: tuple[int, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class LineageResolution:
    """What came of looking for a call's parent; `reason` says why there is none."""

    status: ParentResolutionStatus
    match: LineageMatch | None = None
    reason: str = ""


@runtime_checkable
class LineageStore(Protocol):
    """Finds parents. `is_process_shared` tells whether it sees the calls of other workers. May also have `put`, to learn of calls."""

    async def resolve(self, rollout_id: str, request_items: list[dict[str, Any]]) -> LineageResolution: ...

    def is_process_shared(self) -> bool: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LineageNode:
    """One recorded call, as far as it is needed to recognise what continues it."""

    call_id: str
    context_len: int
    context_digest: str
    tokens: tuple[int, ...]
    digest: str


@dataclass(slots=True)
class RolloutLineage:
    """The calls of one rollout."""

    by_fingerprint: dict[str, list[str]] = field(default_factory=dict)
    by_call_id: dict[str, LineageNode] = field(default_factory=dict)
    total_tokens: int = 0

    def record(
        self, call_id: str, messages: Sequence[Any], cum_tokens: Iterable[int], digest: str, context_len: int | None = None
    ) -> None:
        """Add a call whose conversation, its own answer included, is `messages`; `context_len` turns came before the answer."""
        turns = turns_of(messages)
        length = len(turns) - 1 if context_len is None else context_len
        node = LineageNode(call_id, length, turns_digest(turns[:length]), tuple(cum_tokens), digest)
        self._add(node, fingerprint_of(turns))

    def add_entry(self, entry: TokenEntry) -> None:
        """Add a call from its record; the prompt of a delta record is completed from its parent.

        A record that was not stamped, or whose parent is not known here, is passed over.
        """
        before: tuple[int, ...] = ()
        if entry.prompt_is_delta:
            parent = self.by_call_id.get(entry.parent_call_id or "")
            if parent is None:
                return
            before = parent.tokens
        if not entry.continuation_fingerprint:
            return
        tokens = (*before, *entry.prompt_token_ids, *entry.generation_token_ids)
        length, digest = entry.continuation_context_len, entry.continuation_context_digest
        node = LineageNode(entry.model_call_id, length, digest, tokens, entry.digest or compute_digest(tokens))
        self._add(node, entry.continuation_fingerprint)

    def resolve(self, messages: str | Sequence[Any]) -> LineageResolution:
        """The one call whose whole conversation `messages` continue."""
        turns = turns_of(messages)
        fingerprint = fingerprint_of(turns)
        if not fingerprint:
            return LineageResolution(ParentResolutionStatus.ROOT)
        nodes = [self.by_call_id[call_id] for call_id in self.by_fingerprint.get(fingerprint, ())]
        nodes = [node for node in nodes if _continues(node, turns)]
        if len({node.digest for node in nodes}) != 1:
            return LineageResolution(ParentResolutionStatus.UNRESOLVED, reason=AMBIGUOUS if nodes else NO_MATCH)
        match = LineageMatch(nodes[0].call_id, nodes[0].tokens, nodes[0].digest)
        return LineageResolution(ParentResolutionStatus.RESOLVED, match)

    def _add(self, node: LineageNode, fingerprint: str) -> None:
        if node.call_id in self.by_call_id:
            return
        self.by_call_id[node.call_id] = node
        self.by_fingerprint.setdefault(fingerprint, []).append(node.call_id)
        self.total_tokens += len(node.tokens)


def _continues(node: LineageNode, turns: Sequence[Turn]) -> bool:
    return len(turns) > node.context_len and turns_digest(turns[: node.context_len]) == node.context_digest


class LineageIndex:
    """The lineages of rollouts, bounded in number and tokens; what was not used for longest is forgotten first."""

    def __init__(self, max_rollouts: int = MAX_ROLLOUTS, max_tokens: int = MAX_TOKENS) -> None:
        self.max_rollouts = max_rollouts
        self.max_tokens = max_tokens
        self._lineages: OrderedDict[str, RolloutLineage] = OrderedDict()

    def for_rollout(self, rollout_id: str) -> RolloutLineage:
        """The lineage of a rollout, empty at first."""
        lineage = self._lineages.setdefault(rollout_id, RolloutLineage())
        self._lineages.move_to_end(rollout_id)
        while len(self._lineages) > 1 and self._is_over():
            self._lineages.popitem(last=False)
        return lineage

    def drop(self, rollout_id: str) -> None:
        """Forget a rollout."""
        self._lineages.pop(rollout_id, None)

    def clear(self) -> None:
        """Forget all."""
        self._lineages.clear()

    def __contains__(self, rollout_id: str) -> bool:
        return rollout_id in self._lineages

    def _is_over(self) -> bool:
        tokens = sum(lineage.total_tokens for lineage in self._lineages.values())
        return len(self._lineages) > self.max_rollouts or tokens > self.max_tokens


class InMemoryLineageStore:
    """Finds parents among the calls of this process."""

    def __init__(self, max_rollouts: int = MAX_ROLLOUTS, max_tokens: int = MAX_TOKENS) -> None:
        self.index = LineageIndex(max_rollouts, max_tokens)

    async def put(self, entry: TokenEntry) -> None:
        """Take note of a call."""
        self.index.for_rollout(entry.rollout_id).add_entry(entry)

    async def resolve(self, rollout_id: str, request_items: list[dict[str, Any]]) -> LineageResolution:
        """The parent of a request."""
        return self.index.for_rollout(rollout_id).resolve(request_items)

    def is_process_shared(self) -> bool:
        """Other workers' calls are not seen."""
        return False

    async def close(self) -> None:
        """Nothing is held open."""


class FileLineageStore:
    """Finds parents among the calls in a folder of token records, whichever worker wrote them."""

    def __init__(
        self, root: str | Path, *, max_cached_rollouts: int = MAX_CACHED_ROLLOUTS, max_cached_tokens: int = MAX_TOKENS
    ) -> None:
        self.root = Path(root)
        self.index = LineageIndex(max_cached_rollouts, max_cached_tokens)
        self._read: dict[str, _ReadSoFar] = {}

    async def resolve(self, rollout_id: str, request_items: list[dict[str, Any]]) -> LineageResolution:
        """The parent of a request. Raises OSError or ValueError for records that cannot be read."""
        path = self.root / f"{validate_rollout_id(rollout_id)}.tokens.jsonl"
        before = self._read.get(rollout_id, _NOTHING_READ) if rollout_id in self.index else _NOTHING_READ
        entries, now, is_same_file = await asyncio.to_thread(_read_entries, path, before)
        if not is_same_file:
            self.index.drop(rollout_id)
        lineage = self.index.for_rollout(rollout_id)
        for entry in entries:
            lineage.add_entry(entry)
        self._read[rollout_id] = now
        if len(self._read) > self.index.max_rollouts:
            self._read = {key: value for key, value in self._read.items() if key in self.index}
        return lineage.resolve(request_items)

    def is_process_shared(self) -> bool:
        """The folder is what workers share."""
        return True

    async def close(self) -> None:
        """Nothing is held open."""


class _ReadSoFar(NamedTuple):
    """How much of a file of records is known."""

    end: int
    """Bytes, up to the end of a line."""
    head: bytes
    """How the file begins. The first record has an id of its own, so another file under the same name begins differently."""


_NOTHING_READ = _ReadSoFar(0, b"")


def _read_entries(path: Path, before: _ReadSoFar) -> tuple[list[TokenEntry], _ReadSoFar, bool]:
    """The records after those known before, what is known then, and whether the file is still the same one.

    A rollout that is run again has a new file under the old name; of that one all records are given.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(len(before.head))
            is_same = data == before.head and file.seek(0, os.SEEK_END) >= before.end
            begin = before.end if is_same else 0
            file.seek(begin)
            data = file.read()
    except FileNotFoundError:
        return [], _NOTHING_READ, not before.end
    complete = data[: data.rfind(b"\n") + 1]
    entries = [TokenEntry.model_validate(loads(line)) for line in complete.splitlines() if line.strip()]
    head = before.head if begin else complete[:HEAD_BYTES]
    return entries, _ReadSoFar(begin + len(complete), head), is_same
