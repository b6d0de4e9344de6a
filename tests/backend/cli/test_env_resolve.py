from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from backend.cli.main import main
from tests.backend.config.riddle import OVERRIDES, RIDDLE
from tests.conftest import Gym

FILES = ("--config", "hard.yaml", "--config", "endpoint.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in RIDDLE.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resolved(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    assert main(["env", "resolve", *words]) == 0
    out = capsys.readouterr().out
    assert out.endswith("\n\n")
    tree: dict = yaml.safe_load(out)
    return tree


def test_the_worked_example(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = resolved(capsys, *FILES, *OVERRIDES)
    assert list(tree)[:9] == [
        "limit", "config_paths", "hard_rs", "hard_agent", "policy_model", "judge_model",
        "policy_base_url", "policy_api_key", "policy_model_name",
    ]  # fmt: skip
    assert tree["limit"] == 4
    assert tree["config_paths"] == ["hard.yaml", "endpoint.yaml", "riddle.yaml"]
    assert tree["hard_rs"]["resources_servers"]["riddle"]["grading"] == "cli"
    assert tree["judge_model"]["responses_api_models"]["openai_model"] == {
        "entrypoint": "app.py", "openai_base_url": "http://localhost:9/v1", "openai_api_key": "****",
        "openai_model": "judge-1", "port": 18001, "host": "127.0.0.1",
    }  # fmt: skip
    assert tree["policy_api_key"] == "****"
    assert tree["results_dir"] == str(folder / "results")
    assert not (folder / "outputs").exists()


def test_json_is_the_same_tree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = resolved(capsys, *FILES, "++odd={2: a, true: inf}")
    assert main(["env", "resolve", *FILES, "++odd={2: a, true: inf}", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.pop("odd") == {"2": "a", "true": ".inf"}
    tree.pop("odd")
    assert printed == tree


def test_provenance_as_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "resolve", *FILES, "++policy_model_name=big", "--provenance"]) == 0
    out = capsys.readouterr().out
    assert "# L2  riddle.yaml  (included by L3)\n" in out
    assert "# L6  ++policy_model_name=big\n" in out
    assert (
        "limit: 4  <- env.yaml:4\n"
        "    beats 3  <- endpoint.yaml:5\n"
        "    beats 2  <- hard.yaml:9\n"
        "    beats 1  <- riddle.yaml:10\n"
    ) in out  # fmt: skip
    assert (
        "hard_rs.resources_servers.riddle.domain: games  <- riddle.yaml:1\n    through _inherit_from: riddle_rs (hard.yaml:2)\n"
    ) in out
    assert "hard_rs.resources_servers.riddle.grading: hard  <- hard.yaml:2\n    beats strict  <- riddle.yaml:1\n" in out
    assert "    replaces a list (2 -> 1)\n" in out
    assert "    from ${policy_api_key} (env.yaml:2)\n" in out
    assert 'hard_rs.resources_servers.riddle.host: "127.0.0.1"  <- default\n' in out
    assert "sk-local" not in out


def test_provenance_of_one_key_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "resolve", *FILES, "--key", "LIMIT", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"config", "layers", "keys", "findings"}
    (key,) = report["keys"]
    assert (key["key"], key["value"], key["secret"]) == ("limit", 4, False)
    assert key["origin"] == {"kind": "env_file", "text": "", "file": str(folder / "env.yaml"), "line": 4, "column": 1}
    assert [(step["value"], step["line"], step["layer"], step["wins"]) for step in key["chain"]] == [
        (1, 10, 2, False), (2, 9, 3, False), (3, 5, 4, False), (4, 4, 5, True),
    ]  # fmt: skip
    assert key["changes"] == [{"stage": "merged", "kind": "changed", "before": 3, "after": 4}]


def test_a_key_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "resolve", *FILES, "--key", "limti"]) == 1
    assert "Did you mean `limit`?" in capsys.readouterr().err


def test_without_a_model_it_fails_unless_one_is_put_in(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "env.yaml").unlink()
    assert main(["env", "resolve", "--config", "hard.yaml"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "responses_api_models/'policy_model'" in captured.err
    assert resolved(capsys, "--config", "hard.yaml", "--no-model")["policy_model"]


def test_selectors_and_model_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    tree = resolved(
        capsys,
        "--model-api-key",
        "k",
        "--model-type",
        "openai_model",
        "--model-url",
        "http://h/v1?a=1&b=2",
        "--resources-server",
        "mcqa",
        "--model",
        "m",
    )
    assert [Path(path).name for path in tree["config_paths"]] == ["mcqa.yaml", "openai_model.yaml"]
    assert tree["policy_base_url"] == "http://h/v1?a=1&b=2"


@pytest.mark.parametrize(
    "value",
    ["1.10", "123456", "", "a,b", "a b", "it's", 'say "hi"', "größe-日本", "null", "[x]", "{x: 1}", "a=b==", "yes", "1e3", "#x"],
)
def test_odd_values_of_flags_pass_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["env", "resolve", "--model", value, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy_model_name"] == value
    assert resolved(capsys, "--model", value)["policy_model_name"] == value


def test_a_key_that_ends_in_equal_signs_is_a_secret_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["env", "resolve", "--model-api-key", "c2VjcmV0LWtleQ==", "+note=c2VjcmV0LWtleQ", "--provenance", "--json"]) == 0
    captured = capsys.readouterr()
    assert "c2VjcmV0LWtleQ==" not in captured.out + captured.err


def test_counters_stay_readable(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.yaml").write_text(
        "max_output_tokens: 4096\ntokenizer: x\nkey_metrics: [a]\nmonkey: 3\nAuthorization: Bearer abc\n"
    )
    tree = resolved(capsys, "--config", "x.yaml")
    assert {key: tree[key] for key in ("max_output_tokens", "tokenizer", "key_metrics", "monkey", "Authorization")} == {
        "max_output_tokens": 4096, "tokenizer": "x", "key_metrics": ["a"], "monkey": 3, "Authorization": "****",
    }  # fmt: skip


def test_abbreviated_flags_and_switches_before_the_group(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "env", "resolve", *FILES, "--prov"]) == 0
    assert "keys" in json.loads(capsys.readouterr().out)


def test_control_characters_in_values_do_not_reach_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.yaml").write_text('title: "a\\e]0;x\\ab"\n')
    assert main(["env", "resolve", "--config", "x.yaml", "--provenance"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_what_is_taken_from_a_secret_is_one(gym: Gym) -> None:
    (gym.cwd / "c.yaml").write_text(
        "vault: {api_key: short1}\n"
        'a: "${copy:vault.api_key}"\n'
        'b: "${oc.dict.values:vault}"\n'
        'c: "${oc.decode:${vault.api_key}}"\n'
        "d: [{name: A_KEY, value: short1}]\n"
    )
    for words in ([], ["--provenance"], ["--provenance", "--json"]):
        result = gym.run("env", "resolve", "--config", "c.yaml", "++e={api_key: short1}", *words)
        assert result.returncode == 0
        assert "short1" not in result.stdout + result.stderr
