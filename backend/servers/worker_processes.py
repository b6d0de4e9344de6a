"""Several processes that serve one instance together (`num_workers`): they share its listening socket, and a leader watches them.

State in memory belongs to the worker that has it, so only entry points with the documented branch
`elif is_nemo_gym_fastapi_entrypoint(__file__): app = X.run_webserver()` are served that way: writing it says that any worker may answer.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from backend.errors import GymError, Place
from backend.servers.guard import explain_end, leave_with_parent
from backend.servers.process_context import FAILED, READY, ProcessContext

if TYPE_CHECKING:  # a fresh interpreter imports this module before it knows where its libraries are
    from backend.config.resolution import ServerInstance

WORKER_VARIABLE = "IS_NEMO_GYM_FASTAPI_WORKER"
ENTRYPOINT_VARIABLE = "IS_NEMO_GYM_FASTAPI_ENTRYPOINT"
WORKER_COUNT_VARIABLE = "NEMO_GYM_FASTAPI_NUM_WORKERS"
_BRANCH_FUNCTION = "is_nemo_gym_fastapi_entrypoint"
_LAST_REPORT_SECONDS = 0.2
"""For what a worker said last to come through, before its leader explains its end."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One of `count` workers; `number` counts from 1. `report` is where it reports to its leader."""

    number: int
    count: int
    report: int


def require_worker_branch(instance: ServerInstance, folder: Path) -> None:
    """Raises `GymError` for an instance that asks for several workers of an entry point that is not made for them."""
    path = folder / instance.entrypoint
    if (instance.num_workers or 1) > 1 and not _has_worker_branch(path):
        key = f"{instance.name}.{instance.kind}.{instance.implementation}.num_workers"
        raise GymError(
            f"server `{instance.name}` cannot have {instance.num_workers} workers: each would keep sessions and other state of its own",
            hint=f"set ++{key}=1; an entry point that keeps no state says so with a branch "
            f"`elif {_BRANCH_FUNCTION}(__file__): app = ….run_webserver()`",
            place=Place(str(path)),
        )


def _has_worker_branch(path: Path) -> bool:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # the start of the server says what is wrong with it
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return any(_BRANCH_FUNCTION in (getattr(call, "id", None), getattr(call, "attr", None)) for call in calls)


def become_workers(count: int, context: ProcessContext, death_pipe: int, parent: int) -> Worker:
    """Fork `count` workers from this process, which must have one thread; returns in each of them.

    In the leader it never returns: the leader reports readiness when all workers are ready, hands SIGTERM on, and ends as soon as one
    worker has ended unasked; whoever watches the leader then ends its process group.
    """
    report_read, report_write = os.pipe()
    leader = os.getpid()
    workers: dict[int, int] = {}
    for number in range(1, count + 1):
        pid = os.fork()
        if not pid:
            os.close(report_read)
            if context.report is not None:
                os.close(context.report)
            leave_with_parent(death_pipe, leader)
            return Worker(number, count, report_write)
        workers[pid] = number
    os.close(report_write)
    if context.listener is not None:
        context.listener.close()
    return _lead(workers, context, report_read, death_pipe, parent)


def _lead(workers: dict[int, int], context: ProcessContext, report: int, death_pipe: int, parent: int) -> NoReturn:
    count = len(workers)
    stopping = threading.Event()
    failed = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()
        for pid in list(workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    leave_with_parent(death_pipe, parent)
    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=_pass_reports_on, args=(report, count, context, failed), daemon=True).start()
    while workers:
        pid, status = os.wait()
        number = workers.pop(pid)
        if not stopping.is_set():
            code = os.waitstatus_to_exitcode(status)
            if not failed.wait(_LAST_REPORT_SECONDS):
                context.report_failure(f"worker {number} of {count}: {explain_end(code)}")
            os._exit(code if code > 0 else 1)
    os._exit(0)


def _pass_reports_on(report: int, count: int, context: ProcessContext, failed: threading.Event) -> None:
    """Phases and failures of all workers as they come, readiness when the last one is ready."""
    ready = 0
    with os.fdopen(report, "rb") as lines:
        for line in lines:
            message = line.rstrip(b"\n")
            ready += message == READY
            if message != READY or ready == count:
                context.forward(message)
            if message.startswith(FAILED):
                failed.set()


def worker_application(kind: str, implementation: str, folder: str, entrypoint: str, worker: Worker) -> Any:
    """The `app` of an entry point, which is imported under its documented module name `<kind>.<implementation>.<stem>`."""
    os.environ[WORKER_VARIABLE] = "1"
    os.environ[ENTRYPOINT_VARIABLE] = f"{kind}/{implementation}/{entrypoint}"
    os.environ[WORKER_COUNT_VARIABLE] = str(worker.count)
    path = Path(folder, entrypoint)
    name = ".".join([kind, implementation, *Path(entrypoint).with_suffix("").parts])
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise GymError(f"the entry point {path} is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    application = getattr(module, "app", None)
    if application is None:
        raise GymError(f"the entry point {path} has made no `app` in a worker", hint=f"see its `{_BRANCH_FUNCTION}` branch")
    return application
