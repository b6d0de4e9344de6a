"""Sandboxes that are folders of this machine: each command is a process group of its own, with an environment of its own.

This keeps order, it does not keep anybody in: a command can do whatever this user may do. For code that nobody has read, use containers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from backend.servers.sandbox.confined import copy_in, copy_out, parts_below
from backend.servers.sandbox.keeper import delete_tree
from backend.servers.sandbox.keeper_link import KeeperLink
from backend.servers.sandbox.local_terminal import LocalTerminal
from backend.servers.sandbox.providers.base import (
    RUNTIME_RETURN_CODE,
    TIMEOUT,
    SandboxConfigError,
    SandboxCreateError,
    SandboxEndpoint,
    SandboxExecResult,
    SandboxHandle,
    SandboxPtySpec,
    SandboxSpec,
    SandboxStatus,
)

logger = logging.getLogger(__name__)

INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
"""The variables of the server's own environment that commands get to see."""
OUTPUT_LIMIT_BYTES = 10_000_000


@dataclass(slots=True)
class _Folder:
    root: Path
    workdir: str
    env: dict[str, str]
    keeper: KeeperLink
    expiry: asyncio.TimerHandle | None = None
    ending: asyncio.Task[None] | None = None
    terminals: list[LocalTerminal] = field(default_factory=list)


