"""The plan of a run that is asked to resume: what is there, whether it was made with the same settings, what is left.

The materialized inputs decide which rows there are. The data sets and the input file of the command are not read again, but for the
digest that tells whether the input has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from backend.config.resolution import ResolvedConfig
from backend.errors import GymError, name_some
from backend.io.jsonl import read_jsonl
from backend.io.result_paths import ResultPaths
from backend.io.roots import resolve_path
from backend.rollouts.agent_routing import check_agents, check_pairings
from backend.rollouts.expansion_options import expansion_options
from backend.rollouts.options import RunOptions
from backend.rollouts.plan import RunPlan, plan_run
from backend.rollouts.resume import (
    ATTEMPTS_VARIABLE,
    PARAMS,
    EarlierWork,
    GivenUp,
    attempts_allowed,
    read_earlier_work,
    why_from_the_beginning,
)
from backend.rollouts.run_folder import file_digest
from backend.rollouts.run_settings import SettingChange, changed_settings, run_settings

INPUT_CHANGED = "content of the input (SHA-256)"
PLAN_CHANGED = "content of the materialized inputs (SHA-256)"
_MOST_CHANGES = 20
_DIGEST_SHOWN = 12
_FIXED = (
    "split",
    "limit",
    "num_repeats",
    "prompt_config",
    "agent_map",
    "fan_out",
    "skills_ref",
    INPUT_CHANGED,
    PLAN_CHANGED,
)
"""Settings, and beginnings of them, that the materialized rows have settled."""


def plan_resumed_run(
    resolved: ResolvedConfig, config: Mapping[str, Any], options: RunOptions, paths: ResultPaths, record: Mapping[str, Any]
) -> RunPlan:
    """The plan that goes on with the files in `paths`, or, when there are none, a fresh plan that remarks so.

    `record` is what the earlier run wrote of itself, empty when that is unknown. Raises `GymError` for files that do not belong
    together, and for settings that have changed unless the options accept that. Touches nothing.
    """
    reason = why_from_the_beginning(paths)
    if reason is not None:
        plan = plan_run(resolved, config, options, paths)
        return replace(plan, remarks=(reason,))
    allowed, warning = attempts_allowed()
    shaping = expansion_options(resolved.tree, resolved.roots)
    earlier = read_earlier_work(paths, allowed, shaping.params)
    check_agents(earlier.planned, config)
    check_pairings(earlier.routes, config)
    settings = resolved.redactor.tree(run_settings(shaping, config, options.split if options.serve else None))
    inputs = None if options.serve else resolve_path(str(options.input), resolved.roots)
    digest = file_digest(inputs) if inputs is not None and inputs.is_file() else None
    changes = list(_changes(settings, shaping.params, digest, options, paths, record))
    if changes and not options.accept_changed_settings:
        raise _refusal(changes, paths)
    warnings = [warning] if warning else []
    if not isinstance(record.get("settings"), Mapping):
        warnings.append(f"{paths.run_record} does not tell the settings of the earlier run: nobody checks whether they changed")
    if inputs is not None and digest is None:
        warnings.append(f"the input {inputs} is not there any more; the rows are those of {paths.materialized_inputs}")
    warnings += _about_changes(changes, paths)
    warnings += _about_files(earlier, paths)
    warnings += _about_given_up(earlier, paths, allowed)
    accepted = [*(record.get("accepted_changes") or ()), *(asdict(change) for change in changes)]
    return RunPlan(
        options=options,
        paths=paths,
        inputs=paths.materialized_inputs,
        planned=earlier.planned,
        settings=settings,
        earlier=earlier,
        facts={
            "inputs": record.get("inputs") or (str(inputs) if inputs is not None else None),
            "inputs_sha256": digest or record.get("inputs_sha256"),
            **({"accepted_changes": accepted} if accepted else {}),
        },
        remarks=_remarks(earlier),
        warnings=tuple(warnings),
    )


def _changes(
    settings: Mapping[str, Any],
    params: Mapping[str, Any],
    digest: str | None,
    options: RunOptions,
    paths: ResultPaths,
    record: Mapping[str, Any],
) -> Iterator[SettingChange]:
    before = record.get("settings")
    if isinstance(before, Mapping):
        if record.get("serve") != options.serve:  # only runs that start their servers have a split
            before, settings = ({**tree, "split": None} for tree in (before, settings))
        yield from changed_settings(before, settings)
    else:
        yield from _unlike_rows(paths.materialized_inputs, params)
    known = record.get("inputs_sha256")
    if digest is not None and known is not None and not record.get("serve") and digest != known:
        yield SettingChange(INPUT_CHANGED, str(known)[:_DIGEST_SHOWN], digest[:_DIGEST_SHOWN])
    known = record.get("plan_sha256")
    if known is not None and (now := file_digest(paths.materialized_inputs)) != known:
        yield SettingChange(PLAN_CHANGED, str(known)[:_DIGEST_SHOWN], now[:_DIGEST_SHOWN])


def _unlike_rows(materialized: Path, params: Mapping[str, Any]) -> Iterator[SettingChange]:
    """The sampling settings that the first row which is unlike them has; for runs that kept no settings."""
    for line in read_jsonl(materialized) if params else ():
        row = line.value[PARAMS]
        changes = [SettingChange(f"{PARAMS}.{key}", row.get(key), value) for key, value in params.items()]
        if changes := [change for change in changes if change.before != change.now]:
            yield from changes
            return


def _refusal(changes: Sequence[SettingChange], paths: ResultPaths) -> GymError:
    more = [f"… and {len(changes) - _MOST_CHANGES} more"] if len(changes) > _MOST_CHANGES else []
    return GymError(
        f"{len(changes)} setting(s) are not those that the rollouts in {paths.rollouts} were made with",
        details=[*(f"  {change}" for change in changes[:_MOST_CHANGES]), *more],
        hint="resume with the settings of the earlier run, choose another --output, or add --accept-changed-settings "
        "to run the rest with the model and sampling of now; the mixture is recorded",
    )


def _remarks(earlier: EarlierWork) -> tuple[str, ...]:
    tally = earlier.tally
    retries = f" ({earlier.retries} again after a failure)" if earlier.retries else ""
    given_up = f", {tally.failed} given up" if tally.failed else ""
    summary = f"Resuming: {tally.scored} of {tally.total} rollouts are finished{given_up}, {earlier.left} to run{retries}"
    return (summary,) if earlier.left else (summary, "Nothing is left to be run; the metrics are computed again")


def _about_changes(changes: Sequence[SettingChange], paths: ResultPaths) -> Iterator[str]:
    idle = [
        change
        for change in changes
        if change.setting.startswith(_FIXED) or (change.setting.startswith(PARAMS) and change.now is None)
    ]
    used = [change for change in changes if change not in idle]
    if used:
        yield f"the rollouts to come are made with other settings than those of before: {'; '.join(map(str, used))}"
    if idle:
        yield f"no effect on the rows, which stay those of {paths.materialized_inputs}: {'; '.join(map(str, idle))}"


def _about_files(earlier: EarlierWork, paths: ResultPaths) -> Iterator[str]:
    if earlier.duplicates:
        keys = [f"task {task} rollout {rollout}" for task, rollout in earlier.duplicates]
        yield f"{paths.rollouts} has more than one record of some rollouts; the newest of each counts: {name_some(keys)}"


def _about_given_up(earlier: EarlierWork, paths: ResultPaths, allowed: int) -> Iterator[str]:
    count = earlier.tally.failed
    if not count:
        return
    yield f"{count} rollout(s) are not attempted any more:"
    for rollout in earlier.given_up:
        yield f"  {_described(rollout)}"
    if count > len(earlier.given_up):
        yield f"  … and {count - len(earlier.given_up)} more"
    yield (
        f"to attempt them again, set {ATTEMPTS_VARIABLE} above {allowed}; for those that failed for good, "
        f"remove their lines from {paths.failures}"
    )


def _described(rollout: GivenUp) -> str:
    times = "1 attempt" if rollout.attempts == 1 else f"{rollout.attempts} attempts"
    end = " (for good)" if rollout.terminal else ""
    reason = f": {rollout.reason}" if rollout.reason else ""
    return f"task {rollout.task} rollout {rollout.rollout}: {rollout.failure} after {times}{end}{reason}"
