"""The moment at which a run begins: the files of an earlier one go, or are made ready to be gone on with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.io.files import replacing
from backend.io.json_codec import dumps
from backend.io.jsonl import heal
from backend.rollouts.expansion import ExpansionPlan
from backend.rollouts.plan import RunPlan
from backend.rollouts.resume import EarlierWork
from backend.rollouts.run_folder import RunFolder, file_digest
from backend.servers.rollout_correlation import maybe_rollout_id_from_run_body

if TYPE_CHECKING:
    from backend.rollouts.token_delivery import TokenDelivery
    from backend.servers.model_call_capture import CaptureStore
    from backend.servers.token_id_capture.store import TokenCaptureStore


def begin_run(
    plan: RunPlan, folder: RunFolder, config: Mapping[str, Any], origins: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Write the beginnings of a run and its record; returns warnings.

    `config` is what the servers run with; that is what the run's record keeps, with `origins`: who set its values, by dotted key.
    """
    facts: dict[str, Any] = {"serve": plan.options.serve, **({"origins": origins} if origins else {})}
    warnings: tuple[str, ...] = ()
    if plan.earlier is not None:
        warnings = _go_on(plan, plan.earlier, config)
    else:
        assert plan.expansion is not None
        facts |= {"inputs": str(plan.inputs), "inputs_sha256": file_digest(plan.inputs)}
        _begin_afresh(plan, plan.expansion, config)
    facts |= {
        "plan_sha256": file_digest(plan.paths.materialized_inputs),
        "rollouts": plan.rollouts,
        "agents": dict(plan.planned),
        "settings": plan.settings,
        **plan.facts,
    }
    folder.begin(config, facts, resumed=plan.earlier is not None)
    return warnings


def _begin_afresh(plan: RunPlan, expansion: ExpansionPlan, config: Mapping[str, Any]) -> None:
    """Replace what an earlier run left.

    The new rows are written before the old results go, and take their place after that: whenever the program is killed, there are
    no results beside rows that they do not belong to.
    """
    paths = plan.paths
    captures = EarlierCaptures(config)
    with replacing(paths.materialized_inputs.absolute()) as file:
        for row in expansion.rows(plan.agents_of_sources):
            file.write(dumps(row) + b"\n")
            captures.forget(row)
        for old in (paths.rollouts, paths.failures, paths.aggregate_metrics):
            old.unlink(missing_ok=True)


def _go_on(plan: RunPlan, earlier: EarlierWork, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Make the files of an earlier run ready to be appended to."""
    paths = plan.paths
    torn = [path for path in (paths.rollouts, paths.failures) if heal(path)]
    if earlier.left:
        paths.aggregate_metrics.unlink(missing_ok=True)  # of fewer rollouts than there will be
        captures = EarlierCaptures(config)
        if captures.are_kept:
            for line in earlier.rows_left():
                captures.forget(line.value)
    return tuple(
        f"the last line of {path} was cut off; it is kept in {path.name}.torn, and its rollout runs again" for path in torn
    )


def capture_folder(config: Mapping[str, Any]) -> Path | None:
    """Where the model servers of a configuration record the calls of rollouts; None when they do not."""
    folder = config.get("model_call_capture_dir")
    return Path(str(folder)) if folder and config.get("observability_enabled") is True else None


def token_delivery(config: Mapping[str, Any]) -> TokenDelivery | None:
    """What puts the tokens of model calls into records; None when they are not captured, or when somebody else takes them.

    Raises `GymError` for settings that cannot be used.
    """
    if not _captures_tokens(config):
        return None
    from backend.rollouts.token_delivery import make_token_delivery  # not at the top: see `_capture_store`

    return make_token_delivery(config)


class EarlierCaptures:
    """The recorded model calls of rollouts that are about to run; does nothing when none are recorded."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        folder = capture_folder(config)
        self._calls = None if folder is None else _capture_store(folder)
        self._tokens = _token_store(config) if _captures_tokens(config) else None
        self._with_tokens = frozenset() if self._tokens is None else self._tokens.rollout_ids()
        self.are_kept = self._calls is not None or bool(self._with_tokens)
        """Whether there can be any."""

    def forget(self, row: Mapping[str, Any]) -> None:
        """Delete what an earlier attempt under the same id left."""
        rollout_id = maybe_rollout_id_from_run_body(row) if self.are_kept else None
        if rollout_id is None:
            return
        if self._calls is not None:
            self._calls.delete(rollout_id)
        if self._tokens is not None and rollout_id in self._with_tokens:
            self._tokens.delete(rollout_id)


def _captures_tokens(config: Mapping[str, Any]) -> bool:
    block = config.get("token_id_capture")
    return isinstance(block, Mapping) and block.get("enabled") is True


def _capture_store(folder: Path) -> CaptureStore:
    from backend.servers.model_call_capture import CaptureStore  # not at the top: it loads pydantic, and few runs record calls

    return CaptureStore(folder)


def _token_store(config: Mapping[str, Any]) -> TokenCaptureStore | None:
    from backend.servers.token_id_capture.config import make_token_store  # as above

    return make_token_store(config)
