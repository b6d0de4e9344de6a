"""Builds one environment of the store.

First **layered** on this program's own: the installer is told that everything here is installed already, under our versions as constraints,
so that only what is missing goes into the new environment; a `.pth` line then puts our libraries behind its own. Where the
requirements cannot be met under our versions, **isolated**: with libraries of its own, and of this program only its packages.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.package_info import __version__
from backend.servers.environments.environment import EnvironmentSettings
from backend.servers.environments.installed import name_and_version, needed_by_servers, own_distributions
from backend.servers.environments.installer import InstallerFailed, Say, address_redactor, run_uv
from backend.servers.environments.needs import EnvironmentNeeds, allows_prereleases
from backend.servers.environments.site_folders import PATH_FILE, own_site_folders, site_folder_of
from backend.servers.environments.store import discard, mark_complete, own_packages

_SEED_MARK = "gym-tui"
_NAMES_OF_THIS_PROJECT = ("nemo-gym", "gym-tui")
_INPUTS = ".inputs"
_PRERELEASE_CEILING = "fastapi<1.0"


@dataclass(frozen=True, slots=True)
class Build:
    """One set of requirements, the place where its environment is to be, and who hears of the progress."""

    needs: EnvironmentNeeds
    path: Path
    settings: EnvironmentSettings
    say: Say
    lock: int
    """Descriptor that the installer keeps open."""


async def build_environment(build: Build) -> None:
    """Make the environment at `build.path`, over whatever is there. Raises `GymError`; what it leaves then is not marked complete."""
    began = time.monotonic()
    layered = True
    try:
        await _attempt(build, layered=True)
    except InstallerFailed as error:
        if not error.is_conflict:
            raise
        layered = False
        build.say(
            "these requirements do not go together with the libraries of this program; they get an environment without them"
        )
        await _attempt_isolated(build)
    redactor = address_redactor(_texts(build.needs))
    mark_complete(
        build.path,
        {
            "requirements": [redactor.text(line.for_installer()) for line in build.needs.lines],
            "layered": layered,
            "replaces_ours": _replaces_ours(site_folder_of(build.path)),
            "python": sys.version.split()[0],
            "made": time.time(),
            "seconds": time.monotonic() - began,
        },
    )


async def _attempt_isolated(build: Build) -> None:
    try:
        await _attempt(build, layered=False)
    except InstallerFailed as error:
        if error.is_conflict:
            error.hint = f"a server also needs what this program needs of it: {', '.join(needed_by_servers())}"
        raise


async def _attempt(build: Build, *, layered: bool) -> None:
    await asyncio.to_thread(discard, build.path)
    await _uv(build, "venv", "--quiet", "--no-project", "--python", sys.executable, str(build.path))
    site = site_folder_of(build.path)
    inputs = build.path / _INPUTS
    inputs.mkdir(mode=0o700)
    try:
        _seed(site, own_distributions() if layered else ())
        await _uv(build, *_install_arguments(build, inputs, layered=layered))
    finally:
        shutil.rmtree(inputs, ignore_errors=True)  # addresses in it may hold passwords
    _remove_seeds(site)
    if layered:
        lines = [f"import site; site.addsitedir({str(folder)!r})" for folder in own_site_folders()]
    else:
        lines = []
    (site / PATH_FILE).write_text("\n".join([*lines, str(own_packages(build.settings)), ""]), encoding="utf-8")


async def _uv(build: Build, *arguments: str) -> None:
    await run_uv(
        arguments,
        cwd=build.needs.requirements.folder,
        settings=build.settings,
        redactor=address_redactor(_texts(build.needs)),
        say=build.say,
        keep_open=(build.lock,),
    )


def _texts(needs: EnvironmentNeeds) -> list[str]:
    requirements = needs.requirements
    lines = (*needs.lines, *requirements.constraints, *requirements.overrides)
    return [*(line.for_installer() for line in lines), *(value for _, value in requirements.options)]


def _install_arguments(build: Build, inputs: Path, *, layered: bool) -> list[str]:
    """`uv pip install …`, with everything that a configuration or a requirements file says in files instead of arguments."""
    requirements = build.needs.requirements
    wanted = [line.for_installer() for line in build.needs.lines]
    constraints = [line.for_installer() for line in requirements.constraints]
    if layered:
        constraints += [f"{name}=={version}" for name, version in map(name_and_version, own_distributions())]
    else:
        wanted += needed_by_servers()
        constraints += [text.replace("[default]", "") for text in build.settings.pins]
    arguments = ["pip", "install", "--python", str(build.path / "bin" / "python"), "--no-sources"]
    if sys.dont_write_bytecode:  # servers would otherwise compile what they import at every start
        arguments.append("--compile-bytecode")
    in_file = []
    for name, value in requirements.options:
        if name == "--pre":
            arguments += ["--prerelease", "allow"]
        elif name == "--require-hashes":
            arguments.append(name)
        elif name == "--trusted-host":
            arguments += ["--allow-insecure-host", value]
        else:
            in_file.append(f"{name} {value}".strip())
    if allows_prereleases():
        constraints.append(_PRERELEASE_CEILING)
        arguments += [] if "--pre" in dict(requirements.options) else ["--prerelease", "allow"]
        arguments += [] if os.environ.get("UV_INDEX_STRATEGY") else ["--index-strategy", "unsafe-best-match"]
    if build.settings.pip_install_verbose:
        arguments.append("-v")
    arguments += ["-r", _write(inputs / "requirements.txt", [*in_file, *wanted])]
    if constraints:
        arguments += ["-c", _write(inputs / "constraints.txt", constraints)]
    if requirements.overrides:
        arguments += ["--override", _write(inputs / "overrides.txt", [line.for_installer() for line in requirements.overrides])]
    return arguments


def _write(path: Path, lines: Sequence[str]) -> str:
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(path)


def _seed(site: Path, distributions: Iterable[Path]) -> None:
    """Metadata of what is installed here, and of `nemo-gym`, so that the installer takes them for installed in `site`."""
    for name in _NAMES_OF_THIS_PROJECT:
        folder = site / f"{name.replace('-', '_')}-{__version__}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {__version__}\n", encoding="utf-8")
        _sign(folder)
    for source in distributions:
        name, _ = name_and_version(source)
        metadata = source / "METADATA"
        if name in _NAMES_OF_THIS_PROJECT or not metadata.is_file():
            continue
        folder = site / source.name
        folder.mkdir()
        shutil.copyfile(metadata, folder / "METADATA")
        _sign(folder)


def _sign(folder: Path) -> None:
    (folder / "INSTALLER").write_text(_SEED_MARK, encoding="utf-8")
    (folder / "RECORD").touch()


def _remove_seeds(site: Path) -> None:
    for folder in site.glob("*.dist-info"):
        installer = folder / "INSTALLER"
        if installer.is_file() and installer.read_text(encoding="utf-8") == _SEED_MARK:
            shutil.rmtree(folder)


def _replaces_ours(site: Path) -> bool:
    """Whether the environment has a library of ours in another version, as overrides or addresses may bring about."""
    own = dict(map(name_and_version, own_distributions()))
    there = dict(map(name_and_version, site.glob("*.dist-info")))
    return any(name in own and own[name] != version for name, version in there.items())
