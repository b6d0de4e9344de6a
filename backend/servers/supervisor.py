"""Starts the servers of a configuration, watches them, and stops them all together."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import secrets
import signal
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config.resolution import ResolvedConfig, ServerInstance
from backend.errors import GymError
from backend.events import Event
from backend.servers.addresses import server_url
from backend.servers.child import HEAD_SERVER_KIND, ServerOrder
from backend.servers.folders import missing_requirements, server_folder
from backend.servers.ports import HEAD_SERVER_NAME, bind_stack
from backend.servers.server_events import ServerEnded, ServerReady, ServerStarted, StackProgress, StackReady, StackStarting
from backend.servers.server_output import OutputSink, OutputSinks, log_name, pump_lines
from backend.servers.warm_parent_link import WarmParentLink

STOP_GRACE_SECONDS = 3.0
PROGRESS_INTERVAL_SECONDS = 30.0
_LAST_LINES = 20
_DRAIN_SECONDS = 0.5
_SIGNAL_EXPLANATIONS = {signal.SIGKILL: "killed, perhaps for lack of memory", signal.SIGSEGV: "crashed in native code"}


class ServerDied(GymError):
    """A server ended although nobody asked it to."""


@dataclass(slots=True)
class ServerProcess:
    """One server of a stack, as far as it has come."""

    name: str
    url: str
    instance: ServerInstance | None
    """None for the head server."""
    folder: str = ""
    pid: int = 0
    ready: bool = False
    ended: int | None = None
    failure: dict[str, Any] = field(default_factory=dict)
    """`reason`, `hint` and `told`, from a server that could say why it ends."""
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    drained: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class StackOptions:
    """`log_folder`: one file per server is written there, `append_logs` after what it holds. `on_output`: gets every line.

    `any_head_port`: when the default head port is taken, use another one; right when nobody else must find this stack.
    """

    log_folder: Path | None = None
    append_logs: bool = True
    on_output: OutputSink | None = None
    any_head_port: bool = False


class Stack:
    """The running servers of one configuration.

    Use as `async with Stack(...)`: leaving the block, by whatever way, stops every process. `config` is the configuration as the
    servers have it, ports included, once `start` has yielded `StackStarting`.
    """

    def __init__(self, resolved: ResolvedConfig, link: WarmParentLink, options: StackOptions) -> None:
        self.resolved = resolved
        self.options = options
        self.config: dict[str, Any] = {}
        self.processes: dict[str, ServerProcess] = {}
        self._link = link
        self._began = time.monotonic()
        self._start_time = time.time()
        self._changes: asyncio.Queue[Event] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._warm = asyncio.Event()
        self._link_lost = False

    async def __aenter__(self) -> Stack:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.stop()

    @property
    def head_url(self) -> str:
        head = self.config["head_server"]
        return server_url(head["host"], head["port"])

    def instances(self) -> list[dict[str, Any]]:
        """The servers as the head server describes them, in configuration order."""
        return [
            {
                "config_path": process.name,
                "dir_path": process.folder,
                "entrypoint": process.instance.entrypoint,
                "host": process.instance.host,
                "name": process.instance.implementation,
                "pid": process.pid,
                "port": int(process.url.rpartition(":")[2]),
                "process_name": process.name,
                "server_type": process.instance.kind,
                "start_time": self._start_time,
                "status": None,
                "uptime_seconds": None,
                "url": process.url,
            }
            for process in self.processes.values()
            if process.instance is not None
        ]

    async def start(self) -> AsyncGenerator[Event, None]:
        """Start everything; the last event is `StackReady`.

        Raises `ServerDied` naming the first server that ended, with its last lines; `GymError` for a folder, requirement or port
        that is not there.
        """
        orders = self._prepare_orders()
        listeners = self._bind()
        try:
            yield StackStarting(tuple(orders), self.head_url)
            self._tasks.append(asyncio.create_task(self._follow_link()))
            await self._wait_until_warm()
            self._link.send({"do": "settings", "settings": {"config": self.config, "session_secret": secrets.token_hex(32)}})
            for name, order in orders.items():
                await self._spawn(order, listeners.pop(name))
            async for event in self._wait_for_pids(set(orders)):
                yield event
            head = ServerOrder(HEAD_SERVER_NAME, HEAD_SERVER_KIND, "", "", "", tuple(self.instances()))
            await self._spawn(head, listeners.pop(HEAD_SERVER_NAME))
        finally:
            for listener in listeners.values():
                listener.close()
        if self.config.get("dry_run"):
            await self._wait_until_dry_run_is_over()
            return
        async for event in self._wait_until_ready():
            yield event
        yield StackReady(time.monotonic() - self._began, tuple(self.instances()))

    async def while_alive(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """Pass `events` on for as long as all servers live; raises `ServerDied`, and closes `events`, as soon as one has ended."""
        death = asyncio.ensure_future(self._wait_for_a_death())
        try:
            async with aclosing(events):
                while True:
                    step = asyncio.ensure_future(anext(events))
                    try:
                        await asyncio.wait({step, death}, return_when=asyncio.FIRST_COMPLETED)
                        if death.done():
                            death.result()
                        event = await step
                    except StopAsyncIteration:
                        return
                    finally:
                        await _cancelled(step)
                    yield event
        finally:
            await _cancelled(death)

    async def _wait_for_a_death(self) -> None:
        while True:
            self._raise_if_dead(await self._changes.get())

    async def _wait_until_dry_run_is_over(self) -> None:
        """Every server has constructed itself and left; raises `GymError` for those that could not."""
        servers = [process for process in self.processes.values() if process.instance is not None]
        while any(process.ended is None for process in servers):
            event = await self._changes.get()
            if isinstance(event, ServerEnded) and not event.name:
                self._raise_if_dead(event)
        failed = [process for process in servers if process.ended]
        if failed:
            details = [f"`{process.name}` exited with {process.ended}: {process.failure.get('reason', '')}" for process in failed]
            raise GymError("dry run failed", details=[line.rstrip(": ") for line in details])

    async def stop(self) -> None:
        """End every process: SIGTERM to all at once, SIGKILL after 3 s to those that are left. Safe to call twice."""
        began = time.monotonic()
        self._stopping = True
        alive = [process for process in self.processes.values() if process.pid and process.ended is None]
        for process in alive:
            self._link.send({"do": "signal", "name": process.name, "signal": int(signal.SIGTERM)})
        deadline = began + STOP_GRACE_SECONDS
        while not self._link_lost and any(process.ended is None for process in alive) and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.01, deadline - time.monotonic())):
                    await self._changes.get()
        for process in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        await asyncio.to_thread(self._link.close)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def _prepare_orders(self) -> dict[str, ServerOrder]:
        if not self.resolved.servers:
            raise GymError(
                "the configuration has no server to start",
                hint="select servers with --benchmark, --resources-server, --model-type or --config",
            )
        orders = {}
        for instance in self.resolved.servers:
            folder = server_folder(instance, self.resolved.roots)
            missing = missing_requirements(folder)
            if missing:
                raise GymError(
                    f"server `{instance.name}` needs packages that are not installed: {', '.join(missing)}",
                    hint=f"install them with: uv pip install {' '.join(repr(line) for line in missing)}",
                )
            orders[instance.name] = ServerOrder(
                instance.name, instance.kind, instance.implementation, str(folder), instance.entrypoint
            )
        return orders

    def _bind(self) -> dict[str, socket.socket]:
        """Bind a socket for every server and the head, and complete `config` with the ports."""
        self.config = copy.deepcopy(dict(self.resolved.tree))
        listeners = bind_stack(self.resolved.servers, self.config, any_head_port=self.options.any_head_port)
        for instance in self.resolved.servers:
            block = self.config[instance.name][instance.kind][instance.implementation]
            folder = str(server_folder(instance, self.resolved.roots))
            url = server_url(block["host"], block["port"])
            self.processes[instance.name] = ServerProcess(instance.name, url, instance, folder)
        self.processes[HEAD_SERVER_NAME] = ServerProcess(HEAD_SERVER_NAME, self.head_url, None)
        return listeners

    async def _spawn(self, order: ServerOrder, listener: socket.socket) -> None:
        output_read, output_write = os.pipe()
        try:
            listener.set_inheritable(True)
            message = {"do": "spawn", "order": order.to_json(), "fresh": not hasattr(os, "fork") or not _forking_is_safe()}
            self._link.send(message, (listener.fileno(), output_write))
        finally:
            listener.close()
            os.close(output_write)
        self._tasks.append(asyncio.create_task(self._pump_output(self.processes[order.name], output_read)))

    async def _follow_link(self) -> None:
        async for message in self._link.messages():
            if message["is"] == "warm":
                self._warm.set()
                continue
            process = self.processes[message["name"]]
            if message["is"] == "started":
                process.pid = message["pid"]
                instance = process.instance
                kind, implementation = (instance.kind, instance.implementation) if instance else (HEAD_SERVER_KIND, "")
                self._changes.put_nowait(ServerStarted(process.name, kind, implementation, process.pid, process.url))
            elif message["is"] == "ready":
                process.ready = True
                self._changes.put_nowait(ServerReady(process.name, time.monotonic() - self._began))
            elif message["is"] == "failed":
                process.failure = message
            elif message["is"] == "ended":
                process.ended = message["code"]
                self._tasks.append(asyncio.create_task(self._announce_end(process, message["code"])))
        self._link_lost = True
        self._warm.set()
        if not self._stopping:
            self._changes.put_nowait(ServerEnded("", self._link.process.poll() or 0))

    async def _announce_end(self, process: ServerProcess, code: int) -> None:
        with contextlib.suppress(TimeoutError):  # its last lines explain its end
            async with asyncio.timeout(_DRAIN_SECONDS):
                await process.drained.wait()
        self._changes.put_nowait(ServerEnded(process.name, code))

    async def _wait_until_warm(self) -> None:
        await self._warm.wait()
        if self._link_lost:
            raise ServerDied("the process that starts the servers ended before it was ready")

    async def _wait_for_pids(self, names: set[str]) -> AsyncIterator[Event]:
        waiting = set(names)
        while waiting:
            event = await self._changes.get()
            if isinstance(event, ServerStarted):
                waiting.discard(event.name)
            yield event
            self._raise_if_dead(event)

    async def _wait_until_ready(self) -> AsyncIterator[Event]:
        servers = [process for process in self.processes.values() if process.instance is not None]
        said = float("-inf")
        while True:
            waiting = [process.name for process in servers if not process.ready]
            head_ready = self.processes[HEAD_SERVER_NAME].ready
            if head_ready and not waiting:
                return
            if waiting and time.monotonic() - said >= PROGRESS_INTERVAL_SECONDS:
                said = time.monotonic()
                yield StackProgress(len(servers) - len(waiting), len(servers), tuple(waiting))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PROGRESS_INTERVAL_SECONDS):
                    event = await self._changes.get()
                yield event
                self._raise_if_dead(event)

    def _raise_if_dead(self, event: Event) -> None:
        if not isinstance(event, ServerEnded) or self._stopping:
            return
        if not event.name:
            raise ServerDied("the process that starts the servers was ended from outside; all servers are stopped")
        process = self.processes[event.name]
        if self.config.get("dry_run"):
            return
        when = "while it ran" if process.ready else "before it was ready"
        reason = process.failure.get("reason") or f"{_explain(event.code)}, {when}"
        lines = [] if process.failure.get("told") else [f"  {line}" for line in process.last_lines]
        log = self.options.log_folder / log_name(process.name) if self.options.log_folder else None
        raise ServerDied(
            f"Process `{process.name}` finished unexpectedly! ({reason})",
            details=["its last lines:", *lines] if lines else [],
            hint=process.failure.get("hint") or (f"its whole output is in {log}" if log else None),
        )

    async def _pump_output(self, process: ServerProcess, descriptor: int) -> None:
        sinks = OutputSinks(process.name, self.options.log_folder, self.options.append_logs, self.options.on_output)

        def take(line: str) -> None:
            process.last_lines.append(line)
            sinks.take(line)

        try:
            await pump_lines(descriptor, self.resolved.redactor, take)
        finally:
            process.drained.set()
            sinks.close()


async def _cancelled(future: asyncio.Future[Any]) -> None:
    """Cancel, and wait until it has ended."""
    future.cancel()
    await asyncio.gather(future, return_exceptions=True)


def _explain(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    number = signal.Signals(-code)
    explanation = _SIGNAL_EXPLANATIONS.get(number)
    return f"ended by {number.name}" + (f": {explanation}" if explanation else "")


def _forking_is_safe() -> bool:
    import sys

    return sys.platform == "linux"
