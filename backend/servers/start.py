"""The operation behind `gym env start`: servers up, endpoints checked, watched until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_config
from backend.errors import GymError
from backend.events import Event, Notice
from backend.io.redact import Redactor
from backend.servers.http_client import close_http_session
from backend.servers.model_endpoints import endpoint_wait_seconds, model_endpoints, wait_for_endpoints
from backend.servers.server_events import StackReady
from backend.servers.server_output import OutputSink
from backend.servers.stack_journal import StackOwner
from backend.servers.supervisor import Stack, StackOptions
from backend.servers.warm_parent_link import WarmParentLink


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Start the servers of a configuration."""

    config: ConfigRequest
    on_output: OutputSink | None = None
    """Gets every line that a server prints."""
    command: tuple[str, ...] = ()
    """What the stack's record shows as typed."""


async def start_environment(request: StartRequest, link: WarmParentLink) -> AsyncGenerator[Event, None]:
    """Start the servers through `link` and watch them; ends only by an error, a dry run, or when the caller closes it.

    Closing the generator stops every process. Events: those of `server_events`.
    """
    redactor = Redactor()
    try:
        resolved = resolve_config(request.config)
        redactor = resolved.redactor
        for warning in resolved.warnings:
            yield Notice(redactor.text(warning), "warning")
        log_folder = resolved.tree.get("nemo_gym_log_dir")
        options = StackOptions(
            Path(log_folder).absolute() if log_folder else None, on_output=request.on_output, owner=StackOwner(request.command)
        )
        async with Stack(resolved, link, options) as stack, _Probes(resolved) as probes, aclosing(stack.start()) as starting:
            async for event in starting:
                if isinstance(event, StackReady):
                    for state in probes.known():
                        yield state
                yield event
            if resolved.tree.get("dry_run"):
                yield Notice("Dry run: every server could be constructed.")
                return
            async with aclosing(stack.while_alive(probes.states())) as changes:
                async for event in changes:
                    yield event
    except GymError as error:
        raise error.masked(redactor.text) from None
    finally:
        link.close()
        await close_http_session()


class _Probes:
    """Endpoint probing that runs beside the start of the servers."""

    def __init__(self, resolved: ResolvedConfig) -> None:
        self._endpoints = model_endpoints(resolved.servers)
        self._limit = endpoint_wait_seconds(resolved.tree)
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._collect())
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def known(self) -> list[Event]:
        """What has been found out so far."""
        states: list[Event] = []
        while not self._queue.empty():
            state = self._queue.get_nowait()
            if state is not None:
                states.append(state)
        return states

    async def states(self) -> AsyncGenerator[Event, None]:
        """What is still found out, then nothing for ever; raises what the probing raised."""
        assert self._task is not None
        while not (self._task.done() and self._queue.empty()):
            state = await self._queue.get()
            if state is not None:
                yield state
        self._task.result()
        await asyncio.Event().wait()

    async def _collect(self) -> None:
        try:
            if self._endpoints and self._limit > 0:
                async for state in wait_for_endpoints(self._endpoints, self._limit):
                    self._queue.put_nowait(state)
        finally:
            self._queue.put_nowait(None)
