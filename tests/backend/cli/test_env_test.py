from __future__ import annotations

from pathlib import Path

import pytest

from backend.cli.main import main
from tests.wheel_samples import write_server


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_asyncio.plugin")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write_tests(root: Path, name: str, test: str, *, readme: bool = True) -> Path:
    folder = write_server(root, name, "nemo-gym\n").folder
    (folder / "tests").mkdir()
    (folder / "tests" / "test_app.py").write_text(test)
    if readme:
        (folder / "README.md").touch()
    return folder


def write_data(folder: Path) -> None:
    (folder / "data").mkdir()
    for name in ("example.jsonl", "example_rollouts.jsonl"):
        (folder / "data" / name).write_text("{}\n" * 5)
    (folder / "data" / "example_metrics.json").write_text('{"Number of examples": 5}')


def test_one_server_ends_with_the_code_of_pytest(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = write_tests(root, "good", "def test_it(): pass\n")
    assert main(["env", "test", "--resources-server", "good"]) == 0
    output = capfd.readouterr().out
    assert output.startswith(f"[1/1] resources_servers/good: {folder}\n") and "1 passed" in output
    write_tests(root, "bad", "def test_it(): assert False\n")
    assert main(["env", "test", "+entrypoint=resources_servers/bad"]) == 1
    write_tests(root, "none", "")
    assert main(["env", "test", "--resources-server", "none"]) == 5


def test_example_data_counts_on_request(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = write_tests(root, "good", "def test_it(): pass\n")
    words = ["env", "test", "--resources-server", "good", "+should_validate_data=true"]
    assert main(words) == 1
    assert f"resources_servers/good: {folder / 'data' / 'example.jsonl'} is missing" in capfd.readouterr().err
    write_data(folder)
    assert main(words) == 0


def test_all(root: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.config.resolution.search_roots", lambda *_: (root,))
    for name, test in (("good", "def test_it(): pass\n"), ("left", "import os\nos._exit(77)\n")):
        write_data(write_tests(root, name, test))
    write_tests(root, "undescribed", "", readme=False)
    assert main(["env", "test", "--all"]) == 0
    lines = capfd.readouterr().out.splitlines()
    report = lines[lines.index("Passed: 1") :]
    assert report[:7] == [
        "Passed: 1",
        "Failed: 0",
        "Without tests: 0",
        "Ended in another way: 1",
        "  resources_servers/left",
        "With wrong example data: 0",
        "Left out, without a README.md: 1",
    ]
    assert [line.split()[0] for line in report[8:]].count("resources_servers/good") == 1 and report[-1].startswith("Total")
    assert main(["env", "test", "--all", "+fail_on_total_and_test_mismatch=true", "+num_shards=2"]) == 1
    assert "resources_servers/undescribed" in capfd.readouterr().err
    write_tests(root, "bad", "def test_it(): assert False\n")
    assert main(["env", "test", "--all", "+num_shards=3"]) == 1  # the first of three: `bad`


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "nothing to test is named"),
        (["--all", "--resources-server", "mcqa"], 2, "exclude each other"),
        (["--resources-server", "mcqq"], 1, "Did you mean `mcqa`?"),
        (["--all", "+num_shards=x"], 1, "'num_shards' must be a whole number"),
        (["--all", "+num_shards=2", "+shard_index=2"], 1, "there is no shard 2 of 2"),
        (["--resources-server", "mcqa", "+should_validate_data=1"], 1, "must be true or false"),
    ],
)
def test_mistakes(root: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str) -> None:
    assert main(["env", "test", *words]) == code
    assert message in capsys.readouterr().err
