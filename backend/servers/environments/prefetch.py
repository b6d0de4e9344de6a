"""The operation behind `gym env prefetch`: environments for later starts, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import ClassVar

from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_config
from backend.config.schema import STAND_IN_IMPLEMENTATION
from backend.errors import GymError
from backend.events import Event, Notice
from backend.io.redact import Redactor
from backend.servers.environments.preparation import prepare_environments, settings_from
from backend.servers.stack_preparation import environment_requests, make_orders


@dataclass(frozen=True, slots=True)
class PrefetchStarted(Event):
    """The environment of a folder is looked after: `number` of `total`, both from 1."""

    type: ClassVar[str] = "prefetch.started"
    number: int
    total: int
    servers: tuple[str, ...]
    folder: str


@dataclass(frozen=True, slots=True)
class PrefetchEnded(Event):
    """All environments are there."""

    type: ClassVar[str] = "prefetch.ended"
    folders: int


async def prefetch_environments(request: ConfigRequest) -> AsyncGenerator[Event, None]:
    """Prepare the environments of all servers of a configuration, one after the other, once per folder.

    Events: `PrefetchStarted` before those of `prepare_environments` for each folder, a `Notice` for a folder that several servers
    share, and `PrefetchEnded`. Stops at the first that fails, with `GymError`.
    """
    redactor = Redactor()
    try:
        resolved = resolve_config(request)
        redactor = resolved.redactor
        for warning in resolved.warnings:
            yield Notice(redactor.text(warning), "warning")
        requests = environment_requests(make_orders(_without_stand_ins(resolved)))
        settings = settings_from(resolved.tree, resolved.roots)
        for number, one in enumerate(requests, 1):
            yield PrefetchStarted(number, len(requests), one.names, str(one.folder))
            if len(one.names) > 1:
                yield Notice(f"{', '.join(one.names)} share {one.folder}; it is prepared once")
            async with aclosing(prepare_environments([one], settings)) as events:
                async for event in events:
                    yield event
        yield PrefetchEnded(len(requests))
    except GymError as error:
        raise error.masked(redactor.text) from None


def _without_stand_ins(resolved: ResolvedConfig) -> ResolvedConfig:
    """The configuration without the model that stands in for one to be chosen later."""
    return replace(resolved, servers=tuple(one for one in resolved.servers if one.implementation != STAND_IN_IMPLEMENTATION))
