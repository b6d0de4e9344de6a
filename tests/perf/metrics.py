"""CPU seconds of the aggregate of 100,000 rollouts (20,000 tasks of 5), with and without pass@k."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from backend.metrics.reward_profile import compute_aggregate_metrics, compute_pass_majority_metrics


def main() -> None:
    rows = [
        {
            "_ng_task_index": task,
            "_ng_rollout_index": repeat,
            "reward": float((task + repeat) % 3 == 0),
            "response": {"usage": {"total_tokens": 5}},
        }
        for task in range(20_000)
        for repeat in range(5)
    ]
    for name, hook in (("plain", None), ("with pass@k", lambda tasks: compute_pass_majority_metrics(tasks)[0])):
        began = time.process_time()
        compute_aggregate_metrics(rows, hook)
        print(f"aggregate of {len(rows)} rollouts, {name}: {time.process_time() - began:.2f} s of CPU")


if __name__ == "__main__":
    main()
