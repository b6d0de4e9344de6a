"""The closing summary of a run, from its tally and the metrics of its agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backend.io.result_paths import ResultPaths
from backend.io.row_keys import AGENT_REF, ROLLOUT, TASK
from backend.metrics.headline import AgentScores, summary_rows
from backend.metrics.pass_at_k import highest_k_metrics
from backend.rollouts.run_events import RunSummary
from backend.rollouts.tally import Tally


def run_summary(
    state: str,
    paths: ResultPaths,
    tally: Tally,
    entries: Sequence[Mapping[str, Any]],
    seconds: float,
    counted_as_zero: Sequence[Mapping[str, Any]] = (),
) -> RunSummary:
    """The summary of a run that is over; `entries` are those of the aggregate metrics file, none when there is no file."""
    key_metrics = {entry[AGENT_REF]["name"]: _headline_metrics(entry) for entry in entries}
    agents = []
    for name, agent in tally.agents.items():
        for record in counted_as_zero:
            if record[AGENT_REF]["name"] == name:
                agent.add_reward(record[TASK], record[ROLLOUT], record["reward"])
        rewards = agent.rewards_by_task()
        if rewards:
            missing = agent.planned - agent.scored - agent.failed
            agents.append(AgentScores(name, rewards, agent.scored, agent.failed, missing, key_metrics.get(name, {})))
    return RunSummary(
        state=state,
        scores=tuple(summary_rows(agents)),
        rollouts=str(paths.rollouts),
        materialized_inputs=str(paths.materialized_inputs),
        failures=str(paths.failures),
        aggregate_metrics=str(paths.aggregate_metrics) if entries else None,
        run_folder=str(paths.run_folder),
        total=tally.total,
        scored=tally.scored,
        failed=tally.failed,
        missing=tally.missing,
        failure_classes=dict(tally.failure_classes),
        seconds=seconds,
    )


def _headline_metrics(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The key metrics that the environment chose, and pass@k and majority@k at the highest k whether it chose them or not."""
    metrics = entry.get("agent_metrics") or {}
    highest = highest_k_metrics(metrics, "pass@{k}") | highest_k_metrics(metrics, "majority@{k}")
    return {**(entry.get("key_metrics") or {}), **highest}
