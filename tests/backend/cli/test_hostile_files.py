"""Files that nobody should write, through the real command line: one clear message each, quickly, and never a traceback."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from backend.cli.main import main
from tests.conftest import COMMAND, Gym

LEVELS = range(1, 10)
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in LEVELS)
MERGES = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}, p{n}: *a{n - 1}, q{n}: *a{n - 1}}}\n" for n in range(1, 30))
LADDER = "a0: &a0 " + "[" * 150 + "]" * 150 + "\n" + "".join(f"a{n}: &a{n} [[[[*a{n - 1}]]]]\n" for n in range(1, 30))
INTERPOLATIONS = "a0: x\n" + "".join(f"a{n}: '{f'${{a{n - 1}}}' * 10}'\n" for n in range(1, 12))

FILES = [
    pytest.param(LAUGHS, 5, "expands to more than 50000 values", id="aliases of aliases"),
    pytest.param(MERGES, 11, "expands to more than 50000 values", id="merges of merges"),
    pytest.param(LADDER, 13, "nested more than 200 levels deep", id="aliases that go deeper and deeper"),
    pytest.param("a: [" + "1," * 100_000 + "1]", None, "more than 50000 values", id="far too many values"),
    pytest.param("a: [" + "[]," * 60_000 + "1]", None, "more than 50000 values", id="far too many lists"),
    pytest.param("a: '" + "x" * (5 << 20) + "'", None, "larger than 4 MB", id="far too long"),
    pytest.param("a: " + "[" * 5000 + "]" * 5000, 1, "nest", id="deep in flow style"),
    pytest.param("\n".join(" " * n + "k:" for n in range(1500)), 1000, "nest", id="deep in block style"),
    pytest.param(INTERPOLATIONS, 4, "refers to so many other keys", id="interpolations of interpolations"),
    pytest.param("a: 1\nb: 2\na: 3\n", 3, "the key 'a' is there twice", id="a key twice"),
    pytest.param("a:\n\tb: 1\n", 2, "cannot start any token", id="tabs"),
    pytest.param(b"a: caf\xe9\n", 1, "not UTF-8 text", id="Latin-1"),
    pytest.param("a: 1\n".encode("utf-16"), 1, "not UTF-8 text", id="UTF-16"),
    pytest.param(random.Random(1).randbytes(10_000), 1, "not UTF-8 text", id="noise"),
    pytest.param(b"a: 1\nb: x\x00y\n", 2, "a character that YAML does not allow", id="a null byte"),
    pytest.param("a: " + "9" * 5000, 1, "cannot be read as a number", id="an integer without end"),
    pytest.param("a: " + ":".join(["59"] * 5000), 1, "cannot be read as a number", id="base 60 without end"),
    pytest.param("a: " + ":".join(["59"] * 5000) + ".5", 1, "cannot be read as a number", id="base 60 with a fraction"),
    pytest.param("a: !!int word", 1, "cannot be read as a number", id="a number that is none"),
    pytest.param("a: !!python/object/apply:os.system ['echo']", 1, "is not supported", id="a tag that runs something"),
    pytest.param("a: &a {b: *a}", 1, "an alias contains itself", id="an alias of itself"),
    pytest.param("a: 1\n---\nb: 2\n", 2, "found another document", id="two documents"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    return tmp_path


def report(capsys: pytest.CaptureFixture[str], name: str) -> dict:
    code = main(["env", "validate", "--config", name, "--json"])
    found: dict = json.loads(capsys.readouterr().out)
    assert (code, found["valid"]) in ((0, True), (1, False))
    return found


@pytest.mark.parametrize(("content", "line", "message"), FILES)
def test_one_clear_message(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str | bytes, line: int | None, message: str
) -> None:
    (folder / "x.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    (finding,) = report(capsys, "x.yaml")["findings"]
    assert (finding["severity"], finding["file"], finding["line"]) == ("error", str(folder / "x.yaml"), line)
    assert message in finding["message"]
    assert len(finding["message"]) < 200


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfa: 1\n", b"a: 1\r\n", b"a: 1\r", b"# nothing\n", b"", b"null\n"])
def test_what_only_looks_odd_is_valid(folder: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    (folder / "x.yaml").write_bytes(content)
    assert report(capsys, "x.yaml") == {"valid": True, "findings": []}


def test_a_component_that_is_hostile_hides_no_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, parameters in enumerate(FILES):
        content = parameters.values[0]
        configs = folder / "responses_api_models" / f"m{number}" / "configs"
        configs.mkdir(parents=True)
        (configs / f"m{number}.yaml").write_bytes(content if isinstance(content, bytes) else str(content).encode())
    for _ in ("cold", "warm"):
        assert main(["list", "models", "--json"]) == 0
        captured = capsys.readouterr()
        names = {entry["name"] for entry in json.loads(captured.out)}
        assert {"openai_model", *(f"m{number}" for number in range(len(FILES)))} <= names
        broken = [line for line in captured.err.splitlines() if "is broken: " in line]
        assert len(broken) == len(FILES) - 1  # interpolations are no fault of the file
        assert all(line.count("malformed YAML") <= 1 for line in broken)


def make_paths(folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "one" / "only.yaml").write_text("")
    (folder / "several").mkdir()
    for name in ("a.yaml", "b.yaml"):
        (folder / "several" / name).write_text("")
    os.mkfifo(folder / "pipe.yaml")
    (folder / "loop.yaml").symlink_to("pool.yaml")
    (folder / "pool.yaml").symlink_to("loop.yaml")
    (folder / "dangling.yaml").symlink_to("nowhere")


PATHS = [
    pytest.param("one", "is a folder, not a configuration file", "one/only.yaml", id="a folder with one file"),
    pytest.param("several", "is a folder, not a configuration file", None, id="a folder with several"),
    pytest.param("pipe.yaml", "is no file that can be read:\n  {0}/pipe.yaml (a pipe or device)", None, id="a pipe"),
    pytest.param("/dev/zero", "is no file that can be read:\n  /dev/zero (a pipe or device)", None, id="a device"),
    pytest.param("dangling.yaml", "  {0}/dangling.yaml (a broken link: No such file or directory)", None, id="a link to nothing"),
    pytest.param("loop.yaml", "  {0}/loop.yaml (a broken link: Too many levels of symbolic links)", None, id="a link to itself"),
    pytest.param("x" * 300, "was not found\nLooked in:\n  {0}/xxx", None, id="a name that is too long"),
    pytest.param("one/only.yaml/x", "was not found", None, id="below a file"),
    pytest.param("a\0b", "was not found", None, id="a null byte"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message", "nearest"), PATHS)
def test_paths_that_are_no_files(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, message: str, nearest: str | None
) -> None:
    make_paths(folder)
    (finding,) = report(capsys, name)["findings"]
    assert message.format(folder) in finding["message"]
    assert (finding["nearest"], finding["fix"]) == (nearest, f"--config {nearest}" if nearest else None)
    if name == "several":
        assert finding["hint"] == "name one of its files: a.yaml, b.yaml"


@pytest.mark.parametrize("value", ["", ",", " , "])
def test_a_config_without_a_path(capsys: pytest.CaptureFixture[str], value: str) -> None:
    assert main(["env", "validate", "--config", value]) == 2
    assert f"argument --config: there is no path in {value!r}" in capsys.readouterr().err


def test_links_that_lead_to_themselves_hide_no_component(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("benchmarks", "environments", "resources_servers", "responses_api_agents", "responses_api_models"):
        (folder / kind).mkdir()
        (folder / kind / "loop").symlink_to("loop")
        (folder / kind / "again").mkdir()
        (folder / kind / "again" / "again").symlink_to("..")
        (folder / kind / "again" / "config.yaml").symlink_to("config.yaml")
        (folder / kind / "again" / "configs").mkdir()
        (folder / kind / "again" / "configs" / "again.yaml").symlink_to("again.yaml")
    for listing in ("benchmarks", "environments", "agents", "models", "resources-servers"):
        assert main(["list", listing, "--json"]) == 0
        assert "again" not in {entry["name"] for entry in json.loads(capsys.readouterr().out)}


def test_a_search_folder_that_is_not_there_is_told_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["env", "validate"], ["env", "resolve"], ["list", "models"], ["search", "x"]):
        assert main([*words, "--search-dir", "nowhere"]) == 0
        assert capsys.readouterr().err.count("nowhere") == 1


def test_configurations_from_pipes(gym: Gym) -> None:
    def shown(*words: str, stdin: bytes = b"") -> str:
        command = [*COMMAND, "env", "validate", *words]
        result = subprocess.run(command, cwd=gym.cwd, input=stdin, capture_output=True, timeout=60)
        return f"{result.returncode} {result.stderr.decode()}"

    assert shown("--config", "/dev/stdin", stdin=b"strict: false") == "0 "
    assert shown("--config", "/dev/null") == "0 "
    # Read once: the second look with a stand-in for the model sees the same.
    assert "1 Error: /dev/stdin:2:1: malformed YAML: the key 'a' is there twice" in shown(
        "--config", "/dev/stdin", stdin=b"a: 1\na: 2\n"
    )
    assert "larger than" in shown("--config", "/dev/stdin", stdin=b"#" * (5 << 20))
    (gym.cwd / "names.yaml").write_text("config_paths: [/dev/stdin]")
    assert "is no file that can be read" in shown("--config", "names.yaml", stdin=b"a: 1")
