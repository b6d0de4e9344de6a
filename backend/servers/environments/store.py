"""The store of virtual environments, and the documented places that point into it.

An environment is trusted when it holds a mark that is written last; one without is thrown away and built anew. Who builds holds a
lock; the installer inherits it, so that even a killed command's installer and a new one never write into one folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from backend.errors import GymError
from backend.io.files import write_atomically
from backend.io.homes import cache_home, usable
from backend.io.json_codec import dumps, loads
from backend.io.roots import INSTALL_ROOT
from backend.servers.environments.environment import EnvironmentSettings, ServerEnvironment

_COMPLETE = ".complete"
_LOCK_POLL_SECONDS = 0.1
_STORE_NAMES = ("venvs", ".venvs")
_DIGEST = re.compile(r"[0-9a-f]{16}")
_OWN_PACKAGES = ("backend", "nemo_gym")


def documented_path(kind: str, implementation: str, folder: Path, settings: EnvironmentSettings) -> Path:
    """Where a server's environment is looked for: below `uv_venv_dir`, or in the server's folder when that is the install root."""
    if settings.uv_venv_dir.resolve() == INSTALL_ROOT:
        return folder / ".venv"
    return settings.uv_venv_dir / kind / implementation / ".venv"


def is_environment(path: Path) -> bool:
    """Whether a virtual environment that can be used is there; one of the store must be complete."""
    present = (path / "bin" / "python").exists() and (path / "bin" / "activate").exists()
    return present and (not is_stored(path) or is_complete(path))


def store_folder(settings: EnvironmentSettings) -> Path:
    """The folder of all stored environments. Raises `GymError` when there is no place to write."""
    for candidate in _store_candidates(settings):
        if (folder := usable(candidate)) is not None:
            return folder
    raise GymError(
        f"there is no place for virtual environments: {cache_home('venvs')} cannot be written",
        hint="set GYM_TUI_HOME to a folder that can be written",
    )


def _store_candidates(settings: EnvironmentSettings) -> tuple[Path, ...]:
    return cache_home(_STORE_NAMES[0]), settings.uv_venv_dir / _STORE_NAMES[1]


def stored_environment(digest: str, settings: EnvironmentSettings) -> Path | None:
    """The complete environment of that name; None when there is none."""
    return next((path for base in _store_candidates(settings) if is_complete(path := base / digest)), None)


def is_stored(path: Path) -> bool:
    """Whether `path` is an environment of a store, this one or one of another home, also through a link."""
    target = Path(os.path.realpath(path))
    return target.parent.name in _STORE_NAMES and _DIGEST.fullmatch(target.name) is not None


def is_complete(path: Path) -> bool:
    """Whether the environment was finished."""
    return (path / _COMPLETE).is_file() and (path / "bin" / "python").exists()


def mark_complete(path: Path, facts: dict[str, object]) -> None:
    """Say that the environment is finished, and what it is."""
    write_atomically(path / _COMPLETE, dumps(facts), mode=0o600)


def discard(path: Path) -> None:
    """Delete an environment, its mark first: what a kill leaves half deleted is not trusted."""
    (path / _COMPLETE).unlink(missing_ok=True)
    if path.exists():
        shutil.rmtree(path)


def read_facts(path: Path) -> dict[str, object]:
    """What `mark_complete` noted; nothing where that cannot be read."""
    try:
        facts = loads((path / _COMPLETE).read_bytes())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def stored(path: Path, origin: str = "stored") -> ServerEnvironment:
    """The finished environment at `path` for a server to run in."""
    facts = read_facts(path)
    layered = facts.get("layered") is True and facts.get("replaces_ours") is False
    return ServerEnvironment(origin, path / "bin" / "python", path, layered=layered)


@contextlib.asynccontextmanager
async def locked(path: Path, on_wait: Callable[[], None]) -> AsyncIterator[int]:
    """Hold the lock of the stored environment `path`; yields its descriptor. `on_wait` is called when another command holds it."""
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    told = True
                    on_wait()
                await asyncio.sleep(_LOCK_POLL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def link(documented: Path, environment: Path) -> None:
    """Make the documented place point at a stored environment. What a user put there stays; a place that cannot be written, too."""
    if documented.is_symlink():
        if os.path.realpath(documented) == os.path.realpath(environment) or not is_stored(documented):
            return
    elif documented.exists():
        return
    with contextlib.suppress(OSError):
        documented.parent.mkdir(parents=True, exist_ok=True)
        new = documented.with_name(f".venv-{secrets.token_hex(4)}")
        os.symlink(environment, new)
        try:
            os.replace(new, documented)
        except OSError:
            new.unlink()


def unlink(documented: Path) -> None:
    """Take a link into the store away; anything else stays."""
    if documented.is_symlink() and is_stored(documented):
        with contextlib.suppress(OSError):
            documented.unlink()


def own_packages(settings: EnvironmentSettings) -> Path:
    """A folder through which an environment of other libraries sees this program's packages, and nothing else that lies beside them."""
    digest = hashlib.sha256(str(INSTALL_ROOT).encode()).hexdigest()[:8]
    folder = store_folder(settings) / f"own-{digest}"
    folder.mkdir(exist_ok=True)
    for name in _OWN_PACKAGES:
        with contextlib.suppress(FileExistsError):
            os.symlink(INSTALL_ROOT / name, folder / name)
    return folder
