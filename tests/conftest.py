"""Shared by all tests: no state of the user's, and ways to run the real command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis
import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "backend.cli"]
_INHERITED = ("NEMO_GYM_EXTRA_ROOTS", "NEMO_GYM_CONFIG_DICT", "NEMO_GYM_CONFIG_FILE", "NEMO_GYM_CONFIG_PATH")


# How long an example takes says how busy the machine is, not whether it holds.
hypothesis.settings.register_profile("suite", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("suite")

_skips: list[tuple[str, str]] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _skips.append((report.nodeid, reason))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skip that is not listed with its reason fails the session: a test nobody runs must be a decision."""
    allowed = [line.split("#")[0].strip() for line in (ROOT / "tests" / "allowed_skips.txt").read_text().splitlines()]
    unlisted = [(node, reason) for node, reason in _skips if not any(entry and node.startswith(entry) for entry in allowed)]
    for node, reason in unlisted:
        print(f"\nskipped without being listed in tests/allowed_skips.txt: {node}: {reason}")
    if unlisted:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches and state go to a folder of the test; nothing of the caller's surroundings leaks in."""
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path_factory.getbasetemp() / "home"))
    for name in _INHERITED:
        monkeypatch.delenv(name, raising=False)


def _default_interrupt() -> None:
    """A user's terminal starts commands with SIGINT alive, whatever started the tests."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass
class Gym:
    """Runs `gym` in a folder, as a user would."""

    cwd: Path
    environment: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(self, *words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*COMMAND, *words], cwd=self.cwd, env=self._environment(), capture_output=True, text=True, timeout=timeout
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command in a session of its own; output goes to files `stdout` and `stderr` in the folder."""
        with open(self.cwd / "stdout", "w") as stdout, open(self.cwd / "stderr", "w") as stderr:
            process = subprocess.Popen(
                [*COMMAND, *words],
                cwd=self.cwd,
                env=self._environment(),
                stdout=stdout,
                stderr=stderr,
                text=True,
                start_new_session=True,
                preexec_fn=_default_interrupt,
            )
        self.started.append(process)
        return process

    def output(self) -> str:
        return (self.cwd / "stdout").read_text() + (self.cwd / "stderr").read_text()

    def wait_for(self, text: str, timeout: float = 30) -> str:
        """Wait until the started command has printed `text`."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if text in self.output():
                return self.output()
            if self.started and self.started[-1].poll() is not None and text not in self.output():
                break
            time.sleep(0.02)
        raise AssertionError(f"{text!r} was not printed within {timeout} s:\n{self.output()}")

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), **self.environment}


def processes_of(marker: str) -> list[psutil.Process]:
    """Living processes whose working folder or command line is below `marker`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if marker in " ".join(process.cmdline()) or process.cwd().startswith(marker):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def wait_until_gone(marker: str, timeout: float = 5) -> list[psutil.Process]:
    """The processes of `marker` that are left after `timeout` seconds at most."""
    deadline = time.monotonic() + timeout
    left = processes_of(marker)
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = processes_of(marker)
    return left


@pytest.fixture
def gym(tmp_path: Path) -> Iterator[Gym]:
    """The command in an empty folder; whatever it started is ended afterwards."""
    command = Gym(tmp_path)
    yield command
    for process in command.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


TINY_SERVER = """
from nemo_gym.base_resources_server import BaseResourcesServerConfig, BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer


class TinyServer(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        return BaseVerifyResponse(**body.model_dump(), reward=1.0)


if __name__ == "__main__":
    print("tiny is starting")
    TinyServer.run_webserver()
"""


@pytest.fixture
def tiny_tree(tmp_path: Path) -> Path:
    """A folder with one resources server `tiny`, and `tiny.yaml` with three instances of it."""
    folder = tmp_path / "resources_servers" / "tiny"
    folder.mkdir(parents=True)
    (folder / "app.py").write_text(TINY_SERVER)
    (folder / "requirements.txt").write_text("-e nemo-gym[dev] @ ../../\n")
    block = "{resources_servers: {tiny: {entrypoint: app.py, domain: other}}}"
    (tmp_path / "tiny.yaml").write_text("".join(f"tiny_{name}: {block}\n" for name in "abc"))
    return tmp_path


def unused_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def free_port() -> int:
    """A port that was free a moment ago."""
    return unused_port()
