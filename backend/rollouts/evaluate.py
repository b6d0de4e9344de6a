"""The operation behind `gym eval run`: plan, start servers where asked to, collect, aggregate, tell the result.

Everything that can be wrong is checked before anything of an earlier run is touched.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_config
from backend.config.schema import AGENTS
from backend.datasets.preparation import declared_datasets, prepare_split
from backend.errors import GymError
from backend.events import Event, Notice
from backend.io.files import make_folder, replacing
from backend.io.json_codec import dumps
from backend.io.jsonl import read_jsonl
from backend.io.result_paths import ResultPaths
from backend.io.row_keys import AGENT_REF, ROLLOUT, TASK
from backend.rollouts.agent_routing import check_agents, check_pairings, resolve_sources
from backend.rollouts.aggregation import aggregate
from backend.rollouts.collection import CollectionJob, Collector, explain_nothing_scored, in_flight_limit
from backend.rollouts.control import RunControl
from backend.rollouts.expansion import ExpansionPlan, plan_expansion
from backend.rollouts.expansion_options import expansion_options
from backend.rollouts.failures import failures_as_zero
from backend.rollouts.input_rows import file_rows
from backend.rollouts.options import RunOptions, run_options
from backend.rollouts.run_events import CollectionEnded, MetricsWritten, RunPlanned
from backend.rollouts.run_folder import RunFolder, file_digest
from backend.rollouts.summary import run_summary
from backend.servers.head_client import fetch_live_config
from backend.servers.http_client import client_settings, close_http_session, configure_http_client
from backend.servers.model_endpoints import endpoint_wait_seconds, model_endpoints, wait_for_endpoints
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


@dataclass(frozen=True, slots=True)
class _Plan:
    """A checked run: nothing is left that could be wrong but the world."""

    options: RunOptions
    paths: ResultPaths
    expansion: ExpansionPlan
    inputs: Path
    agents_of_sources: Mapping[str, str]
    planned: Mapping[str, int]
    """Rollouts by agent."""


async def evaluate(request: EvaluationRequest, link: WarmParentLink | None) -> AsyncGenerator[Event, None]:
    """Run an evaluation; the last event is `RunSummary`. `link` starts the servers; without it those that run are used.

    Raises `GymError` for whatever is wrong, also when no rollout at all could be scored. Closing the generator ends every process
    and keeps every finished rollout.
    """
    serve = link is not None
    try:
        resolved = resolve_config(request.config)
        options = run_options(resolved.tree, serve=serve)
        paths = ResultPaths(options.output)
        resolved = _observing(resolved, paths) if request.observe else resolved
        config = resolved.tree if serve else _live_config(resolved, observe=request.observe)
        make_folder(paths.folder)
        plan, warnings = _plan(resolved, config, options, paths)
        folder = RunFolder(paths, request.command, request.events_file)
        run = _Run(request, resolved, plan, folder)
        try:
            for text in (*resolved.warnings, *warnings):
                yield folder.said(Notice(text, "warning"))
            async for event in run.events(link, config):
                yield folder.said(event)
        except BaseException as error:
            stopped = isinstance(error, asyncio.CancelledError | GeneratorExit)
            folder.end("stopped" if stopped else "failed", {"error": None if stopped else str(error)})
            raise
        finally:
            folder.close()
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


def _plan(
    resolved: ResolvedConfig, config: Mapping[str, Any], options: RunOptions, paths: ResultPaths
) -> tuple[_Plan, tuple[str, ...]]:
    warnings: tuple[str, ...] = ()
    settings = expansion_options(resolved.tree, resolved.roots)
    if options.serve:
        assert options.split is not None
        prepared = prepare_split(declared_datasets(config, options.split), options.split, paths, resolved.roots)
        warnings, inputs = prepared.warnings, prepared.path
        source = file_rows(prepared.path.absolute(), ())
    else:
        inputs = Path(str(options.input))
        source = file_rows(inputs, resolved.roots)
    expansion = plan_expansion(source, settings)
    if not expansion.rollouts:
        raise GymError(f"the input {inputs} has no rows", hint="give it at least one JSON object")
    agents_of_sources = resolve_sources([str(task_source) for agent, task_source in expansion.planned if agent is None], config)
    planned: Counter[str] = Counter()
    pairs = []
    for (agent, task_source), count in expansion.planned.items():
        name = agent if agent is not None else agents_of_sources[str(task_source)]
        planned[name] += count
        pairs.append((name, task_source))
    check_agents(planned, config)
    check_pairings(pairs, config)
    return _Plan(options, paths, expansion, inputs, agents_of_sources, planned), (*warnings, *expansion.warnings)


class _Run:
    """One run from a checked plan to its summary."""

    def __init__(self, request: EvaluationRequest, resolved: ResolvedConfig, plan: _Plan, folder: RunFolder) -> None:
        self.request = request
        self.resolved = resolved
        self.plan = plan
        self.folder = folder
        self.began = time.monotonic()

    async def events(self, link: WarmParentLink | None, config: Mapping[str, Any]) -> AsyncIterator[Event]:
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
        if link is None:
            async for event in self._collect(job, None):
                yield event
            return
        async with Stack(self.resolved, link, StackOptions(paths.logs.absolute(), any_head_port=True)) as stack:
            async for event in stack.start():
                yield event
            endpoints = model_endpoints(self.resolved.servers)
            limit = endpoint_wait_seconds(self.resolved.tree)
            if endpoints and limit > 0:
                async for state in wait_for_endpoints(endpoints, limit):
                    yield state
            async for event in self._collect(dataclasses.replace(job, agents=_agent_urls(stack.config)), stack):
                yield event

    async def _collect(self, job: CollectionJob, stack: Stack | None) -> AsyncIterator[Event]:
        self._begin()
        collector = Collector(job, self.request.control)
        guard = asyncio.create_task(_abort_when_a_server_dies(stack, collector)) if stack is not None else None
        try:
            ended: CollectionEnded | None = None
            async for event in collector.events():
                if isinstance(event, CollectionEnded):
                    ended = event
                yield event
            assert ended is not None
            entries: list[dict[str, Any]] = []
            as_zero: list[dict[str, Any]] = []
            if not self.plan.options.disable_aggregation and ended.scored:
                as_zero = _counted_as_zero(job, self.plan.options.count_failure_classes_as_zero)
                entries = await aggregate(job.rollouts, self.plan.paths.aggregate_metrics, job.agents, as_zero)
                if entries:
                    yield MetricsWritten(
                        str(self.plan.paths.aggregate_metrics),
                        {entry[AGENT_REF]["name"]: entry["key_metrics"] for entry in entries},
                    )
        finally:
            if guard is not None:
                guard.cancel()
                await asyncio.gather(guard, return_exceptions=True)
        if ended.failed and not ended.scored and not self.request.control.draining.is_set():
            raise explain_nothing_scored(collector.tally, self.plan.paths.failures)
        state = "stopped" if self.request.control.draining.is_set() else "done"
        summary = run_summary(state, self.plan.paths, collector.tally, entries, time.monotonic() - self.began, as_zero)
        self.folder.end(state, {"scored": summary.scored, "failed": summary.failed, "missing": summary.missing})
        yield summary

    def _begin(self) -> None:
        """Replace the files of an earlier run by the beginnings of this one."""
        paths = self.plan.paths
        for old in (paths.rollouts, paths.failures, paths.aggregate_metrics):
            old.unlink(missing_ok=True)
        with replacing(paths.materialized_inputs.absolute()) as file:
            for row in self.plan.expansion.rows(self.plan.agents_of_sources):
                file.write(dumps(row) + b"\n")
        self.folder.begin(
            self.resolved.tree,
            self.resolved.redactor,
            {
                "serve": self.plan.options.serve,
                "inputs": str(self.plan.inputs),
                "inputs_sha256": file_digest(self.plan.inputs),
                "plan_sha256": file_digest(paths.materialized_inputs),
                "rollouts": self.plan.expansion.rollouts,
                "agents": dict(self.plan.planned),
            },
        )


def _counted_as_zero(job: CollectionJob, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    if not classes:
        return []
    scored = {(line.value[TASK], line.value[ROLLOUT]) for line in read_jsonl(job.rollouts)}
    return failures_as_zero((line.value for line in read_jsonl(job.failures)), classes, scored)


async def _abort_when_a_server_dies(stack: Stack, collector: Collector) -> None:
    try:
        async for _ in stack.watch():
            pass
    except ServerDied as error:
        await collector.abort(error)


def _agent_urls(config: Mapping[str, Any]) -> dict[str, str]:
    """Base URLs of the agent instances of a configuration in which ports are filled in."""
    urls = {}
    for name, block in config.items():
        if isinstance(block, Mapping) and isinstance(block.get(AGENTS), Mapping):
            implementation = next(iter(block[AGENTS].values()))
            urls[str(name)] = f"http://{implementation['host']}:{implementation['port']}"
    return urls
