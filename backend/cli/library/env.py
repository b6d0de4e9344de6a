"""The commands about environments, and `RunHelper`, by which programs start servers themselves; importable as `nemo_gym.cli.env`."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from backend.cli.console import say
from backend.cli.library.commands import command_function
from backend.cli.render_servers import render_server_event
from backend.config.global_config import GlobalConfigDictParserConfig, request_of, set_global_config_dict
from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_config
from backend.errors import GymError
from backend.events import Event
from backend.servers.model_endpoints import endpoint_wait_seconds, model_endpoints
from backend.servers.server_events import ModelEndpointState, StackReady, StackStarting
from backend.servers.server_settings import ServerStatus
from backend.servers.server_status import server_health
from backend.servers.start import StartRequest, start_environment
from backend.servers.warm_parent_link import WarmParentLink

__all__ = [
    "PipListConfig",
    "RunConfig",
    "RunHelper",
    "TestAllConfig",
    "TestConfig",
    "dump_config",
    "list_environments",
    "pip_list",
    "prefetch",
    "run",
    "show_schema",
    "status",
    "test",
    "test_all",
    "validate",
]

POLL_SECONDS = 60.0
_STOP_SECONDS = 30.0
_SETTLED = ("answering", "unknown host")

run = command_function("env", "start")
prefetch = command_function("env", "prefetch")
test = command_function("env", "test")
test_all = command_function("env", "test", "--all")
dump_config = command_function("env", "resolve")
validate = command_function("env", "validate")
status = command_function("env", "status")
pip_list = command_function("env", "packages")
show_schema = command_function("env", "schema")
list_environments = command_function("list", "environments")


class _CommandConfig(BaseModel):
    model_config = ConfigDict(extra="ignore")


class RunConfig(_CommandConfig):
    """Keys of `gym env start` beside the servers."""

    dry_run: bool = False
    nemo_gym_log_dir: str | None = None


class TestConfig(_CommandConfig):
    """Keys of `gym env test` for one component."""

    __test__ = False

    entrypoint: str
    """The component's folder, such as `resources_servers/mcqa`."""
    should_validate_data: bool = False


class TestAllConfig(_CommandConfig):
    """Keys of `gym env test --all`."""

    __test__ = False

    num_shards: int = 1
    shard_index: int = 0
    fail_on_total_and_test_mismatch: bool = False
    delete_venvs_after_each_test: bool = False


class PipListConfig(_CommandConfig):
    """Keys of `gym env packages`."""

    entrypoint: str
    format: str | None = None
    outdated: bool = False


class RunHelper:
    """Servers under the control of another program: started, looked after and stopped by its calls.

    Everything happens in a thread of its own; what goes wrong is raised by the call that notices it, and the process is never left.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._head_url = ""
        self._ready: StackReady | None = None
        self._endpoints: set[str] = set()
        self._ended = False
        self._error: BaseException | None = None

    def start(self, global_config_dict_parser_config: GlobalConfigDictParserConfig | None = None) -> None:
        """Resolve a configuration, start its servers, and wait until they and their model endpoints answer.

        From then on the configuration with the servers' addresses is that of this process. Raises the `GymError` family; nothing is
        left running then.
        """
        if self._thread is not None:
            raise GymError("these servers have been started already", hint="use a new RunHelper")
        wanted = global_config_dict_parser_config or GlobalConfigDictParserConfig()
        request = replace(request_of(wanted), check_components=True)
        resolved = resolve_config(request)
        if endpoint_wait_seconds(resolved.tree) > 0:
            self._endpoints = {endpoint.shown for endpoint in model_endpoints(resolved.servers)}
        self._thread = threading.Thread(target=self._serve, args=(request,), name="servers", daemon=True)
        self._thread.start()
        try:
            self.wait_for_spinup()
            if resolved.tree.get("dry_run"):
                return
            set_global_config_dict(self._live_config(resolved))
            self.wait_for_model_endpoints()
        except BaseException:
            self.shutdown()
            raise

    def poll(self) -> None:
        """Raise what has ended the servers, if they have ended."""
        with self._changed:
            if self._ended:
                raise self._error or GymError("the servers have been stopped")

    def wait_for_spinup(self) -> None:
        """Wait until all servers answer, or a dry run is over."""
        self._wait_until(lambda: self._ready is not None)

    def wait_for_model_endpoints(self) -> None:
        """Wait until the model endpoints answer, as long as `model_endpoint_readiness_timeout_seconds` says."""
        self._wait_until(lambda: not self._endpoints)

    def check_http_server_statuses(self) -> dict[str, ServerStatus]:
        """Whether each server answers now, by instance name."""
        return {str(instance["process_name"]): server_health(instance["url"]) for instance in self._instances()}

    def display_server_instance_info(self) -> None:
        """Print where each server runs."""
        if self._ready is not None:
            render_server_event(self._ready)

    def run_forever(self) -> None:
        """Watch the servers until Ctrl-C or until one dies, and stop them then."""
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._ended, timeout=POLL_SECONDS)
                self.poll()
        except KeyboardInterrupt:
            pass
        finally:
            self.shutdown()

    def shutdown(self) -> None:
        """Stop every server, and wait until they are gone. Safe to call twice."""
        with self._changed:
            self._stopping = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)

    def _instances(self) -> tuple[dict[str, Any], ...]:
        return self._ready.instances if self._ready is not None else ()

    def _live_config(self, resolved: ResolvedConfig) -> dict[Any, Any]:
        tree = copy.deepcopy(dict(resolved.tree))
        for instance in self._instances():
            block = tree[instance["process_name"]][instance["server_type"]][instance["name"]]
            block.update(host=instance["host"], port=instance["port"])
        head = urlsplit(self._head_url)
        tree["head_server"] = {**(tree.get("head_server") or {}), "host": head.hostname, "port": head.port}
        return tree

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: is_so() or self._ended)
            if not is_so() and self._error is not None:
                raise self._error

    def _serve(self, request: ConfigRequest) -> None:
        error: BaseException | None = None
        try:
            asyncio.run(self._consume(request))
        except asyncio.CancelledError:
            pass
        except BaseException as caught:
            error = caught
        with self._changed:
            self._error, self._ended = error, True
            self._changed.notify_all()

    async def _consume(self, request: ConfigRequest) -> None:
        with self._changed:
            if self._stopping:
                return
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        start = StartRequest(request, on_output=lambda server, line: say(f"({server}) {line}"))
        try:
            async with aclosing(start_environment(start, WarmParentLink())) as events:
                async for event in events:
                    self._take(event)
        finally:
            with self._changed:
                self._loop = self._task = None  # the loop is about to be closed, and takes no calls then

    def _take(self, event: Event) -> None:
        with self._changed:
            if isinstance(event, StackStarting):
                self._head_url = event.head_url
            elif isinstance(event, StackReady):
                self._ready = event
            elif isinstance(event, ModelEndpointState) and event.state in _SETTLED:
                self._endpoints.discard(event.url)
            self._changed.notify_all()
