from __future__ import annotations

from pathlib import Path

import pytest

from backend.cli.main import main
from tests.wheel_samples import offline, write_server, write_wheel

BLOCK = "{{resources_servers: {{{}: {{entrypoint: app.py, domain: other}}}}}}"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_wheel(folder / "wheels", "tinypkg")
    return folder


def write_config(root: Path, **servers: str) -> str:
    (root / "all.yaml").write_text("".join(f"{name}: {BLOCK.format(folder)}\n" for name, folder in servers.items()))
    return "all.yaml"


def test_a_line_for_each_folder_and_one_at_the_end(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = write_server(root, "own", offline(root / "wheels", "tinypkg"))
    plain = write_server(root, "plain", "nemo-gym\n")
    config = write_config(root, first=own.implementation, second=own.implementation, third=plain.implementation)
    assert main(["env", "prefetch", "--config", config]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        f"[1/2] {own.folder} (first, second)",
        f"first, second share {own.folder}; it is prepared once",
        "Building an environment for first, second: tinypkg not installed here",
    ]
    assert "(first)  + tinypkg==1.0" in lines
    assert lines[-3:] == [
        f"[2/2] {plain.folder} (third)",
        "nothing to build: everything is installed here",
        "Prefetch complete: environments of 2 server folders ready.",
    ]
    assert main(["env", "prefetch", "--config", config]) == 0
    assert f"there already: {(own.folder / '.venv').resolve()}" in capsys.readouterr().out.splitlines()


def test_the_code_of_the_installer(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_server(root, "bad", "nemo-gym\n--no-index\ngone\n")
    assert main(["env", "prefetch", "--config", write_config(root, bad="bad")]) == 1
    output = capsys.readouterr()
    assert "requirements.txt:3: cannot build the environment of `bad`, which needs gone" in output.err
    assert "complete" not in output.out
    write_server(root, "bad", "nemo-gym\n--no-index\ngone # a\x00b\n")
    assert main(["env", "prefetch", "--config", "all.yaml"]) in (1, 2)


def test_a_selection_without_a_model_is_enough(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "prefetch", "--benchmark", "first_steps"]) == 0
    assert "dummy" not in capsys.readouterr().out
    assert main(["env", "prefetch"]) == 1
    assert "has no server" in capsys.readouterr().err
