"""A stack of three servers against the reference: time to ready, memory, what 1,000 rollouts cost and where, time to stop.

`--cold` measures starts only, each after the system was made to let go of the environment's files. `--latency` measures instead how the rate holds when the endpoint is slow and many rollouts are in flight.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import psutil
from measure import GYM, forget_files, mock_endpoint, stop, tree
from memory import write_input

READY = b"servers ready! Polling"


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds, MB, and CPU in milliseconds per rollout."""

    ready: float
    processes: int
    pss: float
    rss: float
    wall: float
    cpu: float
    stopped: float


def measure_cold(command: str, folder: Path, url: str, starts: int) -> float:
    """The fastest of starts whose files have to be read from the disk, in seconds."""
    words, _ = _stack(command, url, 1000)
    seconds = []
    for _ in range(starts):
        forget_files(command)
        servers, ready = _started(words, folder)
        seconds.append(ready)
        _stopped(servers)
    print(f"  ready after {', '.join(f'{each:.2f}' for each in seconds)} s, the fastest {min(seconds):.2f}")
    return min(seconds)


def measure(command: str, folder: Path, url: str, rows: int, concurrency: int, starts: int) -> Measured:
    """Stacks that are started and stopped, and on the last of them one run.

    `ready` is the fastest start. Ours is slow when its files have to be read from the disk, the reference's when a stack was stopped just before:
    a median of several starts would count the second against the reference, a single start the first against us.
    """
    words, head = _stack(command, url, max(1000, concurrency))
    seconds = []
    for _ in range(starts - 1):
        servers, ready = _started(words, folder)
        seconds.append(ready)
        _stopped(servers)
    servers, ready = _started(words, folder)
    seconds.append(ready)
    ready = min(seconds)
    processes = tree(servers.pid)
    pss = sum(process.memory_full_info().pss for process in processes) / 1e6
    rss = sum(process.memory_info().rss for process in processes) / 1e6
    before = _cpu_by_process(servers.pid)
    collect = [
        command, "eval", "run", "--no-serve", "--agent", "mcqa_simple_agent", "--input", "input.jsonl",
        "--output", f"out_{rows}_{concurrency}/rollouts.jsonl", "--concurrency", str(concurrency), *head,
    ]  # fmt: skip
    own_before = _children_cpu()
    began = time.perf_counter()
    done = subprocess.run(collect, cwd=folder, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - began
    collector = _children_cpu() - own_before
    after = _cpu_by_process(servers.pid)
    peak = sum(process.memory_full_info().pss for process in tree(servers.pid)) / 1e6
    share = {name: (after[name] - before.get(name, 0.0)) / rows * 1000 for name in after}
    total = collector / rows * 1000 + sum(share.values())
    output = folder / f"out_{rows}_{concurrency}" / "rollouts.jsonl"
    written = output.read_bytes().count(b"\n") if output.exists() else 0
    if done.returncode or written != rows:
        print(f"  exit {done.returncode}, {written} of {rows} rollouts written\n{done.stderr[-2000:]}")
    print(f"  ready after {', '.join(f'{each:.2f}' for each in seconds)} s, the fastest {ready:.2f}")
    print(f"  {len(processes)} processes, sum of PSS {pss:.0f} MB, of RSS {rss:.0f} MB")
    print(
        f"  {rows} rollouts, {concurrency} at once: {wall:.2f} s, {rows / wall:.0f}/s, {total:.2f} ms CPU each, PSS after it {peak:.0f} MB"
    )
    parts = {"collector": collector / rows * 1000, **share}
    print(
        "  "
        + ", ".join(f"{name} {value:.2f}" for name, value in sorted(parts.items(), key=lambda part: -part[1]) if value >= 0.01)
    )
    stopped = _stopped(servers)
    print(f"  stopped after {stopped:.2f} s")
    return Measured(ready, len(processes), pss, rss, wall, total, stopped)


def _stack(command: str, url: str, concurrency: int) -> tuple[list[str], list[str]]:
    """The words that start a stack of three, and those of them that name its head server."""
    head = ["++head_server.host=127.0.0.1", f"++head_server.port={_free_port()}"]
    words = [
        command, "env", "start", "--resources-server", "mcqa", "--model-type", "inference_provider",
        "--model-url", url, "--model", "mock", "--model-api-key", "dummy", *head,
        f"++policy_model.responses_api_models.inference_provider.num_concurrent_requests={concurrency}",
    ]  # fmt: skip
    return words, head


def _started(words: list[str], folder: Path) -> tuple[subprocess.Popen[bytes], float]:
    """A stack that is ready, and the seconds from its command to that."""
    began = time.perf_counter()
    servers = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    assert servers.stdout is not None
    if not any(READY in line for line in servers.stdout):
        raise SystemExit(f"{words[0]} did not start its servers")
    return servers, time.perf_counter() - began


def _stopped(servers: subprocess.Popen[bytes]) -> float:
    """Seconds until the stack is gone. What it says at its end would fill the pipe that nobody reads."""
    assert servers.stdout is not None
    servers.stdout.close()
    return stop(servers)


def compare(ours: Measured, theirs: Measured) -> None:
    print(
        f"ratios: ready {theirs.ready / ours.ready:.1f}x, PSS 1/{theirs.pss / ours.pss:.1f}, rollouts {theirs.wall / ours.wall:.1f}x, "
        f"CPU per rollout 1/{theirs.cpu / ours.cpu:.1f}, stop {theirs.stopped / ours.stopped:.1f}x"
    )


def _cpu_by_process(pid: int) -> dict[str, float]:
    seconds: dict[str, float] = defaultdict(float)
    for process in tree(pid):
        times = process.cpu_times()
        seconds[process.name()] += times.user + times.system
    return dict(seconds)


def _children_cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", help="path of another gym to compare with")
    parser.add_argument("--env-yaml", type=Path, help="env.yaml for the other gym (where its prepared environments are)")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--starts", type=int, default=3, help="of which the fastest counts; all are printed")
    parser.add_argument("--cold", action="store_true", help="starts only, with files that have to be read from the disk")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[64])
    parser.add_argument("--latency", type=float, default=0.0, help="seconds the endpoint takes to answer")
    arguments = parser.parse_args()
    options = ("--latency", str(arguments.latency)) if arguments.latency else ()
    print(f"{psutil.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name, mock_endpoint(*options) as url:
        folder = Path(name)
        write_input(folder / "input.jsonl", arguments.rows)
        other = folder / "reference"
        other.mkdir()
        shutil.copy(folder / "input.jsonl", other / "input.jsonl")
        if arguments.env_yaml:
            shutil.copy(arguments.env_yaml, other / "env.yaml")
        if arguments.cold:
            print("ours:")
            own_ready = measure_cold(str(GYM), folder, url, arguments.starts)
            if arguments.reference:
                print("reference:")
                print(f"ratio: ready {measure_cold(arguments.reference, other, url, arguments.starts) / own_ready:.1f}x")
            return
        for concurrency in arguments.concurrency:
            print("ours:")
            ours = measure(str(GYM), folder, url, arguments.rows, concurrency, arguments.starts)
            if arguments.reference:
                print("reference:")
                compare(ours, measure(arguments.reference, other, url, arguments.rows, concurrency, arguments.starts))


if __name__ == "__main__":
    main()
