"""Broken configurations through the real command line: what is said about each, and where."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from backend.cli.main import main
from tests.conftest import Gym

RS = "rs:\n  resources_servers:\n    quiz:\n      entrypoint: app.py\n      {}\n"
AGENT = "ag:\n  responses_api_agents:\n    loop:\n      entrypoint: app.py\n      {}\n"
DATASET = "{{name: d, jsonl_fpath: d.jsonl, {}}}"
RS_KEY = "rs.resources_servers.quiz"
AG_KEY = "ag.responses_api_agents.loop"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for component in ("resources_servers/quiz", "responses_api_agents/loop"):
        (tmp_path / component).mkdir(parents=True)
        (tmp_path / component / "app.py").write_text("")
    (tmp_path / "d.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def findings(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> list[dict]:
    assert main(["env", "validate", *words, "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert report["valid"] is (code == 0)
    for finding in report["findings"]:
        assert set(finding) == {"severity", "message", "file", "line", "column", "key", "nearest", "hint", "fix"}
    found: list[dict] = report["findings"]
    return found


def dataset(fields: str, server: str = RS) -> str:
    return server.format(f"domain: math\n      datasets: [{DATASET.format(fields)}]")


BROKEN = [
    pytest.param("a: 1\nfoo: [1, 2\n", 3, None, "malformed YAML", None, None, id="unclosed bracket"),
    pytest.param("- a\n", 1, None, "must be a mapping, this is a list", None, None, id="top-level list"),
    pytest.param("config_paths: [qiuz.yaml]", 1, "config_paths", "config_paths entry 'qiuz.yaml' was not found", "quiz.yaml", "config_paths: [quiz.yaml]", id="missing include"),
    pytest.param("a: 1\nconfig_paths: quiz.yaml", 2, "config_paths", "must be a list of paths. Got: 'quiz.yaml'", None, "config_paths: [quiz.yaml]", id="scalar config_paths"),
    pytest.param("config_paths: {a: 1}", 1, "config_paths", "must be a list of paths", None, None, id="mapping config_paths"),
    pytest.param("config_paths: [1]", 1, "config_paths", "must be a list of paths", None, None, id="number in config_paths"),
    pytest.param(RS.format("domain: maths"), 5, f"{RS_KEY}.domain", "domain: Must be one of: 'math'", "math", f"++{RS_KEY}.domain=math", id="wrong domain"),
    pytest.param(RS.format("x: 1"), 3, f"{RS_KEY}.domain", "domain: is missing", None, f"++{RS_KEY}.domain=other", id="no domain"),
    pytest.param(RS.format("domain: math\n      port: abc"), 6, f"{RS_KEY}.port", "port: must be a whole number", None, f"++{RS_KEY}.port=null", id="port is a word"),
    pytest.param(RS.format("domain: math\n    other: {entrypoint: app.py}"), 2, "rs.resources_servers", "exactly one implementation, found quiz, other", None, None, id="two implementations"),
    pytest.param(dataset("type: train"), 6, f"{RS_KEY}.datasets[0].license", "license: is missing for type 'train'", None, "license: TBD", id="no license"),
    pytest.param(dataset("type: train, license: Apache 2"), 6, f"{RS_KEY}.datasets[0].license", "license: Must be one of", "Apache 2.0", "license: Apache 2.0", id="wrong license"),
    pytest.param(dataset("type: example, num_repeats: 0"), 6, f"{RS_KEY}.datasets[0].num_repeats", "at least 1", None, "num_repeats: 1", id="no repeats"),
    pytest.param(dataset("type: example, source: {type: huggingfase}"), 6, f"{RS_KEY}.datasets[0].source.type", "Must be one of: 'gitlab'", "huggingface", "type: huggingface", id="wrong source"),
    pytest.param(dataset("type: example, source: {type: huggingface, repo_id: r}, huggingface_identifier: {repo_id: r}"), 6, f"{RS_KEY}.datasets[0].source", "is given twice", None, None, id="source twice"),
    pytest.param(RS.format("domain: math") + AGENT.format("resources_server: {type: resources_servers, name: rss}"), 10, f"{AG_KEY}.resources_server", "references resources_servers/'rss', which is not defined", "rs", f"++{AG_KEY}.resources_server.name=rs", id="reference to nothing"),
    pytest.param(RS.format("domain: math") + AGENT.format("judge: {type: responses_api_models, name: rs}"), 10, f"{AG_KEY}.judge", "references responses_api_models/'rs'", None, None, id="reference to another type"),
    pytest.param(RS.format("domain: math") + AGENT.format("judge: {type: resource_servers, name: rs}"), 10, f"{AG_KEY}.judge.type", "unknown type 'resource_servers'", "resources_servers", f"++{AG_KEY}.judge.type=resources_servers", id="misspelled type"),
    pytest.param(RS.format("domain: math") + AGENT.format("pool: [{type: resources_servers, name: rss}]"), 10, f"{AG_KEY}.pool[0]", "references resources_servers/'rss'", "rs", "name: rs", id="nested reference"),
    pytest.param(RS.replace("quiz:", "quizz:").format("domain: math"), 3, "rs.resources_servers.quizz", "no implementation 'quizz'", "quiz", "quiz:", id="missing folder"),
    pytest.param(RS.replace("app.py", "ap.py").format("domain: math"), 4, f"{RS_KEY}.entrypoint", "does not exist", "app.py", f"++{RS_KEY}.entrypoint=app.py", id="missing entrypoint file"),
    pytest.param(RS.format("domain: math\n      port: 7100") + AGENT.format("port: 7100"), 11, f"{AG_KEY}.port", "both ask for port 7100", None, f"++{AG_KEY}.port=null", id="one port twice"),
    pytest.param("real: 1\nx: ${ghost}", 2, "x", "references 'ghost', which is not set", None, "++ghost=<value>", id="interpolation of nothing"),
    pytest.param("x: ${oc.env:NO_SUCH_VARIABLE_HERE}", 1, "x", "NO_SUCH_VARIABLE_HERE, which is not set", None, "export NO_SUCH_VARIABLE_HERE=<value>", id="unset variable"),
    pytest.param("x: ${y}\ny: ${x}", 1, "x", "Recursive interpolation", None, None, id="recursion"),
    pytest.param("x: ???", 1, "x", "required config value 'x' is unset", None, "++x=<value>", id="unset value"),
    pytest.param("abc: {x: 1}\nb: {_inherit_from: abd}", 2, "b", "takes its value from 'abd'", "abc", "_inherit_from: abc", id="inherit from nothing"),
    pytest.param("a: {xyz: 1}\nb: {_copy: a, _delete_key: xyw}", 2, "b", "names 'xyw', which 'b' does not have", "xyz", "_delete_key: xyz", id="delete nothing"),
    pytest.param("port_range_low: 20\nport_range_high: 10", 1, "port_range_low", "is above port_range_high", None, "++port_range_low=10 ++port_range_high=20", id="inverted range"),
    pytest.param("results_dir: [a]", 1, "results_dir", "must be the path of a folder", None, "++results_dir=results", id="folder is a list"),
    pytest.param("allow_openai_version_skew: maybe", 1, "allow_openai_version_skew", "must be true or false", None, "++allow_openai_version_skew=true", id="switch is a word"),
    pytest.param("token_id_capture: {enabeld: true}", 1, "token_id_capture.enabeld", "is not a key of token_id_capture", "enabled", "enabled: True", id="wrong key of a block"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "message", "nearest", "fix"), BROKEN)
def test_every_fault_is_told_with_its_place_and_a_way_out(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    line: int,
    key: str | None,
    message: str,
    nearest: str | None,
    fix: str | None,
) -> None:
    (folder / "quiz.yaml").write_text("")
    (folder / "x.yaml").write_text(text)
    errors = [item for item in findings(capsys, "--config", "x.yaml", "--strict", code=1) if item["severity"] == "error"]
    first = errors[0]
    assert (first["file"], first["line"], first["key"]) == (str(folder / "x.yaml"), line, key)
    assert message in first["message"]
    assert (first["nearest"], first["fix"]) == (nearest, fix)
    assert len(errors) == (2 if message == "Recursive interpolation" else 1)


VALID = [
    pytest.param("", id="empty"),
    pytest.param("head_server: {port: 12000}", id="head server without host"),
    pytest.param("two: {responses_api_models: {m: {entrypoint: a.py}}, resources_servers: {quiz: {entrypoint: app.py}}}", id="two types"),
    pytest.param("a: {x: 1}\nb: {_inherit_from: a, new: 2}", id="inherit and a new key"),
    pytest.param("a: {x: 1, y: 2}\nb: {_copy: a, _delete_key: [x, y]}", id="delete a list"),
    pytest.param("a: {x: 1, _delete_key: nope}", id="delete nothing without a source"),
    pytest.param("none: {resources_servers: {quiz: {domain: math}}}", id="no entrypoint, not referenced"),
    pytest.param(dataset("type: example, num_repeats: null"), id="null repeats"),
]  # fmt: skip


@pytest.mark.parametrize("text", VALID)
def test_what_is_valid(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (folder / "x.yaml").write_text(text)
    assert [item for item in findings(capsys, "--config", "x.yaml", code=0) if item["severity"] == "error"] == []


def test_what_only_a_strict_check_refuses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.yaml").write_text(
        RS.replace("quiz:", "quizz:").format("domain: math\n      judge: {type: resource_servers, name: rs}")
    )
    lenient = findings(capsys, "--config", "x.yaml", code=0)
    strict = findings(capsys, "--config", "x.yaml", "--strict", code=1)
    assert [(item["severity"], item["nearest"]) for item in lenient] == [("warning", "resources_servers"), ("warning", "quiz")]
    assert [(item["severity"], item["nearest"]) for item in strict] == [("error", "resources_servers"), ("error", "quiz")]


def test_what_a_strict_check_remarks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "quiz.yaml").write_text("")
    datasets = "datasets: [{name: d, type: benchmark, jsonl_fpath: e.jsonl, prepare_script: d.py, prompt_config: quizz.yaml}]"
    (folder / "x.yaml").write_text(RS.format(f"domain: math\n      {datasets}") + "num_repeat: 3\nmine: 1\ntemperature: 0.5\n")
    found = findings(capsys, "--config", "x.yaml", "--strict", code=0)
    assert [(item["line"], item["nearest"], item["fix"]) for item in found] == [
        (7, "num_repeats", "++num_repeats=3"),
        (8, None, None),
        (9, "responses_create_params.temperature", "++responses_create_params.temperature=0.5"),
        (6, "d.jsonl", "jsonl_fpath: d.jsonl"),
        (6, None, None),
        (6, "quiz.yaml", "prompt_config: quiz.yaml"),
    ]


def test_almost_servers_can_be_tolerated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.yaml").write_text(RS.format("domain: maths"))
    (found,) = findings(capsys, "--config", "x.yaml", "--strict", "+error_on_almost_servers=false", code=0)
    assert (found["severity"], found["nearest"]) == ("warning", "math")


def test_all_findings_come_in_one_go(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Broken words, files, directives and values beside each other; nothing is told that another finding explains."""
    (folder / "x.yaml").write_text(
        RS.format("domain: maths")
        + AGENT.format("resources_server: {type: resources_servers, name: heir}")
        + "heir: {_inherit_from: nobody, resources_servers: {quiz: {entrypoint: app.py}}}\nx: ???\n"
    )
    (folder / "bad.yaml").write_text("a: [\n")
    words = ("--config", "x.yaml", "++limit=1,2", "b=3")
    found = findings(capsys, *words, "--strict", code=1)
    errors = [item["message"] for item in found if item["severity"] == "error"]
    assert [message.split(":")[0].split(" ")[0] for message in errors] == ["Ambiguous", "Could", "'heir'", "required", "'rs'"]
    with_a_broken_file = findings(capsys, *words, "--config", "bad.yaml", "--strict", code=1)
    assert [item["message"].split(" ")[0] for item in with_a_broken_file if item["severity"] == "error"] == [
        "Ambiguous", "Could", "malformed", "'heir'", "'rs'",
    ]  # fmt: skip


