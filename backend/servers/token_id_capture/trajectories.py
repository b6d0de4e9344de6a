"""What training gets of a rollout: the delivered chain as a response, the health of its capture, and whether to mask it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backend.servers.rollout_correlation import maybe_rollout_id_from_run_body
from backend.servers.token_id_capture.chains import (
    PREFIX_MERGING,
    BuildOutput,
    project_main_chain_response,
    run_builder,
)
from backend.servers.token_id_capture.conversation import generated, turns_of
from backend.servers.token_id_capture.records import ParentResolutionStatus, TokenEntry
from backend.servers.token_id_capture.store import TokenCaptureSnapshot, TokenCaptureStore, TokenSource

TERMINAL_CALL_KEY = "_ng_terminal_model_call_id"


def trajectories_for_rollout(
    rollout_id: str,
    token_capture_dirs: Sequence[Path],
    *,
    builder: str = PREFIX_MERGING,
    model: str = "",
    verified_response: dict[str, Any] | None = None,
    explicit_terminal_call_id: str | None = None,
) -> dict[str, Any] | None:
    """Freeze a rollout's records in the first folder that has some, and build from them; None when none has."""
    for folder in token_capture_dirs:
        store = TokenCaptureStore(folder)
        if store.path_for(rollout_id).exists() or store.state_path_for(rollout_id).exists():
            return _built(store.freeze_now(rollout_id), builder, model, verified_response, explicit_terminal_call_id)
    return None


async def trajectories_from_source(
    rollout_id: str,
    source: TokenSource,
    *,
    builder: str = PREFIX_MERGING,
    model: str = "",
    verified_response: dict[str, Any] | None = None,
    explicit_terminal_call_id: str | None = None,
) -> dict[str, Any] | None:
    """Freeze a rollout's records at `source`, and build from them; None when there are none."""
    snapshot = await source.freeze(rollout_id)
    # In a thread: the tokens of a long rollout take tenths of a second.
    return await asyncio.to_thread(_built, snapshot, builder, model, verified_response, explicit_terminal_call_id)


def clear_token_captures_for_rollouts(records: Sequence[dict[str, Any]], token_capture_dirs: Sequence[Path]) -> None:
    """Remove what earlier runs left for the rollouts of some rows."""
    for record in records:
        rollout_id = maybe_rollout_id_from_run_body(record)
        if rollout_id is not None:
            for folder in token_capture_dirs:
                if Path(folder).is_dir():
                    TokenCaptureStore(folder).delete(rollout_id)


def _built(
    snapshot: TokenCaptureSnapshot,
    builder: str,
    model: str,
    verified_response: dict[str, Any] | None,
    explicit_terminal_call_id: str | None,
) -> dict[str, Any] | None:
    if not snapshot.entries:
        return None
    terminal = _terminal_call(snapshot.entries, verified_response, explicit_terminal_call_id)
    end = _last_generating(snapshot.entries, terminal["call_id"])
    built = run_builder(snapshot.entries, builder, end)
    attribution = terminal | {"chain": "delivered" if terminal["call_id"] else ""}
    return {
        "rollout_id": snapshot.rollout_id,
        "builder": builder,
        "rebuilt_response": project_main_chain_response(snapshot.rollout_id, built, model),
        "metrics": _metrics(snapshot, built, attribution),
        "mask_sample": (terminal["call_id"] is not None and end is None) or _is_unsafe(snapshot, built, end),
        "unresolved_retries": built.unresolved_retries,
        "unresolved_parent_calls": built.unresolved_parents,
        "_capture_snapshot": {"snapshot_id": snapshot.snapshot_id, "version": snapshot.version},
    }


def _terminal_call(entries: Sequence[TokenEntry], response: dict[str, Any] | None, explicit: str | None) -> dict[str, Any]:
    """The call whose answer the rollout ended with: named by the agent, else by the response's id, else by what it says.

    Two of these that contradict each other name none.
    """
    found: dict[str, str] = {}
    reasons: list[str] = []
    if explicit:
        if any(entry.model_call_id == explicit for entry in entries):
            found["explicit"] = explicit
        else:
            reasons.append("explicit_terminal_not_captured")
    if response is None:
        reasons.append("no_response_object")
    else:
        by_id = [entry.model_call_id for entry in entries if response.get("id") and entry.response_id == response["id"]]
        said = generated(turns_of(response.get("output")))
        by_content = [entry.model_call_id for entry in entries if said and generated(turns_of(entry.output_items)) == said[-1:]]
        for method, calls in (("response_id", by_id), ("content", by_content)):
            if len(calls) == 1:
                found[method] = calls[0]
            else:
                reasons.append(f"{method}_{'ambiguous' if calls else 'not_captured'}")
    if len(set(found.values())) > 1:
        return {"method": "none", "call_id": None, "reason": "contradiction"}
    method = next(iter(found), "none")
    return {"method": method, "call_id": found.get(method), "reason": ",".join(reasons)}


def _last_generating(entries: Sequence[TokenEntry], call_id: str | None) -> str | None:
    """The call itself, or, where it generated nothing and so is in no chain, the last one before it that did."""
    by_id = {entry.model_call_id: entry for entry in entries}
    passed: set[str] = set()
    while call_id in by_id and call_id not in passed and not by_id[call_id].generation_token_ids:
        passed.add(call_id)
        call_id = by_id[call_id].parent_call_id
    return call_id if call_id in by_id and call_id not in passed else None


def _metrics(snapshot: TokenCaptureSnapshot, built: BuildOutput, attribution: dict[str, Any]) -> dict[str, Any]:
    calls = len({entry.model_call_id for entry in snapshot.entries})
    captured, delivered = built.generated_tokens, built.main.generated_tokens if built.main else 0
    return {
        "n_calls": calls,
        "terminal_attribution": attribution,
        "chains": len(built.chains),
        "roots": built.roots,
        "quarantined_calls": len(built.quarantined),
        "quarantined_fraction": len(built.quarantined) / calls,
        "delivered_fraction": delivered / captured if captured else 0.0,
        "generated_tokens_captured": captured,
        "generated_tokens_delivered": delivered,
        "parent_link_failures": dict(built.link_failures),
        "unresolved_parent_calls": len(built.unresolved_parents),
        "empty_generation_calls": built.empty_generations,
    }


def _is_unsafe(snapshot: TokenCaptureSnapshot, built: BuildOutput, terminal_call_id: str | None) -> bool:
    """Whether the reward may belong to other tokens than those delivered."""
    if snapshot.incomplete or built.main is None:
        return True
    is_the_one = built.main.holds(terminal_call_id) if terminal_call_id else len(built.chains) == 1
    if not is_the_one:
        return True
    begins_amid = built.main.links[0].entry.parent_resolution == ParentResolutionStatus.UNRESOLVED
    return (
        begins_amid
        or built.main.links[0].entry.model_call_id in built.unresolved_parents
        or any(built.main.holds(call) and call != terminal_call_id for call in built.unresolved_retries)
    )
