"""Environments built by the real installer, from wheels in a folder."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from backend.errors import GymError
from backend.events import Event, Notice
from backend.io.homes import cache_home
from backend.servers.environments import building, installer
from backend.servers.environments.environment import (
    EnvironmentOutput,
    EnvironmentPreparing,
    EnvironmentReady,
    EnvironmentRequest,
    EnvironmentSettings,
    EnvironmentsPrepared,
    ServerEnvironment,
)
from backend.servers.environments.preparation import prepare_environments, settings_from
from tests.conftest import ROOT, wait_until_gone
from tests.wheel_samples import offline, settings_for, write_server, write_wheel


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "my work"
    folder.mkdir()
    return folder


@pytest.fixture
def wheels(root: Path) -> Path:
    folder = root.parent / "wheels"
    write_wheel(folder, "tinypkg", requires=["pydantic>=2", "nemo-gym>=0.5"])
    return folder


async def test_closing_the_generator_ends_the_installers_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    async def install(build: building.Build) -> None:
        build.say("begun")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(build.path)

    monkeypatch.setattr(building, "build_environment", install)
    events = prepare_environments([write_server(root, "tiny", "no-such-package-of-anybody==1\n")], settings_for(root))
    async for event in events:
        if isinstance(event, EnvironmentOutput):
            break
    await events.aclose()
    assert len(ended) == 1


async def prepare(
    requests: Sequence[EnvironmentRequest], settings: EnvironmentSettings
) -> tuple[dict[str, ServerEnvironment], list[Event]]:
    events = [event async for event in prepare_environments(requests, settings)]
    last = events[-1]
    assert isinstance(last, EnvironmentsPrepared)
    json.dumps(last.as_fields())
    return dict(last.environments), events


async def prepare_one(request: EnvironmentRequest, settings: EnvironmentSettings) -> ServerEnvironment:
    environments, _ = await prepare([request], settings)
    return environments[str(request.folder)]


def told_by(environment: ServerEnvironment, statement: str) -> str:
    """What the environment's interpreter prints."""
    done = subprocess.run([str(environment.python), "-c", statement], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def test_nothing_missing_needs_no_environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "find_uv", lambda: pytest.fail("the installer was asked for"))
    requests = [write_server(root, name, "-e nemo-gym[dev] @ ../../\nfastapi\n") for name in ("a", "b")]
    environments, events = await prepare(requests, settings_for(root))
    assert set(environments.values()) == {ServerEnvironment("shared")}
    assert [event.origin for event in events if isinstance(event, EnvironmentReady)] == ["shared", "shared"]
    assert not cache_home("venvs").exists() and not (requests[0].folder / ".venv").exists()


async def test_one_environment_for_equal_sets_layered_on_ours(root: Path, wheels: Path) -> None:
    requests = [write_server(root, name, offline(wheels, "tinypkg")) for name in ("one", "two")]
    requests.append(write_server(root, "plain", "nemo-gym\n"))
    settings = settings_for(root)
    environments, events = await prepare(requests, settings)
    first = environments[str(requests[0].folder)]
    assert first == environments[str(requests[1].folder)] and first.origin == "built"
    assert environments[str(requests[2].folder)].origin == "shared"
    building = [event for event in events if isinstance(event, EnvironmentPreparing)]
    assert [(event.servers, event.missing) for event in building] == [(("my_one", "my_two"), ("tinypkg",))]
    assert any(isinstance(event, EnvironmentOutput) and "tinypkg==1.0" in event.line for event in events)
    for request in requests[:2]:
        assert (request.folder / ".venv").resolve() == first.folder
    assert told_by(first, "import tinypkg; print(tinypkg.VALUE)") == "7"
    shared = told_by(first, "import fastapi, backend, nemo_gym.base_resources_server; print(fastapi.__file__, backend.__file__)")
    assert str(first.folder) not in shared and str(ROOT / "backend") in shared
    assert told_by(first, "import importlib.metadata as m; print(m.version('tinypkg'))") == "1.0"
    assert first.folder is not None
    installed = {path.name for path in first.folder.glob("lib/*/site-packages/*")}
    assert installed - {"__pycache__"} == {"tinypkg", "tinypkg-1.0.dist-info", "zz_gym_tui.pth"}

    again, events = await prepare(requests, settings)
    assert again[str(requests[0].folder)] == ServerEnvironment("stored", first.python, first.folder, layered=True)
    assert not any(isinstance(event, EnvironmentOutput) for event in events)


