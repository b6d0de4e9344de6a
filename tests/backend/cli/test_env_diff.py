from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.cli.main import main
from tests.backend.config.riddle import RIDDLE

BASE = "--config hard.yaml --config endpoint.yaml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in RIDDLE.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_two_sets_of_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    other = f"{BASE} ++policy_model_name=big ++policy_api_key=sk-another-secret ++hard_rs.resources_servers.riddle.tags=null"
    assert main(["env", "diff", BASE, other]) == 0
    out = capsys.readouterr().out
    assert (
        '~ hard_rs.resources_servers.riddle.tags: ["z"] -> null  (replaces a list)\n'
        "    A  hard.yaml:2\n"
        "    B  ++hard_rs.resources_servers.riddle.tags=null\n"
    ) in out
    assert "~ policy_api_key: changed, secret\n    A  env.yaml:2\n    B  ++policy_api_key=****\n" in out
    assert "    A  endpoint.yaml:3, from ${policy_model_name} (env.yaml:3)\n" in out
    assert "0 added, 0 removed, 6 changed, 44 equal\n" in out
    assert "sk-another-secret" not in out
    assert out.startswith(f"A  {BASE}\nB  {BASE} ++policy_model_name=big '++policy_api_key=****'")


def test_json(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["env", "diff", BASE, f"{BASE} ++limit=9 +extra.new=[1,2]", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["a"], report["same"], report["removed"]) == (BASE, False, [])
    (changed,), (added,) = report["changed"], report["added"]
    assert (changed["key"], changed["a"]["value"], changed["b"]["value"]) == ("limit", 4, 9)
    assert changed["a"]["origin"] == {"kind": "env_file", "text": "", "file": str(folder / "env.yaml"), "line": 4, "column": 1}
    assert changed["b"]["origin"]["text"] == "++limit=9"
    assert (added["key"], added["a"], added["b"]["value"]) == ("extra.new", None, [1, 2])


def test_equal_sides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "diff", BASE, BASE, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["same"], report["equal"]) == (True, 50)


def test_files_need_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "diff", "riddle.yaml", "hard.yaml"]) == 0
    captured = capsys.readouterr()
    assert "- riddle_rs.resources_servers.riddle.domain: games\n    A  riddle.yaml:1\n" in captured.out
    assert (
        "+ hard_rs.resources_servers.riddle.domain: games\n    B  riddle.yaml:1, through _inherit_from: riddle_rs (hard.yaml:2)"
        in captured.out
    )
    assert "warning: A is not complete" in captured.err


@pytest.mark.parametrize("form", ["out_run", "out_run/run.json", "out.jsonl"])
def test_a_run_against_now(folder: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    assert main(["env", "resolve", *BASE.split(), "--json"]) == 0
    config = json.loads(capsys.readouterr().out)
    config["limit"] = 3
    (folder / "out_run").mkdir()
    (folder / "out.jsonl").write_text("")
    (folder / "out_run" / "run.json").write_text(json.dumps({"config": config}, indent=2))
    assert main(["env", "diff", form, BASE]) == 0
    out = capsys.readouterr().out
    assert "~ limit: 3 -> 4\n    A  out_run/run.json:3\n    B  env.yaml:4\n" in out
    assert "0 added, 0 removed, 1 changed" in out
    assert "not comparable, because a run record masks them: " in out
    assert "policy_api_key" in out


@pytest.mark.parametrize(
    ("side", "code", "part"),
    [
        ("hrad.yaml", 1, "Did you mean `hard.yaml`?"),
        ("--confg hard.yaml", 2, "Did you mean `--config`?"),
        ("--config 'x", 2, "close the quotes"),
        ("--config gone.yaml", 1, "config_paths entry 'gone.yaml' was not found"),
        (".", 1, "it has no run.json"),
        ("--benchmark nosuch_one", 2, "nosuch_one"),
        ("--nope", 2, "A is neither a path nor arguments of `gym env resolve`: unrecognized arguments: --nope"),
        ("rows.jsonl", 1, "rows.jsonl has no record of a run beside it: there is no rows_run/run.json"),
        ("x" * 300, 1, "there is no file or folder xxx"),
    ],
)
def test_sides_that_cannot_be_resolved(capsys: pytest.CaptureFixture[str], side: str, code: int, part: str) -> None:
    Path("rows.jsonl").write_text("{}\n{}\n")
    assert main(["env", "diff", side, BASE]) == code
    captured = capsys.readouterr()
    assert part in captured.err
    assert captured.out == ""


def test_two_sides_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "diff", BASE]) == 2


def test_search_dirs_serve_both_sides(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "lib").mkdir()
    (folder / "lib" / "more.yaml").write_text("limit: 7\n")
    (folder / "env.yaml").unlink()
    assert main(["env", "diff", "--search-dir", "lib", "--config more.yaml", "--config more.yaml ++limit=8"]) == 0
    assert "~ limit: 7 -> 8" in capsys.readouterr().out


def test_a_side_may_be_a_single_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "diff", "--config=hard.yaml", "--no-model", "--json"]) == 0
    diff = json.loads(capsys.readouterr().out)
    assert (diff["a"], diff["b"]) == ("--config=hard.yaml", "--no-model")
    assert "hard_rs.resources_servers.riddle.grading" in [item["key"] for item in diff["removed"]]


def test_no_secret_is_told_as_value_or_key(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "s3cr3t-in-here"
    (folder / "x.yaml").write_text(f"client_secret: {secret}\nusers: {{{secret}: 1, b: x {secret}}}\n")
    for words in (
        ["env", "diff", "x.yaml", "hard.yaml"],
        ["env", "diff", "hard.yaml", "x.yaml", "--json"],
        ["env", "resolve", "--config", "x.yaml"],
        ["env", "resolve", "--config", "x.yaml", "--json"],
        ["env", "resolve", "--config", "x.yaml", "--provenance"],
        ["env", "resolve", "--config", "x.yaml", "--provenance", "--json"],
        ["env", "validate", "--config", "x.yaml", "--strict", f"++users.{secret}.c=1"],
    ):
        main(words)
        captured = capsys.readouterr()
        assert "users" in captured.out + captured.err
        assert secret not in captured.out + captured.err
