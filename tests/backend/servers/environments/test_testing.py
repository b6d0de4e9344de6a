"""Tests of components, run by the real pytest."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from backend.errors import GymError
from backend.events import Event
from backend.servers.environments.environment import EnvironmentReady
from backend.servers.environments.testing import (
    Component,
    ComponentTested,
    ComponentTesting,
    all_components,
    run_component_tests,
)
from tests.conftest import wait_until_gone
from tests.wheel_samples import offline, settings_for, write_server, write_wheel


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # those that the project's own tests need take seconds to import
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_asyncio.plugin")
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def component(root: Path, name: str, test: str | None, requirements: str = "nemo-gym\n", app: str = "VALUE = 3\n") -> Component:
    request = write_server(root, name, requirements, app)
    if test is not None:
        (request.folder / "tests").mkdir()
        (request.folder / "tests" / "test_app.py").write_text(test)
    return Component(request.kind, name, request.folder)


async def run(root: Path, *components: Component, with_data: bool = False, delete: bool = False) -> list[Event]:
    events = run_component_tests(components, settings_for(root), with_data=with_data, delete_environments=delete)
    return [event async for event in events]


def results_of(events: list[Event]) -> list[ComponentTested]:
    return [event for event in events if isinstance(event, ComponentTested)]


async def test_tests_run_in_the_folder_with_its_code_and_coroutines(root: Path) -> None:
    one = component(
        root,
        "one",
        "import os, app, resources_servers.one.app\nfrom pathlib import Path\n"
        "async def test_it():\n    assert app.VALUE == 3 and Path('app.py').exists() and os.getcwd().endswith('one')\n",
    )
    events = await run(root, one)
    assert events[0] == ComponentTesting("resources_servers/one", str(one.folder), 1, 1)
    assert [(event.code, event.outcome, event.problems, event.error) for event in results_of(events)] == [(0, "passed", (), "")]


async def test_outcomes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wheel(root / "wheels", "tinypkg")
    reports = root / "reports"
    monkeypatch.setenv("GYM_CI_JUNIT_DIR", str(reports))
    events = await run(
        root,
        component(root, "failing", "def test_it():\n    assert False\n"),
        component(root, "broken", "import no_such_module\n"),
        component(root, "empty", None),
        component(root, "left", "import os\ndef test_it():\n    os._exit(77)\n"),
        component(root, "unbuilt", "def test_it(): pass\n", offline(root / "wheels", "gone")),
        component(
            root, "own", "import tinypkg\ndef test_it():\n    assert tinypkg.VALUE == 7\n", offline(root / "wheels", "tinypkg")
        ),
        with_data=True,
    )
    found = {event.component.removeprefix("resources_servers/"): event for event in results_of(events)}
    assert {name: (event.code, event.outcome) for name, event in found.items()} == {
        "failing": (1, "failed"),
        "broken": (2, "failed"),
        "empty": (5, "missing"),
        "left": (77, "unrecognised"),
        "unbuilt": (1, "failed"),
        "own": (0, "passed"),
    }
    assert "cannot build the environment" in found["unbuilt"].error
    assert all(event.problems for event in found.values())
    assert sorted(path.name for path in reports.iterdir())[-1] == "resources_servers__own.xml"
    case = ElementTree.parse(reports / "resources_servers__own.xml").find(".//testcase")
    assert case is not None and case.attrib["classname"].startswith("resources_servers.own.")


async def test_environments_are_deleted_on_request(root: Path) -> None:
    write_wheel(root / "wheels", "tinypkg")
    own = component(root, "own", "def test_it(): pass\n", offline(root / "wheels", "tinypkg"))
    events = await run(root, own, delete=True)
    built = [event.folder for event in events if isinstance(event, EnvironmentReady)]
    assert len(built) == 1 and not Path(built[0]).exists() and not (own.folder / ".venv").is_symlink()


async def test_an_interruption_lets_pytest_finish_and_leaves_nothing(root: Path) -> None:
    slow = component(
        root,
        "slow",
        "import subprocess, sys, time\nfrom pathlib import Path\n"
        "def test_it():\n"
        "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "    Path('started').touch()\n"
        "    try:\n        time.sleep(600)\n    except KeyboardInterrupt:\n        Path('interrupted').touch()\n        raise\n",
    )
    task = asyncio.create_task(run(root, slow))
    while not (slow.folder / "started").exists():
        assert not task.done()
        await asyncio.sleep(0.05)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert (slow.folder / "interrupted").exists()
    assert wait_until_gone(str(root)) == []


async def test_settings_of_the_project_around_stay_in_force(root: Path) -> None:
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\nasyncio_mode = "strict"\n')
    one = component(root, "one", "import pytest\nasync def test_it():\n    raise AssertionError('is run')\n")
    assert results_of(await run(root, one))[0].code == 1  # strict mode refuses an unmarked coroutine


def test_all_components_and_shards(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for base, kind, name, described in (
        (root, "resources_servers", "b", True),
        (root, "responses_api_agents", "a", True),
        (root, "responses_api_models", "c", True),
        (root, "resources_servers", "undescribed", False),
        (root, "resources_servers", "__pycache__", True),
        (other, "resources_servers", "b", True),
        (other, "resources_servers", "d", True),
    ):
        folder = base / kind / name
        folder.mkdir(parents=True)
        if described:
            (folder / "README.md").touch()
    (root / "resources_servers" / "README.md").touch()
    names = ["resources_servers/b", "resources_servers/d", "responses_api_agents/a", "responses_api_models/c"]
    selection = all_components([root, other], num_shards=1, shard_index=0)
    assert [one.name for one in selection.components] == names
    assert selection.components[0].folder == root / "resources_servers" / "b"
    assert selection.left_out == ("resources_servers/undescribed",)
    shards = [all_components([root, other], num_shards=3, shard_index=index).components for index in range(3)]
    assert [[one.name for one in shard] for shard in shards] == [[names[0], names[3]], [names[1]], [names[2]]]
    for number, index in ((0, 0), (2, 2), (2, -1)):
        with pytest.raises(GymError, match="there is no shard"):
            all_components([root], num_shards=number, shard_index=index)
