"""Starts the servers of a configuration, watches them, and stops them all together."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config.resolution import ResolvedConfig
from backend.config.schema import SERVER_READINESS_TIMEOUT
from backend.config.yaml_text import to_yaml
from backend.errors import GymError
from backend.events import Event, Notice
from backend.servers.addresses import server_url
from backend.servers.child import HEAD_SERVER_KIND, ServerOrder
from backend.servers.environments.environment import EnvironmentOutput, EnvironmentsPrepared
from backend.servers.environments.preparation import prepare_environments, settings_from
from backend.servers.folders import server_folder
from backend.servers.ports import HEAD_SERVER_NAME
from backend.servers.server_events import (
    ServerEnded,
    ServerPhase,
    ServerReady,
    ServerStarted,
    StackEnded,
    StackProgress,
    StackReady,
    StackStarting,
)
from backend.servers.server_output import OutputSink, OutputSinks, pump_lines
from backend.servers.server_process import (
    ServerDied,
    ServerProcess,
    death_of,
    failed_dry_run,
    not_ready_in_time,
    waiting_line,
)
from backend.servers.stack_journal import StackJournal, StackOwner
from backend.servers.stack_preparation import bind_ports, environment_requests, in_environment, make_orders, noted_servers
from backend.servers.warm_parent_link import WarmParentLink

STOP_GRACE_SECONDS = 3.0
PROGRESS_INTERVAL_SECONDS = 30.0
_DRAIN_SECONDS = 0.5
_MOST_TOLD = 10
"""Of how many servers that are not ready the progress says more than the name."""


@dataclass(frozen=True, slots=True)
class StackOptions:
    """`log_folder`: one file per server is written there, `append_logs` after what it holds; by default to the stack's own folder in the
    state folder. `on_output`: gets every line. `owner`: who starts the stack, for those who find it.

    `any_head_port`: when the head port is taken, by whomever, use another one. Otherwise that is done only for a port that nobody
    asked for and that another stack of ours has.
    """

    log_folder: Path | None = None
    append_logs: bool = True
    on_output: OutputSink | None = None
    any_head_port: bool = False
    owner: StackOwner = field(default_factory=StackOwner)


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
        self.log_folder = options.log_folder
        self._journal: StackJournal | None = None
        self._link = link
        self._began = time.monotonic()
        self._start_time = time.time()
        self._spawned = self._began
        self._changes: asyncio.Queue[Event] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._warm = asyncio.Event()
        self._link_lost = False

    async def __aenter__(self) -> Stack:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, GymError):
            self._noted(StackEnded(str(error)))
        await self.stop()

    @property
    def head_url(self) -> str:
        head = self.config["head_server"]
        return server_url(head["host"], head["port"])

    def instances(self) -> list[dict[str, Any]]:
        """The servers as the head server describes them, in configuration order."""
        return [process.as_instance(self._start_time) for process in self._servers()]

    async def start(self) -> AsyncGenerator[Event, None]:
        """Start everything; the last event is `StackReady`.

        Raises `ServerDied` naming the first server that ended, `ServersNotReady` naming those that take longer than the configuration
        allows, each with its last lines; `GymError` for a folder, requirement or port that is not there.
        """
        orders = make_orders(self.resolved)
        self._journal = journal = StackJournal(self.resolved, self.options.owner)
        self.log_folder = self.log_folder or journal.folder
        listeners, moved = self._bind()
        try:
            journal.begin(self.head_url, noted_servers(self.processes.values(), orders, self.log_folder))
            if moved is not None:
                yield moved
            yield self._noted(StackStarting(tuple(orders), self.head_url))
            self._tasks.append(asyncio.create_task(self._follow_link()))
            async with aclosing(self._prepare(orders)) as preparing:
                async for event in preparing:
                    yield self._noted(event)
            settings = {
                "config": self.config,
                "config_text": to_yaml(self.config),
                "session_secret": secrets.token_hex(32),
            }
            await self._wait_until_warm()
            self._link.send({"do": "settings", "settings": settings, "environment": self._link.changed_environment()})
            self._spawned = time.monotonic()
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
        yield self._noted(StackReady(time.monotonic() - self._began, tuple(self.instances())))

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
        servers = self._servers()
        while waiting := [process for process in servers if process.ended is None]:
            event = await self._next_change(waiting)
            if isinstance(event, ServerEnded) and not event.name:
                self._raise_if_dead(event)
        failed = [process for process in servers if process.ended]
        if failed:
            raise failed_dry_run(failed)

    async def stop(self) -> None:
        """End every process: SIGTERM to all at once, SIGKILL after 3 s to those that are left, or when this is cancelled.

        Safe to call twice.
        """
        if self._journal is not None and not self._stopping:
            self._journal.stopping()
        self._stopping = True
        alive = [process for process in self.processes.values() if process.pid and process.ended is None]
        for process in alive:
            self._link.send({"do": "signal", "name": process.name, "signal": int(signal.SIGTERM)})
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_GRACE_SECONDS):
                    while not self._link_lost and any(process.ended is None for process in alive):
                        await self._changes.get()
        finally:
            for process in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            await self._close()

    async def _close(self) -> None:
        await asyncio.to_thread(self._link.close)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for process in self.processes.values():
            process.sinks.close()
        if self._journal is not None:
            self._journal.close()

    def _servers(self) -> list[ServerProcess]:
        """All but the head server."""
        return [process for process in self.processes.values() if process.instance is not None]

    def _noted(self, event: Event) -> Event:
        if self._journal is not None:
            self._journal.note(event)
        return event

    def _changed(self, event: Event) -> None:
        self._changes.put_nowait(self._noted(event))

    def _bind(self) -> tuple[dict[str, socket.socket], Notice | None]:
        """Bind a socket for every server and the head, and complete `config` with the ports; tells when the head had to move."""
        self.config, listeners, moved = bind_ports(self.resolved, any_head_port=self.options.any_head_port)
        for instance in self.resolved.servers:
            block = self.config[instance.name][instance.kind][instance.implementation]
            folder = str(server_folder(instance, self.resolved.roots))
            url = server_url(block["host"], block["port"])
            self.processes[instance.name] = ServerProcess(instance.name, url, instance, self._sinks(instance.name), folder)
        head = ServerProcess(HEAD_SERVER_NAME, self.head_url, None, self._sinks(HEAD_SERVER_NAME))
        self.processes[HEAD_SERVER_NAME] = head
        return listeners, moved

    def _sinks(self, name: str) -> OutputSinks:
        return OutputSinks(name, self.log_folder, self.options.append_logs, self.options.on_output)

    async def _prepare(self, orders: dict[str, ServerOrder]) -> AsyncGenerator[Event, None]:
        """Find or build the environments of all server folders, and complete `orders` with them."""
        settings = settings_from(self.resolved.tree, self.resolved.roots)
        async with aclosing(prepare_environments(environment_requests(orders), settings)) as preparing:
            async for event in preparing:
                if isinstance(event, EnvironmentOutput):
                    self.processes[event.server].take(self.resolved.redactor.text(event.line))
                elif isinstance(event, EnvironmentsPrepared):
                    orders.update({name: in_environment(order, event.environments) for name, order in orders.items()})
                yield event

    async def _spawn(self, order: ServerOrder, listener: socket.socket) -> None:
        output_read, output_write = os.pipe()
        try:
            listener.set_inheritable(True)
            can_fork = bool(order.layer) or not order.python
            message = {"do": "spawn", "order": order.to_json(), "fresh": not (can_fork and _forking_is_safe())}
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
                process.enter("importing")
                instance = process.instance
                kind, implementation = (instance.kind, instance.implementation) if instance else (HEAD_SERVER_KIND, "")
                self._changed(ServerStarted(process.name, kind, implementation, process.pid, process.url))
            elif message["is"] == "phase":
                process.enter(message["phase"])
                self._changed(ServerPhase(process.name, message["phase"], time.monotonic() - self._began))
            elif message["is"] == "ready":
                process.ready = True
                self._changed(ServerReady(process.name, time.monotonic() - self._began))
            elif message["is"] == "failed":
                process.failure = process.failure or message  # the first one is the cause
            elif message["is"] == "ended":
                process.ended = message["code"]
                if not process.pid:  # it never ran: nothing is going to be printed
                    process.drained.set()
                self._tasks.append(asyncio.create_task(self._announce_end(process, message["code"])))
        self._link_lost = True
        self._warm.set()
        if not self._stopping:
            self._changes.put_nowait(ServerEnded("", self._link.process.poll() or 0))

    async def _announce_end(self, process: ServerProcess, code: int) -> None:
        with contextlib.suppress(TimeoutError):  # its last lines explain its end
            async with asyncio.timeout(_DRAIN_SECONDS):
                await process.drained.wait()
        self._changed(ServerEnded(process.name, code))

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
        servers = self._servers()
        said = float("-inf")
        # What has happened and nobody has been told yet belongs to the start, also when all are ready by now.
        while (everything := self._not_ready()) or not self._changes.empty():
            waiting = [process for process in everything if process.instance is not None]
            if waiting and time.monotonic() - said >= PROGRESS_INTERVAL_SECONDS:
                is_first = said == float("-inf")
                said = time.monotonic()
                yield StackProgress(
                    len(servers) - len(waiting),
                    len(servers),
                    tuple(process.name for process in waiting),
                    () if is_first else tuple(waiting_line(process, self.log_folder) for process in waiting[:_MOST_TOLD]),
                )
            event = await self._next_change(everything)
            if event is not None:
                yield event
                self._raise_if_dead(event)

    def _not_ready(self) -> list[ServerProcess]:
        return [process for process in self.processes.values() if not process.ready]

    async def _next_change(self, waiting: Sequence[ServerProcess]) -> Event | None:
        """What happens next; None after 30 s. Raises `ServersNotReady` naming those that are waited for when their time is up."""
        limit = float(self.config.get(SERVER_READINESS_TIMEOUT) or 0)
        left = self._spawned + limit - time.monotonic() if limit > 0 else PROGRESS_INTERVAL_SECONDS
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(left, PROGRESS_INTERVAL_SECONDS))):
                return await self._changes.get()
        if left <= PROGRESS_INTERVAL_SECONDS and limit > 0:
            how = f"++{SERVER_READINESS_TIMEOUT}=… gives them more time, 0 all they need"
            raise not_ready_in_time(waiting, limit, self.log_folder, how)
        return None

    def _raise_if_dead(self, event: Event) -> None:
        if not isinstance(event, ServerEnded) or self._stopping:
            return
        if not event.name:
            raise ServerDied("the process that starts the servers was ended from outside; all servers are stopped")
        process = self.processes[event.name]
        if self.config.get("dry_run"):
            return
        raise death_of(process, event.code, self.log_folder)

    async def _pump_output(self, process: ServerProcess, descriptor: int) -> None:
        try:
            await pump_lines(descriptor, self.resolved.redactor, process.take)
        finally:
            process.drained.set()
            process.sinks.close()


async def _cancelled(future: asyncio.Future[Any]) -> None:
    """Cancel, and wait until it has ended."""
    future.cancel()
    await asyncio.gather(future, return_exceptions=True)


def _forking_is_safe() -> bool:
    return sys.platform == "linux"
