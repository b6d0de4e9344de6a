"""The process from which servers are forked: it has the web stack imported, one thread, and no event loop.

A forked server is ready after 0.03 s of CPU time instead of 0.8 s and shares its memory with the others. Run as
`python -m backend.servers.warm_parent CONTROL_FD DEATH_PIPE_FD COMMAND_PID`; it obeys messages on the control socket and reports what happens to
its children. It ends, and they with it, when the control socket or the death pipe closes.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from backend.io.roots import INSTALL_ROOT
from backend.servers.child import ChildDescriptors, ServerOrder, live
from backend.servers.environments.site_folders import activated
from backend.servers.frames import FrameReader, send_frame
from backend.servers.guard import die_with_parent, outlive_parent
from backend.servers.late_trust import certificates_read_when_used
from backend.servers.leftovers import adopt_leftovers, end_leftovers
from backend.servers.process_context import FAILED, PHASE, READY

PRELOADED = (
    "asyncio",
    "orjson",
    "uvicorn",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
    "nemo_gym.base_resources_server",
    "nemo_gym.base_responses_api_agent",
    "nemo_gym.base_responses_api_model",
    "nemo_gym.responses_converter",
    "backend.servers.head_server",
    "backend.servers.serve",
)


_CANNOT_START = 127
"""As shells say it."""


@dataclass(slots=True)
class _State:
    control: socket.socket
    death_pipe: int
    selector: selectors.BaseSelector
    settings: dict[str, Any] = field(default_factory=dict)
    is_configured: bool = False
    """Whether this process has the settings' configuration as its own."""
    names: dict[int, str] = field(default_factory=dict)
    """pid -> name of the children that run."""


def main(arguments: list[str]) -> None:
    """Import, report, and serve orders until the other side is gone."""
    control = socket.socket(fileno=int(arguments[0]))
    death_pipe = int(arguments[1])
    _close_all_but({0, 1, 2, control.fileno(), death_pipe})
    die_with_parent(int(arguments[2]))  # while it imports, it watches nothing
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)  # a batch system sends it to every process; the command decides what ends when
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _import_stack()
    outlive_parent()
    adopt_leftovers()
    state = _State(control, death_pipe, selectors.DefaultSelector())
    state.selector.register(control, selectors.EVENT_READ, "control")
    state.selector.register(death_pipe, selectors.EVENT_READ, "death")
    state.selector.register(wakeup_read, selectors.EVENT_READ, "signal")
    send_frame(control, {"is": "warm", "threads": _thread_count()})
    try:
        _obey_until_alone(state, wakeup_read)
    finally:
        # Whole groups: the kernel ends a server with its parent, but not the tools that the server had started.
        for pid in state.names:
            _kill_group(pid)
        end_leftovers()
    with contextlib.suppress(Exception):  # it only helps the next start
        from backend.servers.read_ahead import note_files

        note_files()


def _obey_until_alone(state: _State, wakeup: int) -> None:
    reader = FrameReader()
    while True:
        for key, _ in state.selector.select():
            if key.data == "death":
                return
            if key.data == "control":
                messages = reader.receive(state.control)
                if messages is None:
                    return
                for message in messages:
                    _obey(message, reader, state)
            elif key.data == "signal":
                os.read(wakeup, 4096)
                _reap(state)
            else:
                _forward_report(key, state)


def _import_stack() -> None:
    """Import what servers need. All of it stays: collections pass it over, in servers too, which would copy its pages by looking at them."""
    import importlib

    gc.disable()
    with _models_built_when_used(), certificates_read_when_used():
        import aiohttp  # noqa: F401
        import fastapi  # noqa: F401
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    gc.enable()


@contextlib.contextmanager
def _models_built_when_used() -> Iterator[None]:
    """FastAPI has some 40 models for its OpenAPI document: a tenth of a second, for a document that hardly anybody asks a server for."""
    from pydantic import BaseModel, ConfigDict

    usual = BaseModel.model_config
    BaseModel.model_config = ConfigDict(defer_build=True)
    try:
        yield
    finally:
        BaseModel.model_config = usual


def _thread_count() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def _obey(message: dict[str, Any], reader: FrameReader, state: _State) -> None:
    if message["do"] == "settings":
        _take_on_environment(message["environment"])
        state.settings = message["settings"]
        with contextlib.suppress(Exception):  # whatever is wrong with it, a server tells it
            _share_configuration(state)
    elif message["do"] == "spawn":
        listener, output = reader.take(2)
        _spawn(ServerOrder.from_json(message["order"]), listener, output, fresh=message["fresh"], state=state)
    elif message["do"] == "signal":
        for pid, name in state.names.items():
            if name == message["name"]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, message["signal"])


