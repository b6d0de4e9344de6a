"""The operation behind `gym env test`: pytest in a component's folder, in the component's environment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from backend.config.schema import RESOURCES, SERVER_TYPES
from backend.errors import GymError
from backend.events import Event
from backend.servers.environments.environment import (
    EnvironmentRequest,
    EnvironmentSettings,
    EnvironmentsPrepared,
    ServerEnvironment,
)
from backend.servers.environments.example_data import example_data_problems
from backend.servers.environments.installer import installer_code
from backend.servers.environments.leashed import leashed
from backend.servers.environments.preparation import prepare_environments
from backend.servers.environments.site_folders import activated
from backend.servers.environments.store import discard, documented_path, is_stored, unlink

TEST_TOOLS = ("pytest>=8.4,<9", "pytest-asyncio>=1.0")
_JUNIT_VARIABLE = "GYM_CI_JUNIT_DIR"
_PYTEST_SETTINGS = ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
_INTERRUPT_GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Component:
    """A folder with tests; `kind` is the server tree that it is in."""

    kind: str
    implementation: str
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.implementation}"


@dataclass(frozen=True, slots=True)
class ComponentTesting(Event):
    """The tests of a component are looked after: `number` of `total`, both from 1."""

    type: ClassVar[str] = "tests.started"
    component: str
    folder: str
    number: int
    total: int


@dataclass(frozen=True, slots=True)
class ComponentTested(Event):
    """How the tests of a component ended.

    `code` is pytest's exit code, or the installer's where there is no environment to run them in; `problems` say what is wrong with the
    example data, `error` why there was no environment.
    """

    type: ClassVar[str] = "tests.ended"
    component: str
    code: int
    seconds: float
    problems: tuple[str, ...] = ()
    error: str = ""

    @property
    def outcome(self) -> str:
        """`passed`, `failed`, `missing` (there are no tests) or `unrecognised`."""
        return {0: "passed", 1: "failed", 2: "failed", 5: "missing"}.get(self.code, "unrecognised")


@dataclass(frozen=True, slots=True)
class TestSelection:
    """Components to test, and those that were left out because they have no README."""

    __test__: ClassVar[bool] = False
    components: tuple[Component, ...]
    left_out: tuple[str, ...] = ()


def all_components(roots: Sequence[Path], *, num_shards: int, shard_index: int) -> TestSelection:
    """Every component with a README.md in the three server trees of `roots`, the first root that has a name wins.

    Of the sorted list, each `num_shards`-th from `shard_index` on. Raises `GymError` for a shard that there is not.
    """
    if num_shards < 1 or not 0 <= shard_index < num_shards:
        raise GymError(
            f"there is no shard {shard_index} of {num_shards}",
            hint="num_shards is at least 1, shard_index from 0 to num_shards - 1",
        )
    found: dict[str, Path] = {}
    for root in roots:
        for kind in SERVER_TYPES:
            for folder in (root / kind).glob("*"):
                if folder.is_dir() and not folder.name.startswith((".", "__")):
                    found.setdefault(f"{kind}/{folder.name}", folder.resolve())
    described = sorted(name for name, folder in found.items() if (folder / "README.md").is_file())
    components = []
    for name in described[shard_index::num_shards]:
        kind, _, implementation = name.partition("/")
        components.append(Component(kind, implementation, found[name]))
    return TestSelection(tuple(components), tuple(sorted(set(found) - set(described))))


async def run_component_tests(
    components: Sequence[Component], settings: EnvironmentSettings, *, with_data: bool, delete_environments: bool = False
) -> AsyncGenerator[Event, None]:
    """Run the tests of `components`, one after the other; pytest writes to this process' own output.

    `with_data`: also check the example data of resources servers. `delete_environments`: take an environment of the store away again.
    Events: `ComponentTesting`, those of `prepare_environments`, `ComponentTested`. Closing the generator interrupts pytest.
    """
    for number, component in enumerate(components, 1):
        yield ComponentTesting(component.name, str(component.folder), number, len(components))
        began = time.monotonic()
        environment, code, failure = ServerEnvironment("shared"), 0, ""
        request = EnvironmentRequest(
            (component.name,), component.kind, component.implementation, component.folder, also=TEST_TOOLS
        )
        try:
            async with aclosing(prepare_environments([request], settings)) as events:
                async for event in events:
                    if isinstance(event, EnvironmentsPrepared):
                        environment = event.environments[str(component.folder)]
                    else:
                        yield event
        except GymError as error:
            code, failure = installer_code(error) or int(error.exit_code), str(error)
        else:
            code = await _run_pytest(component, environment)
        if delete_environments:
            _delete(component, environment, settings)
        problems = example_data_problems(component.folder) if with_data and component.kind == RESOURCES else []
        yield ComponentTested(component.name, code, time.monotonic() - began, tuple(problems), failure)


async def _run_pytest(component: Component, environment: ServerEnvironment) -> int:
    """Exit code of pytest; cancelling lets it finish its report."""
    command = [str(environment.python or sys.executable), "-m", "pytest", *_pytest_arguments(component)]
    async with leashed(command, cwd=component.folder, env=_variables(component, environment)) as process:
        try:
            return await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError, TimeoutError):
                process.send_signal(signal.SIGINT)
                async with asyncio.timeout(_INTERRUPT_GRACE_SECONDS):
                    await process.wait()
            raise


def _pytest_arguments(component: Component) -> list[str]:
    arguments = []
    if not _has_pytest_settings(component.folder):
        arguments += ["-o", "asyncio_mode=auto"]  # as in the project that components are written for
    reports = os.environ.get(_JUNIT_VARIABLE)
    if reports:
        file = Path(reports).absolute() / f"{component.kind}__{component.implementation}.xml"
        arguments += [f"--junitxml={file}", f"--junit-prefix={component.kind}.{component.implementation}"]
    return arguments


def _has_pytest_settings(folder: Path) -> bool:
    """Whether pytest will find settings in the component or in the project around it."""
    for place in (folder, folder.parent.parent):
        if any((place / name).is_file() for name in _PYTEST_SETTINGS):
            return True
        project = place / "pyproject.toml"
        if project.is_file() and "[tool.pytest" in project.read_text(encoding="utf-8", errors="replace"):
            return True
    return False


def _variables(component: Component, environment: ServerEnvironment) -> dict[str, str]:
    path = [*environment.import_path, str(component.folder), str(component.folder.parent.parent)]
    variables = activated(os.environ, environment.python) if environment.python else dict(os.environ)
    variables["PYTHONPATH"] = os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])])
    return variables


def _delete(component: Component, environment: ServerEnvironment, settings: EnvironmentSettings) -> None:
    if environment.folder is not None and is_stored(environment.folder):
        unlink(documented_path(component.kind, component.implementation, component.folder, settings))
        with contextlib.suppress(OSError):
            discard(environment.folder)
