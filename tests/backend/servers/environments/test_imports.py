from __future__ import annotations

from pathlib import Path

import pytest

from backend.servers.environments import imports
from backend.servers.environments.imports import imports_any, undeclared_imports


@pytest.fixture(autouse=True)
def nothing_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an installation without extras."""
    monkeypatch.setattr(imports, "absent_modules", lambda: frozenset(imports.UNDECLARED))


def needs(tmp_path: Path, text: str, **files: str) -> frozenset[str]:
    folder = tmp_path / "resources_servers" / "tiny"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.py").write_text(text)
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(content)
    return undeclared_imports([folder / "app.py"], folder, [tmp_path])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import numpy as np, os\nfrom pandas import DataFrame\n", {"numpy", "pandas"}),
        ("import os, requests.sessions\n", {"requests"}),
        ("def f():\n    from tqdm.auto import tqdm\n", {"tqdm"}),
        ("from openai.types import (\n    Model,\n)\n", {"openai"}),
        ("import json, nemo_gym, fastapi\n", set()),
        ("try:\n    import ray\nexcept ImportError:\n    ray = None\n", set()),
        ("try:\n    import ray\nexcept (ValueError, ModuleNotFoundError):\n    ray = None\nelse:\n    import scipy\n", {"scipy"}),
        ("try:\n    import ray\nexcept ValueError:\n    raise\n", {"ray"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\nelse:\n    import numpy\n", {"numpy"}),
        ('"""\nimport numpy\n"""\n', set()),
        ("from . import numpy\n", set()),
        ("import numpy_financial\n", set()),
        ("import numpy as\n", set()),
    ],
)
def test_what_the_entry_point_imports(tmp_path: Path, text: str, expected: set[str]) -> None:
    assert needs(tmp_path, text) == expected


def test_modules_beside_the_entry_point_are_followed(tmp_path: Path) -> None:
    found = needs(
        tmp_path,
        "from helpers import score\nimport tools.deep\nfrom tools import wide\n",
        helpers="import numpy\nimport helpers\n",
        tools____init__="",
        tools__deep="import scipy\n",
        tools__wide="from .inner import thing\n",
        tools__inner="import tiktoken\n",
        unused="import ray\n",
    )
    assert found == {"numpy", "scipy", "tiktoken"}


def test_other_components_are_followed_through_the_roots(tmp_path: Path) -> None:
    other = tmp_path / "resources_servers" / "other"
    other.mkdir(parents=True)
    (other / "app.py").write_text("import pandas\n")
    (other / "apart.py").write_text("import ray\n")
    assert needs(tmp_path, "from resources_servers.other.app import Thing\n") == {"pandas"}


def test_a_file_that_cannot_be_read_is_left_to_the_server(tmp_path: Path) -> None:
    assert undeclared_imports([tmp_path / "gone.py"], tmp_path, []) == frozenset()
    (tmp_path / "app.py").write_bytes(b"import numpy\xff")
    assert undeclared_imports([tmp_path / "app.py"], tmp_path, []) == frozenset()


def test_code_of_any_depth_is_no_failure(tmp_path: Path) -> None:
    def nested(depth: int) -> str:
        branches = "".join(f"elif x == {number}:\n    pass\n" for number in range(depth))
        return f"x = 1\nif x == 0:\n    pass\n{branches}else:\n    import numpy\n"

    assert needs(tmp_path, nested(900)) == {"numpy"}
    for text in (nested(5000), f"import numpy\nx = {'-' * 100_000}1\n"):  # not every Python can parse these
        assert needs(tmp_path, text) <= {"numpy"}


def test_the_name_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import my_server.things\n")
    assert imports_any(("my_server",), [tmp_path / "app.py"], tmp_path, [])
    assert not imports_any(("my_serve",), [tmp_path / "app.py"], tmp_path, [])
    (tmp_path / "my_server").mkdir()
    assert not imports_any(("my_server",), [tmp_path / "app.py"], tmp_path, [])


def test_nothing_is_read_where_nothing_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "absent_modules", frozenset)
    assert needs(tmp_path, "import numpy\n") == frozenset()