async def test_a_link_goes_when_nothing_is_missing_any_more(root: Path, wheels: Path) -> None:
    request = write_server(root, "tiny", offline(wheels, "tinypkg"))
    built = await prepare_one(request, settings_for(root))
    (request.folder / "requirements.txt").write_text("nemo-gym\n")
    assert (await prepare_one(request, settings_for(root))).origin == "shared"
    assert not (request.folder / ".venv").is_symlink() and built.folder is not None and built.folder.is_dir()


async def test_environments_lie_below_uv_venv_dir(root: Path, wheels: Path) -> None:
    request = write_server(root, "tiny", offline(wheels, "tinypkg"))
    settings = settings_from({"uv_venv_dir": str(root / "envs"), "uv_cache_dir": str(root / "cache")}, [root])
    built = await prepare_one(request, settings)
    assert (root / "envs" / "resources_servers" / "tiny" / ".venv").resolve() == built.folder
    assert not (request.folder / ".venv").exists()
    assert (root / "cache").is_dir()


async def test_a_requirement_that_nobody_has_is_told_and_nothing_of_it_is_kept(root: Path, wheels: Path) -> None:
    request = write_server(root, "tiny", offline(wheels, "tinypkg", "tinypgk==1.0"))
    for _ in range(2):  # what was half built is not taken the second time
        with pytest.raises(GymError) as caught:
            await prepare_one(request, settings_for(root, skip_venv_if_present=True))
        text = str(caught.value)
        assert "cannot build the environment of `my_tiny`, which needs tinypkg, tinypgk==1.0" in text
        print(text)
        assert "tinypgk" in error_lines(caught.value) and str(request.folder / "requirements.txt") in text
    assert not (request.folder / ".venv").exists()
    assert list(cache_home("venvs").glob("*/.complete")) == []
    assert list(cache_home("venvs").glob("*/.inputs")) == []


def error_lines(error: GymError) -> str:
    """The installer's own words."""
    return "\n".join(error.details)


async def test_the_line_of_a_single_culprit(root: Path, wheels: Path) -> None:
    request = write_server(root, "tiny", offline(wheels, "fastapi", "gone"))
    with pytest.raises(GymError) as caught:
        await prepare_one(request, settings_for(root))
    assert str(caught.value).startswith(f"{request.folder / 'requirements.txt'}:5: ")


async def test_what_conflicts_with_ours_and_cannot_be_had_otherwise(root: Path, wheels: Path) -> None:
    request = write_server(root, "tiny", offline(wheels, "pydantic<2"))
    with pytest.raises(GymError, match="which needs pydantic<2") as caught:
        await prepare_one(request, settings_for(root))
    assert caught.value.details


async def test_one_failure_stops_the_others(root: Path, wheels: Path) -> None:
    bad = write_server(root, "bad", offline(wheels, "gone"))
    slow = write_server(root, "slow", slow_project(root))
    with pytest.raises(GymError, match="my_bad"):
        await prepare([slow, bad], settings_for(root))
    assert wait_until_gone(str(root)) == []


async def test_half_built_environments_are_built_anew(root: Path, wheels: Path) -> None:
    request = write_server(root, "tiny", offline(wheels, "tinypkg"))
    built = await prepare_one(request, settings_for(root))
    assert built.folder is not None
    (built.folder / ".complete").unlink()
    (built.folder / "debris").touch()
    again = await prepare_one(request, settings_for(root, skip_venv_if_present=True))
    assert again.origin == "built" and not (built.folder / "debris").exists()


async def test_two_commands_at_once_build_once(root: Path, wheels: Path) -> None:
    request = write_server(root, "tiny", offline(wheels, "tinypkg"))
    both = await asyncio.gather(*(prepare([request], settings_for(root)) for _ in range(2)))
    assert sorted(environments[str(request.folder)].origin for environments, _ in both) == ["built", "stored"]
    lines = [event.line for _, events in both for event in events if isinstance(event, EnvironmentOutput)]
    assert "waiting for another command that builds the same environment" in lines


def slow_project(root: Path) -> str:
    """Requirements with a project that is never built: its build sleeps."""
    project = root / "sleeper"
    project.mkdir()
    (project / "backend.py").write_text(
        "import time\ndef build_wheel(*a, **k):\n    time.sleep(600)\nbuild_editable = build_wheel\n"
    )
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "sleeper"\nversion = "1"\n'
    )
    return f"{project}\n--no-index\n"


