"""The life of one server process: from the fork, or a fresh interpreter, to its end."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import pickle
import random
import runpy
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from backend.errors import GymError
from backend.servers.environments.site_folders import take_on_environment
from backend.servers.folders import REQUIREMENT_FILES
from backend.servers.guard import leave_with_parent, name_process
from backend.servers.process_context import ProcessContext, enter_process_context, process_context
from backend.servers.worker_processes import Worker, become_workers, worker_application

HEAD_SERVER_KIND = "head_server"


@dataclass(frozen=True, slots=True)
class ServerOrder:
    """What a process is asked to be. `instances` is for the head server: what it tells about the others."""

    name: str
    kind: str
    implementation: str
    folder: str
    entrypoint: str
    instances: tuple[dict[str, Any], ...] = ()
    workers: int = 1
    python: str = ""
    """Interpreter of an environment of its own; empty for this program's, from which the server is forked."""
    layer: str = ""
    """That environment, where a forked process can take it on."""
    import_path: tuple[str, ...] = ()
    """Goes in front of the `PYTHONPATH` of such an interpreter."""
    fallback_path: tuple[str, ...] = ()
    """Goes to the end of its `sys.path`."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ServerOrder:
        """The order that `to_json` gave."""
        return cls(**value)


@dataclass(frozen=True, slots=True)
class ChildDescriptors:
    """What a server process inherits: its listening socket, where its output goes, its report pipe, the death pipe."""

    listener: int
    output: int
    report: int
    death_pipe: int

    def all(self) -> tuple[int, ...]:
        return (self.listener, self.output, self.report, self.death_pipe)


def live(
    order: ServerOrder, settings: dict[str, Any], descriptors: ChildDescriptors, parent: int, *, is_configured: bool = False
) -> NoReturn:
    """Be the server that `order` describes, with `settings` (`config`, `config_text`, `session_secret`); never returns.

    `is_configured` says that this process has the configuration already, from the one it was forked from.
    """
    code = 1
    try:
        _settle_in(descriptors)
        name_process(order.name)
        config = settings["config"]
        context = ProcessContext(
            listener=socket.socket(fileno=descriptors.listener),
            report=descriptors.report,
            session_secret=settings.get("session_secret"),
            dry_run=bool(config.get("dry_run")),
        )
        enter_process_context(context)
        worker = None
        if order.workers > 1 and not context.dry_run:
            worker = become_workers(order.workers, context, descriptors.death_pipe, parent)
            context.report = worker.report
        else:
            leave_with_parent(descriptors.death_pipe, parent)
        random.seed()
        if not is_configured:
            from backend.config.global_config import set_global_config_dict

            set_global_config_dict(config)
        code = _serve(order, config, settings["config_text"], worker)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
        if code:
            _tell(f"left with exit code {code}")
    except BaseException as error:
        _report(error)
    finally:
        _leave(code)


def _leave(code: int) -> NoReturn:
    """Do what was registered to be done at exit, and end with `code`, or by the signal that had ended the serving."""
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    number = process_context().ended_by
    if number is not None and not code:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(code)


def _settle_in(descriptors: ChildDescriptors) -> None:
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    os.dup2(descriptors.output, 1)
    os.dup2(descriptors.output, 2)
    os.close(descriptors.output)
    # New objects: the inherited ones keep the seek state of whatever file they were opened on.
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def _serve(order: ServerOrder, config: Mapping[str, Any], config_text: str, worker: Worker | None) -> int:
    from backend.config.global_config import hand_down_config
    from backend.servers.http_client import client_settings, configure_http_client

    logging.basicConfig(
        level=logging.DEBUG if config.get("verbose") else logging.WARNING,
        stream=sys.stderr,
        format="%(levelname)s %(name)s: %(message)s",
        force=True,
    )
    configure_http_client(client_settings(config, processes=worker.count if worker is not None else 1))
    os.environ["NEMO_GYM_CONFIG_PATH"] = order.name
    if order.kind == HEAD_SERVER_KIND:
        from backend.servers.head_server import serve_head

        serve_head(config, order.instances)
        return 0
    hand_down_config(config_text)
    if order.layer:
        take_on_environment(Path(order.layer))
    import nemo_gym  # noqa: F401 - puts the roots and the command's folder onto sys.path, as the entry point expects

    os.chdir(order.folder)
    sys.path.insert(0, order.folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [order.folder, os.environ.get("PYTHONPATH")]))
    if config.get("uv_cache_dir"):
        os.environ["UV_CACHE_DIR"] = str(config["uv_cache_dir"])
    sys.argv = [order.entrypoint]
    if worker is None:
        _run_entrypoint(os.path.join(order.folder, order.entrypoint))
        return 0
    from backend.servers.serve import serve

    application = worker_application(order.kind, order.implementation, order.folder, order.entrypoint, worker)
    block = config[order.name][order.kind][order.implementation]
    serve(application, host=block["host"], port=block["port"], config=config)
    return 0


def _run_entrypoint(path: str) -> None:
    runpy.run_path(path, run_name="__main__")


def _report(error: BaseException) -> None:
    """Tell the supervisor in one line what ended this server, and its own output the whole of it."""
    if isinstance(error, KeyboardInterrupt):
        return
    if isinstance(error, GymError):
        sys.stderr.write(f"error: {error}\n")
        _tell("\n".join([error.message, *error.details]), error.hint, told=True)
    else:
        traceback.print_exception(error.with_traceback(_from_the_entry_point(error.__traceback__)))
        _tell(traceback.format_exception_only(error)[-1].strip(), _how_to_mend(error))


def _from_the_entry_point(frames: TracebackType | None) -> TracebackType | None:
    """`frames` without those that lead to the server's own code."""
    ours = {code.co_filename for code in (live.__code__, runpy.run_path.__code__)}
    while frames is not None and frames.tb_frame.f_code.co_filename in ours:
        frames = frames.tb_next
    return frames


def _how_to_mend(error: BaseException) -> str | None:
    """For a module that is not there, where to ask for its package. This runs in the server's folder."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    files = [name for name in REQUIREMENT_FILES if os.path.isfile(name)]
    return f"name the package that has `{error.name}` in {os.path.join(os.getcwd(), files[0])}" if files else None


def _tell(reason: str, hint: str | None = None, *, told: bool = False) -> None:
    with contextlib.suppress(OSError):
        process_context().report_failure(reason, hint, told=told)


def main() -> None:
    """Entry of a fresh interpreter: the order, the settings, the descriptors and the parent come pickled on standard input."""
    message = pickle.load(sys.stdin.buffer)
    with open(os.devnull, "rb") as nothing:  # what the server starts must not find the settings there
        os.dup2(nothing.fileno(), 0)
    order = ServerOrder.from_json(message["order"])
    sys.path.extend(entry for entry in order.fallback_path if entry not in sys.path)
    live(order, message["settings"], ChildDescriptors(**message["descriptors"]), message["parent"])


if __name__ == "__main__":
    main()
