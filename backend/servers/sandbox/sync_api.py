"""The sandbox for code without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from backend.servers.sandbox.async_api import AsyncSandbox
from backend.servers.sandbox.providers.base import (
    SandboxEndpoint,
    SandboxError,
    SandboxExecResult,
    SandboxProvider,
    SandboxSpec,
    SandboxStatus,
)
from backend.servers.sandbox.terminals import DEFAULT_TIMEOUT_SECONDS

Result = TypeVar("Result")


class Sandbox:
    """`AsyncSandbox` with methods that block. It has an event loop of its own, in a thread, from `start` to `stop`."""

    def __init__(self, provider: Mapping[str, Any] | SandboxProvider, spec: SandboxSpec | None = None) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._sandbox = AsyncSandbox(provider, spec)

    @property
    def _handle(self) -> Any:
        return self._sandbox._handle

    def start(self, spec: SandboxSpec | None = None) -> Self:
        """As `AsyncSandbox.start`."""
        try:
            self._run(self._sandbox.start(spec))
        except BaseException:
            if self._handle is None:  # one that runs already goes on
                self._end_loop()
            raise
        return self

    def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_SECONDS,
        user: str | int | None = None,
    ) -> SandboxExecResult:
        """As `AsyncSandbox.exec`."""
        return self._run(self._sandbox.exec(command, cwd=cwd, env=env, timeout_s=timeout_s, user=user))

    def upload(self, local_path: Path | str, remote_path: str) -> None:
        """As `AsyncSandbox.upload`."""
        self._run(self._sandbox.upload(local_path, remote_path))

    def download(self, remote_path: str, local_path: Path | str) -> None:
        """As `AsyncSandbox.download`."""
        self._run(self._sandbox.download(remote_path, local_path))

    def status(self) -> SandboxStatus:
        """As `AsyncSandbox.status`."""
        return self._run(self._sandbox.status())

    def endpoint(self, port: int) -> SandboxEndpoint:
        """As `AsyncSandbox.endpoint`."""
        return self._run(self._sandbox.endpoint(port))

    def serialize(self, *, scope: str | None = None) -> dict[str, Any]:
        """As `AsyncSandbox.serialize`."""
        return self._run(self._sandbox.serialize(scope=scope))

    def stop(self) -> None:
        """As `AsyncSandbox.stop`; ends the thread too."""
        if self._loop is None and self._handle is None:
            return
        try:
            self._run(self._sandbox.stop())
        finally:
            self._end_loop()

    def __enter__(self) -> Self:
        if self._sandbox._spec is not None:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            work.close()
            raise SandboxError("Sandbox would block the running event loop", hint="use AsyncSandbox in asynchronous code")
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="sandbox-loop", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
