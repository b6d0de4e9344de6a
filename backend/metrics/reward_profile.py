"""Metrics of rewards under the names that environments import; importable as `nemo_gym.reward_profile`."""

from __future__ import annotations

from backend.metrics.aggregate import AggregateMetricsMixin, compute_aggregate_metrics
from backend.metrics.pass_at_k import (
    add_avg_sample_std_dev,
    compute_pass_majority_metrics,
    compute_subset_metrics,
    highest_k_metrics,
)
from backend.metrics.perf import compute_perf_summary
from backend.metrics.profiler import RewardProfiler

__all__ = [
    "AggregateMetricsMixin",
    "RewardProfiler",
    "add_avg_sample_std_dev",
    "compute_aggregate_metrics",
    "compute_pass_majority_metrics",
    "compute_perf_summary",
    "compute_subset_metrics",
    "highest_k_metrics",
]
