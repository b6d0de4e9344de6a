"""What `server_utils` gives to programs beside the base classes: session settings, head server, status, profiling, prefixes, Ray."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import logging
import pickle
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import aiohttp
import httpx
import pytest
import yaml
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import DictConfig

from backend.config.config_types import BaseServerConfig
from backend.config.global_config import get_global_config_dict, set_global_config_dict
from backend.errors import GymError
from backend.servers import ray_cluster, server_utils
from backend.servers.decorators import experimental
from backend.servers.http_client import ClientSettings, configure_http_client, http_session
from backend.servers.log_prefix import PrefixedStream
from backend.servers.resources_server import BaseResourcesServerConfig, BaseVerifyRequest, SimpleResourcesServer
from backend.servers.server_status import StatusCommand, server_health
from backend.servers.server_utils import (
    GlobalAIOHTTPAsyncClientConfig,
    HeadServer,
    ProfilingMiddlewareConfig,
    ServerClient,
    ServerInstanceDisplayConfig,
    get_nemo_gym_fastapi_num_workers,
    global_aiohttp_client_exit,
    is_global_aiohttp_client_request_debug_enabled,
    is_global_aiohttp_client_setup,
    known_config,
    raise_for_status,
    request,
    set_global_aiohttp_client,
)
from tests.conftest import unused_port
from tests.loopback import Reply, endpoint, serving_in_thread


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    set_global_config_dict(None)
    configure_http_client(ClientSettings())


async def test_the_session_is_set_up_once_it_is_asked_for() -> None:
    assert not is_global_aiohttp_client_setup()
    session = set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig(global_aiohttp_connector_limit_per_host=7, verbose=True))  # type: ignore[call-arg]
    try:
        assert session is http_session()
        assert session.connector is not None
        assert session.connector.limit_per_host == 7
        assert is_global_aiohttp_client_setup()
        assert await asyncio.to_thread(is_global_aiohttp_client_setup)
    finally:
        await global_aiohttp_client_exit()
    assert not is_global_aiohttp_client_setup()


async def test_debugging_logs_failed_exchanges_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    set_global_config_dict({"policy_api_key": "sk-very-secret"})
    assert not is_global_aiohttp_client_request_debug_enabled()
    set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig(global_aiohttp_client_request_debug=True))
    assert is_global_aiohttp_client_request_debug_enabled()
    async with endpoint(Reply(418, {"detail": "sk-very-secret is no teapot"})) as server:
        with caplog.at_level(logging.WARNING):
            response = await request("POST", f"{server.base_url}/x", json={"question": "tea?"})
        assert (await response.json())["detail"].endswith("teapot")
    (line,) = [record.getMessage() for record in caplog.records if "answered 418" in record.getMessage()]
    assert "tea?" in line and "teapot" in line and "sk-very-secret" not in line
    await global_aiohttp_client_exit()


async def test_errors_travel_between_processes() -> None:
    async with endpoint(Reply(503, {"detail": "busy"}, {"X-Marked": "1"})) as server:
        response = await request("GET", f"{server.base_url}/x")
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await raise_for_status(response)
    await global_aiohttp_client_exit()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.status, again.response_content) == (503, b'{"detail":"busy"}')
    assert again.headers["x-marked"] == "1"
    assert str(again.request_info.url).endswith("/x")


class Plain(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    async def verify(self, body: BaseVerifyRequest) -> Any:
        raise NotImplementedError


def plain(**config: Any) -> Plain:
    place = {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py", "name": "plain"}
    client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), config)
    return Plain(config=BaseResourcesServerConfig(**place), server_client=client)


def test_a_head_server_of_a_program() -> None:
    port = unused_port()
    set_global_config_dict({"head_server": {"host": "127.0.0.1", "port": port}, "policy_api_key": "sk-1234567890"})
    server, thread, head = HeadServer.run_webserver()
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            if server_health(url) == "success":
                break
        head.set_server_instances(
            [{"process_name": "a", "server_type": "resources_servers", "name": "x", "url": url, "start_time": 1.0}]
        )
        assert httpx.get(f"{url}/server_instances").json()[0]["process_name"] == "a"
        assert set(httpx.get(f"{url}/openapi.json").json()["paths"]) == {"/", "/global_config_dict_yaml", "/server_instances"}
        assert httpx.get(url).headers["x-gym-server"] == "head_server"
        config = yaml.safe_load(httpx.get(f"{url}/global_config_dict_yaml").json())
        assert config["head_server"]["port"] == port
        assert "sk-1234567890" not in json.dumps(config)
        (found,) = StatusCommand().discover_servers()
        assert (found.status, found.process_name) == ("success", "a")
        assert found.uptime_seconds is not None
        out = io.StringIO()
        StatusCommand().display_status([found, ServerInstanceDisplayConfig(process_name="b", status="timeout")], out)
        assert "✓ a (resources_servers/x)" in out.getvalue()
        assert "2 servers found (1 healthy, 1 unhealthy)" in out.getvalue()
    finally:
        server.should_exit = True
        thread.join(10)
    assert not thread.is_alive()
    assert StatusCommand().discover_servers() == []


def test_a_server_is_asked_for_its_status() -> None:
    application = FastAPI()
    with serving_in_thread(application) as url:
        host, port = url.removeprefix("http://").split(":")
        tree = {"up": {"resources_servers": {"r": {"host": host, "port": int(port)}}}}
        tree["down"] = {"resources_servers": {"r": {"host": "127.0.0.1", "port": unused_port()}}}
        client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), tree)
        assert client.poll_for_status("up") == "success"
        assert client.poll_for_status("down") == "connection_error"


def test_profiling_needs_a_folder_and_yappi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GymError, match="profiling_results_dirpath"):
        plain().setup_profiling(FastAPI(), ProfilingMiddlewareConfig(profiling_enabled=True))
    monkeypatch.setitem(sys.modules, "yappi", None)
    with pytest.raises(GymError, match="yappi"):
        plain().setup_profiling(FastAPI(), ProfilingMiddlewareConfig(profiling_results_dirpath=tmp_path))


def test_profiling_writes_when_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stats:
        def print_all(self, out: Any, columns: Any) -> None:
            out.write("the table")

        def save(self, path: str, type: str) -> None:
            Path(path).write_text(type)

    yappi = types.SimpleNamespace(
        set_clock_type=lambda _kind: None, start=lambda: None, stop=lambda: None, get_func_stats=lambda: Stats()
    )
    monkeypatch.setitem(sys.modules, "yappi", yappi)  # type: ignore[arg-type]
    monkeypatch.setenv("PATH", "")
    application = FastAPI()
    plain().setup_profiling(application, ProfilingMiddlewareConfig(profiling_enabled=True, profiling_results_dirpath=tmp_path))
    with serving_in_thread(application) as url:
        folder = Path(httpx.get(f"{url}/stats").json()["profile"])
    assert folder == tmp_path / "Plain___plain"
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "plain.log": "the table",
        "plain.callgrind": "CALLGRIND",
    }


@given(st.lists(st.text(alphabet="ab\n", max_size=8), max_size=6))
def test_each_line_gets_one_prefix(pieces: list[str]) -> None:
    out = io.StringIO()
    stream = PrefixedStream(out, "> ")
    for piece in pieces:
        assert stream.write(piece) == len(piece)
    text = "".join(pieces)
    assert out.getvalue() == "".join(f"> {line}" for line in text.splitlines(keepends=True))
    assert not stream.isatty()  # type: ignore[operator]


def test_ray_is_joined_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(GymError, match="not installed"):
        ray_cluster.initialize_ray()
    calls: list[dict[str, Any]] = []

    def init(**arguments: Any) -> None:
        calls.append(arguments)
        if arguments.get("address") == "ray://gone":
            raise ConnectionError("nobody there")

    fake = types.SimpleNamespace(is_initialized=lambda: bool(calls) and calls[-1].get("address") is None, init=init)
    monkeypatch.setitem(sys.modules, "ray", fake)  # type: ignore[arg-type]
    set_global_config_dict({"ray_head_node_address": "10.0.0.1:6379"})
    ray_cluster.initialize_ray()
    assert calls == [{"ignore_reinit_error": True, "address": "10.0.0.1:6379"}]
    set_global_config_dict({"ray_head_node_address": "ray://gone"})
    with pytest.raises(GymError, match="ray://gone: nobody there"):
        ray_cluster.initialize_ray()
    set_global_config_dict({})
    ray_cluster.initialize_ray()
    ray_cluster.initialize_ray()
    assert calls[2:] == [{"ignore_reinit_error": True}]
    assert ray_cluster.uses_ray()


def test_a_client_may_know_nothing_but_a_configuration() -> None:
    client = ServerClient.model_construct(global_config_dict={"m": {"responses_api_models": {"i": {"host": "h", "port": 5}}}})
    assert client._resolve_base_url("m") == "http://h:5"
    assert ServerClient.model_construct().head_server_config.port == 11000


MODEL_AT_H = {"m": {"responses_api_models": {"i": {"host": "h", "port": 5}}}, "observability_enabled": True}


@pytest.fixture
def in_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMO_GYM_CONFIG_PATH", "agent")
    set_global_config_dict(MODEL_AT_H)


def test_a_servers_client_makes_the_object_for_those_who_ask(in_a_server: None) -> None:
    client = ServerClient.load_from_global_config()
    assert client._resolve_base_url("m") == "http://h:5" and client._observing
    assert known_config(client) == MODEL_AT_H and "global_config_dict" not in vars(client)
    assert MagicMock(spec=client).global_config_dict  # it is there for whoever lists the names
    with pytest.raises(AttributeError, match="'ServerClient' object has no attribute 'nothing'"):
        _ = client.nothing
    config = get_global_config_dict()
    config["m"]["responses_api_models"]["i"]["port"] = 6
    assert (
        client._resolve_base_url("m") == "http://h:5"
        and ServerClient.load_from_global_config()._resolve_base_url("m") == "http://h:6"
    )
    assert client.global_config_dict is config is known_config(client)


@pytest.mark.parametrize("moved", [copy.deepcopy, copy.copy, lambda client: pickle.loads(pickle.dumps(client))])
def test_a_client_keeps_its_configuration_wherever_it_goes(
    in_a_server: None, moved: Callable[[ServerClient], ServerClient]
) -> None:
    client = ServerClient.load_from_global_config()
    other = moved(client)
    set_global_config_dict({"m": {"responses_api_models": {"i": {"host": "other", "port": 1}}}})
    for each in (client, other):
        assert each._resolve_base_url("m") == "http://h:5"
        assert isinstance(each.global_config_dict, DictConfig) and each.global_config_dict == MODEL_AT_H


def test_subclasses_get_the_object_where_they_look_at_it(in_a_server: None) -> None:
    class Looking(ServerClient):
        def __init__(self, head_server_config: BaseServerConfig, global_config_dict: Any) -> None:
            super().__init__(head_server_config, global_config_dict)
            self.host = global_config_dict.m.responses_api_models.i.host

    class Declaring(ServerClient):
        global_config_dict = None

    assert Looking.load_from_global_config().host == "h"
    assert known_config(Declaring.load_from_global_config()) is get_global_config_dict()


def test_clients_without_a_configuration_have_an_empty_one() -> None:
    for client in (MagicMock(spec=ServerClient), object(), ServerClient.__new__(ServerClient)):
        assert known_config(client) == {}
    with pytest.raises(AttributeError):
        _ = ServerClient.__new__(ServerClient).global_config_dict


def test_what_existing_tests_replace_counts(monkeypatch: pytest.MonkeyPatch, in_a_server: None) -> None:
    replacement = {"head_server": {"host": "there", "port": 2}}
    client = ServerClient.load_from_global_config()
    monkeypatch.setattr(server_utils, "get_global_config_dict", lambda: replacement)
    other = ServerClient.load_from_global_config()
    assert other.head_server_config.host == "there" and other.global_config_dict is replacement
    monkeypatch.setattr(server_utils, "ServerClient", MagicMock())
    assert known_config(client) == MODEL_AT_H
    assert server_utils.setup_server_client() is server_utils.ServerClient.load_from_global_config()


def test_workers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEMO_GYM_FASTAPI_NUM_WORKERS", raising=False)
    assert get_nemo_gym_fastapi_num_workers() == 1
    monkeypatch.setenv("NEMO_GYM_FASTAPI_NUM_WORKERS", "4")
    assert get_nemo_gym_fastapi_num_workers() == 4


def test_experimental_functions_warn_and_work() -> None:
    @experimental
    def doubled(number: int) -> int:
        """Twice."""
        return 2 * number

    with pytest.warns(UserWarning, match="doubled is experimental"):
        assert doubled(2) == 4
    assert doubled.__doc__ == "Twice."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert doubled(number=3) == 6
