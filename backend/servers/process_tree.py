"""Which processes stand below which: asked of the kernel where it tells, else found among all processes of the machine."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable


def descendants(pids: Iterable[int]) -> dict[int, list[int]]:
    """All processes below each of `pids`, corpses included; none below one that is gone."""
    children = _listing()
    return {pid: _below(pid, children) for pid in pids}


def children_of(pid: int) -> list[int]:
    """The processes whose parent is `pid`, corpses included."""
    return _listing()(pid)


@functools.cache
def kernel_lists_children() -> bool:
    """Whether `/proc/PID/task/TID/children` is there (Linux with that option): reading every process costs twenty times as much."""
    return os.path.exists(_children_file(str(os.getpid()), str(threading.get_native_id())))


def _below(pid: int, children: Callable[[int], list[int]]) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        nearest = children(waiting.pop())
        found.extend(nearest)
        waiting.extend(nearest)
    return found


def _listed_children(pid: int) -> list[int]:
    """Of all threads, because children belong to the one that made them."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # processes and threads end meanwhile
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(_children_file(str(pid), thread), "rb") as file:
                found.extend(map(int, file.read().split()))
    return found


def _children_file(pid: str, thread: str) -> str:
    return f"/proc/{pid}/task/{thread}/children"


def _listing() -> Callable[[int], list[int]]:
    """What gives the children of a process now."""
    if kernel_lists_children():
        return _listed_children
    table = _children_of_all()
    return lambda pid: table.get(pid, [])


def _children_of_all() -> dict[int, list[int]]:
    import psutil

    children: dict[int, list[int]] = {}
    for process in psutil.process_iter(["ppid"]):
        children.setdefault(process.info["ppid"], []).append(process.pid)
    return children
