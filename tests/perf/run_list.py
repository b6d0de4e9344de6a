"""Seconds to list 1,000 runs: the first 50, all, and all again with the cache of the first search."""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from backend.rollouts.run_list import RunCache, find_runs
from tests.run_folders import AGENT, BEGAN, event, finished, started, summary, write_run

CONFIG = {
    f"server_{number}": {"responses_api_agents": {"simple_agent": {"entrypoint": "app.py", "note": "x" * 200}}}
    for number in range(20)
} | {"policy_model_name": "small-7b"}


def write_runs(folder: Path, count: int) -> None:
    """Runs in folders of 25, one in ten of them killed; event files of a hundred rollouts."""
    events = [each for task in range(100) for each in (started(task), finished(task))]
    progress = event(
        "collection.progress", BEGAN, finished=50, total=200, left={}, failed=0, averages={AGENT: {"reward": 0.5}},
        counts={AGENT: 50},
    )  # fmt: skip
    for number in range(count):
        output = folder / f"week_{number // 25}" / f"run_{number}.jsonl"
        if number % 10:
            write_run(output, [*events, summary(BEGAN, 100, 0, 0, 0.5)], config=CONFIG)
        else:
            write_run(output, [*events[:100], progress, *events[100:]], config=CONFIG, state="running", pid=2**22 + 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_runs(folder, arguments.runs)
        began = time.perf_counter()
        list(itertools.islice(find_runs(folder), 50))
        print(f"first 50 of {arguments.runs} runs: {time.perf_counter() - began:.3f} s")
        cache = RunCache()
        for what in ("all of them", "again, from the cache"):
            began = time.perf_counter()
            found = list(find_runs(folder, cache=cache))
            print(f"{what}: {time.perf_counter() - began:.3f} s ({len(found)} runs)")


if __name__ == "__main__":
    main()
