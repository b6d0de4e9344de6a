"""How long the quick commands take, and how soon three servers answer."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import GYM, mock_endpoint, pss_mb, stop, wall_ms

QUICK = {
    "--help": ["--help"],
    "--version": ["--version"],
    "list benchmarks": ["list", "benchmarks"],
    "list benchmarks --json": ["list", "benchmarks", "--json"],
    "env status": ["env", "status"],
    "env validate mcqa": ["env", "validate", "--resources-server", "mcqa", "--model-type", "openai_model"],
}
READY_LINE = "servers ready! Polling"


def quick_commands(cwd: Path, reference: str | None) -> None:
    base = wall_ms([sys.executable, "-c", "import argparse, json"], cwd)
    print(f"python -c 'import argparse, json': {base:.0f} ms; budget of --help: {2 * base + 60:.0f} ms")
    for name, words in QUICK.items():
        ours = wall_ms([str(GYM), *words], cwd)
        line = f"gym {name}: {ours:.0f} ms"
        if reference:
            theirs = wall_ms([reference, *words], cwd, runs=2)
            line += f", reference {theirs:.0f} ms, ratio {theirs / ours:.1f}"
        print(line)


def three_servers(command: str, cwd: Path, url: str) -> None:
    words = [
        command, "env", "start", "--resources-server", "mcqa", "--model-type", "inference_provider",
        "--model-url", url, "--model", "mock", "--model-api-key", "dummy",
    ]  # fmt: skip
    for run in range(3):
        began = time.perf_counter()
        process = subprocess.Popen(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        for line in process.stdout:
            if READY_LINE.encode() in line:
                break
        ready = time.perf_counter() - began
        memory = pss_mb(process.pid)
        print(
            f"run {run}: three servers ready after {ready:.2f} s, sum of PSS {memory:.0f} MB, stopped after {stop(process):.2f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", help="path of another gym to compare with")
    parser.add_argument("--env-yaml", type=Path, help="env.yaml for the other gym (where its prepared environments are)")
    arguments = parser.parse_args()
    reference = arguments.reference
    with tempfile.TemporaryDirectory() as folder, mock_endpoint() as url:
        quick_commands(Path(folder), reference)
        three_servers(str(GYM), Path(folder), url)
        if reference:
            print("reference:")
            if arguments.env_yaml:
                shutil.copy(arguments.env_yaml, Path(folder) / "env.yaml")
            three_servers(reference, Path(folder), url)


if __name__ == "__main__":
    main()
