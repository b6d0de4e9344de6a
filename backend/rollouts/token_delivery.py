"""Token capture, seen from the collector: a finished rollout's record gets its tokens before it is written, and once the record is on
the disk the records of its calls go.

Loaded only by runs that capture tokens. Failed attempts are not touched: what was recorded of them stays for whoever looks into them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

from backend.config.schema import AGENTS
from backend.io.jsonl import JsonlWriter
from backend.rollouts.collection import CollectionAborted
from backend.rollouts.failures import Destination, destination_of
from backend.servers.rollout_correlation import RolloutIdError, maybe_rollout_id_from_run_body
from backend.servers.token_id_capture.config import checked_config
from backend.servers.token_id_capture.delivery import (
    TokenHandoff,
    finalize_rollout_token_capture,
    retire_rollout_token_capture,
)
from backend.servers.token_id_capture.store import TokenSource


class TooManyMasked(CollectionAborted, RuntimeError):
    """More rollouts are of no use for training than `token_id_capture.max_mask_fraction` allows."""


class TokenDelivery:
    """Delivers the tokens of one collection, and counts what cannot be trained on."""

    def __init__(
        self, source: TokenSource, agents: frozenset[str], max_mask_fraction: float | None = None, min_samples: int = 0
    ) -> None:
        self.source = source
        self.agents = agents
        """Those whose model calls are recorded."""
        self.finished = 0
        """Records written in this collection whose rollouts were captured."""
        self.masked = 0
        """How many of them are kept out of the training loss, whoever has masked them."""
        self._max_mask_fraction = max_mask_fraction
        self._min_samples = min_samples

    async def deliver(self, row: Mapping[str, Any], record: MutableMapping[str, Any], agent: str) -> TokenHandoff | None:
        """Give `record`, an agent's answer to `row`, its tokens; None for an agent without capture, and for a failed attempt."""
        if agent not in self.agents or destination_of(record) is not Destination.ROLLOUTS:
            return None
        try:
            rollout_id = maybe_rollout_id_from_run_body(row)
        except RolloutIdError:
            rollout_id = None
        return await finalize_rollout_token_capture(record, self.source, rollout_id)

    async def written(self, handoff: TokenHandoff, file: JsonlWriter) -> None:
        """To be told when the record is in `file`: removes what it has taken over, as soon as the file is on the disk.

        Raises `TooManyMasked` when this is one masked rollout too many.
        """
        self.finished += 1
        self.masked += handoff.masked
        if handoff.can_retire:
            await asyncio.to_thread(file.sync)
            await retire_rollout_token_capture(handoff, self.source)
        limit = self._max_mask_fraction
        if limit is not None and self.finished >= self._min_samples and self.masked > limit * self.finished:
            raise TooManyMasked(
                f"{self.masked} of {self.finished} rollouts are masked: more than token_id_capture.max_mask_fraction ({limit:g})",
                details=[f"`_ng_token_capture` in {file.path} tells what is wrong with each"],
                hint="mend what loses the tokens, or raise ++token_id_capture.max_mask_fraction; then go on with --resume",
            )


def make_token_delivery(config: Mapping[str, Any]) -> TokenDelivery | None:
    """The delivery that a configuration with token capture asks for; None when somebody else takes the records.

    Raises `GymError` for settings that cannot be used.
    """
    capture = checked_config(config)
    block = capture.token_id_capture
    source = capture.build_source() if block.rebuild_response else None
    if source is None:
        return None
    return TokenDelivery(
        source, _capturing_agents(config, all_agents=block.all_agents), block.max_mask_fraction, block.mask_fraction_min_samples
    )


def _capturing_agents(config: Mapping[str, Any], *, all_agents: bool) -> frozenset[str]:
    agents = {
        str(name): next(iter(block[AGENTS].values()), None)
        for name, block in config.items()
        if isinstance(block, Mapping) and isinstance(block.get(AGENTS), Mapping)
    }
    return frozenset(
        name
        for name, settings in agents.items()
        if all_agents or (isinstance(settings, Mapping) and settings.get("token_id_capture") is True)
    )
