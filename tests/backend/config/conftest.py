"""Folders of configuration files, and requests that see nothing but them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backend.config.request import ConfigRequest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes files below the test's folder, `write({"a.yaml": "…"})`, and returns the folder."""

    def write_files(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write_files


@pytest.fixture
def request_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ConfigRequest]:
    """Requests whose working directory is the test's folder and that do not ask for implementation folders."""
    monkeypatch.delenv("NEMO_GYM_EXTRA_ROOTS", raising=False)

    def make(*config_paths: str, **fields: Any) -> ConfigRequest:
        values = {"cwd": tmp_path, "check_components": False, **fields}
        return ConfigRequest(config_paths=config_paths, **values)

    return make
