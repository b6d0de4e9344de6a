"""How long `env resolve` and `env validate` take on shipped configurations, and their memory.

    .venv/bin/python tests/perf/config.py [--reference PATH/TO/REFERENCE/gym] [--root ITS/COMPONENTS]

`--root` adds the component tree of another installation as a search folder, so that its configurations are measured too. The budget of
each command is 0.5 s and 120 MB.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import GYM, wall_ms

from backend.config.request import ConfigRequest
from backend.config.resolve_view import resolve_view
from backend.config.validation import validate_config

BUDGET_MS = 500
BUDGET_MB = 120
MODEL = ("--model-type", "openai_model", "--model", "m", "--model-url", "http://127.0.0.1:9/v1", "--model-api-key", "dummy-key")
OURS = (("--benchmark", "first_steps"), ("--resources-server", "mcqa"))
THEIRS = (("--benchmark", "gpqa"), ("--environment", "workplace_assistant"), ("--resources-server", "math_with_judge"))
COMMANDS = (("validate", ("--strict",)), ("resolve", ()), ("resolve", ("--provenance", "--json")))


def peak_mb(command: list[str], cwd: Path) -> float:
    """Peak resident memory of a command, in MB."""
    script = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", script, *command], cwd=cwd, capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def commands(cwd: Path, root: Path | None, reference: str | None) -> None:
    """Whole commands, each in a process of its own."""
    search = ("--search-dir", str(root)) if root else ()
    for selector in (*OURS, *(THEIRS if root else ())):
        for name, flags in COMMANDS:
            command = [str(GYM), "env", name, *flags, *selector, *MODEL, *search]
            ours, memory = wall_ms(command, cwd), peak_mb(command, cwd)
            over = " OVER BUDGET" if ours > BUDGET_MS or memory > BUDGET_MB else ""
            line = f"gym env {name} {' '.join(flags)} {selector[1]}: {ours:.0f} ms, {memory:.0f} MB{over}"
            if reference and name == "validate" and selector not in OURS:
                other = [reference, "env", name, *flags, *selector, *MODEL]
                theirs = wall_ms(other, cwd, runs=1)
                line += f"; reference {theirs:.0f} ms, {peak_mb(other, cwd):.0f} MB, ratio {theirs / ours:.1f}"
            print(line, flush=True)


def every_file(cwd: Path, root: Path) -> None:
    """All files of a tree in one process: what one costs when nothing has to be imported."""
    files = [path for path in sorted(root.rglob("*.yaml")) if "site-packages" in path.parts or root in path.parents]
    entries = [
        str(path.relative_to(root))
        for path in files
        if path.relative_to(root).parts[0] in ("benchmarks", "environments", "resources_servers")
    ]
    for name, operation in (("validate_config", validate), ("resolve_view", view)):
        times = []
        for entry in entries:
            began = time.perf_counter()
            operation(ConfigRequest((entry,), search_dirs=(str(root),), cwd=cwd))
            times.append((time.perf_counter() - began) * 1000)
        times.sort()
        print(
            f"{name}: {len(times)} files, median {times[len(times) // 2]:.1f} ms, 95 % {times[len(times) * 95 // 100]:.0f} ms, most {times[-1]:.0f} ms"
        )
    print(f"peak memory of all that: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def validate(request: ConfigRequest) -> None:
    validate_config(request, strict=False)


def view(request: ConfigRequest) -> None:
    resolve_view(request)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", help="path of another gym to compare with")
    parser.add_argument("--root", type=Path, help="component tree to measure besides our own")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        commands(Path(folder), arguments.root, arguments.reference)
        if arguments.root:
            every_file(Path(folder), arguments.root)


if __name__ == "__main__":
    main()
