"""Files of rollouts that are not there: not yet, or not any more."""

from __future__ import annotations

from pathlib import Path

from backend.errors import GymError
from backend.io.result_paths import ResultPaths
from backend.rollouts.run_entry import DIED, DONE, FAILED, STOPPED, read_run
from screens.widgets.formatting import count

_ENDS = {DONE: "the run is done", STOPPED: "the run was stopped", FAILED: "the run failed", DIED: "the run died"}


class NotThere(GymError):
    """A path at which there is nothing that could be opened."""

    def __init__(self, path: Path, error: GymError) -> None:
        super().__init__(error.message, hint=error.hint, place=error.place)
        self.awaited = path
        """What can be waited for."""


class NoRolloutYet(GymError):
    """A run whose file of rollouts is not there: it has not come so far, never will, or somebody has taken the file away."""

    def __init__(self, paths: ResultPaths) -> None:
        run = read_run(paths)
        failed = ", only failed attempts" if _has_bytes(paths.failures) else ""
        end = _ENDS.get(run.state)
        super().__init__(f"{end} without a rollout{failed}" if end else f"no rollout yet{failed}")
        self.rollouts = paths.rollouts
        self.is_over = end is not None
        self.is_lost = bool(run.scored)
        """Whether the run is known to have written rollouts."""
        self.reason = run.error or ""
        """Why the run ended, if it said so."""
        scored = f"{count(run.scored)} rollout{'' if run.scored == 1 else 's'}" if run.scored else "rollouts"
        self.what_was = f"{end or 'the run goes on'}; it had written {scored}"
        """What is known of a lost file."""


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
