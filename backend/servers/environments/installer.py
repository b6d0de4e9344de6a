"""Runs uv: never through a shell, with its output line by line, ended with the command that asked for it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from backend.errors import GymError
from backend.io.homes import usable
from backend.io.redact import Redactor
from backend.servers.environments.environment import EnvironmentSettings
from backend.servers.environments.leashed import leashed

Say = Callable[[str], None]

_KEPT_LINES = 12
_NOISE = ("Using Python ",)
_ADDRESS = re.compile(r"""[a-z][a-z0-9+.-]*://[^\s"']+""", re.IGNORECASE)
_INDEX_VARIABLES = ("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS")
_LEFT_OUT = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME")


class InstallerFailed(GymError):
    """uv ended with an error: `code` is its exit code, `lines` its last lines, masked."""

    def __init__(self, code: int, lines: Sequence[str]) -> None:
        super().__init__(f"the installer ended with exit code {code}", details=lines)
        self.code = code
        self.lines = tuple(lines)

    @property
    def is_conflict(self) -> bool:
        """Whether the requirements cannot be met together; one that nobody has ever heard of is no conflict."""
        return any("No solution found" in line for line in self.lines) and not any(
            "was not found in" in line for line in self.lines
        )


def installer_code(error: GymError) -> int | None:
    """The exit code of the installer whose failure `error` tells; None when it tells something else."""
    return error.code if isinstance(error, InstallerFailed) else None


def find_uv() -> str:
    """The path of uv. Raises `GymError` when it is not installed."""
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise GymError(
            "uv is not installed, and the environment of a server cannot be built without it",
            hint=f"install it with: {sys.executable} -m pip install uv",
        )
    return found


def address_redactor(texts: Iterable[str]) -> Redactor:
    """A redactor for the users and passwords in the addresses within `texts` and within the variables that name package indexes."""
    known = [*texts, *(os.environ.get(name, "") for name in _INDEX_VARIABLES)]
    addresses = [match[0] for text in known for match in _ADDRESS.finditer(os.path.expandvars(text))]
    return Redactor(secret for address in addresses for secret in _credentials(address))


def _credentials(address: str) -> list[str]:
    user, _, password = address.partition("://")[2].partition("/")[0].rpartition("@")[0].partition(":")
    return [secret for secret in (user, password) if secret]


async def run_uv(
    arguments: Sequence[str],
    *,
    cwd: Path,
    settings: EnvironmentSettings,
    redactor: Redactor,
    say: Say,
    keep_open: Sequence[int] = (),
) -> None:
    """Run uv with `arguments` in `cwd`; every line of its output goes to `say`, masked.

    Cancelling ends it with all it started. `keep_open`: descriptors that it inherits. Raises `InstallerFailed`.
    """
    command = [find_uv(), *arguments]
    streams = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    last: deque[str] = deque(maxlen=_KEPT_LINES)
    async with leashed(command, cwd=cwd, env=_environment(settings), keep_open=keep_open, **streams) as process:
        assert process.stdout is not None
        async for raw in process.stdout:
            line = redactor.text(raw.decode("utf-8", "replace").rstrip())
            if line and not line.startswith(_NOISE):
                last.append(line)
                say(line)
        code = await process.wait()
    if code:
        raise InstallerFailed(code, last)


def _environment(settings: EnvironmentSettings) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    variables |= {"UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    if settings.uv_cache_dir is not None and usable(settings.uv_cache_dir):
        variables["UV_CACHE_DIR"] = str(settings.uv_cache_dir)
    return variables
