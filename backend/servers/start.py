"""The operation behind `gym env start`: servers up, endpoints checked, watched until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.config.request import ConfigRequest
from backend.config.resolution import resolve_config
from backend.events import Event, Notice
from backend.servers.http_client import close_http_session
from backend.servers.model_endpoints import endpoint_wait_seconds, model_endpoints, wait_for_endpoints
from backend.servers.server_events import StackReady
from backend.servers.supervisor import OutputSink, Stack, StackOptions
from backend.servers.warm_parent_link import WarmParentLink


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Start the servers of a configuration."""

    config: ConfigRequest
    on_output: OutputSink | None = None
    """Gets every line that a server prints."""


async def start_environment(request: StartRequest, link: WarmParentLink) -> AsyncGenerator[Event, None]:
    """Start the servers through `link` and watch them; ends only by an error, a dry run, or when the caller closes it.

    Closing the generator stops every process. Events: those of `server_events`.
    """
    try:
        resolved = resolve_config(request.config)
        for warning in resolved.warnings:
            yield Notice(warning, "warning")
        log_folder = resolved.tree.get("nemo_gym_log_dir")
        options = StackOptions(Path(log_folder).absolute() if log_folder else None, request.on_output)
        async with Stack(resolved, link, options) as stack:
            endpoints = model_endpoints(resolved.servers)
            limit = endpoint_wait_seconds(resolved.tree)
            probes = _Probes(wait_for_endpoints(endpoints, limit) if endpoints and limit > 0 else None)
            try:
                async for event in stack.start():
                    if isinstance(event, StackReady):
                        for state in probes.known():
                            yield state
                    yield event
                if resolved.tree.get("dry_run"):
                    await stack.wait_until_dry_run_is_over()
                    return
                async for event in _merge(probes, stack):
                    yield event
            finally:
                await probes.close()
    finally:
        link.close()
        await close_http_session()


class _Probes:
    """Endpoint probing that runs beside the start of the servers."""

    def __init__(self, states: AsyncIterator[Event] | None) -> None:
        self.queue: asyncio.Queue[Event] = asyncio.Queue()
        self.task = asyncio.create_task(self._collect(states)) if states is not None else None

    async def _collect(self, states: AsyncIterator[Event]) -> None:
        async for state in states:
            self.queue.put_nowait(state)

    def known(self) -> list[Event]:
        states = []
        while not self.queue.empty():
            states.append(self.queue.get_nowait())
        return states

    async def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self.task


async def _merge(probes: _Probes, stack: Stack) -> AsyncIterator[Event]:
    """Changes of servers and endpoints as they come; raises what ends either."""
    watching = stack.watch()
    next_change = asyncio.ensure_future(anext(watching))
    next_state = asyncio.ensure_future(probes.queue.get())
    try:
        while True:
            waiting_for: set[asyncio.Future[Any]] = {next_change, next_state}
            if probes.task is not None:
                waiting_for.add(probes.task)
            done, _ = await asyncio.wait(waiting_for, return_when=asyncio.FIRST_COMPLETED)
            if next_state in done:
                yield next_state.result()
                next_state = asyncio.ensure_future(probes.queue.get())
            if next_change in done:
                yield next_change.result()
                next_change = asyncio.ensure_future(anext(watching))
            if probes.task is not None and probes.task in done:
                for state in probes.known():
                    yield state
                finished, probes.task = probes.task, None
                finished.result()
    finally:
        next_change.cancel()
        next_state.cancel()
