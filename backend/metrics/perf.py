"""Effort of rollouts: turns, tool calls, tokens and latency, per rollout (`ng_perf`) and over an agent's rollouts."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from backend.metrics.descriptive import as_number, mean, percentile_of_sorted, population_std

TOKEN_FIELDS = ("prompt_tokens", "cached_prompt_tokens", "completion_tokens", "reasoning_tokens")
_REPORTED_AS = {
    "prompt_tokens": "prompt_tokens",
    "cached_tokens": "cached_prompt_tokens",
    "completion_tokens": "completion_tokens",
    "reasoning_tokens": "reasoning_tokens",
}


def compute_perf_summary(ng_perf_records: Sequence[Mapping[str, Any]], total_rollouts: int) -> dict[str, Any] | None:
    """The summary of some rollouts' `ng_perf` objects, out of `total_rollouts`; None without any.

    Coverages are fractions of `total_rollouts` (0-1), latencies are milliseconds; `std_num_turns` is the population standard
    deviation. A quantity that no rollout reports has no keys.
    """
    if not ng_perf_records or not total_rollouts:
        return None
    observed = sum(1 for value in _column(ng_perf_records, "token_observability_coverage") if value > 0)
    result: dict[str, Any] = {
        "overall_observability_coverage": len(ng_perf_records) / total_rollouts,
        "token_observability_coverage": observed / total_rollouts,
    }
    for name in TOKEN_FIELDS:
        values = _column(ng_perf_records, name)
        if values:
            result[f"mean_{name}"] = mean(values)
            result[f"median_{name}"] = statistics.median(values)
            result[f"total_{name}"] = sum(values)
    turns = sorted(_column(ng_perf_records, "num_turns"))
    if turns:
        result["mean_num_turns"] = mean(turns)
        result["median_num_turns"] = statistics.median(turns)
        result["std_num_turns"] = population_std(turns)
        result["min_num_turns"] = turns[0]
        result["p90_num_turns"] = percentile_of_sorted(turns, 0.9)
        result["max_num_turns"] = turns[-1]
    per_turn = _tokens_per_turn(ng_perf_records)
    if per_turn:
        result["mean_tokens_per_turn"] = mean(per_turn)
        result["median_tokens_per_turn"] = statistics.median(per_turn)
    latencies = sorted(_column(ng_perf_records, "total_latency_ms"))
    if latencies:
        for percent in (50, 90, 99):
            result[f"total_latency_p{percent}_ms"] = percentile_of_sorted(latencies, percent / 100)
        result["total_latency_mean_ms"] = mean(latencies)
    return result


def rollout_perf(trajectory: Mapping[str, Any] | None, latency_ms: float | None) -> dict[str, Any] | None:
    """The `ng_perf` object of one rollout from its canonical trajectory; None without any invocation.

    An invocation has as many turns as turn records, else as model calls of its own, else one. Tokens are summed over the model
    calls that an invocation owns, each once; what no call reports is absent. `latency_ms` is the wall clock of `/run`.
    """
    invocations = _mappings((trajectory or {}).get("invocations"))
    if trajectory is None or not invocations:
        return None
    known = {invocation.get("invocation_id") for invocation in invocations}
    turn_records = Counter(turn.get("invocation_id") for turn in _mappings(trajectory.get("turns")))
    calls = {call.get("model_call_id"): call for call in _mappings(trajectory.get("model_calls"))}
    owned: dict[Any, Mapping[str, Any]] = {}
    num_turns = 0
    for invocation in invocations:
        named = [reference.get("model_call_id") for reference in _mappings(invocation.get("model_calls"))]
        num_turns += turn_records[invocation.get("invocation_id")] or len(named) or 1
        owned.update((call_id, calls[call_id]) for call_id in named if call_id in calls)
    result: dict[str, Any] = {
        "num_turns": num_turns,
        "num_tool_calls": sum(1 for call in _mappings(trajectory.get("tool_calls")) if call.get("invocation_id") in known),
        "token_observability_coverage": min(1.0, len(owned) / num_turns),
    }
    reported = [stats for call in owned.values() if isinstance(stats := call.get("token_stats"), Mapping)]
    for source, name in _REPORTED_AS.items():
        values = _column(reported, source)
        if values:
            result[name] = sum(values)
    if latency_ms is not None:
        result["total_latency_ms"] = latency_ms
    return result


def _column(records: Iterable[Mapping[str, Any]], name: str) -> list[int | float]:
    return [number for record in records if (number := as_number(record.get(name))) is not None]


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _tokens_per_turn(records: Iterable[Mapping[str, Any]]) -> list[float]:
    pairs = ((as_number(record.get("completion_tokens")), as_number(record.get("num_turns"))) for record in records)
    return [tokens / turns for tokens, turns in pairs if tokens is not None and turns is not None and turns > 0]
