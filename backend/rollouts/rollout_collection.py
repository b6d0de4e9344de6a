"""Collecting rollouts from another program: against servers that are up, with rows in memory or in a file.

Importable as `nemo_gym.rollout_collection`. The `gym` command has its own collector, which streams; this one keeps rows and results in
memory, as its callers want them. Existing code overrides `setup_server_client`, and tests replace `get_global_config_dict` here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from backend.config.config_types import BaseServerConfig, ConfigError
from backend.config.global_config import get_global_config_dict
from backend.errors import Place
from backend.io.files import make_folder, replacing, write_atomically
from backend.io.json_codec import dumps, dumps_indented, loads
from backend.io.jsonl import JsonlWriter, heal, read_jsonl
from backend.io.moved_names import moved
from backend.io.redact import Redactor
from backend.io.result_paths import ResultPaths
from backend.io.roots import search_roots
from backend.io.row_keys import AGENT_REF, ATTEMPT, ROLLOUT, ROLLOUT_ID, SKILLS_REF, TASK, TASK_SOURCE
from backend.rollouts.agent_routing import check_agents, check_pairings, resolve_sources
from backend.rollouts.aggregation import metric_record
from backend.rollouts.collection_config import E2ERolloutCollectionConfig, RolloutCollectionConfig, SharedRolloutCollectionConfig
from backend.rollouts.expansion import plan_expansion
from backend.rollouts.expansion_options import expansion_options
from backend.rollouts.failures import (
    AGENT_REQUEST_FAILED,
    AGENT_RUN_ERROR,
    FAILURE_CLASS,
    NO_PERSIST,
    TERMINAL,
    Destination,
    FailedCall,
    destination_of,
    failure_record,
    failures_as_zero,
)
from backend.rollouts.input_rows import RowSource, file_rows, memory_rows
from backend.rollouts.resume import attempts_allowed, read_earlier_work, why_from_the_beginning
from backend.rollouts.rollout_aggregation import RolloutAggregationConfig, counted_failures, read_shards, write_merged
from backend.rollouts.run_folder import RunFolder
from backend.rollouts.run_start import EarlierCaptures, token_delivery
from backend.rollouts.trajectory import attach_perf, attach_trajectory_record, observed
from backend.servers.model_call_capture import ModelCallCaptureConfig
from backend.servers.server_utils import ServerClient, get_response_json, raise_for_status

__all__ = [
    "NG_FAILURE_CLASS_KEY",
    "NG_NO_PERSIST_KEY",
    "NG_TERMINAL_KEY",
    "CompletedRollout",
    "E2ERolloutCollectionConfig",
    "RolloutAggregationConfig",
    "RolloutAggregationHelper",
    "RolloutCollectionConfig",
    "RolloutCollectionHelper",
    "SharedRolloutCollectionConfig",
    "loads_jsonl_line",
]

NG_FAILURE_CLASS_KEY = FAILURE_CLASS
NG_NO_PERSIST_KEY = NO_PERSIST
NG_TERMINAL_KEY = TERMINAL
_STAMPS = (TASK, ROLLOUT, AGENT_REF, TASK_SOURCE, SKILLS_REF, ATTEMPT, ROLLOUT_ID)

_attach_trajectory_record = attach_trajectory_record


@dataclass(frozen=True, slots=True)
class CompletedRollout:
    """A row and what came of it; the latency is the wall clock of `POST /run` in milliseconds."""

    row: dict[str, Any]
    result: dict[str, Any]
    rollout_latency_ms: float


def loads_jsonl_line(raw: str | bytes, fpath: str | Path, line_no: int) -> Any:
    """The value of a line of a JSON-lines file. Raises `ConfigError` naming file and line where it is not JSON."""
    try:
        return loads(raw)
    except ValueError as error:
        raise ConfigError(f"not JSON: {error}", place=Place(str(fpath), line_no)) from None


class RolloutCollectionHelper:
    """Sends rows to agents by the configuration of the servers that are up."""

    def setup_server_client(self, head_server_config: BaseServerConfig | None = None) -> ServerClient:
        """The client by which agents are found and called."""
        return ServerClient.load_from_global_config(head_server_config)

    async def run_from_config(self, config: RolloutCollectionConfig) -> list[dict[str, Any]]:
        """Collect the rows of a file into the documented files, and return all records, failed ones included.

        A failed call becomes a row of the failures file. Raises the `GymError` family for rows or settings that cannot be used, when
        another run is writing these files, and when too many rollouts are masked for training.
        """
        with RunFolder(config.paths, (), Redactor(())):
            return await self._collect(config, config.paths)

    async def _collect(self, config: RolloutCollectionConfig, paths: ResultPaths) -> list[dict[str, Any]]:
        settings = get_global_config_dict()
        capture = ModelCallCaptureConfig.from_global_config(settings)
        tokens = token_delivery(settings)
        rows, earlier = self._rows_to_run(config, paths)
        forgotten = EarlierCaptures(settings)
        for row in rows:
            forgotten.forget(row)
        limit = config.num_samples_in_parallel
        results: list[dict[str, Any]] = []
        finished: list[dict[str, Any]] = []
        with (
            JsonlWriter(paths.rollouts) as rollouts,
            JsonlWriter(paths.failures) as failures,
            closing(
                _each(
                    self._run_examples_with_metadata(
                        rows, semaphore=asyncio.Semaphore(limit) if limit else None, route_failures_to_sidecar=True
                    )
                )
            ) as finishing,
        ):
            for coming in finishing:
                completed = await coming
                record = _as_record(completed, capture)
                handoff = await tokens.deliver(completed.row, record, record[AGENT_REF]["name"]) if tokens else None
                destination = destination_of(record)
                if destination is Destination.ROLLOUTS:
                    rollouts.write(record)
                    finished.append(record)
                elif destination is Destination.FAILURES:
                    failures.write(record)
                results.append(record)
                if tokens and handoff:
                    await tokens.written(handoff, rollouts)
        results.sort(key=_order)
        if not config.disable_aggregation:
            await self._aggregate([*earlier, *finished], rows, config, paths)
        return [*earlier, *results]

    def run_examples(
        self,
        examples: Sequence[Mapping[str, Any]],
        head_server_config: BaseServerConfig | None = None,
        semaphore: AbstractAsyncContextManager[Any] | None = None,
        route_failures_to_sidecar: bool = False,
    ) -> Iterator[Awaitable[tuple[dict[str, Any], dict[str, Any]]]]:
        """Send each row once; gives awaitables of (row, result) in the order in which they finish.

        Rows without an agent get the one that their `task_source` leads to. A failed call raises, unless
        `route_failures_to_sidecar`: then its result is a row as in the failures file. Nothing is added to results.
        """
        for coming in self._run_examples_with_metadata(examples, head_server_config, semaphore, route_failures_to_sidecar):
            yield _without_metadata(coming)

    def preprocess_examples(
        self,
        examples: Sequence[Mapping[str, Any]],
        agent_map: Mapping[str, str] | None = None,
        fan_out: Mapping[str, Sequence[str]] | None = None,
        num_repeats: int | Mapping[str, int] | None = 1,
        num_repeats_add_seed: bool = False,
        global_config_dict: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of a run from rows in memory: agents mapped, repeated, numbered; the input is not changed.

        With a configuration, rows without an agent get the one that their `task_source` leads to.
        """
        settings = {
            "agent_map": dict(agent_map) if agent_map else None,
            "fan_out": {name: list(agents) for name, agents in fan_out.items()} if fan_out else None,
            "num_repeats": num_repeats,
            "num_repeats_add_seed": num_repeats_add_seed,
        }
        return _expanded(memory_rows(examples), settings, global_config_dict)

    def _preprocess_rows_from_config(self, config: RolloutCollectionConfig) -> list[dict[str, Any]]:
        """The rows of a run from a file, by all settings that shape rows."""
        return _expanded(file_rows(config.input_jsonl_fpath, search_roots()), config.model_dump(), None)

    def _run_examples_with_metadata(
        self,
        examples: Sequence[Mapping[str, Any]],
        head_server_config: BaseServerConfig | None = None,
        semaphore: AbstractAsyncContextManager[Any] | None = None,
        route_failures_to_sidecar: bool = False,
    ) -> Iterator[Awaitable[CompletedRollout]]:
        """Like `run_examples`, with the latency of each rollout. Needs a running event loop; closing it gives up what has not finished."""
        client = self.setup_server_client(head_server_config)
        rows = _routed(examples, client.global_config_dict)
        gate = semaphore or nullcontext()

        async def run(row: dict[str, Any]) -> CompletedRollout:
            async with gate:
                began = time.monotonic()
                result = await _call(client, row, keep_failure=route_failures_to_sidecar)
                return CompletedRollout(row, result, (time.monotonic() - began) * 1000)

        return _as_completed([run(row) for row in rows])

    async def _call_aggregate_metrics(
        self, results: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], output_fpath: str | Path
    ) -> Path | None:
        """Ask each agent for the metrics of its results and write them beside `output_fpath`; None without any result.

        `rows` are the materialized rows, for overriding methods that look at them.
        """
        by_agent: dict[str, list[dict[str, Any]]] = {}
        for result in sorted(results, key=_order):
            name = (result.get(AGENT_REF) or {}).get("name")
            if name:
                by_agent.setdefault(name, []).append(metric_record(result))
        if not by_agent:
            return None
        client = self.setup_server_client()

        async def ask(name: str) -> dict[str, Any]:
            response = await client.post(
                server_name=name, url_path="/aggregate_metrics", json={"verify_responses": by_agent[name]}
            )
            await raise_for_status(response)
            answer = await get_response_json(response)
            kept = {key: value for key, value in answer.items() if key != "perf_summary" or value is not None}
            return {AGENT_REF: {"name": name}, **kept}

        entries = await asyncio.gather(*map(ask, sorted(by_agent)))
        path = ResultPaths(Path(output_fpath)).aggregate_metrics
        write_atomically(path, dumps_indented(list(entries)))
        return path

    async def _aggregate(
        self, records: list[dict[str, Any]], rows: list[dict[str, Any]], config: RolloutCollectionConfig, paths: ResultPaths
    ) -> None:
        zeros: list[dict[str, Any]] = []
        if config.count_failure_classes_as_zero:
            scored = {(record[TASK], record[ROLLOUT]) for record in records}
            failed = (line.value for line in read_jsonl(paths.failures))
            zeros = failures_as_zero(failed, config.count_failure_classes_as_zero, scored)
        await self._call_aggregate_metrics([*records, *zeros], rows, paths.rollouts)

    def _rows_to_run(
        self, config: RolloutCollectionConfig, paths: ResultPaths
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The rows still to be run, and the records of those that are done."""
        if config.resume_from_cache and why_from_the_beginning(paths) is None:
            for path in (paths.rollouts, paths.failures):
                heal(path)
            work = read_earlier_work(paths, _get_max_rollout_attempts())
            done = [line.value for line in read_jsonl(paths.rollouts)]
            return [line.value for line in work.rows_left()], sorted(done, key=_order)
        rows = self._preprocess_rows_from_config(config)
        with replacing(paths.materialized_inputs.absolute()) as file:
            for row in rows:
                file.write(dumps(row) + b"\n")
            for old in (paths.rollouts, paths.failures, paths.aggregate_metrics):
                old.unlink(missing_ok=True)
        return rows, []


class RolloutAggregationHelper(RolloutCollectionHelper):
    """Asks the agents that are up for metrics over the rollouts of several files."""

    async def run_from_config(self, config: RolloutAggregationConfig) -> Path | None:  # type: ignore[override]
        """Write the metrics, and unless told otherwise all rollouts, beside and to the output; returns the metrics' file.

        Raises the `GymError` family for files that cannot be used.
        """
        shards = read_shards(config)
        output = Path(config.output_jsonl_fpath)
        make_folder(output.absolute().parent)
        if config.merge_shards:
            write_merged(shards, output)
        zeros = counted_failures(shards, config.count_failure_classes_as_zero)
        return await self._call_aggregate_metrics([*shards.records, *zeros], shards.records, output)


def _expanded(source: RowSource, settings: Mapping[str, Any], config: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    plan = plan_expansion(source, expansion_options(settings, search_roots()))
    sources = [str(name) for agent, name in plan.planned if agent is None]
    return list(plan.rows(resolve_sources(sources, _plain(config)) if config is not None and sources else None))


def _routed(examples: Sequence[Mapping[str, Any]], config: Any) -> list[dict[str, Any]]:
    """The rows with an agent each, checked against the configuration of the running servers."""
    tree = _plain(config)
    rows = [dict(row) for row in examples]
    unrouted = [row for row in rows if not (row.get(AGENT_REF) or {}).get("name")]
    agents = resolve_sources([str(row.get(TASK_SOURCE)) for row in unrouted], tree) if unrouted else {}
    for row in unrouted:
        row[AGENT_REF] = {"name": agents[str(row.get(TASK_SOURCE))]}
    pairs = list(dict.fromkeys((row[AGENT_REF]["name"], row.get(TASK_SOURCE)) for row in rows))
    check_agents([agent for agent, _ in pairs], tree)
    check_pairings(pairs, tree)
    return rows


async def _call(client: ServerClient, row: dict[str, Any], *, keep_failure: bool) -> dict[str, Any]:
    status: int | None = None
    try:
        response = await client.post(server_name=row[AGENT_REF]["name"], url_path="/run", json=row)
        status = response.status
        await raise_for_status(response)
        result = await get_response_json(response)
        if not isinstance(result, dict):
            raise ValueError(f"the agent answered {type(result).__name__} instead of an object")
        return result
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        if not keep_failure:
            raise
        body = getattr(error, "response_content", b"")
        return failure_record(
            FailedCall(
                error_type=type(error).__name__,
                message=str(error) or repr(error),
                http_status=None if isinstance(error, aiohttp.ClientPayloadError) else status,
                body=body,
                body_length=len(body),
            )
        )


def _as_completed(work: Sequence[Coroutine[Any, Any, CompletedRollout]]) -> Iterator[Awaitable[CompletedRollout]]:
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield from asyncio.as_completed(tasks)
    except GeneratorExit:
        for task in tasks:
            task.cancel()
        raise


def _each(coming: Iterator[Awaitable[CompletedRollout]]) -> Generator[Awaitable[CompletedRollout], None, None]:
    """`coming` as something that can be closed, whatever an overriding method returns."""
    yield from coming


async def _without_metadata(coming: Awaitable[CompletedRollout]) -> tuple[dict[str, Any], dict[str, Any]]:
    completed = await coming
    return completed.row, completed.result


def _as_record(completed: CompletedRollout, capture: ModelCallCaptureConfig) -> dict[str, Any]:
    """The result with the row's stamps and, where calls are observed, with what was seen of them."""
    record = completed.result
    own = record.get(FAILURE_CLASS) not in (AGENT_RUN_ERROR, AGENT_REQUEST_FAILED)
    if capture.observability_enabled and capture.model_call_capture_dir and own:
        record = observed(completed.row, record, capture.model_call_capture_dir, completed.rollout_latency_ms)
    return {**record, **{key: completed.row[key] for key in _STAMPS if key in completed.row}}


def _attach_ng_perf(
    result: MutableMapping[str, Any], *, observability_enabled: bool, rollout_latency_ms: float | None = None
) -> None:
    if observability_enabled:
        attach_perf(result, rollout_latency_ms)


def _get_max_rollout_attempts() -> int:
    return attempts_allowed()[0]


def _order(record: Mapping[str, Any]) -> tuple[Any, Any]:
    return record.get(TASK), record.get(ROLLOUT)


def _plain(config: Any) -> dict[str, Any]:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(config, resolve=True) if OmegaConf.is_config(config) else dict(config)  # type: ignore[return-value]


def __getattr__(name: str) -> Any:
    if name == "collect_rollouts":
        return moved("nemo_gym.rollout_collection", name, "nemo_gym.cli.eval", "backend.cli.library.eval")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
