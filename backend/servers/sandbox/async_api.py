"""A sandbox as its users see it, whatever the runtime."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from backend.servers.sandbox.providers.base import (
    SandboxConfigError,
    SandboxEndpoint,
    SandboxError,
    SandboxExecResult,
    SandboxHandle,
    SandboxProvider,
    SandboxSpec,
    SandboxStatus,
)
from backend.servers.sandbox.providers.registry import create_provider
from backend.servers.sandbox.terminals import DEFAULT_TIMEOUT_SECONDS, SandboxPty


class AsyncSandbox:
    """One sandbox of a provider, given as an object or as `{name: settings}`; in the latter case it is closed with the sandbox.

    As a context manager it is started, where a request is there, and stopped.
    """

    def __init__(self, provider: Mapping[str, Any] | SandboxProvider, spec: SandboxSpec | None = None) -> None:
        own = isinstance(provider, Mapping)
        self._provider: Any = create_provider(provider) if isinstance(provider, Mapping) else provider
        self._owns_provider = own
        self._spec = spec
        self._handle: SandboxHandle | None = None
        self._workdir: str | None = None
        self._changing = asyncio.Lock()

    @classmethod
    async def connect(cls, descriptor: Mapping[str, Any], *, provider: Mapping[str, Any] | SandboxProvider) -> Self:
        """A sandbox that another process started, from what its `serialize` gave. Raises `SandboxError` where the runtime cannot."""
        sandbox = cls(provider)
        sandbox._handle = await sandbox._capability("connect", "reached from another process")(dict(descriptor))
        sandbox._workdir = descriptor.get("workdir")
        return sandbox

    async def serialize(self, *, scope: str | None = None) -> dict[str, Any]:
        """What `connect` needs: `{"provider", "sandbox_id", "workdir"}`, or what the provider's `serialize_handle` says with the last."""
        handle = self._running()
        describe = getattr(self._provider, "serialize_handle", None)
        own = {"provider": handle.provider_name, "sandbox_id": handle.sandbox_id}
        return {**(own if describe is None else await describe(handle, scope=scope)), "workdir": self._workdir}

    async def start(self, spec: SandboxSpec | None = None) -> Self:
        """Make the sandbox and put the request's files in it; nothing more when it runs already.

        Raises `SandboxCreateError` when it cannot be made, and `SandboxConfigError` without a request.
        """
        async with self._changing:
            wanted = spec or self._spec
            if self._handle is not None:
                if spec is not None and spec != self._spec:
                    raise SandboxConfigError("this sandbox runs already, and not as it is asked for now", hint="stop it first")
                return self
            if wanted is None:
                raise SandboxConfigError("a sandbox starts with a SandboxSpec", hint="pass it to the constructor or to start()")
            self._spec = wanted
            handle = await self._provider.create(wanted)
            try:
                await self._upload_texts(handle, wanted.files)
            except BaseException:
                await self._provider.close(handle)
                raise
            self._handle = handle
            self._workdir = wanted.workdir
        return self

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_SECONDS,
        user: str | int | None = None,
    ) -> SandboxExecResult:
        """Run a shell command to its end, or until `timeout_s` is over (`error_type` is `timeout` then)."""
        result: SandboxExecResult = await self._provider.exec(
            self._running(), command, cwd=self._folder_for(cwd), env=env, timeout_s=timeout_s, user=user
        )
        return result

    async def upload(self, local_path: Path | str, remote_path: str) -> None:
        """Copy a file into the sandbox; the folders on the way are made."""
        await self._provider.upload_file(self._running(), Path(local_path), remote_path)

    async def download(self, remote_path: str, local_path: Path | str) -> None:
        """Copy a file out of the sandbox."""
        await self._provider.download_file(self._running(), remote_path, Path(local_path))

    async def status(self) -> SandboxStatus:
        """Where in its life the sandbox is; stopped when it was never started."""
        if self._handle is None:
            return SandboxStatus.STOPPED
        status: SandboxStatus = await self._provider.status(self._handle)
        return status

    async def endpoint(self, port: int) -> SandboxEndpoint:
        """How a port that the request names is reached from here."""
        endpoint: SandboxEndpoint = await self._capability("endpoint", "reached at its ports")(self._running(), port)
        return endpoint

    @property
    def pty(self) -> SandboxPty:
        """Interactive terminals in this sandbox."""
        return SandboxPty(self)

    async def stop(self) -> None:
        """End the sandbox, also one that is just starting; harmless when it has ended. One that cannot be ended can be tried again."""
        async with self._changing:
            try:
                if self._handle is not None:
                    await self._provider.close(self._handle)
                    self._handle = None
            finally:
                if self._owns_provider:
                    self._owns_provider = False
                    await self._provider.aclose()

    async def __aenter__(self) -> Self:
        if self._spec is not None:
            await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _running(self) -> SandboxHandle:
        if self._handle is None:
            raise SandboxError("this sandbox is not running", hint="await start() first")
        return self._handle

    def _folder_for(self, cwd: str | None) -> str | None:
        """Where a command runs: providers need not remember the folder that the request named; one that is relative only they can find."""
        workdir = self._workdir or ""
        return cwd if cwd is not None or not workdir.startswith("/") else workdir

    def _capability(self, name: str, meaning: str) -> Any:
        method = getattr(self._provider, name, None)
        if method is None:
            raise SandboxError(f"a sandbox of the provider `{getattr(self._provider, 'name', '?')}` cannot be {meaning}")
        return method

    async def _upload_texts(self, handle: SandboxHandle, files: Mapping[str, str | bytes]) -> None:
        if not files:
            return
        with tempfile.TemporaryDirectory(prefix="gym-sandbox-files-") as folder:
            local = Path(folder, "file")
            for path, content in files.items():
                await asyncio.to_thread(local.write_bytes, content if isinstance(content, bytes) else content.encode())
                await self._provider.upload_file(handle, local, path)
