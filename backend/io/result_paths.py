"""The one place where the name of a run's output becomes the names of all its files.

Importable by existing code as `nemo_gym.path_utils`, whose documented function is `failures_path_for`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

RUN_FOLDER_SUFFIX = "_run"


@dataclass(frozen=True, slots=True)
class ResultPaths:
    """The files of one run, derived from the rollouts file that `--output` names."""

    rollouts: Path

    @property
    def folder(self) -> Path:
        return self.rollouts.parent

    @property
    def materialized_inputs(self) -> Path:
        """The expanded rows, in input order; always `.jsonl`."""
        return self.rollouts.with_name(f"{self.rollouts.stem}_materialized_inputs.jsonl")

    @property
    def failures(self) -> Path:
        """One line per failed attempt; always `.jsonl`."""
        return failures_path_for(self.rollouts)

    @property
    def aggregate_metrics(self) -> Path:
        return self.rollouts.with_name(f"{self.rollouts.stem}_aggregate_metrics.json")

    @property
    def run_folder(self) -> Path:
        """A folder and not a file, so that nobody's `*.jsonl` pattern picks it up."""
        return self.rollouts.with_name(f"{self.rollouts.stem}{RUN_FOLDER_SUFFIX}")

    @property
    def run_record(self) -> Path:
        return self.run_folder / "run.json"

    @property
    def events(self) -> Path:
        return self.run_folder / "events.ndjson"

    @property
    def control(self) -> Path:
        """Where requests to the running run are appended; there only while somebody has asked for something."""
        return self.run_folder / "control"

    @property
    def lock(self) -> Path:
        """Locked for as long as a run writes."""
        return self.run_folder / "lock"

    @property
    def logs(self) -> Path:
        return self.run_folder / "logs"

    def prepared_dataset(self, split: str) -> Path:
        """Where the preparation step of a serving run puts the rows of `split`."""
        return self.rollouts.with_suffix("") / "preprocessed_datasets" / f"{split}.jsonl"


def failures_path_for(output_fpath: Path) -> Path:
    """The sidecar of failed attempts that belongs to a rollouts file."""
    return output_fpath.with_name(f"{output_fpath.stem}_failures.jsonl")
