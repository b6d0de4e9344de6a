"""The aggregate metrics of one agent: what `/aggregate_metrics` answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backend.config.config_types import AggregateMetrics, AggregateMetricsRequest
from backend.io.row_keys import TASK
from backend.metrics.groups import by_task, describe, group_row
from backend.metrics.perf import compute_perf_summary
from backend.metrics.records import read_rollouts
from backend.metrics.repeats import across_repeats, repeat_rows

ComputeMetrics = Callable[[list[list[dict[str, Any]]]], dict[str, Any]]
GetKeyMetrics = Callable[[dict[str, Any]], dict[str, Any]]

PER_TASK_KEY = "per_task_metrics"
SAMPLE_AGENT = "agent"
"""Stands for the agent in a task's sample: an agent's own answer does not repeat its name."""


def default_key_metrics(agent_metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The means over all rollouts."""
    return {key: value for key, value in agent_metrics.items() if key.startswith("mean/")}


def compute_aggregate_metrics(
    verify_responses: Sequence[dict[str, Any]],
    compute_metrics_fn: ComputeMetrics | None = None,
    get_key_metrics_fn: GetKeyMetrics | None = None,
) -> AggregateMetrics:
    """Statistics per task, over all rollouts, per repeat and across repeats, plus what the environment's two hooks add.

    `compute_metrics_fn` gets the records of each task (tasks ascending, records in the order posted). Its result is added to the
    agent's metrics, except for `per_task_metrics`, a list of objects with a task index that are merged into the rows of their
    tasks. `get_key_metrics_fn` picks the headline metrics (default: the means). Raises a `GymError` for records without
    indices or with the same ones.
    """
    if not verify_responses:
        return AggregateMetrics()
    rollouts = read_rollouts(verify_responses)
    groups = {
        task: group_row(members, {"agent_ref": {"name": SAMPLE_AGENT}}, len(members))
        for task, members in by_task(rollouts).items()
    }
    repeats = repeat_rows(rollouts)
    agent_metrics: dict[str, Any] = {**describe(rollouts), **across_repeats(repeats)}
    if compute_metrics_fn is not None:
        added = dict(compute_metrics_fn(_tasks_as_posted(verify_responses)))
        for per_task in added.pop(PER_TASK_KEY, None) or ():
            if per_task.get(TASK) in groups:
                groups[per_task[TASK]].update(per_task)
        agent_metrics.update(added)
    measured = [perf for record in verify_responses if isinstance(perf := record.get("ng_perf"), Mapping)]
    return AggregateMetrics(
        group_level_metrics=list(groups.values()),
        agent_metrics=agent_metrics,
        key_metrics=(get_key_metrics_fn or default_key_metrics)(agent_metrics),
        perf_summary=compute_perf_summary(measured, len(verify_responses)),
        repeat_level_metrics=repeats,
    )


class AggregateMetricsMixin:
    """The two hooks of a server and the endpoint's method that calls them."""

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Further metrics from the records of each task; override to add pass@k and the like."""
        return {}

    def get_key_metrics(self, agent_metrics: dict[str, Any]) -> dict[str, Any]:
        """The metrics to show first; override to choose others than the means."""
        return default_key_metrics(agent_metrics)

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """The aggregate of the posted records."""
        return compute_aggregate_metrics(body.verify_responses, self.compute_metrics, self.get_key_metrics)


def _tasks_as_posted(records: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    tasks: dict[int, list[dict[str, Any]]] = {}
    for record in records:
        tasks.setdefault(record[TASK], []).append(record)
    return [tasks[task] for task in sorted(tasks)]