async def test_cancelling_ends_the_installer_and_its_children(root: Path) -> None:
    request = write_server(root, "tiny", slow_project(root))

    async def wait_for_ever() -> None:
        await prepare([request], settings_for(root))

    task = asyncio.create_task(wait_for_ever())
    await asyncio.to_thread(wait_for_installer, root)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert wait_until_gone(str(root)) == []
    assert list(cache_home("venvs").glob("*/.complete")) == []


def wait_for_installer(root: Path) -> psutil.Process:
    """The build that sleeps."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for process in psutil.process_iter(["cmdline", "cwd"]):
            if str(root / "sleeper") == process.info["cwd"]:
                return process
        time.sleep(0.05)
    raise AssertionError("no installer was seen")


def start_python(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def make_venv(path: Path) -> Path:
    """A virtual environment as a user makes one; its site folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    return next(path.glob("lib/*/site-packages"))


async def test_a_killed_command_leaves_no_installer(root: Path) -> None:
    request = write_server(root, "tiny", slow_project(root))
    code = f"""
import asyncio
from pathlib import Path
from backend.servers.environments.preparation import prepare_environments
from tests.wheel_samples import settings_for
from backend.servers.environments.environment import EnvironmentRequest
async def main():
    request = EnvironmentRequest(("a",), "resources_servers", "tiny", Path({str(request.folder)!r}))
    async for event in prepare_environments([request], settings_for(Path({str(root)!r}))):
        pass
asyncio.run(main())
"""
    process = start_python(code)
    try:
        await asyncio.to_thread(wait_for_installer, root)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert wait_until_gone(str(root)) == []
    finally:
        process.kill()
    assert list(cache_home("venvs").glob("*/.complete")) == []


async def test_overrides_win_over_what_a_package_asks_for(root: Path, wheels: Path) -> None:
    write_wheel(wheels, "picky", requires=["tinypkg==99"])
    request = write_server(root, "tiny", offline(wheels, "picky"))
    with pytest.raises(GymError):
        await prepare_one(request, settings_for(root))
    (request.folder / "overrides.txt").write_text("tinypkg==1.0\n")
    assert told_by(await prepare_one(request, settings_for(root)), "import picky, tinypkg; print(tinypkg.VALUE)") == "7"


async def test_a_project_file_and_its_own_code(root: Path, wheels: Path) -> None:
    folder = write_server(root, "tiny", "").folder
    (folder / "requirements.txt").unlink()
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "tiny"\nversion = "1"\nrequires-python = ">=99"\n'
        f'dependencies = ["nemo-gym[dev]", "tinypkg @ {(wheels / "tinypkg-1.0-py3-none-any.whl").as_uri()}"]\n'
        '[tool.uv.sources]\nnemo-gym = { path = "../..", editable = true }\n'
    )
    request = EnvironmentRequest(("my_tiny",), "resources_servers", "tiny", folder)
    environments, events = await prepare([request], settings_for(root))
    assert told_by(environments[str(folder)], "import tinypkg; print(tinypkg.VALUE)") == "7"
    notices = [event for event in events if isinstance(event, Notice)]
    assert len(notices) == 1 and "asks for Python >=99" in notices[0].text


