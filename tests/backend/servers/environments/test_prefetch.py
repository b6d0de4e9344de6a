from __future__ import annotations

from pathlib import Path

import pytest

from backend.config.request import ConfigRequest
from backend.errors import GymError
from backend.events import Event, Notice
from backend.servers.environments.environment import EnvironmentReady
from backend.servers.environments.prefetch import PrefetchEnded, PrefetchStarted, prefetch_environments
from tests.wheel_samples import offline, write_server, write_wheel


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def request(root: Path, *servers: str) -> ConfigRequest:
    block = "{{resources_servers: {{{}: {{entrypoint: app.py, domain: other}}}}}}"
    text = "".join(f"s{number}: {block.format(name)}\n" for number, name in enumerate(servers))
    (root / "all.yaml").write_text(text)
    return ConfigRequest((str(root / "all.yaml"),), cwd=root, stand_in_model=True)


async def run(asked: ConfigRequest) -> list[Event]:
    return [event async for event in prefetch_environments(asked)]


async def test_every_folder_once_in_order(root: Path) -> None:
    for name in ("a", "b"):
        write_server(root, name, "nemo-gym\n")
    events = await run(request(root, "a", "b", "a"))
    started = [event for event in events if isinstance(event, PrefetchStarted)]
    assert [(event.number, event.total, event.servers) for event in started] == [(1, 2, ("s0", "s2")), (2, 2, ("s1",))]
    assert started[0].folder == str(root / "resources_servers" / "a")
    assert [event.text for event in events if isinstance(event, Notice)] == [
        f"s0, s2 share {root / 'resources_servers' / 'a'}; it is prepared once"
    ]
    assert events[-1] == PrefetchEnded(2)


async def test_the_first_failure_ends_it(root: Path) -> None:
    write_wheel(root / "wheels", "tinypkg")
    write_server(root, "good", offline(root / "wheels", "tinypkg"))
    write_server(root, "bad", offline(root / "wheels", "gone"))
    write_server(root, "late", "nemo-gym\n")
    seen: list[Event] = []
    with pytest.raises(GymError, match="cannot build the environment of `s1`"):
        async for event in prefetch_environments(request(root, "good", "bad", "late")):
            seen.append(event)
    assert [event.servers for event in seen if isinstance(event, PrefetchStarted)] == [("s0",), ("s1",)]
    assert [event.origin for event in seen if isinstance(event, EnvironmentReady)] == ["built"]


async def test_no_server_and_no_folder_are_told(root: Path) -> None:
    with pytest.raises(GymError, match="no server"):
        await run(ConfigRequest(cwd=root, stand_in_model=True))
    with pytest.raises(GymError, match="resources_servers/gone"):
        await run(request(root, "gone"))
