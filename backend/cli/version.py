"""`gym --version`: ours, the reference's whose behaviour we follow, Python's, and the machine's."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Any

from backend.cli.console import print_json, say
from backend.io.roots import INSTALL_ROOT
from backend.package_info import GYM_TUI_VERSION, __version__

_DEPENDENCIES = ("openai", "ray", "aiohttp", "fastapi", "hydra-core", "omegaconf", "pydantic", "textual", "uvicorn", "xllamacpp")


def versions() -> dict[str, Any]:
    """The version report; dependencies that are not installed are left out."""
    return {
        "nemo_gym": __version__,
        "gym_tui": GYM_TUI_VERSION,
        "python": platform.python_version(),
        "python_path": sys.executable,
        "installation_path": str(INSTALL_ROOT),
        "dependencies": {name: found for name in _DEPENDENCIES if (found := _installed(name))},
        "system": {
            "os": f"{platform.system()} {platform.release()}",
            "platform": platform.platform(),
            "architecture": platform.machine(),
            "processor": platform.processor() or "unknown",
            "cpus": os.cpu_count() or 1,
            "memory_gb": _memory_gb(),
        },
    }


def print_versions(*, as_json: bool) -> None:
    """Print the report."""
    report = versions()
    if as_json:
        print_json(report)
        return
    say(f"gym-tui {report['gym_tui']}, compatible with NeMo Gym {report['nemo_gym']}")
    say(f"Python {report['python']} ({report['python_path']})")
    say(f"Installed in {report['installation_path']}")
    say("Dependencies:")
    for name, version in report["dependencies"].items():
        say(f"  {name} {version}")
    system = report["system"]
    say("System:")
    say(f"  {system['os']}, {system['architecture']}, {system['cpus']} CPUs, {system['memory_gb']} GB of memory")


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _memory_gb() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3, 2)
