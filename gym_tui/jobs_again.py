"""What `R` on a job does: the same command again, but not over the results that an earlier run has left."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection
from pathlib import Path

from backend.io.result_paths import ResultPaths
from backend.rollouts.run_entry import DONE, RunEntry, read_run
from backend.rollouts.run_record import resumed
from gym_tui.jobs import Job
from screens.results.prefill import Prefill, go_on, run_again

_EVALUATION = ("eval", "run")


def proposal(job: Job, being_written: Collection[Path] = ()) -> Prefill | None:
    """A command line to be confirmed instead of starting the job's command once more; None when that replaces nothing.

    A run that ended before its time is gone on with, any other gets an output that is free. `being_written` are the outputs of jobs
    that run, which need not be on the disk yet.
    """
    if job.words[:2] != _EVALUATION or "--resume" in job.words:
        return None
    if job.output is None:
        remark = "the output is named in the configuration: results that are there are replaced"
        return Prefill(shlex.join(job.words), str(job.folder), (remark,))
    paths = ResultPaths(job.output)
    if job.output not in being_written and not _holds_results(paths):
        return None
    command = ("gym", *job.words)
    run = read_run(paths)
    if run.state != DONE and resumed(run.command)[1:] == resumed(command)[1:]:
        going_on = go_on(run)
        if going_on is not None:
            return going_on

    def is_taken(name: str) -> bool:
        output = job.folder / os.path.expanduser(name.removeprefix(f"{job.folder}/"))
        other = ResultPaths(output)
        return output in being_written or _holds_results(other) or other.run_folder.exists()

    return run_again(RunEntry(paths, run.name, run.state, command=command, cwd=str(job.folder)), is_taken)


def _holds_results(paths: ResultPaths) -> bool:
    return paths.rollouts.exists() or paths.failures.exists()
