"""What is read of one run for the detail pane, and how it is written there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.io.result_paths import ResultPaths
from backend.rollouts.run_entry import RunEntry, read_entry, read_entry_without_record
from screens.results import details as details_module
from screens.results.detail_blocks import detail_blocks
from screens.results.details import RunDetails, read_details
from screens.widgets.text_blocks import plain_text
from tests.run_folders import AGENT, BEGAN, event, record, summary, write_run

CONFIG = {
    "policy_model_name": "small-7b",
    "num_repeats": 4,
    "responses_create_params": {"temperature": 0.2, "tools": []},
    "policy_model": {
        "responses_api_models": {
            "openai_model": {
                "entrypoint": "app.py",
                "openai_base_url": "http://me:hidden99@h/v1",
                "openai_api_key": "sk-12345678",
            }
        }
    },
    "agent": {"responses_api_agents": {"simple": {"model_server": {"type": "responses_api_models", "name": "policy_model"}}}},
}


def never() -> bool:
    return False


def written(folder: Path, failures: str = "", **changes: object) -> RunEntry:
    output = folder / "m.jsonl"
    told = {**summary(BEGAN + 60, 8, 2, 0, 0.5), "failure_classes": {"judge_failed": 2}}
    run_folder = write_run(output, [event("notice", BEGAN, level="warning", text="slow"), told], config=CONFIG, **changes)
    ResultPaths(output).failures.write_text(failures)
    return read_entry(run_folder, "m")


def test_scores_failures_settings_files_and_remarks(tmp_path: Path) -> None:
    rows = [{"_ng_failure_class": "judge_failed", "failure_reason": f"no answer {number}"} for number in (1, 2)]
    run = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    found = read_details(run, never)
    (score,) = found.scores
    assert (score.agent, score.name, score.value, score.scored, score.failed) == (AGENT, "reward/mean", 0.5, 8, 2)
    assert score.interval is not None and (score.interval.low, score.interval.high) == (0.4, 0.6)
    (failure,) = found.failures
    assert (failure.name, failure.count, failure.reason) == ("judge_failed", 2, "no answer 2")
    assert not found.failures_are_attempts
    settings = dict(found.settings)
    assert settings["policy_model"] == "openai_model"
    assert settings["num_repeats"] == "4" and settings["responses_create_params.temperature"] == "0.2"
    assert settings["  model_server"] == "policy_model"
    sizes = {fact.path.name: fact.size for fact in found.files}
    assert sizes["m_aggregate_metrics.json"] is None and sizes["run.json"] == run.paths.run_record.stat().st_size
    assert found.remarks == ("slow",)


def test_keys_and_credentials_are_masked(tmp_path: Path) -> None:
    settings = str(read_details(written(tmp_path), never).settings)
    assert "hidden99" not in settings and "sk-12345678" not in settings
    assert "@h/v1" in settings


def test_without_a_summary_the_failed_attempts_are_counted(tmp_path: Path) -> None:
    run_folder = write_run(tmp_path / "m.jsonl", [], state="stopped")
    failures = tmp_path / "m_failures.jsonl"
    failures.write_text('{"_ng_failure_class": "timeout"}\n{"_ng_failure_class": "timeout"}\n{"error": "x"}\n{"torn')
    found = read_details(read_entry(run_folder, "m"), never)
    assert [(fact.name, fact.count, fact.reason) for fact in found.failures] == [("timeout", 2, ""), ("unknown", 1, "x")]
    assert found.failures_are_attempts and found.scores == ()


def test_a_broken_failures_file_is_a_remark(tmp_path: Path) -> None:
    found = read_details(written(tmp_path, "not json\n{}\n"), never)
    assert "m_failures.jsonl:1" in found.remarks[-1]
    assert found.failures[0].count == 2


def test_a_long_failures_file_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details_module, "MOST_FAILURE_LINES", 3)
    found = read_details(written(tmp_path, '{"_ng_failure_class": "x"}\n' * 10), never)
    assert found.failures_cut


def test_reading_ends_when_nobody_waits_any_more(tmp_path: Path) -> None:
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    read_details(written(tmp_path, '{"_ng_failure_class": "x"}\n' * 1000), cancelled)
    assert asked == 3


def test_results_without_a_run_folder_show_their_key_metrics(tmp_path: Path) -> None:
    paths = ResultPaths(tmp_path / "old.jsonl")
    paths.rollouts.write_text("{}\n")
    metrics = [{"agent_ref": {"name": "a"}, "key_metrics": {"mean/reward": 0.25, "pass@1/accuracy": 25.0, "text": "x"}}]
    paths.aggregate_metrics.write_text(json.dumps(metrics))
    found = read_details(read_entry_without_record(paths, "old"), never)
    assert [(row.name, row.value, row.scale) for row in found.scores] == [
        ("mean/reward", 0.25, "raw"),
        ("pass@1/accuracy", 25.0, "0-100"),
    ]
    paths.aggregate_metrics.write_text("[broken")
    assert "cannot be read" in read_details(read_entry_without_record(paths, "old"), never).remarks[0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["scores", "name", "value", "interval", "low", "x"]), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(value=JSON, config=JSON, failure=JSON)
def test_damaged_files_never_raise(
    tmp_path_factory: pytest.TempPathFactory, value: object, config: object, failure: object
) -> None:
    output = tmp_path_factory.mktemp("r") / "m.jsonl"
    told = {**summary(BEGAN, 1, 0, 0, 0.5), "scores": value, "failure_classes": value}
    folder = write_run(output, [told], config=config, error=value, rollouts=value)
    ResultPaths(output).failures.write_text(json.dumps({"_ng_failure_class": failure, "error": failure}) + "\n")
    ResultPaths(output).aggregate_metrics.write_text(json.dumps(value))
    run = read_entry(folder, "m")
    assert "Run" in [block.head for block in detail_blocks(run, read_details(run, never), 0.0, str)]


def text_of(run: RunEntry, found: RunDetails | None = None, now: float = BEGAN + 720) -> str:
    return "\n".join(plain_text(block) for block in detail_blocks(run, found, now, lambda path: path.name))


def test_a_run_that_died_says_what_happened_and_how_to_go_on(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / "m.jsonl", [], state="running", pid=4_194_305, ended_at=None, scored=None, failed=None, missing=None
    )
    run = read_entry(folder, "m")
    text = text_of(run)
    assert "process 4194305 is gone" in text
    assert f"cd {tmp_path} && gym eval run --benchmark first_steps --output {tmp_path}/m.jsonl --resume" in text


def test_a_run_that_failed_gives_its_reason(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "m.jsonl", [], state="failed", error="the server died", scored=3, failed=1, missing=6)
    text = text_of(read_entry(folder, "m"))
    assert "the server died" in text
    assert "Of 10 rollouts 3 are scored, 1 failed and 6 missing." in text


def test_a_record_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "m.jsonl")
    (folder / "run.json").write_text("{broken")
    assert "cannot be read" in text_of(read_entry(folder, "m"), read_details(read_entry(folder, "m"), never))


def test_all_facts_of_a_finished_run(tmp_path: Path) -> None:
    run = written(tmp_path)
    text = text_of(run, read_details(run, never))
    for wanted in (
        "0.500 [0.40, 0.60]  8 scored, 2 failed, 0 missing",
        "judge_failed  2",
        "2023-11-14 22:13:20",
        "1:00",
        "small-7b",
        "not there",
    ):
        assert wanted in text
    assert record(tmp_path / "m.jsonl")["command"][3] in text
