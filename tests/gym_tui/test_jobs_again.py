"""What is proposed instead of starting a job's command once more."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.io.result_paths import ResultPaths
from gym_tui.jobs import Job
from gym_tui.jobs_again import proposal
from screens.results.prefill import Prefill
from tests.run_samples import live_run, write_run_record

WORDS = ("eval", "run", "--benchmark", "first_steps", "--model-type", "llama_cpp_model", "--output")


def job(folder: Path, *words: str, output: Path | None = None) -> Job:
    return Job("job", words, folder, folder / "job.log", 1, 1.0, 1.0, output, code=0, ended_at=2.0)


def evaluation(folder: Path, *more: str, output: str = "m.jsonl") -> Job:
    return job(folder, *WORDS, output, *more, output=folder / Path(output).expanduser())


def text_of(prefill: Prefill | None) -> str:
    assert prefill is not None
    return prefill.text


def test_what_replaces_nothing_is_started_at_once(tmp_path: Path) -> None:
    assert proposal(job(tmp_path, "list", "runs")) is None
    assert proposal(job(tmp_path, "env", "start", "--benchmark", "first_steps")) is None
    assert proposal(evaluation(tmp_path)) is None
    write_run_record(tmp_path, "m", "failed")  # before it had a rollout
    assert proposal(evaluation(tmp_path)) is None


def test_a_run_that_is_done_gets_a_free_output(tmp_path: Path) -> None:
    live_run(tmp_path, done=6, total=6, state="done", scored=5, failed=1, missing=0)
    again = proposal(evaluation(tmp_path))
    assert again == Prefill(f"{' '.join(WORDS)} m-2.jsonl", str(tmp_path))
    ResultPaths(tmp_path / "m-2.jsonl").failures.touch()
    ResultPaths(tmp_path / "m-3.jsonl").run_folder.mkdir()
    assert text_of(proposal(evaluation(tmp_path), {tmp_path / "m-4.jsonl"})).endswith("--output m-5.jsonl")


@pytest.mark.parametrize("state", ["stopped", "failed"])
def test_a_run_that_ended_before_its_time_is_gone_on_with(tmp_path: Path, state: str) -> None:
    live_run(tmp_path, state=state, scored=11, failed=1, missing=28)
    again = proposal(evaluation(tmp_path))
    assert again == Prefill(f"{' '.join(WORDS)} m.jsonl --resume", str(tmp_path))


def test_a_run_of_another_command_is_not_gone_on_with(tmp_path: Path) -> None:
    live_run(tmp_path, state="stopped", scored=11, failed=1, missing=28)
    assert text_of(proposal(evaluation(tmp_path, "--limit", "6"))) == f"{' '.join(WORDS)} m-2.jsonl --limit 6"


def test_going_on_once_more_replaces_nothing(tmp_path: Path) -> None:
    live_run(tmp_path, state="stopped", scored=11, failed=1, missing=28)
    assert proposal(evaluation(tmp_path, "--resume")) is None


def test_results_without_a_record_and_failures_alone_are_kept_as_well(tmp_path: Path) -> None:
    ResultPaths(tmp_path / "m.jsonl").failures.touch()
    assert text_of(proposal(evaluation(tmp_path))).endswith("--output m-2.jsonl")


def test_an_output_that_a_job_is_about_to_write_is_not_free(tmp_path: Path) -> None:
    assert text_of(proposal(evaluation(tmp_path), {tmp_path / "m.jsonl"})).endswith("--output m-2.jsonl")


def test_the_home_folder_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("m.jsonl", "m-2.jsonl"):
        (tmp_path / name).touch()
    work = tmp_path / "work"
    work.mkdir()
    assert "m-3.jsonl" in text_of(proposal(evaluation(work, output="~/m.jsonl")))


def test_an_output_that_only_the_configuration_names_is_asked_about(tmp_path: Path) -> None:
    again = proposal(job(tmp_path, "eval", "run", "--config", "a b.yaml"))
    assert again is not None and again.text == "eval run --config 'a b.yaml'"
    assert again.remarks == ("the output is named in the configuration: results that are there are replaced",)
