"""The data behind the rollout viewer on a large file: time to the first rows and to all, memory, stalls of an event loop beside the work."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from backend.rollouts.rollout_file import RolloutFile
from backend.rollouts.rollout_query import parse_query
from backend.rollouts.transcript import transcript

WORDS = [
    "the",
    "count",
    "repeats",
    "with",
    "period",
    "seven",
    "and",
    "hence",
    "the",
    "sum",
    "over",
    "all",
    "pairs",
    "is",
    "what",
    "was",
    "asked",
    "for",
    "in",
    "the",
    "beginning",
]
SLICE = 0.05
HEARTBEAT = 0.005


def write_rollouts(path: Path, rows: int) -> None:
    """Rows of about 1,060 bytes, four repeats of each task."""
    chooser = random.Random(1)
    text = " ".join(chooser.choice(WORDS) for _ in range(20_000))
    with open(path, "wb", buffering=1 << 20) as file:
        for number in range(rows):
            begin = chooser.randrange(60_000)
            tokens = chooser.randrange(900)
            record = {
                "responses_create_params": {"input": [{"role": "user", "content": text[begin : begin + 90]}], "temperature": 0.2},
                "response": {
                    "id": f"r{number}", "model": "small-7b", "status": "completed",
                    "output": [
                        {
                            "type": "message", "role": "assistant",
                            "content": [{"type": "output_text", "text": text[begin : begin + 400 + tokens // 9], "annotations": []}],
                        },
                    ],
                    "usage": {"input_tokens": 40, "output_tokens": tokens, "output_tokens_details": {"reasoning_tokens": 3}},
                },
                "reward": float(chooser.random() < 0.6), "extracted": "42",
                "_ng_task_index": number // 4, "_ng_rollout_index": number % 4, "agent_ref": {"name": "math_agent"},
            }  # fmt: skip
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


def memory() -> float:
    return float(psutil.Process().memory_info().rss / 1e6)


async def beside(name: str, work: Callable[[], Any]) -> tuple[Any, float]:
    """Run `work` in a thread while a heartbeat measures how long the loop is held up; prints both, and the memory gained.

    Gives the result and the CPU seconds of the thread: what would be the time on an idle machine.
    """
    stalls: list[float] = []
    used = 0.0

    def timed() -> Any:
        nonlocal used
        began = time.thread_time()
        result = work()
        used = time.thread_time() - began
        return result

    before = memory()
    began = time.perf_counter()
    task = asyncio.create_task(asyncio.to_thread(timed))
    while not task.done():
        due = time.perf_counter() + HEARTBEAT
        await asyncio.sleep(HEARTBEAT)
        stalls.append(time.perf_counter() - due)
    seconds = time.perf_counter() - began
    stalls = sorted(stalls) or [0.0]
    p99 = stalls[int(0.99 * (len(stalls) - 1))]
    result = await task
    print(
        f"{name:<36}{seconds:6.2f} s ({used:5.2f} s CPU)   stalls: p99 {p99 * 1e3:5.1f} ms, worst {stalls[-1] * 1e3:5.1f} ms   "
        f"memory {memory() - before:+6.1f} MB"
    )
    return result, used


def to_end(step: Callable[[float], bool]) -> Callable[[], None]:
    def run() -> None:
        while not step(SLICE):
            pass

    return run


async def measure(path: Path) -> None:
    began = time.perf_counter()
    file = RolloutFile(path)
    file.extend(SLICE)
    first = [file.facts(row) for row in range(40)]
    print(f"first {len(first)} rows on screen after {time.perf_counter() - began:.3f} s, {len(file):,} rows known by then")
    await beside("index to the end", to_end(file.extend))
    began = time.perf_counter()
    shown = [file.facts(row) for row in range(len(file) - 40, len(file))]
    print(f"jump to the end: {(time.perf_counter() - began) * 1e3:.1f} ms for {len(shown)} rows")
    _, used = await beside("key scan", to_end(file.scan_keys))
    print(f"    {len(file) / used:,.0f} rows per second of CPU")
    await beside("group by task", file.tasks)
    for query in ("reward<1", "reward<1 sort:-tokens", "is:scored tokens>800 agent:math", "task:183"):
        rows, _ = await beside(f"filter {query}", lambda query=query: file.rows_matching(parse_query(query)))
        print(f"    {len(rows):,} rows")
    step, _ = await beside("search for what is not there", lambda: file.search_text("no such words", 0, 1, 60))
    assert step.finished
    began = time.perf_counter()
    for row in range(0, len(file), len(file) // 200):
        record = file.record(row)
        assert isinstance(record, dict)
        transcript(record)
    print(f"parse and lay out a conversation: {(time.perf_counter() - began) / 200 * 1e3:.2f} ms")


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rollouts.jsonl"
        began = time.perf_counter()
        write_rollouts(path, arguments.rows)
        print(f"{arguments.rows:,} rows, {path.stat().st_size / 1e9:.2f} GB, written in {time.perf_counter() - began:.0f} s")
        await measure(path)


if __name__ == "__main__":
    asyncio.run(main())