def test_text_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.yaml").write_text(RS.format("domain: maths"))
    assert main(["env", "validate", "--config", "x.yaml"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"Error: {folder}/x.yaml:5:7 ({RS_KEY}.domain): 'rs' looks like a server but is not valid")
    assert captured.err.endswith(f"  hint: Did you mean `math`?\n  fix: ++{RS_KEY}.domain=math\n1 problem found.\n")


def test_a_missing_model_is_a_warning_unless_strict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--resources-server", "mcqa"]
    assert main(["env", "validate", *words]) == 0
    captured = capsys.readouterr()
    assert captured.out == "✓ Config is valid.\n"
    assert "--strict" in captured.err
    assert main(["env", "validate", *words, "--strict"]) == 1
    assert main(["env", "validate", *words, "--model-type", "openai_model"]) == 0
    capsys.readouterr()
    errors = findings(capsys, *words, "--model-type", "openai_model", "--strict", code=1)
    assert [item["fix"] for item in errors] == ["--model-url <value>", "--model-api-key <value>", "--model <value>"]


def test_nothing_selected_is_valid_with_a_remark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "validate"]) == 0
    captured = capsys.readouterr()
    assert "nothing is selected" in captured.err
    assert captured.out == "✓ Config is valid.\n"


def test_an_unknown_selector_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "validate", "--resources-server", "mcqaa"]) == 2
    assert "Did you mean `mcqa`?" in capsys.readouterr().err


