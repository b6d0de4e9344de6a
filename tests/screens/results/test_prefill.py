"""Command lines made from a run's command."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.io.redact import MASK
from backend.io.result_paths import ResultPaths
from backend.rollouts.run_entry import RunEntry
from screens.results.prefill import go_on, run_again, typed_resume_command

GONE = "/gone/else where"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, cwd: str | None = None, resume: bool = False) -> RunEntry:
    command = ("gym", "eval", "run", *words)
    cwd = cwd or str(Path.cwd())
    return RunEntry(
        ResultPaths(Path(cwd, "out/m.jsonl")), "m", "stopped", command=command, cwd=cwd,
        resume_command=(*command, "--resume") if resume else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--benchmark", "b", "--output", "out/m.jsonl"], "eval run --benchmark b --output out/m-2.jsonl"),
        (["-o", "out/m-9.jsonl", "--limit", "3"], "eval run -o out/m-10.jsonl --limit 3"),
        (["--output=out/m.jsonl"], "eval run --output=out/m-2.jsonl"),
        (["++output_jsonl_fpath=out/m.jsonl"], "eval run ++output_jsonl_fpath=out/m-2.jsonl"),
        (["-o", "m.jsonl", "--resume", "--accept-changed-settings", "+resume_from_cache=true"], "eval run -o m-2.jsonl"),
        (["-o", "m.jsonl", "--model", "two words"], "eval run -o m-2.jsonl --model 'two words'"),
        ([], "eval run"),
    ],
)
def test_the_same_command_again_has_another_output(words: list[str], expected: str) -> None:
    prefill = run_again(run(*words), lambda _path: False)
    assert prefill.text == expected
    assert prefill.remarks == () and prefill.folder == str(Path.cwd())


def test_outputs_that_are_taken_are_passed_over(here: Path) -> None:
    taken = {f"{here}/out/m-2.jsonl", f"{here}/out/m-3.jsonl"}
    assert run_again(run("-o", "out/m.jsonl"), taken.__contains__).text == "eval run -o out/m-4.jsonl"


def test_masked_words_and_their_options_are_left_out_and_that_is_said() -> None:
    prefill = run_again(
        run("--model-api-key", MASK, f"++policy_api_key={MASK}", "-o", "m.jsonl", f"--model-url=http://u:{MASK}@h"),
        lambda _path: False,
    )
    assert prefill.text == "eval run -o m-2.jsonl"
    assert "env.yaml" in prefill.remarks[0]


def test_a_run_from_another_folder_is_started_there(here: Path) -> None:
    other = here / "other"
    other.mkdir()
    again = run_again(run("-o", "out/m.jsonl", "--input", "in.jsonl", cwd=str(other)), lambda _path: False)
    assert again.text == "eval run -o out/m-2.jsonl --input in.jsonl"
    assert again.folder == str(other) and again.remarks == ()
    on = go_on(run("-o", "out/m.jsonl", cwd=str(other), resume=True))
    assert on is not None and on.text == "eval run -o out/m.jsonl --resume" and on.folder == str(other)


def test_a_run_from_a_folder_that_is_not_there_gets_a_full_output_and_a_remark() -> None:
    again = run_again(run("-o", "out/m.jsonl", cwd=GONE), lambda _path: False)
    assert again.text == "eval run -o '/gone/else where/out/m-2.jsonl'"
    assert again.folder is None and GONE in again.remarks[0]
    on = go_on(run("-o", "elsewhere.jsonl", cwd=GONE, resume=True))
    assert on is not None and on.text == "eval run -o '/gone/else where/out/m.jsonl' --resume"


def test_going_on(here: Path) -> None:
    assert go_on(run("-o", "out/m.jsonl")) is None
    same = go_on(run("-o", "out/m.jsonl", resume=True))
    assert same is not None and same.text == "eval run -o out/m.jsonl --resume"
    assert same.folder == str(here) and same.remarks == ()
    typed = typed_resume_command(run("-o", "m.jsonl", cwd="/else where", resume=True))
    assert typed == "cd '/else where' && gym eval run -o m.jsonl --resume"


def test_a_run_without_a_command_gives_a_beginning() -> None:
    bare = RunEntry(ResultPaths(Path("/r/m.jsonl")), "m", "no record")
    assert run_again(bare, lambda _path: False).text == "eval run "
    assert typed_resume_command(bare) == ""