def _take_on_environment(changed: dict[str, str]) -> None:
    """What the command has set since this process began, for servers and for where they import from."""
    import nemo_gym

    os.environ.update(changed)
    nemo_gym.arrange_path()


def _share_configuration(state: _State) -> None:
    """Make the configuration what servers see of it, once for all of those that are forked."""
    from backend.config.global_config import set_global_config_dict

    set_global_config_dict(state.settings["config"])
    state.is_configured = True


def _spawn(order: ServerOrder, listener: int, output: int, *, fresh: bool, state: _State) -> None:
    report_read, report_write = os.pipe()
    descriptors = ChildDescriptors(listener, output, report_write, state.death_pipe)
    try:
        pid = _start_fresh(order, descriptors, state) if fresh else _fork(order, descriptors, state)
    except OSError as error:
        os.close(report_read)
        reason = f"its interpreter {order.python or sys.executable} cannot be started: {error.strerror}"
        send_frame(state.control, {"is": "failed", "name": order.name, "reason": reason, "hint": None, "told": True})
        send_frame(state.control, {"is": "ended", "name": order.name, "pid": 0, "code": _CANNOT_START})
        return
    finally:
        for descriptor in (listener, output, report_write):
            os.close(descriptor)
    state.names[pid] = order.name
    state.selector.register(report_read, selectors.EVENT_READ, ("report", order.name))
    send_frame(state.control, {"is": "started", "name": order.name, "pid": pid})


def _fork(order: ServerOrder, descriptors: ChildDescriptors, state: _State) -> int:
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):  # the child does the same; whoever is first
            os.setpgid(pid, pid)
        return pid
    try:
        state.selector.close()
        _close_all_but({0, 1, 2, *descriptors.all()})
        live(order, state.settings, descriptors, parent, is_configured=state.is_configured)
    finally:
        os._exit(1)


def _start_fresh(order: ServerOrder, descriptors: ChildDescriptors, state: _State) -> int:
    message = {
        "order": order.to_json(),
        "settings": state.settings,
        "descriptors": asdict(descriptors),
        "parent": os.getpid(),
    }
    environment = dict(os.environ)
    if order.python:
        environment = activated(environment, order.python)
        # The parent's own entries may hold libraries that this environment has in other versions.
        inherited = [
            entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != str(INSTALL_ROOT)
        ]
        environment["PYTHONPATH"] = os.pathsep.join([*order.import_path, *inherited])
    # A file and not a pipe: nobody waits for an interpreter that is slow to read, or that dies before it does.
    with tempfile.TemporaryFile() as letter:
        pickle.dump(message, letter)
        letter.seek(0)
        process = subprocess.Popen(
            [order.python or sys.executable, "-P", "-m", "backend.servers.child"],
            stdin=letter,
            pass_fds=descriptors.all(),
            process_group=0,
            env=environment,
        )
    process.returncode = 0  # reaped below by pid; Popen must not wait for it as well
    return process.pid


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _close_all_but(keep: set[int]) -> None:
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        numbers = list(range(256))
    for number in numbers:
        if number not in keep:
            with contextlib.suppress(OSError):
                os.close(number)


def _reap(state: _State) -> None:
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        if ended.si_pid in state.names:  # and nothing that was adopted
            _kill_group(ended.si_pid)  # before its number is given back
        pid, status = os.waitpid(ended.si_pid, 0)
        name = state.names.pop(pid, None)
        if name is None:
            continue
        # A last report may still wait in the pipe; it explains the end and must be told first.
        for key in [key for key in state.selector.get_map().values() if key.data == ("report", name)]:
            os.set_blocking(key.fd, False)
            with contextlib.suppress(BlockingIOError):
                _forward_report(key, state)
        send_frame(state.control, {"is": "ended", "name": name, "pid": pid, "code": os.waitstatus_to_exitcode(status)})


def _forward_report(key: selectors.SelectorKey, state: _State) -> None:
    if state.selector.get_map().get(key.fd) is not key:  # closed already, when the server's end was noticed
        return
    name = key.data[1]
    data = os.read(key.fd, 1 << 16)
    if not data:
        state.selector.unregister(key.fd)
        os.close(key.fd)
    for message in data.splitlines():
        if message == READY:
            send_frame(state.control, {"is": "ready", "name": name})
        elif message.startswith(PHASE):
            send_frame(state.control, {"is": "phase", "name": name, "phase": message[1:].decode()})
        elif message.startswith(FAILED):
            send_frame(state.control, {"is": "failed", "name": name, **json.loads(message[1:])})


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        main(sys.argv[1:])
    os._exit(0)