def test_no_secret_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.yaml").write_text("api_key: sk-secret-in-file\nresults_dir: [a]\nconfig_paths: sk-secret-in-file\n")
    assert main(["env", "validate", "--config", "x.yaml", "++hf_token=hf-secret-a,hf-secret-b", "--json"]) == 1
    captured = capsys.readouterr()
    assert "sk-secret" not in captured.out + captured.err
    assert "hf-secret" not in captured.out + captured.err


def test_it_binds_no_port_and_opens_no_connection(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert main(["env", "validate", "--resources-server", "mcqa", "--model-type", "openai_model"]) == 0


def test_the_calls_of_the_evaluator(gym: Gym) -> None:
    result = gym.run(
        "env", "validate", "--config", "responses_api_agents/simple_agent/configs/simple_agent.yaml", "--model-type", "openai_model",
        "--resources-server", "mcqa", "+simple_agent.responses_api_agents.simple_agent.resources_server.name=mcqa",
        "++policy_model_name='it\\'s a model'", "++policy_base_url='http://h/v1'", "++policy_api_key='dummy'", "++empty={}",
        "hydra.run.dir='some where/gym_hydra'", "++observability_enabled=true",
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (0, "✓ Config is valid.\n"), result.stderr
    assert not (gym.cwd / "outputs").exists()


@pytest.mark.parametrize("word", ["+config_paths=x.yaml", "+config_paths={a: 1}", "+config_paths=[1]"])
def test_config_paths_that_are_no_list_of_paths(capsys: pytest.CaptureFixture[str], word: str) -> None:
    (found,) = findings(capsys, word, "--strict", code=1)
    assert found["message"].startswith("'config_paths' must be a list of paths. Got: ")
    assert found["file"] == word


def test_what_is_not_quite_a_server_is_checked_to_its_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.yaml").write_text(
        RS.replace("quiz:", "quizz:").format("domain: maths")
        + AGENT.replace("app.py", "ap.py").format(
            "port: abc\n      resources_server: {type: resources_servers, name: rss}\n"
            "      judge: {type: resource_servers, name: rs}\n"
            "      pool: {first: {type: resource_servers, name: rs}}\n"
            "      datasets: [{name: d, type: example, jsonl_fpath: e.jsonl}]"
        )
    )
    found = findings(capsys, "--config", "x.yaml", "--strict", code=1)
    assert [(item["severity"], item["line"], item["nearest"]) for item in found] == [
        ("error", 5, "math"),
        ("error", 10, None),
        ("error", 11, "rs"),
        ("error", 12, "resources_servers"),
        ("error", 3, "quiz"),
        ("error", 9, "app.py"),
        ("warning", 13, "resources_servers"),
        ("warning", 14, "d.jsonl"),
    ]
    tolerated = findings(capsys, "--config", "x.yaml", "--strict", "+error_on_almost_servers=false", code=0)
    assert [item["line"] for item in tolerated] == [5, 10]
    assert {item["hint"] for item in tolerated} == {"Did you mean `math`?", "mend the fields"}


def test_a_block_that_an_override_adds_to_is_still_where_it_was_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.yaml").write_text(RS.replace("quiz:", "quizz:").format("x: 1"))
    found = findings(capsys, "--config", "x.yaml", "++rs.resources_servers.quizz.y=2", "--strict", code=1)
    assert [(item["file"], item["line"], item["key"]) for item in found] == [
        (str(folder / "x.yaml"), 3, "rs.resources_servers.quizz.domain"),
        (str(folder / "x.yaml"), 3, "rs.resources_servers.quizz"),
    ]


@pytest.mark.parametrize(
    ("words", "code"),
    [(["+strict=true"], 1), (["++strict=true"], 1), (["--config", "s.yaml"], 1), (["+strict=false"], 0), (["+strict=x"], 2)],
)
def test_strict_is_a_key_as_well(folder: Path, words: list[str], code: int) -> None:
    (folder / "s.yaml").write_text("strict: true")
    assert main(["env", "validate", "--resources-server", "mcqa", *words]) == code
