"""Drives the `docker` command line: one detached container per sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import os
import posixpath
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from backend.servers.sandbox.process import Finished, run_program
from backend.servers.sandbox.providers.base import (
    RUNTIME_ERROR,
    RUNTIME_RETURN_CODE,
    TIMEOUT,
    SandboxConfigError,
    SandboxCreateError,
    SandboxCreateVerificationError,
    SandboxEndpoint,
    SandboxError,
    SandboxExecResult,
    SandboxHandle,
    SandboxSpec,
    SandboxStatus,
)
from backend.servers.sandbox.providers.docker.readiness import BASIC_SHELL, Run, best_shell, failed_probe, what_it_left
from backend.servers.sandbox.providers.docker.run_arguments import run_command, variables
from backend.servers.sandbox.providers.docker.settings import (
    DockerCreateConfig,
    DockerExecConfig,
    DockerProbeConfig,
    settings_of,
)

_CONTROL_TIMEOUT_SECONDS = 120.0
_COPY_TIMEOUT_SECONDS = 600.0
_EXEC_ID = "GYM_SANDBOX_EXEC_ID"
_DAEMON_ERRORS = ("Error response from daemon", "Error: No such container", "Cannot connect to the Docker daemon")
_MISSING = ("No such container", "No such object")
_KILL_BY_MARK = '[ -n "$1" ] || exit; for entry in /proc/[0-9]*; do if grep -q "$1" "$entry/environ" 2>/dev/null; then kill -9 "${entry#/proc/}" 2>/dev/null; fi; done'
"""Ends every process that has the mark given as first argument in its environment: `docker exec` does not end what it started."""
_STATES = {
    "created": SandboxStatus.STARTING,
    "restarting": SandboxStatus.STARTING,
    "running": SandboxStatus.RUNNING,
    "paused": SandboxStatus.RUNNING,
    "removing": SandboxStatus.STOPPED,
    "exited": SandboxStatus.STOPPED,
    "dead": SandboxStatus.ERROR,
}


class DockerCreateError(SandboxCreateError):
    """No container could be started."""


class DockerCreateVerificationError(SandboxCreateVerificationError):
    """A container was started, and does not become ready."""


@dataclass(slots=True)
class _Container:
    shell: str


class DockerProvider:
    """Containers through the `docker` program.

    The settings are `DockerCreateConfig`, `DockerExecConfig` and `DockerProbeConfig`, or mappings for them. Raises `SandboxConfigError`
    (a ValueError), for what does not fit the subclass that is a TypeError as well.
    """

    name = "docker"

    def __init__(
        self,
        *,
        create: DockerCreateConfig | Mapping[str, Any] | None = None,
        exec: DockerExecConfig | Mapping[str, Any] | None = None,
        probe: DockerProbeConfig | Mapping[str, Any] | None = None,
        binary: str = "docker",
    ) -> None:
        self._create_config = settings_of(DockerCreateConfig, "create", create)
        self._exec_config = settings_of(DockerExecConfig, "exec", exec)
        self._probe_config = settings_of(DockerProbeConfig, "probe", probe)
        self._binary = binary
        # One per event loop: a semaphore belongs to the loop in which somebody first had to wait for it.
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def create(self, spec: SandboxSpec) -> SandboxHandle:
        """A container that has passed the probe. Raises `DockerCreateError` and `DockerCreateVerificationError`, both `SandboxCreateError`.

        A container that fails is removed.
        """
        sandbox_id = f"gym-sandbox-{uuid4().hex[:12]}"
        wanted = run_command(sandbox_id, spec, self._create_config)
        limit = spec.ready_timeout_s or self._create_config.start_timeout_s
        handle = SandboxHandle(sandbox_id, self.name, _Container(self._exec_config.exec_shell or BASIC_SHELL))
        async with self._place(), self._removed_on_failure(handle):
            started = await self._docker(wanted.arguments, env=wanted.env, timeout_s=limit, creating=True, queued=False)
            if started.code != 0:
                raise DockerCreateError(f"docker does not start a container of {spec.image}: {_why(started)}")
        async with self._removed_on_failure(handle):
            await self._verify(handle, spec)
        return handle

    @contextlib.asynccontextmanager
    async def _removed_on_failure(self, handle: SandboxHandle) -> AsyncIterator[None]:
        try:
            yield
        except BaseException:  # a caller that gives up as well: the daemon may have started the container all the same
            with contextlib.suppress(SandboxError):
                await self.close(handle)
            raise

    async def _verify(self, handle: SandboxHandle, spec: SandboxSpec) -> None:
        """Raises `DockerCreateVerificationError` when the container does not pass the probe."""
        failed = await failed_probe(self._runner(handle), self._probe_config)
        if failed is not None:
            limit = self._probe_config.deadline_s
            raise DockerCreateVerificationError(
                f"a container of {spec.image} runs, but no command in it does what the probe expects"
                + (f", for {limit:g} s" if limit is not None else ""),
                details=what_it_left(failed),
                hint=f"its image needs {handle.raw.shell}, or another shell is set by `exec: {{exec_shell: …}}`; "
                "what is tried is set by `probe`",
            )
        await self._choose_shell(handle)

    async def _choose_shell(self, handle: SandboxHandle) -> None:
        if self._exec_config.exec_shell is None:
            handle.raw.shell = await best_shell(self._runner(handle), _CONTROL_TIMEOUT_SECONDS)

    def _runner(self, handle: SandboxHandle) -> Run:
        async def run(command: str, timeout_s: float) -> SandboxExecResult:
            return await self.exec(handle, command, timeout_s=timeout_s)

        return run

    async def exec(
        self,
        handle: SandboxHandle,
        command: str,
        *,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_s: float | None = None,
        user: str | int | None = None,
    ) -> SandboxExecResult:
        """Run `command` with the shell in the container; it is killed there when its time is up and when the caller gives up.

        Its time is `timeout_s`, else `exec.default_timeout_s`.
        """
        mark = uuid4().hex
        words, passed = variables({**(env or {}), _EXEC_ID: mark})
        arguments = ["exec", *self._exec_config.extra_exec_args, *words]
        if cwd:
            arguments += ["--workdir", cwd]
        if user is not None:
            arguments += ["--user", str(user)]
        shell = handle.raw.shell
        kill = ["exec", "--user", "0", handle.sandbox_id, shell, "-c", _KILL_BY_MARK, shell, f"{_EXEC_ID}={mark}"]
        async with self._place():
            try:
                done = await self._docker(
                    [*arguments, handle.sandbox_id, shell, "-c", command],
                    env=passed,
                    timeout_s=self._exec_config.default_timeout_s if timeout_s is None else timeout_s,
                    output_limit=self._exec_config.output_limit_bytes,
                    queued=False,
                )
            except asyncio.CancelledError:
                with contextlib.suppress(SandboxError):
                    await self._docker(kill, queued=False)
                raise
        if done.code is None:
            await self._docker(kill, queued=False)
            return SandboxExecResult(done.stdout, done.stderr, RUNTIME_RETURN_CODE, TIMEOUT)
        if done.code != 0 and done.stderr.lstrip().startswith(_DAEMON_ERRORS):
            return SandboxExecResult(done.stdout, done.stderr, RUNTIME_RETURN_CODE, RUNTIME_ERROR)
        return SandboxExecResult(done.stdout, done.stderr, done.code)

    async def upload_file(self, handle: SandboxHandle, source_path: Path, target_path: str) -> None:
        """Copy a file in; makes the folders on the way. Raises `SandboxError`."""
        target = await self._absolute(handle, target_path)
        folder = posixpath.dirname(target)
        made = await self._docker(["exec", "--user", "0", handle.sandbox_id, "mkdir", "-p", "--", folder])
        self._expect(made, f"make the folder {folder}")
        where = f"{handle.sandbox_id}:{target}"
        copied = await self._docker(["cp", str(source_path.resolve()), where], timeout_s=_COPY_TIMEOUT_SECONDS)
        self._expect(copied, f"copy {source_path} to {target}")

    async def download_file(self, handle: SandboxHandle, source_path: str, target_path: Path) -> None:
        """Copy a regular file out, also through a link in the container. Raises `SandboxError`."""
        source = await self._absolute(handle, source_path)
        target_path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="gym-sandbox-copy-") as folder:
            copy = Path(folder, "file")
            command = ["cp", "--follow-link", f"{handle.sandbox_id}:{source}", str(copy)]
            self._expect(await self._docker(command, timeout_s=_COPY_TIMEOUT_SECONDS), f"copy {source} out")
            if not stat.S_ISREG(os.lstat(copy).st_mode):
                raise SandboxError(f"{source} in the sandbox is no regular file")
            shutil.move(copy, target_path)

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        """What the daemon says of the container; stopped when it knows none."""
        seen = await self._docker(["inspect", "--format", "{{.State.Status}}", handle.sandbox_id])
        if seen.code == 0:
            return _STATES.get(seen.stdout.strip(), SandboxStatus.UNKNOWN)
        return SandboxStatus.STOPPED if any(words in seen.stderr for words in _MISSING) else SandboxStatus.UNKNOWN

    async def endpoint(self, handle: SandboxHandle, port: int) -> SandboxEndpoint:
        """Where a port of the request was published. Raises `SandboxError` for one that was not."""
        seen = await self._docker(["port", handle.sandbox_id, f"{int(port)}/tcp"])
        self._expect(seen, f"find port {port}", hint="name it in the request's `ports`")
        host, _, number = seen.stdout.splitlines()[0].rpartition(":") if seen.stdout else ("", "", "")
        if not number.isdigit():
            raise SandboxError(f"docker says {seen.stdout.strip()!r} of port {port} of the sandbox")
        return SandboxEndpoint(f"http://{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{number}")

    async def connect(self, descriptor: Mapping[str, Any]) -> SandboxHandle:
        """The container that another process started. Raises `SandboxError` when there is none."""
        sandbox_id = str(descriptor.get("sandbox_id") or "")
        if not sandbox_id or sandbox_id.startswith("-"):
            raise SandboxConfigError(f"{sandbox_id!r} is no id of a sandbox")
        handle = SandboxHandle(sandbox_id, self.name, _Container(self._exec_config.exec_shell or BASIC_SHELL))
        if await self.status(handle) is not SandboxStatus.RUNNING:
            raise SandboxError(f"there is no running sandbox {sandbox_id}")
        await self._choose_shell(handle)
        return handle

    async def close(self, handle: SandboxHandle) -> None:
        """Remove the container. Raises `SandboxError` when the daemon cannot."""
        done = await self._docker(["rm", "--force", "--volumes", handle.sandbox_id], queued=False)
        if not any(words in done.stderr for words in (*_MISSING, "is already in progress")):
            self._expect(done, f"remove the container {handle.sandbox_id}")

    async def aclose(self) -> None:
        """Nothing is held beside the containers."""

    async def _absolute(self, handle: SandboxHandle, path: str) -> str:
        """`path` in the container from its root; `docker cp` knows neither the working folder nor `~`."""
        if path.startswith("/"):
            return posixpath.normpath(path)
        in_home = path == "~" or path.startswith("~/")
        found = await self.exec(handle, 'printf %s "$HOME"' if in_home else "pwd", timeout_s=_CONTROL_TIMEOUT_SECONDS)
        if found.return_code != 0:
            raise SandboxError(f"cannot tell where {path!r} is in the sandbox: {(found.stderr or '').strip()}")
        below = path.removeprefix("~").lstrip("/") if in_home else path
        return posixpath.normpath(posixpath.join((found.stdout or "").strip() or "/", below))

    async def _docker(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = _CONTROL_TIMEOUT_SECONDS,
        output_limit: int = 1_000_000,
        creating: bool = False,
        queued: bool = True,
    ) -> Finished:
        """Run `docker`; its time begins when it has its place among the programs that run at once.

        Not `queued` are those whose caller holds the place, and those that clean up.
        """
        try:
            async with self._place() if queued else contextlib.nullcontext():
                return await run_program(
                    [self._binary, *arguments], env={**os.environ, **(env or {})}, timeout_s=timeout_s, output_limit=output_limit
                )
        except OSError as error:
            kind = DockerCreateError if creating else SandboxError
            raise kind(
                f"cannot run `{self._binary}`: {error.strerror}",
                hint="install Docker, or use another sandbox provider (`local` needs nothing)",
            ) from error

    def _place(self) -> asyncio.Semaphore:
        return self._places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._exec_config.concurrency))

    def _expect(self, done: Finished, what: str, hint: str | None = None) -> None:
        if done.code != 0:
            raise SandboxError(f"docker cannot {what}: {_why(done)}", hint=hint)


def _why(failed: Finished) -> str:
    return "it took too long" if failed.code is None else failed.stderr.strip() or f"exit code {failed.code}"