@pytest.fixture
def index(root: Path, wheels: Path) -> Iterator[str]:
    """A package index that asks for a user and a password; its address with them."""
    page = root.parent / "index" / "tinypkg"
    page.mkdir(parents=True)
    (page / "index.html").write_text('<a href="tinypkg-1.0-py3-none-any.whl">tinypkg-1.0-py3-none-any.whl</a>')
    (wheels / "tinypkg-1.0-py3-none-any.whl").rename(page / "tinypkg-1.0-py3-none-any.whl")
    expected = "Basic " + base64.b64encode(b"robot-user:very-secret-word").decode()

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(page.parent))  # type: ignore[arg-type]

        def do_GET(self) -> None:
            if self.headers.get("Authorization") == expected:
                super().do_GET()
            else:
                self.send_error(401)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://robot-user:very-secret-word@127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def test_passwords_of_an_index_reach_the_installer_and_nobody_else(
    root: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_INDEX", index)
    request = write_server(root, "tiny", "nemo-gym\n--index-url ${MY_INDEX}\ntinypkg\n")
    seen: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    seen.update(process.cmdline())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        environments, events = await prepare([request], settings_for(root))
    finally:
        done.set()
        watcher.join()
    assert told_by(environments[str(request.folder)], "import tinypkg; print(tinypkg.VALUE)") == "7"
    assert "pip" in seen and not any("very-secret-word" in word for word in seen)
    assert "very-secret-word" not in str([event.as_fields() for event in events])

    request = write_server(root, "other", f"nemo-gym\n--index-url {index}\ngone\n")
    with pytest.raises(GymError) as caught:
        await prepare_one(request, settings_for(root))
    assert "very-secret-word" not in str(caught.value) and "robot-user" not in str(caught.value)
    kept = [path for path in cache_home("venvs").rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
    assert not any(b"very-secret-word" in path.read_bytes() for path in kept)


async def test_a_missing_installer_is_told(root: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(root))
    with pytest.raises(GymError, match="uv is not installed"):
        await prepare_one(write_server(root, "tiny", offline(wheels, "tinypkg")), settings_for(root))


async def test_a_prebuilt_environment_wins_when_asked_for(root: Path, wheels: Path) -> None:
    request = write_server(root, "tiny", offline(wheels, "tinypkg"))
    documented = request.folder / ".venv"
    site = make_venv(documented)
    (site / "tinypkg.py").write_text("VALUE = 'theirs'\n")
    found = await prepare_one(request, settings_for(root, skip_venv_if_present=True))
    assert (found.origin, found.python, found.folder) == ("prebuilt", documented / "bin" / "python", documented)
    assert sorted(os.listdir(found.import_path[0])) == ["backend", "nemo_gym"]
    assert any(Path(entry, "fastapi").is_dir() for entry in found.fallback_path)
    built = await prepare_one(request, settings_for(root))
    assert built.origin == "built"
    assert not documented.is_symlink() and (site / "tinypkg.py").exists()  # what a user made is never touched


async def test_a_prebuilt_environment_of_another_python_must_have_the_libraries(root: Path) -> None:
    request = write_server(root, "tiny", "nemo-gym\n")
    documented = request.folder / ".venv"
    site = make_venv(documented)
    (documented / "pyvenv.cfg").write_text("home = /usr/bin\nversion_info = 3.99.0\n")
    with pytest.raises(GymError, match="lacks what a server needs: aiohttp, fastapi"):
        await prepare_one(request, settings_for(root, skip_venv_if_present=True))
    for name in ("aiohttp", "fastapi", "httptools", "httpx", "hydra_core", "itsdangerous", "omegaconf", "orjson", "packaging"):
        (site / f"{name}-1.dist-info").mkdir()
    for name in ("psutil", "pydantic", "python_multipart", "PyYAML", "uvicorn", "uvloop"):
        (site / f"{name}-1.dist-info").mkdir()
    found = await prepare_one(request, settings_for(root, skip_venv_if_present=True))
    assert found.origin == "prebuilt" and found.fallback_path == ()


def test_settings_come_from_the_configuration(tmp_path: Path) -> None:
    tree = {
        "uv_venv_dir": str(tmp_path),
        "uv_cache_dir": str(tmp_path / "uv"),
        "skip_venv_if_present": True,
        "pip_install_verbose": True,
        "head_server_deps": ["ray[default]==2.60.0", "openai==2.44.0"],
    }
    assert settings_from(tree, [tmp_path]) == EnvironmentSettings(
        tmp_path, tmp_path / "uv", True, True, (tmp_path,), ("ray[default]==2.60.0",)
    )
    assert settings_from({}).uv_venv_dir == Path.cwd()


@pytest.mark.slow
async def test_requirements_that_conflict_with_ours_get_an_environment_without_our_libraries(root: Path) -> None:
    """Needs a package index."""
    request = write_server(root, "tiny", "nemo-gym\npydantic==2.11.7\n")
    environments, events = await prepare([request], settings_for(root))
    isolated = environments[str(request.folder)]
    assert told_by(isolated, "import pydantic, backend, nemo_gym.base_resources_server; print(pydantic.VERSION)") == "2.11.7"
    path = told_by(isolated, "import sys; print(sys.path)")
    assert "own-" in path and str(ROOT / ".venv") not in path
    assert not isolated.layered
    assert any("do not go together" in event.line for event in events if isinstance(event, EnvironmentOutput))
