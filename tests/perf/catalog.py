"""How long listings and searches of a large component tree take, cold and warm, with peak memory; and what each key costs in a filter."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from measure import GYM

from backend.catalog.listing import likely_names, whole_catalog
from backend.catalog.query import parse_query, rank

COMMANDS = {
    "list benchmarks": ["list", "benchmarks", "--json"],
    "list environments": ["list", "environments", "--json"],
    "list agents": ["list", "agents", "--json"],
    "list models": ["list", "models", "--json"],
    "list resources-servers": ["list", "resources-servers", "--json"],
    "search math": ["search", "math", "--json"],
    "inspect a benchmark": ["list", "benchmarks", "gpqa", "--json"],
}
TYPED = "math ver"


def run(command: list[str], cwd: Path, home: Path | None = None) -> tuple[float, float]:
    """Wall seconds and peak resident megabytes of a command."""
    environment = {**os.environ, "GYM_TUI_HOME": str(home)} if home else dict(os.environ)
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def measure_commands(components: Path, reference: str | None, folder: Path, runs: int) -> None:
    for number, (name, words) in enumerate(COMMANDS.items()):
        ours = [str(GYM), *words, "--search-dir", str(components)]
        cold = [run(ours, folder, folder / f"home-{number}-{attempt}") for attempt in range(runs)]
        warm = [run(ours, folder, folder / f"home-{number}-0") for _ in range(runs)]
        cold_time, warm_time = (statistics.median(seconds for seconds, _ in results) for results in (cold, warm))
        memory = max(megabytes for _, megabytes in (*cold, *warm))
        line = f"{name}: cold {cold_time:.2f} s, warm {warm_time:.2f} s, {memory:.0f} MB"
        if reference:
            theirs, their_memory = run([reference, *words], folder)
            line += f"; reference {theirs:.1f} s, {their_memory:.0f} MB; ratio {theirs / cold_time:.0f} cold, {theirs / warm_time:.0f} warm"
        print(line, flush=True)


def measure_screen(components: Path, folder: Path) -> None:
    """What a screen does in its own process: names, then everything, then one filter for each key typed."""
    os.environ["GYM_TUI_HOME"] = str(folder / "home-screen")
    steps = {
        "likely names": lambda: likely_names(("benchmark", "environment", "agent", "model", "resources-server"), [components]),
        "whole catalogue, cold": lambda: whole_catalog([components]),
        "whole catalogue, warm": lambda: whole_catalog([components]),
    }
    for name, step in steps.items():
        began = time.perf_counter()
        found = step()
        print(f"{name}: {(time.perf_counter() - began) * 1000:.0f} ms")
    entries = found.entries
    times = []
    for length in range(1, len(TYPED) + 1):
        began = time.perf_counter()
        rank(entries, parse_query(TYPED[:length]))
        times.append((time.perf_counter() - began) * 1000)
    print(f"filter of {len(entries)} entries per key: median {statistics.median(times):.1f} ms, most {max(times):.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("components", type=Path, help="folder with benchmarks/, resources_servers/ and so on")
    parser.add_argument("--reference", help="path of another gym to compare with; it lists the components it is installed with")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    components = arguments.components.absolute()
    with tempfile.TemporaryDirectory() as folder:
        measure_screen(components, Path(folder))
        measure_commands(components, arguments.reference, Path(folder), arguments.runs)


if __name__ == "__main__":
    main()
