"""A run, checked before anything is touched: what is read, what is written, which agent runs what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config.resolution import ResolvedConfig
from backend.datasets.preparation import declared_datasets, prepare_split
from backend.errors import GymError, UsageError
from backend.io.result_paths import ResultPaths
from backend.io.roots import resolve_path
from backend.rollouts.agent_routing import check_agents, check_pairings, resolve_sources
from backend.rollouts.expansion import ExpansionPlan, plan_expansion
from backend.rollouts.expansion_options import expansion_options
from backend.rollouts.input_rows import file_rows
from backend.rollouts.options import RunOptions
from backend.rollouts.resume import EarlierWork
from backend.rollouts.run_settings import run_settings


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A checked run: nothing is left that could be wrong but the world."""

    options: RunOptions
    paths: ResultPaths
    inputs: Path
    """The file that the rows come from."""
    planned: Mapping[str, int]
    """Rollouts by agent."""
    settings: Mapping[str, Any]
    """What decides the rollouts; see `run_settings`."""
    expansion: ExpansionPlan | None = None
    """How the inputs become rows; None for a resumed run, whose rows are there already."""
    agents_of_sources: Mapping[str, str] = field(default_factory=dict)
    earlier: EarlierWork | None = None
    """What a resumed run goes on with."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further facts for the run's record."""
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def rollouts(self) -> int:
        """All rollouts of the run, those of earlier sessions included."""
        return sum(self.planned.values())

    @property
    def left(self) -> int:
        """How many rollouts there are still to be run."""
        return self.rollouts if self.earlier is None else self.earlier.left


def plan_run(resolved: ResolvedConfig, config: Mapping[str, Any], options: RunOptions, paths: ResultPaths) -> RunPlan:
    """Check data, agents and pairings of a run against `config`, the configuration that its servers have.

    Writes only the prepared data of a serving run, beside the output. Raises `GymError` for whatever is wrong.
    """
    settings = expansion_options(resolved.tree, resolved.roots)
    warnings: tuple[str, ...] = ()
    repeats = 0
    if options.serve:
        split = str(options.split)
        prepared = prepare_split(declared_datasets(config, split), split, paths, resolved.roots)
        warnings, inputs, repeats = prepared.warnings, prepared.path, prepared.repeats(settings.limit)
    else:
        inputs = resolve_path(str(options.input), resolved.roots)
        _refuse_to_replace(inputs, paths)
    expansion = plan_expansion(file_rows(inputs.absolute(), ()), settings)
    equal_rows = expansion.duplicate_rows - repeats  # a declared data set may write its rows several times on purpose
    if equal_rows > 0:
        warnings += (f"{equal_rows} row(s) of {inputs} equal an earlier one and count as further repeats of its task",)
    if expansion.baked_rows:
        warnings += (
            f"{expansion.baked_rows} row(s) are routed by an agent_ref of their own, which is deprecated: use --agent or a task_source",
        )
    if not expansion.rollouts:
        raise GymError(f"the input {inputs} has no rows", hint="give it at least one JSON object")
    agents_of_sources = resolve_sources([str(source) for agent, source in expansion.planned if agent is None], config)
    planned: Counter[str] = Counter()
    pairs = []
    for (agent, task_source), count in expansion.planned.items():
        name = agent if agent is not None else agents_of_sources[str(task_source)]
        planned[name] += count
        pairs.append((name, task_source))
    check_agents(planned, config)
    check_pairings(pairs, config)
    return RunPlan(
        options=options,
        paths=paths,
        inputs=inputs,
        planned=planned,
        settings=run_settings(settings, config, options.split if options.serve else None),
        expansion=expansion,
        agents_of_sources=agents_of_sources,
        warnings=(*warnings, *expansion.warnings),
    )


def _refuse_to_replace(inputs: Path, paths: ResultPaths) -> None:
    """A run replaces its result files; its own input must not be one of them."""
    replaced = (paths.rollouts, paths.failures, paths.materialized_inputs, paths.aggregate_metrics)
    if inputs.resolve() in [path.resolve() for path in replaced]:
        raise UsageError(f"the input {inputs} is a file that this run would replace", hint="choose another --output")
