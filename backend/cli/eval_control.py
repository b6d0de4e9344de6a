"""`gym eval control RUN {drain,cancel}`."""

from __future__ import annotations

from pathlib import Path

from backend.cli.console import print_json, say, warn
from backend.cli.parser import Parsed
from backend.errors import ExitCode, UsageError
from backend.io.result_paths import ResultPaths
from backend.rollouts.run_control_file import ControlOutcome, steer_run
from backend.rollouts.run_list import locate_run

_MEANINGS = {
    "drain": "it sends nothing more; what is in flight may finish",
    "cancel": "it gives up what is in flight",
}


def run(parsed: Parsed) -> int:
    """Ask a run to come to an end; 0 when the request is where the run will see it."""
    if parsed.overrides:
        raise UsageError(f"this command takes no overrides: {parsed.overrides[0]}")
    outcome = steer_run(_paths(parsed.values["run"]), parsed.values["action"])
    if parsed.json:
        print_json(
            {
                "rollouts": str(outcome.rollouts),
                "action": outcome.action,
                "by": outcome.by,
                "acknowledged": outcome.acknowledged,
                "ended": outcome.ended,
            }
        )
    else:
        _tell(outcome)
    return ExitCode.OK


def _paths(run: str) -> ResultPaths:
    """The files of the run; a first run that is still starting its servers has nothing there but its lock."""
    paths = ResultPaths(Path(run))
    return paths if paths.lock.exists() else locate_run(run)


def _tell(outcome: ControlOutcome) -> None:
    if outcome.acknowledged:
        say(f"The run of {outcome.rollouts} has acknowledged: {_MEANINGS[outcome.action]}.")
    elif outcome.ended:
        say(f"The run of {outcome.rollouts} has ended.")
    else:
        warn(f"the run of {outcome.rollouts} has not acknowledged yet; it acts as soon as it looks at its control file")
