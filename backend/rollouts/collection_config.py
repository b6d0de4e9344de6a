"""The typed settings of collections that other programs start, one field for each configuration key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from backend.io.result_paths import ResultPaths

_AtLeastOne = Annotated[int, Field(ge=1)]


class SharedRolloutCollectionConfig(BaseModel):
    """What a collection does, wherever its rows come from. Keys that it does not know are for the servers and ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    output_jsonl_fpath: str
    num_samples_in_parallel: int | None = None
    """Most rollouts in flight; null or 0 is as many as there are."""
    responses_create_params: dict[str, Any] = Field(default_factory=dict)
    disable_aggregation: bool = False
    resume_from_cache: bool = False
    count_failure_classes_as_zero: list[str] = Field(default_factory=list)
    upload_rollouts: bool = Field(default=True, validation_alias=AliasChoices("upload_rollouts", "upload_rollouts_to_wandb"))
    """For trackers; what is written locally does not depend on it."""

    @property
    def paths(self) -> ResultPaths:
        """All files of the run."""
        return ResultPaths(Path(self.output_jsonl_fpath))

    @property
    def materialized_jsonl_fpath(self) -> Path:
        """Where the expanded rows go."""
        return self.paths.materialized_inputs


class RolloutCollectionConfig(SharedRolloutCollectionConfig):
    """A collection of the rows of one file."""

    input_jsonl_fpath: str
    limit: int | None = None
    num_repeats: _AtLeastOne | dict[str, _AtLeastOne] | None = 1
    num_repeats_add_seed: bool = False
    prompt_config: str | None = None
    agent_name: str | None = None
    agent_map: dict[str, str] | None = None
    fan_out: dict[str, list[str]] | None = None
    skills: dict[str, Any] | None = None
    """`path` is a folder of skills."""


class E2ERolloutCollectionConfig(SharedRolloutCollectionConfig):
    """A collection that starts its servers itself, over the rows of a declared split."""

    split: Literal["train", "validation", "benchmark"]
    reuse_existing_data_preparation: bool = False
