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
from typing import TYPE_CHECKING, Any

from backend.config.diff_view import recorded_origins
from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_config
from backend.config.schema import AGENTS, MODELS
from backend.datasets.server_blocks import server_blocks
from backend.errors import GymError
from backend.events import Event, Notice
from backend.io.jsonl import read_jsonl
from backend.io.redact import Redactor, mask_command
from backend.io.result_paths import ResultPaths
from backend.io.row_keys import AGENT_REF, ROLLOUT, TASK
from backend.rollouts.aggregation import aggregate
from backend.rollouts.collection import CollectionAborted, CollectionJob, Collector, explain_nothing_scored, in_flight_limit
from backend.rollouts.control import RunControl, until_draining
from backend.rollouts.failures import failures_as_zero
from backend.rollouts.options import run_options
from backend.rollouts.plan import RunPlan, plan_run
from backend.rollouts.resume import resume_command
from backend.rollouts.resume_plan import plan_resumed_run
from backend.rollouts.run_control_file import following_requests
from backend.rollouts.run_events import MetricsWritten, RunPlanned
from backend.rollouts.run_folder import RunFolder
from backend.rollouts.run_start import begin_run, capture_folder, token_delivery
from backend.rollouts.stage_watch import watched_servers
from backend.rollouts.summary import run_summary
from backend.rollouts.tally import Tally
from backend.servers.addresses import server_url
from backend.servers.head_client import fetch_live_config
from backend.servers.http_client import client_settings, close_http_session, configure_http_client
from backend.servers.model_endpoints import endpoint_wait_seconds, model_endpoints, wait_for_endpoints
from backend.servers.server_output import OutputSink
from backend.servers.server_process import ServerDied
from backend.servers.stack_journal import StackOwner
from backend.servers.supervisor import Stack, StackOptions
from backend.servers.warm_parent_link import WarmParentLink

