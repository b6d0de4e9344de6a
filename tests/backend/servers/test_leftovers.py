"""What has left the process group of its server is ended all the same, and reaped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from backend.servers import leftovers
from tests.conftest import ROOT

ADOPT = """
import json, os, subprocess, sys, time
from backend.servers.leftovers import adopt_leftovers, end_leftovers
from backend.servers.process_tree import descendants
adopt_leftovers()
# A shell that is gone at once leaves its background job to this process.
subprocess.run(["sh", "-c", sys.argv[1]], check=True)
deadline = time.monotonic() + 20
while time.monotonic() < deadline and not os.path.exists("begun"):
    time.sleep(0.01)
before = descendants([os.getpid()])[os.getpid()]
began = time.monotonic()
end_leftovers()
print(json.dumps({"before": len(before), "after": descendants([os.getpid()])[os.getpid()], "seconds": time.monotonic() - began}))
"""
IGNORES_TERM = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('begun', 'w'); time.sleep(600)"
OBEYS_TERM = """
import signal, sys, time
def leave(*_):
    open('cleaned', 'w')
    sys.exit()
signal.signal(signal.SIGTERM, leave)
open('begun', 'w')
time.sleep(600)
"""


def leave_behind(folder: Path, program: str, *arguments: str) -> dict[str, Any]:
    (folder / "program.py").write_text(program)
    words = " ".join([sys.executable, "program.py", *arguments])
    result = subprocess.run(
        [sys.executable, "-c", ADOPT, f"setsid {words} > /dev/null 2>&1 &"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def test_who_obeys_may_clean_up(tmp_path: Path) -> None:
    told = leave_behind(tmp_path, OBEYS_TERM)
    assert (told["before"], told["after"]) == (1, [])
    assert (tmp_path / "cleaned").exists()


def test_who_does_not_obey_is_killed_with_all_below(tmp_path: Path) -> None:
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n{IGNORES_TERM}"
    told = leave_behind(tmp_path, program)
    assert (told["before"], told["after"]) == (2, [])


def test_only_what_carries_the_mark_is_killed() -> None:
    code = "import time; print('x', flush=True); time.sleep(600)"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env={**os.environ, **mark}, stdout=subprocess.PIPE, start_new_session=True)
        for mark in ({"A_MARK": "one"}, {"A_MARK": "one-more"}, {})
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    leftovers.kill_marked("A_MARK", "one")
    codes = [process.poll() for process in processes]
    for process in processes:
        process.kill()
        process.communicate()
    assert codes == [-9, None, None]


def test_keepers_of_sandboxes_are_let_finish(tmp_path: Path) -> None:
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_DFL); open('begun', 'w'); time.sleep(0.8); open('deleted', 'w')"
    told = leave_behind(tmp_path, program, leftovers._KEEPER.decode())
    assert told["after"] == []
    assert (tmp_path / "deleted").exists()
