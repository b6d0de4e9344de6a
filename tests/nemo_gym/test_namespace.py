"""The names that environments import: each module is one of backend's, and importing the package has its documented effects."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nemo_gym

ROOT = Path(nemo_gym.__file__).parents[1]


@pytest.mark.parametrize(("name", "target"), sorted(nemo_gym._MODULES.items()))
def test_each_module_is_the_backend_module(name: str, target: str) -> None:
    alias = importlib.import_module(f"nemo_gym.{name}")
    module = importlib.import_module(target)
    assert alias is module
    assert getattr(nemo_gym, name) is module
    assert module.__spec__ is not None
    assert module.__spec__.name == target
    assert (ROOT / "nemo_gym" / f"{name}.pyi").read_text() == f"from {target} import *\n"


def test_replacing_a_name_in_one_replaces_it_in_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    import nemo_gym.server_utils
    from backend.servers import server_utils

    marker = object()
    monkeypatch.setattr(nemo_gym.server_utils, "request", marker)
    assert server_utils.request is marker


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert nemo_gym.__all__ == sorted(nemo_gym.__all__)
    for name in nemo_gym.__all__:
        assert getattr(nemo_gym, name) is not None
    assert nemo_gym.__version__ == "0.6.0"
    with pytest.raises(AttributeError):
        _ = nemo_gym.no_such_name  # type: ignore[attr-defined]


def test_importing_arranges_the_path_and_the_environment(tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    code = "import nemo_gym, json, os, sys; print(json.dumps([sys.path, os.environ['HF_HOME'], os.environ['TOKENIZERS_PARALLELISM']]))"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    environment |= {"NEMO_GYM_EXTRA_ROOTS": str(extra), "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    path, hf_home, parallelism = json.loads(result.stdout)
    assert path[0] == str(extra)
    assert path[-2:] == [str(tmp_path), str(ROOT)]
    assert hf_home.endswith("cache/huggingface")
    assert parallelism == "false"
