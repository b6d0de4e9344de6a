"""Which processes stand below which: both ways of finding out, on real trees."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import psutil
import pytest

from backend.servers import process_tree
from backend.servers.process_tree import children_of, descendants

TREE = """
import subprocess, sys, threading
grandchild = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", grandchild])
started = threading.Event()
def in_a_thread():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    started.set()
    threading.Event().wait(60)
threading.Thread(target=in_a_thread, daemon=True).start()
started.wait()
print("begun", flush=True)
threading.Event().wait(60)
"""


@pytest.fixture(params=["as the kernel tells it", "all processes are read"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "all processes are read":
        monkeypatch.setattr(process_tree, "kernel_lists_children", lambda: False)


@pytest.fixture
def tree() -> Iterator[psutil.Process]:
    """A process with two children, one of them started by another thread, and a grandchild."""
    with subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        root = psutil.Process(process.pid)
        while len(root.children(recursive=True)) < 3:
            pass
        below = root.children(recursive=True)
        yield root
        for each in [root, *below]:
            each.kill()


def test_all_below_a_process_are_found(way: None, tree: psutil.Process) -> None:
    expected = {process.pid for process in tree.children(recursive=True)}
    found = descendants([tree.pid, os.getpid()])
    assert len(found[tree.pid]) == len(expected) == 3
    assert set(found[tree.pid]) == expected
    assert {tree.pid, *expected} <= set(found[os.getpid()])
    assert set(children_of(tree.pid)) == {process.pid for process in tree.children()}


def test_nothing_is_below_a_process_that_is_gone(way: None) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        assert descendants([process.pid]) == {process.pid: []}


def test_corpses_are_found_too(way: None) -> None:
    corpse = os.fork()
    if not corpse:
        os._exit(0)
    os.waitid(os.P_PID, corpse, os.WEXITED | os.WNOWAIT)
    try:
        assert corpse in children_of(os.getpid())
    finally:
        os.waitpid(corpse, 0)


def test_both_ways_agree_while_threads_come_and_go(tree: psutil.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            threading.Thread(target=lambda: None).start()

    helper = threading.Thread(target=come_and_go)
    helper.start()
    try:
        listed = [sorted(descendants([tree.pid])[tree.pid]) for _ in range(50)]
        monkeypatch.setattr(process_tree, "kernel_lists_children", lambda: False)
        assert all(each == sorted(descendants([tree.pid])[tree.pid]) for each in listed)
    finally:
        over.set()
        helper.join()
