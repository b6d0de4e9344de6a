"""What the measuring scripts share: wall times of commands, memory of process trees, a mock endpoint."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
GYM = Path(sys.executable).with_name("gym")
MOCK_ENDPOINT = ROOT / "tests" / "conformance" / "mock_endpoint.py"


def wall_ms(command: list[str], cwd: Path, runs: int = 7) -> float:
    """Median wall time of a command in milliseconds, after one run that warms caches."""
    times = []
    for run in range(runs + 1):
        began = time.perf_counter()
        subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if run:
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def tree(pid: int) -> list[psutil.Process]:
    """A process and all its descendants."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def pss_mb(pid: int) -> float:
    """Sum of the proportional set sizes of a process tree, in MB."""
    return sum(process.memory_full_info().pss for process in tree(pid)) / 1e6


def rss_mb(pid: int) -> float:
    """Resident memory of one process, in MB."""
    return psutil.Process(pid).memory_info().rss / 1e6


@contextlib.contextmanager
def mock_endpoint(*options: str) -> Iterator[str]:
    """The mock endpoint in a process of its own; gives its base URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(MOCK_ENDPOINT), "--port", str(port), *options])
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def wait_for_port(port: int, timeout: float = 20) -> None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on {port}")


def stop(process: subprocess.Popen[bytes]) -> float:
    """SIGINT to a process; seconds until it is gone."""
    began = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    process.wait()
    return time.monotonic() - began


def forget_files(command: str) -> None:
    """Have the system let go of what it holds of the files of a command's environment, as it does after a while; Linux only."""
    python = Path(command).with_name("python")
    code = "import sys, sysconfig; print(sys.prefix, sysconfig.get_path('stdlib'), sep='\\n')"
    folders = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    own = [ROOT / name for name in ("backend", "nemo_gym", "resources_servers", "responses_api_agents", "responses_api_models")]
    for folder in [Path(command).parents[1], *folders, *own]:
        for path in Path(folder).rglob("*"):
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)
