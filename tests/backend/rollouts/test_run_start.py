"""What is on disk while a run begins, at whatever moment it is cut off."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.io.redact import Redactor
from backend.io.result_paths import ResultPaths
from backend.rollouts.expansion import plan_expansion
from backend.rollouts.expansion_options import ExpansionOptions
from backend.rollouts.input_rows import file_rows
from backend.rollouts.options import RunOptions
from backend.rollouts.plan import RunPlan
from backend.rollouts.resume import why_from_the_beginning
from backend.rollouts.run_folder import RunFolder
from backend.rollouts.run_start import begin_run


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    paths = ResultPaths(tmp_path / "r.jsonl")
    with RunFolder(paths, ["gym"], Redactor()) as folder:
        yield folder


def fresh_plan(paths: ResultPaths) -> RunPlan:
    inputs = paths.folder / "tasks.jsonl"
    inputs.write_text('{"responses_create_params": {"input": "new"}, "agent_ref": {"name": "a"}}\n')
    expansion = plan_expansion(file_rows(inputs, ()), ExpansionOptions())
    return RunPlan(RunOptions(paths.rollouts, serve=False), paths, inputs, {"a": 1}, {"limit": 1}, expansion)


def leave_results(paths: ResultPaths) -> None:
    for path in (paths.materialized_inputs, paths.rollouts, paths.failures, paths.aggregate_metrics):
        path.write_text('{"of": "an earlier run"}\n')


def test_a_fresh_run_replaces_everything(folder: RunFolder) -> None:
    paths = folder.paths
    leave_results(paths)
    assert begin_run(fresh_plan(paths), folder, {"key": "value"}) == ()
    assert [path.exists() for path in (paths.rollouts, paths.failures, paths.aggregate_metrics)] == [False, False, False]
    assert json.loads(paths.materialized_inputs.read_text())["responses_create_params"] == {"input": "new"}
    record = folder.earlier_record()
    assert (record["state"], record["settings"], record["rollouts"]) == ("running", {"limit": 1}, 1)


@pytest.mark.parametrize("function", ["replace", "unlink"])
def test_results_never_lie_beside_rows_of_another_run(folder: RunFolder, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """Whichever step is the last one done, resuming finds nothing that would be mixed."""
    paths = folder.paths
    plan = fresh_plan(paths)
    real: Any = getattr(os, function)
    for steps in range(4):
        leave_results(paths)
        done = 0

        def counted(*arguments: Any, allowed: int = steps, **options: Any) -> Any:
            nonlocal done
            if done == allowed:
                raise Killed
            done += 1
            return real(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, function, counted)
            try:
                begin_run(plan, folder, {})
            except Killed:
                pass
        if "earlier run" not in paths.materialized_inputs.read_text():
            assert not paths.rollouts.exists()
            assert why_from_the_beginning(paths) is not None
