"""Words and commands made from chosen components."""

from __future__ import annotations

import shlex
from pathlib import Path

from backend.catalog.entries import CatalogEntry
from backend.catalog.kinds import KINDS
from backend.io.result_paths import ResultPaths
from backend.rollouts.run_entry import DONE, RunEntry
from screens.catalog.picks import equal_command, picked, run_command, was_used


def entry(kind: str, name: str, *, flag: str | None = "", selector: str = "") -> CatalogEntry:
    path = Path("/c")
    return CatalogEntry(kind, name, path, path, path, KINDS[kind].flag if flag == "" else flag, selector or name)


QUIZ = entry("benchmark", "quiz")
MODEL = entry("model", "vllm_model")


def test_picks_keep_their_order_and_a_command_takes_one_model() -> None:
    picks = picked([MODEL, QUIZ, entry("model", "openai_model"), entry("agent", "bare", flag=None)])
    assert picks.words == ("--model-type", "vllm_model", "--benchmark", "quiz")
    assert picks.remarks == ("a command takes one --model-type: openai_model is left out", "bare has no configuration to load")


def test_a_run_of_a_workload_gets_an_output_that_is_free() -> None:
    taken = {"results/quiz.jsonl", "results/quiz-2.jsonl"}
    assert run_command(picked([QUIZ]), lambda path: False) == "eval run --benchmark quiz --output results/quiz.jsonl"
    assert run_command(picked([QUIZ, MODEL]), taken.__contains__) == (
        "eval run --benchmark quiz --model-type vllm_model --output results/quiz-3.jsonl"
    )


def test_without_a_workload_it_is_asked_for() -> None:
    assert run_command(picked([MODEL]), lambda path: False) == "eval run --model-type vllm_model --benchmark "


def test_odd_names_are_quoted_and_stay_inside_the_folder() -> None:
    odd = entry("benchmark", "a b/../$(x)")
    words = shlex.split(run_command(picked([odd]), lambda path: False))
    assert words[:4] == ["eval", "run", "--benchmark", "a b/../$(x)"]
    assert words[-1].count("/") == 1 and words[-1].startswith("results/a-b")


def test_the_equal_command() -> None:
    assert equal_command(QUIZ, None, ()) == "gym list benchmarks quiz"
    assert equal_command(None, None, ("two", "words")) == "gym search 'two words'"
    assert equal_command(None, "model", ("x",)) == "gym search models x"
    assert equal_command(None, "resources-server", ()) == "gym list resources-servers"


def test_runs_that_used_a_component() -> None:
    def run(*words: str) -> RunEntry:
        return RunEntry(ResultPaths(Path("m.jsonl")), "m", DONE, command=("gym", "eval", "run", *words))

    assert was_used(QUIZ, run("--benchmark", "quiz"))
    assert was_used(QUIZ, run("--benchmark=quiz", "-o", "x"))
    assert not was_used(QUIZ, run("--environment", "quiz"))
    assert not was_used(QUIZ, run("--benchmark", "quizzes"))
    assert not was_used(entry("agent", "a", flag=None), run("--agent-type", "a"))
