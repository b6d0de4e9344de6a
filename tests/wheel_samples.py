"""Small wheels and server folders that ask for them, so that environments can be built without a package index."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from backend.servers.environments.environment import EnvironmentRequest, EnvironmentSettings


def write_wheel(folder: Path, name: str, version: str = "1.0", requires: Sequence[str] = (), code: str = "VALUE = 7\n") -> Path:
    """A wheel with the module `name`, which requires `requires`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", code)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def offline(wheels: Path, *lines: str) -> str:
    """The text of a requirements file that looks for packages in one folder only."""
    return "\n".join(["-e nemo-gym[dev] @ ../../", "--no-index", f"--find-links {wheels}", *lines, ""])


def write_server(root: Path, name: str, requirements: str, app: str = "") -> EnvironmentRequest:
    """A resources server that asks for `requirements`."""
    folder = root / "resources_servers" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "requirements.txt").write_text(requirements)
    (folder / "app.py").write_text(app)
    return EnvironmentRequest((f"my_{name}",), "resources_servers", name, folder)


def settings_for(root: Path, *, skip_venv_if_present: bool = False) -> EnvironmentSettings:
    """Settings with all places below `root`."""
    return EnvironmentSettings(
        uv_venv_dir=root, uv_cache_dir=root / "uv_cache", skip_venv_if_present=skip_venv_if_present, roots=(root,)
    )