if TYPE_CHECKING:
    from backend.rollouts.token_delivery import TokenDelivery


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
    """Run an evaluation; the last event is `RunSummary`, unless it was told to stop before it collected. `link` starts the servers; without it those that run are used.

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
        command = mask_command(request.command, redactor)
        with RunFolder(paths, command, redactor, request.events_file) as folder:
            if options.resume:
                plan = plan_resumed_run(resolved, config, options, paths, folder.earlier_record())
            else:
                plan = plan_run(resolved, config, options, paths)
            for text in plan.remarks:
                yield folder.said(Notice(redactor.text(text)))
            for text in (*resolved.warnings, *plan.warnings):
                yield folder.said(Notice(redactor.text(text), "warning"))
            run = _Run(request, resolved, plan, folder, resume_command(command))
            try:
                async with following_requests(paths.control, request.control.steer), aclosing(run.events(link, config)) as events:
                    async for event in events:
                        for said in (*request.control.unheard(), event):
                            yield folder.said(said)
            except (ServerDied, CollectionAborted) as error:
                if run.lost:
                    error.details += (f"rollouts in flight that are lost: {run.lost}",)
                if run.tally is not None and run.tally.scored:
                    error.details += (f"{run.tally.scored} finished rollouts are safe in {paths.rollouts}",)
                if run.tally is not None and run.resume_command:
                    error.details += (f"go on with: {run.resume_command}",)
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

    def __init__(
        self, request: EvaluationRequest, resolved: ResolvedConfig, plan: RunPlan, folder: RunFolder, resume_command: str
    ) -> None:
        self.request = request
        self.resolved = resolved
        self.plan = plan
        self.folder = folder
        self.resume_command = resume_command
        self.began = time.monotonic()
        self.tally: Tally | None = None
        self.tokens: TokenDelivery | None = None
        self._collector: Collector | None = None

    @property
    def lost(self) -> int:
        """Rollouts that had been sent and are not written, after the collection was broken off."""
        return self._collector.in_flight if self._collector is not None else 0

    async def events(self, link: WarmParentLink | None, config: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """Everything from here on."""
        plan, paths = self.plan, self.plan.paths
        configure_http_client(client_settings(self.resolved.tree))
        self.tokens = token_delivery(config)
        agents = _agent_urls(config) if link is None else {}
        job = CollectionJob(
            materialized=paths.materialized_inputs,
            rollouts=paths.rollouts,
            failures=paths.failures,
            agents=agents,
            servers=tuple(watched_servers(config)) if link is None else (),
            planned=dict(plan.planned),
            concurrency=plan.options.concurrency,
            earlier=plan.earlier,
            capture_dir=capture_folder(config),
        )
        if not self.resolved.tree.get("dry_run"):
            self.folder.announce(config, {"serve": link is not None, "rollouts": plan.rollouts, "agents": dict(plan.planned)})
        yield RunPlanned(
            output=str(paths.rollouts),
            inputs=str(plan.inputs),
            rollouts=plan.rollouts,
            concurrency=in_flight_limit(job),
            agents=dict(plan.planned),
            resume_command=self.resume_command,
        )
        if plan.earlier is None and paths.rollouts.exists():
            yield Notice(f"the results of an earlier run in {paths.rollouts} are replaced", "warning")
        if link is None:
            for text in _what_serves(self.resolved, config):
                yield Notice(text)
            async with aclosing(self._collect(job, config)) as events:
                async for event in events:
                    yield event
            return
        async with Stack(self.resolved, link, self._stack_options()) as stack:
            async with aclosing(until_draining(stack.start(), self.request.control)) as events:
                async for event in events:
                    yield event
            if self.resolved.tree.get("dry_run") and not self.request.control.draining.is_set():
                yield Notice("Dry run: every server could be constructed; no rollout was collected.")
                return
            job = dataclasses.replace(job, agents=_agent_urls(stack.config), servers=tuple(watched_servers(stack.config)))
            async with aclosing(stack.while_alive(self._wait_and_collect(job))) as events:
                async for event in events:
                    yield event

    def _stack_options(self) -> StackOptions:
        configured = self.resolved.tree.get("nemo_gym_log_dir")
        folder = Path(configured).absolute() if configured else self.plan.paths.logs.absolute()
        append = bool(configured) or self.plan.earlier is not None
        owner = StackOwner(self.request.command, self.plan.paths.run_folder.absolute())
        return StackOptions(folder, append_logs=append, on_output=self.request.on_output, any_head_port=True, owner=owner)

    async def _wait_and_collect(self, job: CollectionJob) -> AsyncGenerator[Event, None]:
        endpoints = model_endpoints(self.resolved.servers)
        limit = endpoint_wait_seconds(self.resolved.tree)
        if endpoints and limit > 0 and self.plan.left:
            async with aclosing(until_draining(wait_for_endpoints(endpoints, limit), self.request.control)) as states:
                async for state in states:
                    yield state
        async with aclosing(self._collect(job, self.resolved.tree)) as events:
            async for event in events:
                yield event

    async def _collect(self, job: CollectionJob, config: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        control, options, paths = self.request.control, self.plan.options, self.plan.paths
        if control.draining.is_set():
            control.stopped = True
            self.folder.end("stopped", {})
            yield Notice("Stopped before any rollout was sent; results of an earlier run stay as they are.")
            return
        origins = (
            recorded_origins(self.resolved) if options.serve else None
        )  # servers that ran already have a configuration of their own
        for text in begin_run(self.plan, self.folder, config, origins):
            yield Notice(text, "warning")
        self._collector = collector = Collector(job, control, self.tokens)
        self.tally = collector.tally
        async with aclosing(collector.events()) as events:
            async for event in events:
                yield event
        tally = collector.tally
        if self.tokens is not None and self.tokens.masked:
            yield Notice(
                f"{self.tokens.masked} of {self.tokens.finished} rollouts are masked for training (mask_sample)", "warning"
            )
        control.stopped = control.draining.is_set() and (control.interrupted or tally.missing > 0)
        entries: list[dict[str, Any]] = []
        as_zero: list[dict[str, Any]] = []
        if not options.disable_aggregation and tally.scored:
            as_zero = _counted_as_zero(job, options.count_failure_classes_as_zero)
            entries = await aggregate(job.rollouts, paths.aggregate_metrics, job.agents, as_zero)
            if entries:
                metrics = {entry[AGENT_REF]["name"]: entry.get("key_metrics") or {} for entry in entries}
                yield MetricsWritten(str(paths.aggregate_metrics), metrics)
        if tally.failed > collector.failed_before and not tally.scored and not control.draining.is_set():
            raise explain_nothing_scored(tally, paths.failures)
        state = "stopped" if control.stopped else "done"
        summary = run_summary(state, paths, tally, entries, time.monotonic() - self.began, as_zero)
        self.folder.end(state, {"scored": summary.scored, "failed": summary.failed, "missing": summary.missing})
        yield summary


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
