"""Reading and folding the events of a run: events per second, and what 1.8 million events (600,000 rollouts) leave in memory."""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from backend.io.event_stream import EventStream
from backend.rollouts.run_progress import RunProgress
from tests.run_folders import AGENT, BEGAN, event, failed, finished, started, write_events

IN_FLIGHT = 64
DRAWINGS_PER_SECOND = 4


def events_of_a_run(rollouts: int) -> Iterator[dict[str, Any]]:
    """Three events per rollout: started, one stage, finished; one rollout per task, one in a hundred fails."""
    yield event("run.planned", BEGAN, output="o", inputs="i", rollouts=rollouts, concurrency=IN_FLIGHT, agents={AGENT: rollouts})
    yield event("collection.started", BEGAN, total=rollouts)
    for task in range(rollouts + IN_FLIGHT):
        at = BEGAN + task / 100
        if task < rollouts:
            yield started(task, at=at)
            yield event("rollout.stage", at, task=task, rollout=0, stage="model call 1", detail="policy_model", since=at)
        done = task - IN_FLIGHT
        if done >= 0:
            tokens = 50 + done * 7919 % 4000
            more = {"seconds": 0.5 + done % 977 / 10, "output_tokens": tokens, "offset": done * 1000}
            yield failed(done, at=at, **more) if done % 100 == 0 else finished(done, at=at, reward=float(done % 3 == 0), **more)


def draw(progress: RunProgress, now: float) -> None:
    """Ask for everything that a view shows."""
    progress.rate(now), progress.rate_series(now), progress.eta(now), progress.interval(), progress.task_outcomes()
    progress.reward_bins(), progress.latency(0.5), progress.latency(0.95), progress.output_token_bins(), progress.latency_bins()
    progress.in_flight(now), progress.finished(100)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rollouts", type=int, default=600_000)
    arguments = parser.parse_args()

    process = psutil.Process()
    before = process.memory_info().rss
    progress = RunProgress()
    events = events_of_a_run(arguments.rollouts)
    count = 0
    while batch := list(itertools.islice(events, 10_000)):
        progress.feed(batch)
        count += len(batch)
    after = process.memory_info().rss
    print(f"{count:,} events of {progress.finished_count:,} rollouts: {(after - before) / 1e6:.1f} MB more memory")

    sample = list(events_of_a_run(50_000))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "events.ndjson"
        write_events(path, sample)
        with EventStream(path) as stream:
            began = time.perf_counter()
            read = 0
            while batch := stream.read():
                read += len(batch)
            print(f"read: {read / (time.perf_counter() - began):,.0f} events/s")

    progress = RunProgress()
    began = time.perf_counter()
    progress.feed(sample)
    print(f"fold: {len(sample) / (time.perf_counter() - began):,.0f} events/s")
    began = time.perf_counter()
    for _ in range(50):
        draw(progress, progress.latest)
    drawing = (time.perf_counter() - began) / 50
    print(f"asking for all that is shown: {drawing * 1000:.2f} ms, {100 * drawing * DRAWINGS_PER_SECOND:.1f} % of a core at 4 Hz")


if __name__ == "__main__":
    main()
