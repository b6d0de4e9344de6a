"""The operation that gives every server folder the environment in which its server runs."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.errors import GymError
from backend.events import Event, Notice
from backend.servers.environments.environment import (
    EnvironmentOutput,
    EnvironmentPreparing,
    EnvironmentReady,
    EnvironmentRequest,
    EnvironmentSettings,
    EnvironmentsPrepared,
    ServerEnvironment,
)
from backend.servers.environments.needs import EnvironmentNeeds, environment_needs
from backend.servers.environments.store import (
    documented_path,
    is_complete,
    is_environment,
    link,
    locked,
    store_folder,
    stored,
    stored_environment,
    unlink,
)

_BUILT_AT_ONCE = 4


def settings_from(tree: Mapping[str, Any], roots: Sequence[Path] = ()) -> EnvironmentSettings:
    """The settings in a resolved configuration; `roots` are those it was resolved with."""
    cache = tree.get("uv_cache_dir")
    return EnvironmentSettings(
        uv_venv_dir=_absolute(tree.get("uv_venv_dir") or Path.cwd()),
        uv_cache_dir=_absolute(cache) if cache else None,
        skip_venv_if_present=bool(tree.get("skip_venv_if_present")),
        pip_install_verbose=bool(tree.get("pip_install_verbose")),
        roots=tuple(roots),
        pins=tuple(str(pin) for pin in tree.get("head_server_deps") or () if str(pin).startswith("ray")),
    )


def _absolute(path: str | Path) -> Path:
    return Path(os.path.expanduser(path)).absolute()  # unlike `Path.expanduser`, no error for a user that there is not


@dataclass(slots=True)
class _Group:
    """The folders that ask for one set of requirements."""

    needs: EnvironmentNeeds
    requests: list[EnvironmentRequest] = field(default_factory=list)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(name for request in self.requests for name in request.names)


async def prepare_environments(
    requests: Sequence[EnvironmentRequest], settings: EnvironmentSettings
) -> AsyncGenerator[Event, None]:
    """Find or build the environment of every folder; the last event is `EnvironmentsPrepared`.

    Where nothing is missing, and that is told without starting a process, an environment's `python` is None: the server is forked from
    the warm parent. Distinct sets of requirements are built at the same time. Events: `EnvironmentPreparing` and `EnvironmentOutput`
    for what is built, `EnvironmentReady` for each folder or group of folders. Closing the generator ends the installers. Raises
    `GymError` for requirements that cannot be read, an installer that is missing or fails; what was half built is never used.
    """
    began = time.monotonic()
    environments: dict[str, ServerEnvironment] = {}
    groups: dict[str, _Group] = {}
    for request in requests:
        environment, needs = await asyncio.to_thread(_look_up, request, settings)
        if environment is not None:
            environments[str(request.folder)] = environment
            yield _ready(request.names, environment, began)
        else:
            groups.setdefault(needs.digest, _Group(needs)).requests.append(request)
    async with aclosing(_build_missing(list(groups.values()), settings, environments, began)) as building:
        async for event in building:
            yield event
    yield EnvironmentsPrepared(environments)


def _look_up(request: EnvironmentRequest, settings: EnvironmentSettings) -> tuple[ServerEnvironment | None, EnvironmentNeeds]:
    """The environment that a folder has already, or what it needs."""
    documented = documented_path(request.kind, request.implementation, request.folder, settings)
    if settings.skip_venv_if_present and is_environment(documented):
        from backend.servers.environments.prebuilt import prebuilt_environment

        return prebuilt_environment(documented, settings), EnvironmentNeeds.nothing(request.folder)
    needs = environment_needs(request, settings)
    if not needs.missing:
        unlink(documented)
        return ServerEnvironment("shared"), needs
    if (path := stored_environment(needs.digest, settings)) is not None:
        link(documented, path)
        return stored(path), needs
    return None, needs


async def _build_missing(
    groups: list[_Group], settings: EnvironmentSettings, environments: dict[str, ServerEnvironment], began: float
) -> AsyncGenerator[Event, None]:
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    room = asyncio.Semaphore(_BUILT_AT_ONCE)

    async def build(group: _Group) -> None:
        try:
            async with room:
                environment = await _build(group, settings, events)
            for request in group.requests:
                environments[str(request.folder)] = environment
            events.put_nowait(_ready(group.servers, environment, began))
        finally:
            events.put_nowait(None)

    tasks = [asyncio.create_task(build(group)) for group in groups]
    try:
        running = len(tasks)
        while running:
            event = await events.get()
            if event is not None:
                yield event
                continue
            running -= 1
            for task in tasks:
                if task.done():
                    task.result()
        for task in tasks:
            await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _build(group: _Group, settings: EnvironmentSettings, events: asyncio.Queue[Event | None]) -> ServerEnvironment:
    from backend.servers.environments.building import Build, build_environment

    servers = group.servers
    path = store_folder(settings) / group.needs.digest

    def say(line: str) -> None:
        events.put_nowait(EnvironmentOutput(servers[0], line))

    events.put_nowait(EnvironmentPreparing(servers, str(path), group.needs.missing))
    wanted = group.needs.requirements.requires_python
    if wanted and not _python_fits(wanted):
        have = sys.version.split()[0]
        events.put_nowait(
            Notice(f"`{servers[0]}` asks for Python {wanted}; this is {have}, and it is tried with that", "warning")
        )
    origin = "stored"
    async with locked(path, lambda: say("waiting for another command that builds the same environment")) as lock:
        if not is_complete(path):
            origin = "built"
            try:
                await build_environment(Build(group.needs, path, settings, say, lock))
            except GymError as error:
                _explain(error, group)
                raise
    for request in group.requests:
        link(documented_path(request.kind, request.implementation, request.folder, settings), path)
    return stored(path, origin)


def _explain(error: GymError, group: _Group) -> None:
    """Name the servers and what they need in `error`."""
    names = ", ".join(f"`{name}`" for name in group.servers)
    error.message = f"cannot build the environment of {names}, which needs {', '.join(group.needs.missing)}: {error.message}"
    error.args = (error.message,)
    error.hint = error.hint or f"see the requirements in {group.needs.requirements.file}"
    places = [line.place for line in group.needs.lines if line.shown in group.needs.missing]
    error.place = places[0] if len(places) == 1 else error.place


def _python_fits(wanted: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(wanted).contains(sys.version.split()[0], prereleases=True)
    except InvalidSpecifier:
        return True


def _ready(servers: tuple[str, ...], environment: ServerEnvironment, began: float) -> EnvironmentReady:
    return EnvironmentReady(servers, environment.origin, str(environment.folder or ""), time.monotonic() - began)
