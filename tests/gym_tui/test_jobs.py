"""Jobs are real processes: they outlive their starter, are found again, end on SIGINT, and hold no keys in their words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from backend.errors import UsageError
from backend.io.homes import state_home
from backend.servers.process_identity import process_mark
from gym_tui import jobs
from gym_tui.jobs import Job, LogReader, jobs_of_earlier_workbenches, look_after, save_job, share_done, start_job, stop_job
from gym_tui.verbs import checked, evaluation_output


def wait(until: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@pytest.fixture
def sleeper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Job]:
    """A running process in the place of a long command."""
    code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); print('ready', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    folder = state_home("jobs")
    folder.mkdir(parents=True)
    log = folder / "sleeper.log"
    log.touch()
    job = Job("sleeper", ("env", "start"), tmp_path, log, process.pid, psutil.Process(process.pid).create_time(), 1.0)
    save_job(job)
    yield job
    process.kill()
    process.stdout.close()
    process.wait()


def test_a_command_runs_in_a_session_of_its_own_and_its_end_is_noticed(tmp_path: Path) -> None:
    job = start_job(["list", "benchmarks", "--json"], tmp_path, time.time())
    assert os.getsid(job.pid) == job.pid
    assert job.process is not None
    assert job.process.args[-4:] == ["backend.cli", "list", "benchmarks", "--json"]  # it may be over before anyone looks
    wait(lambda: look_after(job, 5.0))
    assert (job.code, job.ended_at, job.running) == (0, 5.0, False)
    assert job.log.stat().st_mode & 0o077 == 0
    assert isinstance(json.loads(job.log.read_text()), list | dict)
    record = json.loads(job.log.with_suffix(".json").read_text())
    assert record["code"] == 0 and record["words"] == ["list", "benchmarks", "--json"]
    assert not look_after(job, 6.0), "an end is told once"


def test_what_is_wrong_comes_as_exit_code_and_output(tmp_path: Path) -> None:
    job = start_job(["list", "benchmarks", "no_such_thing"], tmp_path, time.time())
    wait(lambda: look_after(job, 5.0))
    assert job.code == 1
    assert "no_such_thing" in "\n".join(LogReader(job.log).read(to_the_end=True))


def test_a_folder_named_like_our_package_does_not_take_its_place(tmp_path: Path) -> None:
    (tmp_path / "backend").mkdir()
    (tmp_path / "backend" / "__init__.py").write_text("raise SystemExit(77)")
    job = start_job(["--version"], tmp_path, time.time())
    wait(lambda: look_after(job, 5.0))
    assert job.code == 0


@pytest.mark.parametrize(
    "words", [["eval", "run", "--model-api-key", "secretsecret"], ["env", "start", "++policy_api_key=secretsecret"]]
)
def test_keys_are_refused(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(UsageError, match="keys do not go into a command line") as error:
        start_job(words, tmp_path, time.time())
    assert "env.yaml" in (error.value.hint or "")
    assert "secretsecret" not in str(error.value)
    assert not list(state_home("jobs").glob("*"))


def test_a_later_workbench_finds_what_still_runs(sleeper: Job) -> None:
    (found,) = jobs_of_earlier_workbenches()
    assert (found.name, found.words, found.pid, found.running) == ("sleeper", ("env", "start"), sleeper.pid, True)
    os.kill(sleeper.pid, signal.SIGKILL)
    wait(lambda: look_after(found, 9.0))
    assert found.code is None and found.ended_at == 9.0
    assert jobs_of_earlier_workbenches() == []


def test_a_number_that_belongs_to_another_process_is_not_a_job(sleeper: Job) -> None:
    record = sleeper.log.with_suffix(".json")
    value = json.loads(record.read_text())
    record.write_text(json.dumps({**value, "created_at": value["created_at"] - 100}))
    assert jobs_of_earlier_workbenches() == []


def test_a_step_of_the_clock_loses_no_job(sleeper: Job) -> None:
    record = sleeper.log.with_suffix(".json")
    value = json.loads(record.read_text()) | {"mark": process_mark(sleeper.pid)}
    record.write_text(json.dumps({**value, "created_at": value["created_at"] - 3600}))
    assert [job.name for job in jobs_of_earlier_workbenches()] == ["sleeper"]
    record.write_text(json.dumps({**value, "mark": process_mark(os.getpid())}))
    assert jobs_of_earlier_workbenches() == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"name": 1}', b"\xff"])
def test_damaged_records_are_passed_over(sleeper: Job, content: bytes) -> None:
    sleeper.log.with_name("other.json").write_bytes(content)
    assert [job.name for job in jobs_of_earlier_workbenches()] == ["sleeper"]


def test_old_records_make_room(tmp_path: Path) -> None:
    folder = state_home("jobs")
    folder.mkdir(parents=True)
    for number in range(60):
        (folder / f"{number:03}.json").write_text("{}")
        (folder / f"{number:03}.log").touch()
    jobs_of_earlier_workbenches()
    assert sorted(path.name for path in folder.glob("*.json")) == [f"{number:03}.json" for number in range(10, 60)]
    assert len(list(folder.glob("*.log"))) == 50


def test_stopping_sends_an_interrupt(sleeper: Job) -> None:
    stop_job(sleeper)
    assert sleeper.stops == 1
    wait(lambda: psutil.Process(sleeper.pid).status() == psutil.STATUS_ZOMBIE)


def test_progress_comes_from_the_last_lines_of_the_events(sleeper: Job, tmp_path: Path) -> None:
    sleeper.output = tmp_path / "out.jsonl"
    assert share_done(sleeper) is None
    folder = tmp_path / "out_run"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    assert sleeper.run_folder == folder
    assert share_done(sleeper) is None
    filler = json.dumps({"type": "rollout.finished", "reason": "x" * 500})
    progress = json.dumps({"type": "collection.progress", "finished": 3, "total": 12})
    (folder / "events.ndjson").write_text("\n".join([filler] * 100 + [progress, filler, '{"type": "collection.prog']))
    assert share_done(sleeper) == 0.25


def test_the_run_folder_of_an_earlier_run_is_not_this_jobs(tmp_path: Path) -> None:
    (tmp_path / "out_run").mkdir()
    record = tmp_path / "out_run" / "run.json"
    record.write_text("{}")
    job = start_job(["--version"], tmp_path, time.time(), tmp_path / "out.jsonl")
    assert job.run_folder is None
    os.utime(record, (1, 1))
    assert job.run_folder == tmp_path / "out_run"
    wait(lambda: look_after(job, 1.0))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["eval", "run", "--output", "a/b.jsonl"], "a/b.jsonl"),
        (["eval", "run", "-o", "x.jsonl"], "x.jsonl"),
        (["eval", "run", "+output_jsonl_fpath=y.jsonl"], "y.jsonl"),
        (["eval", "run"], None),
        (["list", "benchmarks"], None),
    ],
)
def test_the_output_of_an_evaluation(words: list[str], expected: str | None, tmp_path: Path) -> None:
    parsed = checked(words)
    assert parsed is not None
    output = evaluation_output(parsed, tmp_path)
    assert output == (tmp_path / expected if expected else None)


def test_a_log_is_read_by_complete_lines_and_its_rest_at_the_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntw")
    reader = LogReader(log)
    assert reader.read() == ["one"]
    log.write_bytes(b"one\ntwo\n 10%\r 20%\nrest")
    assert reader.read() == ["two", " 20%"]
    assert reader.read() == []
    assert reader.read(to_the_end=True) == ["rest"]
    assert LogReader(tmp_path / "missing").read() == []


def test_of_a_long_log_the_last_lines_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_LOG_BYTES", 100)
    log = tmp_path / "log"
    log.write_text("".join(f"line {number:04}\n" for number in range(100)))
    assert LogReader(log).read()[-1] == "line 0099"
    assert len(LogReader(log).read()) < 12
