"""The operation behind `gym eval run`: plan, start servers where asked to, collect, aggregate, tell the result.

Everything that can be wrong is checked before anything of an earlier run is touched.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_config
from backend.config.schema import AGENTS, MODELS
from backend.datasets.server_blocks import server_blocks
from backend.errors import GymError
from backend.events import Event, Notice
from backend.io.files import replacing
from backend.io.json_codec import dumps
from backend.io.jsonl import read_jsonl
from backend.io.redact import Redactor, mask_command
from backend.io.result_paths import ResultPaths
from backend.io.row_keys import AGENT_REF, ROLLOUT, TASK
from backend.rollouts.aggregation import aggregate
from backend.rollouts.collection import CollectionJob, Collector, explain_nothing_scored, in_flight_limit
from backend.rollouts.control import RunControl
from backend.rollouts.failures import failures_as_zero
from backend.rollouts.options import run_options
from backend.rollouts.plan import RunPlan, plan_run
from backend.rollouts.run_events import MetricsWritten, RunPlanned
from backend.rollouts.run_folder import RunFolder, file_digest
from backend.rollouts.summary import run_summary
from backend.rollouts.tally import Tally
from backend.servers.addresses import server_url
from backend.servers.head_client import fetch_live_config
from backend.servers.http_client import client_settings, close_http_session, configure_http_client
from backend.servers.model_call_capture import CaptureStore
from backend.servers.model_endpoints import endpoint_wait_seconds, model_endpoints, wait_for_endpoints
from backend.servers.rollout_correlation import maybe_rollout_id_from_run_body
from backend.servers.server_output import OutputSink
from backend.servers.supervisor import ServerDied, Stack, StackOptions
from backend.servers.warm_parent_link import WarmParentLink


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """Evaluate by a configuration.

    `observe` records every model call below the run folder. `command` is what the run record shows as typed.
    """

    config: ConfigRequest
    observe: bool = False
    events_file: Path | None = None
    command: tuple[str, ...] = ()
    control: RunControl = field(default_factory=RunControl)
    on_output: OutputSink | None = None
    """Gets every line that a server prints."""


async def evaluate(request: EvaluationRequest, link: WarmParentLink | None) -> AsyncGenerator[Event, None]:
    """Run an evaluation; the last event is `RunSummary`. `link` starts the servers; without it those that run are used.

    Raises `GymError` for whatever is wrong, also when no rollout at all could be scored. Closing the generator ends every process
    and keeps every finished rollout.
    """
    serve = link is not None
    redactor = Redactor()
    try:
        resolved = resolve_config(request.config)
        redactor = resolved.redactor
        options = run_options(resolved.tree, serve=serve)
        paths = ResultPaths(options.output)
        resolved = _observing(resolved, paths) if request.observe else resolved
        config = resolved.tree if serve else _live_config(resolved, observe=request.observe)
        with RunFolder(paths, mask_command(request.command, redactor), redactor, request.events_file) as folder:
            plan = plan_run(resolved, config, options, paths)
            for text in (*resolved.warnings, *plan.warnings):
                yield folder.said(Notice(redactor.text(text), "warning"))
            run = _Run(request, resolved, plan, folder)
            try:
                async with aclosing(run.events(link, config)) as events:
                    async for event in events:
                        yield folder.said(event)
            except ServerDied as error:
                if run.tally is not None and run.tally.scored:
                    error.details += (f"{run.tally.scored} finished rollouts are safe in {paths.rollouts}",)
                raise
    except GymError as error:
        raise error.masked(redactor.text) from None
    finally:
        if link is not None:
            link.close()
        await close_http_session()


def _observing(resolved: ResolvedConfig, paths: ResultPaths) -> ResolvedConfig:
    """The configuration with model calls recorded, below the run folder unless a folder is configured."""
    tree = dict(resolved.tree)
    tree["observability_enabled"] = True
    if not tree.get("model_call_capture_dir"):
        tree["model_call_capture_dir"] = str(paths.run_folder.absolute() / "model_calls")
    return dataclasses.replace(resolved, tree=tree)


def _live_config(resolved: ResolvedConfig, *, observe: bool) -> dict[str, Any]:
    head = resolved.tree["head_server"]
    live = fetch_live_config(head["host"], head["port"])
    if observe and not live.get("observability_enabled"):
        raise GymError(
            "--observe has no effect on servers that run already without it",
            hint="start them with ++observability_enabled=true ++model_call_capture_dir=/absolute/folder",
        )
    return live


class _Run:
    """One run from a checked plan to its summary."""

    def __init__(self, request: EvaluationRequest, resolved: ResolvedConfig, plan: RunPlan, folder: RunFolder) -> None:
        self.request = request
        self.resolved = resolved
        self.plan = plan
        self.folder = folder
        self.began = time.monotonic()
        self.tally: Tally | None = None

    async def events(self, link: WarmParentLink | None, config: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """Everything from here on."""
        plan, paths = self.plan, self.plan.paths
        configure_http_client(client_settings(self.resolved.tree))
        agents = _agent_urls(config) if link is None else {}
        job = CollectionJob(
            paths.materialized_inputs, paths.rollouts, paths.failures, agents, dict(plan.planned), plan.options.concurrency
        )
        yield RunPlanned(
            output=str(paths.rollouts),
            inputs=str(plan.inputs),
            rollouts=plan.expansion.rollouts,
            concurrency=in_flight_limit(job),
            agents=dict(plan.planned),
        )
        if paths.rollouts.exists():
            yield Notice(f"the results of an earlier run in {paths.rollouts} are replaced", "warning")
        if link is None:
            for text in _what_serves(self.resolved, config):
                yield Notice(text)
            async with aclosing(self._collect(job, config)) as events:
                async for event in events:
                    yield event
            return
        async with Stack(self.resolved, link, self._stack_options()) as stack:
            async with aclosing(stack.start()) as events:
                async for event in events:
                    yield event
            if self.resolved.tree.get("dry_run"):
                yield Notice("Dry run: every server could be constructed; no rollout was collected.")
                return
            job = dataclasses.replace(job, agents=_agent_urls(stack.config))
            async with aclosing(stack.while_alive(self._wait_and_collect(job))) as events:
                async for event in events:
                    yield event

    def _stack_options(self) -> StackOptions:
        configured = self.resolved.tree.get("nemo_gym_log_dir")
        folder = Path(configured).absolute() if configured else self.plan.paths.logs.absolute()
        return StackOptions(folder, append_logs=bool(configured), on_output=self.request.on_output, any_head_port=True)

    async def _wait_and_collect(self, job: CollectionJob) -> AsyncGenerator[Event, None]:
        endpoints = model_endpoints(self.resolved.servers)
        limit = endpoint_wait_seconds(self.resolved.tree)
        if endpoints and limit > 0:
            async for state in wait_for_endpoints(endpoints, limit):
                yield state
        async with aclosing(self._collect(job, self.resolved.tree)) as events:
            async for event in events:
                yield event

    async def _collect(self, job: CollectionJob, config: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        self._begin(config)
        control, options, paths = self.request.control, self.plan.options, self.plan.paths
        collector = Collector(job, control)
        self.tally = collector.tally
        async with aclosing(collector.events()) as events:
            async for event in events:
                yield event
        tally = collector.tally
        entries: list[dict[str, Any]] = []
        as_zero: list[dict[str, Any]] = []
        if not options.disable_aggregation and tally.scored:
            as_zero = _counted_as_zero(job, options.count_failure_classes_as_zero)
            entries = await aggregate(job.rollouts, paths.aggregate_metrics, job.agents, as_zero)
            if entries:
                metrics = {entry[AGENT_REF]["name"]: entry.get("key_metrics") or {} for entry in entries}
                yield MetricsWritten(str(paths.aggregate_metrics), metrics)
        if tally.failed and not tally.scored and not control.draining.is_set():
            raise explain_nothing_scored(tally, paths.failures)
        state = "stopped" if control.draining.is_set() else "done"
        summary = run_summary(state, paths, tally, entries, time.monotonic() - self.began, as_zero)
        self.folder.end(state, {"scored": summary.scored, "failed": summary.failed, "missing": summary.missing})
        yield summary

    def _begin(self, config: Mapping[str, Any]) -> None:
        """Replace the files of an earlier run by the beginnings of this one; the new rows are written before the old results go.

        `config` is what the servers run with; that is what the run's record keeps.
        """
        paths, plan = self.plan.paths, self.plan
        captures = _capture_folder(config)
        inputs_digest = file_digest(plan.inputs)
        store = CaptureStore(captures) if captures is not None else None
        with replacing(paths.materialized_inputs.absolute()) as file:
            for row in plan.expansion.rows(plan.agents_of_sources):
                file.write(dumps(row) + b"\n")
                rollout_id = maybe_rollout_id_from_run_body(row) if store is not None else None
                if store is not None and rollout_id is not None:
                    store.delete(rollout_id)
        for old in (paths.rollouts, paths.failures, paths.aggregate_metrics):
            old.unlink(missing_ok=True)
        self.folder.begin(
            config,
            {
                "serve": plan.options.serve,
                "inputs": str(plan.inputs),
                "inputs_sha256": inputs_digest,
                "plan_sha256": file_digest(paths.materialized_inputs),
                "rollouts": plan.expansion.rollouts,
                "agents": dict(plan.planned),
            },
        )


def _what_serves(resolved: ResolvedConfig, config: Mapping[str, Any]) -> Iterator[str]:
    """Which servers a run uses that it has not started: whoever listens at the head's address might be somebody else's."""
    head = resolved.tree["head_server"]
    yield f"Using the servers behind {server_url(head['host'], head['port'])}"
    for server in server_blocks(config):
        if server.kind == MODELS:
            settings = {
                key: value for key, value in server.fields.items() if str(key).endswith(("model", "base_url", "model_path"))
            }
            shown = ", ".join(f"{key} {value}" for key, value in settings.items() if value)
            yield Redactor().text(f"  model server {server.instance}: {server.implementation}" + (f" ({shown})" if shown else ""))


def _capture_folder(config: Mapping[str, Any]) -> Path | None:
    """Where model calls are recorded, when they are."""
    folder = config.get("model_call_capture_dir")
    return Path(str(folder)) if folder and config.get("observability_enabled") else None


def _counted_as_zero(job: CollectionJob, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    if not classes:
        return []
    scored = {(line.value[TASK], line.value[ROLLOUT]) for line in read_jsonl(job.rollouts)}
    return failures_as_zero((line.value for line in read_jsonl(job.failures)), classes, scored)


def _agent_urls(config: Mapping[str, Any]) -> dict[str, str]:
    """Base URLs of the agent instances of a configuration in which ports are filled in."""
    urls = {}
    for name, block in config.items():
        if isinstance(block, Mapping) and isinstance(block.get(AGENTS), Mapping):
            implementation = next(iter(block[AGENTS].values()))
            urls[str(name)] = server_url(implementation["host"], implementation["port"])
    return urls
