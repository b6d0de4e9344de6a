"""Peak memory, rate and CPU of a run, for several numbers of rows: neither may grow with the rows."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
from measure import GYM, mock_endpoint, tree

ROW = {
    "responses_create_params": {"input": [{"role": "user", "content": "x" * 600}]},
    "options": [{"A": "one"}, {"B": "two"}],
    "expected_answer": "A",
    "agent_ref": {"type": "responses_api_agents", "name": "mcqa_simple_agent"},
}


def write_input(path: Path, rows: int) -> None:
    with open(path, "w") as file:
        for number in range(rows):
            file.write(json.dumps({**ROW, "uuid": str(number)}) + "\n")


def run(folder: Path, rows: int, concurrency: int, aggregate: bool) -> None:
    """Collect `rows` rollouts from the servers that are up, sampling the collector's memory."""
    write_input(folder / "input.jsonl", rows)
    words = [
        str(GYM), "eval", "run", "--no-serve", "--agent", "mcqa_simple_agent", "--input", "input.jsonl",
        "--output", f"out_{rows}/rollouts.jsonl", "--concurrency", str(concurrency),
    ]  # fmt: skip
    if not aggregate:
        words.append("--disable-aggregation")
    began = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
    watched = psutil.Process(process.pid)
    peak = collecting = 0.0
    cpu = 0.0
    while process.poll() is None:
        try:
            memory = watched.memory_info().rss / 1e6
            times = watched.cpu_times()
            cpu = times.user + times.system
        except psutil.NoSuchProcess:
            break
        peak = max(peak, memory)
        if not (folder / f"out_{rows}" / "rollouts_aggregate_metrics.json").exists():
            collecting = max(collecting, memory)
        time.sleep(0.02)
    wall = time.perf_counter() - began
    print(
        f"{rows:>7} rows: peak of the collector {peak:.0f} MB, {rows / wall:.0f} rollouts/s all in, "
        f"its own CPU {cpu / rows * 1000:.2f} ms per rollout, exit {process.returncode}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 50_000])
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--aggregate", action="store_true", help="with aggregate metrics, whose file lists every task")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, mock_endpoint() as url:
        folder = Path(name)
        start = [
            str(GYM), "env", "start", "--resources-server", "mcqa", "--model-type", "inference_provider",
            "--model-url", url, "--model", "mock", "--model-api-key", "dummy",
        ]  # fmt: skip
        servers = subprocess.Popen(start, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert servers.stdout is not None
        for line in servers.stdout:
            if b"servers ready! Polling" in line:
                break
        try:
            for rows in arguments.rows:
                before = sum(sum(process.cpu_times()[:2]) for process in tree(servers.pid))
                run(folder, rows, arguments.concurrency, arguments.aggregate)
                after = sum(sum(process.cpu_times()[:2]) for process in tree(servers.pid))
                print(f"        CPU of all servers {(after - before) / rows * 1000:.2f} ms per rollout")
        finally:
            servers.terminate()
            servers.wait()


if __name__ == "__main__":
    main()
