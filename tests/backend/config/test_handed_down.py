"""What the environment hands down is the configuration, and the command line counts for nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.config.errors import ConfigError
from backend.config.global_config import GlobalConfigDictParser, hand_down_config
from backend.config.resolution import resolve_config
from backend.config.resolve_view import resolve_view
from backend.config.validation import validate_config

VARIABLE = "NEMO_GYM_CONFIG_DICT"


@pytest.fixture
def hand_down(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NEMO_GYM_CONFIG_FILE", raising=False)
    return lambda text: monkeypatch.setenv(VARIABLE, text)


def test_it_is_shown_as_it_is(write, request_for, hand_down) -> None:
    write({"env.yaml": "limit: 3", "x.yaml": "a: 1"})
    hand_down("q: 5\nr: '${q}'\npolicy_api_key: sk-hush\nm: '???'")
    view = resolve_view(request_for("x.yaml", "nope.yaml", overrides=("+a=[", "+q=6")))
    assert view.tree == {"q": 5, "r": 5, "policy_api_key": "****", "m": "???"}
    assert view.error is None
    assert [(layer.kind, layer.title) for layer in view.layers] == [("default", "defaults"), ("initial", VARIABLE)]
    entry = view.entry("q")
    assert (str(entry.origin), entry.winner.layer) == (f"{VARIABLE}:1", 2)
    (finding,) = view.findings
    assert finding.message.startswith(f"the environment variable {VARIABLE} is the configuration")


def test_without_words_nothing_is_remarked(request_for, hand_down) -> None:
    hand_down("q: 5")
    assert resolve_view(request_for()).findings == ()


def test_a_run_has_what_it_needs_beside_it(request_for, hand_down, tmp_path: Path) -> None:
    hand_down(
        "{rs: {resources_servers: {mcqa: {entrypoint: app.py, domain: math, port: 12345}}}, ag: {responses_api_agents: {s: {entrypoint: app.py}}}}"
    )
    resolved = resolve_config(request_for())
    assert [(server.name, server.host, server.port) for server in resolved.servers] == [
        ("rs", "127.0.0.1", 12345),
        ("ag", "127.0.0.1", None),
    ]
    assert resolved.tree["head_server"] == {"host": "127.0.0.1", "port": 11000}
    assert resolved.tree["results_dir"] == str(tmp_path / "results")
    hand_down("{results_dir: [a]}")
    with pytest.raises(ConfigError, match="results_dir"):
        resolve_config(request_for())


@pytest.mark.parametrize("text", ["w: '${nowhere}'", "rs: {resources_servers: {a: {entrypoint: /x}}}", "results_dir: [a]"])
def test_nothing_in_it_is_checked_again(request_for, hand_down, text: str) -> None:
    hand_down(text)
    for strict in (False, True):
        report = validate_config(request_for(), strict=strict)
        assert (report.valid, report.findings) == (True, ())


@pytest.mark.parametrize(("text", "part"), [("[1]", "must be a mapping"), ("a: [", "malformed YAML")])
def test_what_cannot_be_read(request_for, hand_down, text: str, part: str) -> None:
    hand_down(text)
    report = validate_config(request_for(), strict=False)
    assert not report.valid
    assert part in report.findings[0].message
    assert report.findings[0].place.file == VARIABLE


def test_an_empty_variable_hands_down_nothing(write, request_for, hand_down) -> None:
    write({"x.yaml": "a: 1"})
    hand_down("")
    assert resolve_config(request_for("x.yaml")).tree["a"] == 1


def test_programs_that_ask_for_certain_files_get_them(write, request_for, hand_down) -> None:
    write({"x.yaml": "a: 1"})
    hand_down("q: 5")
    assert resolve_config(request_for("x.yaml", read_env_file=False)).tree["a"] == 1
    assert "q" not in GlobalConfigDictParser().parse_no_environment({"b": 2})


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files in memory")
def test_commands_that_a_server_starts_see_the_servers_configuration(hand_down, monkeypatch, tmp_path: Path) -> None:
    hand_down("stale: 1")
    monkeypatch.setenv("NEMO_GYM_CONFIG_FILE", "")
    hand_down_config("policy_model_name: served\n")
    command = [sys.executable, "-m", "backend.cli", "env", "resolve", "--config", "nope.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "policy_model_name: served\n\n")


def test_a_file_that_is_no_text_is_one_error_and_what_is_no_file_counts_for_nothing(
    write, request_for, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"x.yaml": "a: 1"})
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "bad.yaml").write_bytes(b"a: \xff\xfe\n")
    monkeypatch.setenv("NEMO_GYM_CONFIG_FILE", str(tmp_path / "bad.yaml"))
    with pytest.raises(ConfigError, match="NEMO_GYM_CONFIG_FILE"):
        resolve_config(request_for("x.yaml"))
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv("NEMO_GYM_CONFIG_FILE", str(tmp_path / "pipe"))
    assert resolve_config(request_for("x.yaml")).tree["a"] == 1
