"""Servers under the control of a program, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.cli.library.env import RunHelper
from backend.config.global_config import GlobalConfigDictParserConfig, get_global_config_dict, set_global_config_dict
from backend.errors import GymError
from backend.servers.server_utils import ServerClient, get_response_json, global_aiohttp_client_exit, setup_server_client
from tests.conftest import wait_until_gone


@pytest.fixture
def no_config(monkeypatch: pytest.MonkeyPatch, tiny_tree: Path) -> Iterator[None]:
    monkeypatch.chdir(tiny_tree)
    monkeypatch.setattr("sys.argv", ["train.py", "--steps", "3"])
    set_global_config_dict(None)
    yield
    set_global_config_dict(None)


def what_is_left(tree: Path) -> list[object]:
    """Processes that still have to do with `tree`; this one works there itself."""
    os.chdir("/")
    return list(wait_until_gone(str(tree)))


def wanted(port: int, **fields: object) -> GlobalConfigDictParserConfig:
    tree = {"config_paths": ["tiny.yaml"], "head_server": {"port": port}, **fields}
    return GlobalConfigDictParserConfig(initial_global_config_dict=tree, skip_load_from_cli=True, skip_load_from_dotenv=True)


@pytest.mark.slow
def test_servers_are_started_found_and_stopped(
    no_config: None, tiny_tree: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    helper = RunHelper()
    helper.start(wanted(free_port))
    try:
        helper.poll()
        helper.wait_for_spinup()
        assert helper.check_http_server_statuses() == dict.fromkeys(("tiny_a", "tiny_b", "tiny_c"), "success")
        helper.display_server_instance_info()
        assert "tiny_a (" in capsys.readouterr().out
        assert get_global_config_dict().head_server.port == free_port

        async def ask() -> object:
            client = setup_server_client()
            try:
                return await get_response_json(await client.get("tiny_b", "/"))
            finally:
                await global_aiohttp_client_exit()

        assert asyncio.run(ask()) == {"status": "ok"}
        assert ServerClient.load_from_global_config().poll_for_status("tiny_c") == "success"
        with pytest.raises(GymError, match="already"):
            helper.start(wanted(free_port))
    finally:
        helper.shutdown()
    assert what_is_left(tiny_tree) == []
    helper.shutdown()
    with pytest.raises(GymError, match="stopped"):
        helper.poll()


@pytest.mark.slow
def test_a_server_that_dies_is_named_by_the_next_poll(no_config: None, tiny_tree: Path, free_port: int) -> None:
    helper = RunHelper()
    helper.start(wanted(free_port))
    try:
        (victim,) = [instance for instance in helper._instances() if instance["process_name"] == "tiny_b"]
        os.kill(victim["pid"], signal.SIGKILL)
        deadline = time.monotonic() + 10
        with pytest.raises(GymError, match="tiny_b"):
            while time.monotonic() < deadline:
                helper.poll()
                time.sleep(0.05)
    finally:
        helper.shutdown()
    assert what_is_left(tiny_tree) == []


def test_who_gives_up_at_once_leaves_nothing(
    no_config: None, tiny_tree: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = RunHelper()
    told_to_stop = threading.Event()
    serve = helper._serve

    def give_up() -> None:
        threading.Timer(0.2, told_to_stop.set).start()
        raise KeyboardInterrupt

    monkeypatch.setattr(helper, "wait_for_spinup", give_up)
    monkeypatch.setattr(helper, "_serve", lambda request: (told_to_stop.wait(), serve(request)))
    with pytest.raises(KeyboardInterrupt):
        helper.start(wanted(free_port))
    assert helper._thread is not None and not helper._thread.is_alive()
    assert what_is_left(tiny_tree) == []


def test_a_configuration_that_is_wrong_is_raised_and_nothing_started(no_config: None, tiny_tree: Path, free_port: int) -> None:
    with pytest.raises(GymError, match=r"nothing\.yaml"):
        RunHelper().start(wanted(free_port, config_paths=["nothing.yaml"]))
    assert what_is_left(tiny_tree) == []


def test_a_dry_run_constructs_and_leaves(no_config: None, tiny_tree: Path, free_port: int) -> None:
    helper = RunHelper()
    helper.start(wanted(free_port, dry_run=True))
    assert what_is_left(tiny_tree) == []
    helper.shutdown()