class LocalProvider:
    """Runs sandboxes as folders below `base_dir` (the system's temporary folder by default).

    `inherit_env` are the variables passed on, `shell` runs the commands, `output_limit_bytes` is kept of each stream of a command.
    A sandbox's root is its `HOME` and `$SANDBOX_ROOT`. In file transfers, `/x` means `x` below the root; commands see the machine's own paths.
    """

    name = "local"

    def __init__(
        self,
        base_dir: str | None = None,
        inherit_env: Sequence[str] = INHERITED,
        shell: str = "/bin/sh",
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
    ) -> None:
        if not os.access(shell, os.X_OK):
            raise SandboxConfigError(f"the shell of local sandboxes, {shell}, is not there")
        self.base_dir = base_dir
        self.inherit_env = tuple(inherit_env)
        self.shell = shell
        self.output_limit_bytes = output_limit_bytes
        self._folders: dict[str, _Folder] = {}

    async def create(self, spec: SandboxSpec) -> SandboxHandle:
        """A new folder. Raises `SandboxCreateError` when it cannot be made. Images, resources and entry points mean nothing here."""
        for what, given in (("image", spec.image), ("entrypoint", spec.entrypoint), ("provider_options", spec.provider_options)):
            if given:
                logger.info("local sandbox: `%s` has no meaning here", what)
        sandbox_id = f"local-{uuid4().hex[:12]}"
        root = Path(self.base_dir or tempfile.gettempdir(), f"gym-sandbox-{sandbox_id}").absolute()
        steps = parts_below(spec.workdir or "")
        try:
            keeper = KeeperLink(root)  # before the folder, which it deletes should this process die
        except OSError as error:
            raise SandboxCreateError(f"no process for a sandbox can be started: {error.strerror}") from error
        try:
            root.mkdir(mode=0o700)
            root.joinpath(*steps).mkdir(parents=True, exist_ok=True)
            (root / "tmp").mkdir(exist_ok=True)
        except OSError as error:
            await keeper.close()
            raise SandboxCreateError(f"cannot make a folder for a sandbox: {error}", hint="set `base_dir`") from error
        own = {"HOME": str(root), "TMPDIR": str(root / "tmp"), "SANDBOX_ROOT": str(root)}
        inherited = {name: os.environ[name] for name in self.inherit_env if name in os.environ}
        folder = _Folder(root, "/".join(steps), inherited | own | spec.env, keeper)
        self._folders[sandbox_id] = folder
        handle = SandboxHandle(sandbox_id=sandbox_id, provider_name=self.name, raw=folder)
        if spec.ttl_s is not None:
            folder.expiry = asyncio.get_running_loop().call_later(spec.ttl_s, self._expire, handle)
        return handle

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
        """Run `command` with the shell, as this user whatever `user` says; kill its process group after `timeout_s`.

        `cwd` is below the sandbox's root. Raises `SandboxError` when the sandbox has ended or `cwd` leads out of it.
        """
        folder: _Folder = handle.raw
        where = folder.root.joinpath(*(parts_below(cwd, folder.workdir) if cwd else (folder.workdir,)))
        ended = await folder.keeper.run(
            [self.shell, "-c", command],
            cwd=str(where),
            env=folder.env | (env or {}),
            timeout_s=timeout_s,
            output_limit=self.output_limit_bytes,
        )
        if ended.code is None:
            return SandboxExecResult(ended.stdout, ended.stderr, RUNTIME_RETURN_CODE, TIMEOUT)
        return SandboxExecResult(ended.stdout, ended.stderr, ended.code)

    async def create_pty(self, handle: SandboxHandle, spec: SandboxPtySpec) -> LocalTerminal:
        """A terminal of this machine with the command or the shell in it, as this user; prompts are empty unless `env` says otherwise.

        Raises `SandboxError` as `exec` does, and `SandboxPtyError` when there is no terminal to be had.
        """
        folder: _Folder = handle.raw
        where = folder.root.joinpath(*(parts_below(spec.cwd, folder.workdir) if spec.cwd else (folder.workdir,)))
        argv = [self.shell, "-c", spec.command] if spec.command is not None else [self.shell]
        env = folder.env | {"TERM": "xterm", "PS1": "", "PS2": ""} | (spec.env or {})
        terminal = LocalTerminal(folder.keeper, argv, str(where), env, spec)
        folder.terminals = [*(other for other in folder.terminals if not other.closed), terminal]
        return terminal

    async def upload_file(self, handle: SandboxHandle, source_path: Path, target_path: str) -> None:
        """Copy a file in. Raises `SandboxError` when the path leads out of the sandbox, or through a symbolic link."""
        folder: _Folder = handle.raw
        await asyncio.to_thread(copy_in, folder.root, parts_below(target_path, folder.workdir), source_path)

    async def download_file(self, handle: SandboxHandle, source_path: str, target_path: Path) -> None:
        """Copy a regular file out. Raises `SandboxError` as `upload_file` does."""
        folder: _Folder = handle.raw
        await asyncio.to_thread(copy_out, folder.root, parts_below(source_path, folder.workdir), target_path)

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        """Running until it is closed, expires, or its keeper dies."""
        folder: _Folder = handle.raw
        return SandboxStatus.RUNNING if folder.keeper.alive else SandboxStatus.STOPPED

    async def endpoint(self, handle: SandboxHandle, port: int) -> SandboxEndpoint:
        """Commands share this machine's loopback interface."""
        return SandboxEndpoint(f"http://127.0.0.1:{port}")

    async def close(self, handle: SandboxHandle) -> None:
        """Kill whatever runs in the sandbox, also in the background, and delete its folder; goes on when the caller is cancelled."""
        await asyncio.shield(self._begin_end(handle))

    async def aclose(self) -> None:
        """Close all sandboxes that are left."""
        for sandbox_id, folder in list(self._folders.items()):
            await self.close(SandboxHandle(sandbox_id, self.name, folder))

    def _expire(self, handle: SandboxHandle) -> None:
        logger.warning("sandbox %s has come to the end of its time and is closed", handle.sandbox_id)
        self._begin_end(handle)

    def _begin_end(self, handle: SandboxHandle) -> asyncio.Task[None]:
        folder: _Folder = handle.raw
        if folder.ending is None:
            self._folders.pop(handle.sandbox_id, None)
            folder.ending = asyncio.get_running_loop().create_task(_end(folder))
        return folder.ending


async def _end(folder: _Folder) -> None:
    if folder.expiry is not None:
        folder.expiry.cancel()
    await folder.keeper.close()
    await asyncio.gather(*(terminal.close() for terminal in folder.terminals))
    await asyncio.to_thread(delete_tree, str(folder.root))  # a keeper that was killed has not
