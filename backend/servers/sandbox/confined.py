"""Files below a folder, reached without following a symbolic link at any step: what a command planted there leads nowhere else."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from backend.errors import GymError
from backend.servers.sandbox.providers.base import SandboxError


def parts_below(path: str, workdir: str = "") -> list[str]:
    """The steps from the sandbox's root to `path`: an absolute path starts at the root, `~` is the root, others start at `workdir`.

    Raises `SandboxError` for a path that leads out.
    """
    whole = path.removeprefix("~") if path == "~" or path.startswith("~/") else path
    if not whole.startswith("/") and whole == path:
        whole = f"{workdir}/{whole}"
    steps: list[str] = []
    for step in whole.split("/"):
        if step == "..":
            if not steps:
                raise SandboxError(f"the path {path!r} leads out of the sandbox")
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    return steps


def copy_in(root: Path, steps: list[str], source: Path) -> None:
    """Copy a file to the place that `steps` lead to, with its permissions; makes the folders on the way."""
    try:
        with source.open("rb") as file, _folder(root, steps, make=True) as folder:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode) | stat.S_IWUSR
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
            with _regular_file(steps, os.open(steps[-1], flags, mode, dir_fd=folder), "wb") as target:
                os.fchmod(target.fileno(), mode)
                shutil.copyfileobj(file, target)
    except OSError as error:
        raise _explained(error, steps) from error


def copy_out(root: Path, steps: list[str], target: Path) -> None:
    """Copy the file that `steps` lead to; only a regular file."""
    try:
        with _folder(root, steps, make=False) as folder:
            descriptor = os.open(steps[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with _regular_file(steps, descriptor, "rb") as file:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
    except OSError as error:
        raise _explained(error, steps) from error


def _regular_file(steps: list[str], descriptor: int, mode: str) -> IO[bytes]:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SandboxError(f"{'/'.join(steps)} in the sandbox is no regular file")
    return open(descriptor, mode)


@contextmanager
def _folder(root: Path, steps: list[str], *, make: bool) -> Iterator[int]:
    """A descriptor of the folder that holds the last step."""
    if not steps:
        raise SandboxError("the root of the sandbox is no file")
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for step in steps[:-1]:
            if make:
                try:
                    os.mkdir(step, dir_fd=current)
                except FileExistsError:
                    pass
            below = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _explained(error: OSError, steps: list[str]) -> GymError:
    where = "/".join(steps)
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return SandboxError(f"the path {where} in the sandbox passes a symbolic link or something that is no folder")
    return SandboxError(f"cannot copy {where}: {error.strerror or error}")
