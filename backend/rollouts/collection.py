"""Sends materialized rows to their agents and puts every answer where it belongs.

A fixed number of workers draw rows from one stream in file order, so that memory does not grow with the number of rows and early
tasks finish first. A request that may have reached an agent is never sent again: an agent acts, and acting twice is another rollout.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from backend.errors import GymError
from backend.events import Event
from backend.io.json_codec import loads
from backend.io.jsonl import JsonlWriter, Line, read_jsonl
from backend.io.row_keys import AGENT_REF, ATTEMPT, ROLLOUT, ROLLOUT_ID, SKILLS_REF, TASK, TASK_SOURCE
from backend.rollouts.control import LOST_CONNECTION_PAUSE_SECONDS, RunControl
from backend.rollouts.failures import Destination, FailedCall, destination_of, failure_record, reason_of
from backend.rollouts.resume import EarlierWork
from backend.rollouts.run_events import (
    CollectionEnded,
    CollectionProgress,
    CollectionStarted,
    CollectionWaiting,
    RolloutFinished,
    RolloutStarted,
)
from backend.rollouts.stage_watch import StageWatch, WatchedServer
from backend.rollouts.tally import Tally, reward_of
from backend.servers.http_client import RetryRule, connection_limit, send
from backend.servers.inflight import ROLLOUT_HEADER, rollout_key
from backend.servers.middleware import UPSTREAM_STATUS_HEADER
from backend.servers.rollout_correlation import RolloutIdError, maybe_rollout_id_from_run_body

if TYPE_CHECKING:
    from backend.rollouts.token_delivery import TokenDelivery
    from backend.servers.token_id_capture.delivery import TokenHandoff

MOST_IN_FLIGHT = 1024
QUIET_SECONDS = 10.0
_DESCRIPTORS_PER_ROLLOUT = 3
_BODY_BYTES = 8000
_PROGRESS_STEPS = 100
_STAMPS = (TASK, ROLLOUT, AGENT_REF)
_OPTIONAL_STAMPS = (TASK_SOURCE, SKILLS_REF, ATTEMPT, ROLLOUT_ID)


class CollectionAborted(GymError):
    """A collection ended itself before its time; what is finished is written, and the run can be resumed."""


@dataclass(frozen=True, slots=True)
class CollectionJob:
    """What to collect: `agents` are base URLs by instance name, `planned` rollouts by agent."""

    materialized: Path
    rollouts: Path
    failures: Path
    agents: Mapping[str, str]
    planned: Mapping[str, int]
    concurrency: int | None
    servers: tuple[WatchedServer, ...] = ()
    """Those that are asked where the rollouts are."""
    earlier: EarlierWork | None = None
    """What is done already of a run that is resumed."""
    capture_dir: Path | None = None
    """Where model servers record the calls of rollouts; None when they do not."""


def in_flight_limit(job: CollectionJob) -> int:
    """How many rollouts are sent at once: what was asked for, else what this machine's descriptors allow, at most 1,024."""
    total = sum(job.planned.values()) if job.earlier is None else job.earlier.left
    if job.concurrency is not None:
        return max(1, min(job.concurrency, total))
    return max(1, min(MOST_IN_FLIGHT, total, connection_limit() // _DESCRIPTORS_PER_ROLLOUT))


class Collector:
    """One collection. `events` may be iterated once; `tally` tells the result; `tokens` delivers the tokens of model calls."""

    def __init__(self, job: CollectionJob, control: RunControl, tokens: TokenDelivery | None = None) -> None:
        self.job = job
        self.tokens = tokens
        self.tally = Tally(job.planned) if job.earlier is None else job.earlier.tally
        self.failed_before = self.tally.failed
        """Rollouts that are given up without another attempt."""
        self._control = control
        self._rows: Iterator[Line] = iter(())
        self._events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue(maxsize=1000)
        self._began = time.monotonic()
        self._percent = 0
        self._cancelled = 0
        self._in_flight = 0
        self._places: dict[str, tuple[int, int]] = {}
        """Task and rollout index of what is in flight, by rollout id."""
        self._run_tag = secrets.token_hex(4)
        self._last_sign = self._said_waiting = self._began

    @property
    def in_flight(self) -> int:
        """Rollouts that have been sent and not come back, also after they were cancelled."""
        return self._in_flight

    async def events(self) -> AsyncGenerator[Event, None]:
        """Collect everything; ends with `CollectionEnded`. Closing the iterator cancels what is in flight."""
        self._began = self._last_sign = time.monotonic()
        self._rows = read_jsonl(self.job.materialized) if self.job.earlier is None else self.job.earlier.rows_left()
        self._percent = self._percent_finished()
        with JsonlWriter(self.job.rollouts) as rollouts, JsonlWriter(self.job.failures) as failures:
            offsets = _Offsets(rollouts, failures)
            self._control.collecting = True
            self._control.on_event = self._pass_on
            yield CollectionStarted(self.tally.total, self.tally.scored, self.failed_before)
            pool = asyncio.create_task(self._run_workers(offsets))
            try:
                while (item := await self._next_event()) is not None:
                    if isinstance(item, BaseException):
                        raise item
                    yield item
            finally:
                self._control.collecting = False
                self._control.on_event = None
                pool.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await pool
        yield CollectionEnded(
            scored=self.tally.scored,
            failed=self.tally.failed,
            missing=self.tally.missing,
            cancelled=self._cancelled,
            failure_classes=dict(self.tally.failure_classes),
            seconds=time.monotonic() - self._began,
        )

    async def _next_event(self) -> Event | BaseException | None:
        """The next event; one that says how many rollouts are in flight when nothing has come back for a while."""
        patience = max(self._last_sign, self._said_waiting) + QUIET_SECONDS - time.monotonic()
        if patience > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    return await self._events.get()
        self._said_waiting = time.monotonic()
        quiet = self._said_waiting - self._last_sign
        return CollectionWaiting(self.tally.finished, self.tally.total, self._in_flight, quiet)

    def _pass_on(self, event: Event) -> bool:
        """Have an event told that does not come from a worker; False when there are too many already."""
        if self._events.full():
            return False
        self._events.put_nowait(event)
        return True

    async def _run_workers(self, files: _Offsets) -> None:
        workers = {asyncio.create_task(self._work(files)) for _ in range(in_flight_limit(self.job))}
        time_is_up: asyncio.Task[Any] = asyncio.create_task(self._control.time_is_up())
        watch = StageWatch(self.job.servers, self._run_tag, self._places)
        watching = asyncio.create_task(watch.watch(self._pass_on))
        try:
            waiting: set[asyncio.Task[Any]] = set(workers)
            while waiting and not time_is_up.done():
                done, _ = await asyncio.wait({*waiting, time_is_up}, return_when=asyncio.FIRST_COMPLETED)
                _raise_first(done - {time_is_up})
                waiting -= done
            self._cancelled = self._in_flight
        except Exception as error:
            await self._events.put(error)
        finally:
            helpers = (*workers, time_is_up, watching)
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            self._control.on_event = None  # nothing is read after what comes next
        await self._events.put(None)

    async def _work(self, files: _Offsets) -> None:
        while not self._control.draining.is_set():
            line = next(self._rows, None)
            if line is None:
                return
            row = line.value
            agent = row[AGENT_REF]["name"]
            task, rollout = row[TASK], row[ROLLOUT]
            await self._events.put(RolloutStarted(task, rollout, agent, _attempt(row)))
            self._in_flight += 1
            began = time.monotonic()
            rollout_id = _rollout_id(row)
            self._places[rollout_id] = (task, rollout)
            answer = await _call_agent(self.job.agents[agent], line.raw, rollout_key(rollout_id, self._run_tag))
            seconds = time.monotonic() - began
            if isinstance(answer, FailedCall) and answer.http_status is None:
                # A lost connection may be the first sign of a server's death, which ends the run; the row then stays unwritten.
                await asyncio.sleep(LOST_CONNECTION_PAUSE_SECONDS)
            elif self.job.capture_dir is not None and rollout_id and isinstance(answer, dict):
                answer = await asyncio.to_thread(_observed, row, answer, self.job.capture_dir, seconds)
            handoff: TokenHandoff | None = None
            if self.tokens is not None and isinstance(answer, dict):
                handoff = await self.tokens.deliver(row, answer, agent)
            self._in_flight -= 1
            self._places.pop(rollout_id, None)
            self._last_sign = time.monotonic()
            event = self._keep(row, answer, files, seconds)
            await self._events.put(event)
            if progress := self._progress():
                await self._events.put(progress)
            if self.tokens is not None and handoff is not None:
                await self.tokens.written(handoff, files.rollouts.writer)

    def _keep(
        self, row: Mapping[str, Any], answer: dict[str, Any] | FailedCall, files: _Offsets, seconds: float
    ) -> RolloutFinished:
        agent = row[AGENT_REF]["name"]
        if isinstance(answer, FailedCall):
            record = failure_record(answer)
        else:
            record = dict(answer)
            self.tally.add_answer(agent, record)
        for key in (*_STAMPS, *(key for key in _OPTIONAL_STAMPS if key in row)):
            record[key] = row[key]
        destination = destination_of(record)
        reward = reward_of(record)
        failure, reason, offset = None, None, None
        if destination is Destination.ROLLOUTS:
            offset = files.rollouts.append(record)
            self.tally.add_scored(agent, row[TASK], row[ROLLOUT], reward)
        else:
            failure = str(record.get("_ng_failure_class") or "kill_shaped")
            reason = reason_of(record)
            if destination is Destination.FAILURES:
                offset = files.failures.append(record)
            self.tally.add_failed(agent, failure, reason)
        usage = _usage(record)
        return RolloutFinished(
            task=row[TASK],
            rollout=row[ROLLOUT],
            agent=agent,
            seconds=round(seconds, 4),
            reward=reward,
            failure=failure,
            reason=reason,
            http_status=record.get("_ng_failure_http_status"),
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
            offset=offset,
            attempt=_attempt(row),
        )

    def _progress(self) -> CollectionProgress | None:
        percent = self._percent_finished()
        if percent <= self._percent:
            return None
        self._percent = percent
        return CollectionProgress(
            finished=self.tally.finished,
            total=self.tally.total,
            seconds=time.monotonic() - self._began,
            left=self.tally.left(),
            averages={name: agent.averages() for name, agent in self.tally.agents.items() if agent.answers},
            counts={name: agent.finished for name, agent in self.tally.agents.items()},
            failed=self.tally.failed,
        )

    def _percent_finished(self) -> int:
        return self.tally.finished * _PROGRESS_STEPS // self.tally.total


class _CountingWriter:
    """Appends records and knows where each begins."""

    def __init__(self, writer: JsonlWriter) -> None:
        self.writer = writer
        self._offset = writer.path.stat().st_size

    def append(self, record: Mapping[str, Any]) -> int:
        begin = self._offset
        self._offset += self.writer.write(record)
        return begin


class _Offsets:
    def __init__(self, rollouts: JsonlWriter, failures: JsonlWriter) -> None:
        self.rollouts = _CountingWriter(rollouts)
        self.failures = _CountingWriter(failures)


def _observed(row: Mapping[str, Any], answer: dict[str, Any], capture_dir: Path, seconds: float) -> dict[str, Any]:
    from backend.rollouts.trajectory import observed  # not at the top: it loads pydantic, and few runs record calls

    return observed(row, answer, capture_dir, seconds * 1000)


def _rollout_id(row: Mapping[str, Any]) -> str:
    """The id under which servers know a row's rollout; an explicit one that cannot be an id is the agent's to refuse."""
    try:
        return maybe_rollout_id_from_run_body(row) or ""
    except RolloutIdError:
        return ""


async def _call_agent(base_url: str, body: bytes, key: str) -> dict[str, Any] | FailedCall:
    """The agent's answer to one row, or what went wrong with the call."""
    status: int | None = None
    upstream: int | None = None
    content = b""
    try:
        headers = {"Content-Type": "application/json", ROLLOUT_HEADER: key}
        response = await send("POST", f"{base_url}/run", RetryRule(internal=True), data=body, headers=headers)
        status = response.status
        upstream = _upstream_status(response)
        content = await response.read()
        response.raise_for_status()
        value = loads(content)
        if not isinstance(value, dict):
            raise ValueError(f"the agent answered {type(value).__name__} instead of an object")
        return value
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        if isinstance(error, aiohttp.ClientPayloadError):
            status = None  # cut off: nobody knows what happened
        return FailedCall(
            error_type=type(error).__name__,
            message=str(error) or repr(error),
            http_status=status,
            body=content[:_BODY_BYTES],
            body_length=len(content),
            upstream_status=upstream,
        )


def _upstream_status(response: aiohttp.ClientResponse) -> int | None:
    value = response.headers.get(UPSTREAM_STATUS_HEADER, "")
    return int(value) if value.isdigit() else None


def _raise_first(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        error = task.exception()
        if error is not None:
            raise error


def _attempt(row: Mapping[str, Any]) -> int:
    attempt = row.get(ATTEMPT)
    return attempt if isinstance(attempt, int) else 0


def _usage(record: Mapping[str, Any]) -> dict[str, int]:
    response = record.get("response")
    usage = response.get("usage") if isinstance(response, dict) else None
    if not isinstance(usage, dict):
        return {}
    return {key: value for key, value in usage.items() if isinstance(value, int) and not isinstance(value, bool)}


def explain_nothing_scored(tally: Tally, failures: Path) -> GymError:
    """The error of a run in which no rollout was scored: what failed how often, the first reason, and what to do."""
    classes = ", ".join(f"{name}: {count}" for name, count in tally.failure_classes.most_common())
    details = [f"first {name}: {reason}" for name, reason in tally.first_reason.items() if reason]
    return GymError(
        f"nothing produced a result: {tally.failed} of {tally.total} rollouts failed ({classes})",
        details=details,
        hint=_what_to_do(" ".join(details)) or f"every attempt is in {failures}",
    )


def _what_to_do(reasons: str) -> str | None:
    for sign, advice in (
        ("HTTP 401", "check the key: --model-api-key, or policy_api_key in env.yaml"),
        ("HTTP 403", "check the key's rights, or policy_api_key in env.yaml"),
        ("HTTP 404", "check --model-url (OpenAI-style addresses usually end in /v1) and --model"),
        ("insufficient_quota", "the account behind the key has no quota left"),
        ("HTTP 429", "the endpoint limits its callers: lower --concurrency"),
        ("Cannot connect", "check that the model server runs and that --model-url is right"),
    ):
        if sign in reasons:
            return advice
    return None
