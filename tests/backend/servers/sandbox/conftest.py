from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.backend.servers.sandbox.fake_docker import FAKE, Daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    home = tmp_path / "daemon"
    home.mkdir()
    program = home / "docker"
    program.write_text(FAKE.format(python=sys.executable, home=str(home)))
    program.chmod(0o755)
    return Daemon(home)
