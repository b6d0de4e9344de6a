"""A child process begun without `subprocess`."""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from backend.servers.spawned import spawn_python


def python(code: str, *descriptors: int) -> list[str]:
    return ["-c", code, *map(str, descriptors)]


def test_it_has_what_it_was_given() -> None:
    read, write = os.pipe()
    code = (
        "import os, sys\n"
        "line = [os.environ['WORD'], os.getpgid(0) == os.getpid(), sys.stdin.read(), os.get_inheritable(int(sys.argv[1]))]\n"
        "os.write(int(sys.argv[1]), repr(line).encode())"
    )
    child = spawn_python(python(code, write), {"WORD": "x"}, [write])
    assert not os.get_inheritable(write)
    os.close(write)
    with open(read) as answer:
        assert answer.read() == repr(["x", True, "", True])
    assert child.wait(5) and child.returncode == 0


def test_how_it_ended_is_told_as_subprocess_tells_it() -> None:
    child = spawn_python(python("raise SystemExit(3)"), dict(os.environ), [])
    assert child.wait(20) and (child.poll(), child.returncode) == (3, 3)
    child = spawn_python(python("import time; time.sleep(600)"), dict(os.environ), [])
    assert child.poll() is None and not child.wait(0.02)
    child.kill()
    assert child.wait(20) and child.returncode == -signal.SIGKILL
    child.kill()  # it is gone, and its number may belong to somebody else


def test_threads_agree_on_how_it_ended() -> None:
    for _ in range(5):
        child = spawn_python(python("raise SystemExit(3)"), dict(os.environ), [])
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(child.wait, [20] * 8)) and child.returncode == 3


def test_somebody_else_may_have_waited_for_it() -> None:
    child = spawn_python(python("pass"), {"PATH": os.environ["PATH"]}, [])
    os.waitpid(child.pid, 0)
    assert child.wait(1) and child.returncode == 0


def test_its_interpreter_is_this_one() -> None:
    read, write = os.pipe()
    child = spawn_python(
        python("import os, sys; os.write(int(sys.argv[1]), sys.executable.encode())", write), dict(os.environ), [write]
    )
    os.close(write)
    with open(read) as answer:
        assert answer.read() == sys.executable
    assert child.wait(5)
