"""Folds the events of a run into the state that a live view shows.

Pure: no clock and no files. Times come from the events' own `t` and from the `now` that queries take, both seconds since the epoch.
Events are mappings as JSON gives them; what is unknown or of a wrong type is passed over. An event file may hold several sessions,
because a resumed run appends to it: scores that are known stay, counts of failures begin again with what the run says it keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from backend.metrics.descriptive import as_number
from backend.rollouts.run_progress_clock import RateMeter
from backend.rollouts.run_progress_parts import (
    AgentProgress,
    EndpointState,
    FailureTally,
    Finished,
    Flight,
    Phase,
    Remark,
    ServerState,
    Waiting,
)
from backend.rollouts.run_progress_view import KEPT_FINISHED, RunState

MOST_FAILURE_CLASSES = 100
OTHER_CLASSES = "(other classes)"
_REASON_CHARACTERS = 500
_LATEST = 1e12
"""Seconds since the epoch that no event is later than; what is beyond is no time."""


class RunProgress(RunState):
    """The state after the events fed so far; what can be asked of it is in `RunState`."""

    def __init__(self) -> None:
        super().__init__()
        self._folds = {
            "run.planned": self._run_planned,
            "stack.starting": self._stack_starting,
            "server.started": self._server_started,
            "server.ready": self._server_ready,
            "server.ended": self._server_ended,
            "stack.progress": self._stack_progress,
            "stack.ready": self._stack_progress,
            "endpoint.state": self._endpoint_state,
            "collection.started": self._collection_started,
            "collection.waiting": self._collection_waiting,
            "collection.ended": self._collection_ended,
            "rollout.started": self._rollout_started,
            "rollout.stage": self._rollout_stage,
            "rollout.finished": self._rollout_finished,
            "run.control": self._run_control,
            "metrics.written": self._metrics_written,
            "run.summary": self._run_summary,
            "run.ended": self._run_ended,
            "notice": self._notice,
        }

    def feed(self, events: Iterable[Any]) -> None:
        """Fold several events."""
        for event in events:
            self.fold(event)

    def fold(self, event: Any) -> None:
        """Fold one event."""
        if not isinstance(event, dict):
            return
        kind = event.get("type")
        fold = self._folds.get(kind) if isinstance(kind, str) else None
        at = as_number(event.get("t"))
        now = self._clock.advance(at) if at is not None and 0 <= at <= _LATEST else self._clock.latest
        if fold is None:
            return
        if self.started_at is None:
            self.started_at = now
        fold(event, now)
        self.generation += 1

    def _run_planned(self, event: dict[str, Any], now: float) -> None:
        self.phase = Phase.PLANNED
        self.started_at = now
        self.ended_at = self.collecting_since = None
        self.summary = self.key_metrics = self.error = self.stop_action = self.waiting = None
        self.servers.clear()
        self.endpoints.clear()
        self._in_flight.clear()
        self.output, self.inputs = _text(event, "output") or None, _text(event, "inputs") or None
        self.planned, self.concurrency = _whole(event, "rollouts"), _whole(event, "concurrency")
        agents = event.get("agents")
        for name, count in agents.items() if isinstance(agents, dict) else ():
            self._agent(name).planned = count if type(count) is int else None

    def _stack_starting(self, event: dict[str, Any], _now: float) -> None:
        self.phase = Phase.STARTING
        self.head_url = _text(event, "head_url") or None
        names = event.get("servers")
        self.servers = {name: ServerState(name) for name in names if isinstance(name, str)} if isinstance(names, list) else {}

    def _server_started(self, event: dict[str, Any], _now: float) -> None:
        if name := _text(event, "name"):
            self.servers[name] = ServerState(
                name,
                "starting",
                _text(event, "kind"),
                _text(event, "implementation"),
                _text(event, "url"),
                _whole(event, "pid"),
            )

    def _server_ready(self, event: dict[str, Any], _now: float) -> None:
        if name := _text(event, "name"):
            known = self.servers.get(name) or ServerState(name)
            self.servers[name] = replace(known, state="up", seconds=as_number(event.get("seconds")))

    def _server_ended(self, event: dict[str, Any], _now: float) -> None:
        if name := _text(event, "name"):
            known = self.servers.get(name) or ServerState(name)
            self.servers[name] = replace(known, state="ended", code=_whole(event, "code"))

    def _stack_progress(self, _event: dict[str, Any], _now: float) -> None:
        if self.phase in (Phase.PLANNED, Phase.STARTING):
            self.phase = Phase.WAITING

    def _endpoint_state(self, event: dict[str, Any], now: float) -> None:
        url, key = _text(event, "url"), _text(event, "key")
        self.endpoints[url, key] = EndpointState(url, key, _text(event, "state"), _text(event, "reason"), now)

    def _collection_started(self, event: dict[str, Any], now: float) -> None:
        self.phase = Phase.COLLECTING
        self.collecting_since = now
        self.planned = _whole(event, "total") if _whole(event, "total") is not None else self.planned
        self.scored = self.scored_before = _whole(event, "scored_before") or 0
        self.failed = self.failed_before = _whole(event, "failed_before") or 0
        self.cancelled = self._session_finished = 0
        self.failures.clear()
        self._in_flight.clear()
        self._tasks.begin_session()
        self._rate = RateMeter()
        if not self.scored_before:
            self._forget_scores()
        for agent in self.agents.values():
            agent.finished, agent.failed = agent.scored, 0

    def _collection_waiting(self, event: dict[str, Any], now: float) -> None:
        self.waiting = Waiting(now, float(as_number(event.get("seconds")) or 0.0), _whole(event, "in_flight") or 0)

    def _collection_ended(self, event: dict[str, Any], _now: float) -> None:
        self.phase = Phase.AGGREGATING
        self.waiting = None
        self._in_flight.clear()
        for name in ("scored", "failed", "cancelled"):
            count = _whole(event, name)
            if count is not None:
                setattr(self, name, count)

    def _rollout_started(self, event: dict[str, Any], now: float) -> None:
        task, rollout = event.get("task"), event.get("rollout")
        if type(task) is int and type(rollout) is int:
            if (task, rollout) not in self._in_flight:
                self._tasks.sent(task)
            self._in_flight[task, rollout] = Flight(task, rollout, _whole(event, "attempt") or 0, _text(event, "agent"), now)
            self._look_at_rest()

    def _rollout_stage(self, event: dict[str, Any], now: float) -> None:
        task, rollout = event.get("task"), event.get("rollout")
        flight = self._in_flight.get((task, rollout)) if type(task) is int and type(rollout) is int else None
        if flight is not None:
            since = as_number(event.get("since"))
            flight.stage, flight.detail, flight.last_sign = _text(event, "stage"), _text(event, "detail"), now
            flight.stage_since = now if since is None else max(flight.since, self._clock.past(since))

    def _rollout_finished(self, event: dict[str, Any], now: float) -> None:
        task, rollout = event.get("task"), event.get("rollout")
        if type(task) is not int or type(rollout) is not int:
            return
        key = (task, rollout)
        flight = self._in_flight.pop(key, None)
        if flight is None:
            self._tasks.sent(task)
        self._tasks.came_back(task)
        agent_name = _text(event, "agent")
        failure = event.get("failure")
        reward, seconds = as_number(event.get("reward")), as_number(event.get("seconds"))
        input_tokens, output_tokens = _count(event, "input_tokens"), _count(event, "output_tokens")
        attempt = _whole(event, "attempt")
        line = Finished(
            task,
            rollout,
            (flight.attempt if flight else 0) if attempt is None else attempt,
            agent_name,
            now,
            None if seconds is None else float(seconds),
            None if reward is None else float(reward),
            None if failure is None else str(failure),
            _text(event, "reason")[:_REASON_CHARACTERS],
            _whole(event, "http_status"),
            input_tokens,
            output_tokens,
            _count(event, "offset"),
        )
        self._keep_line(key, line)
        self._rate.add(now)
        self._session_finished += 1
        self.waiting = None
        if seconds is not None:
            self._seconds.add(max(0.0, seconds))
        self.input_tokens += input_tokens or 0
        if output_tokens is not None:
            self.output_tokens += output_tokens
            self._tokens.add(output_tokens)
        agent = self._agent(agent_name)
        agent.finished += 1
        if line.failure is not None:
            self.failed += 1
            agent.failed += 1
            self._count_failure(line)
        else:
            self.scored += 1
            agent.scored += 1
            if line.reward is not None:
                self._scores.add(task, line.reward)
                self._rewards.add(line.reward)
                agent.rewards += 1
                agent.reward_sum += line.reward
        self._look_at_rest()

    def _look_at_rest(self) -> None:
        """Whether anything is left to send."""
        if self.planned is not None and self.planned - self.scored - self.failed <= len(self._in_flight):
            self._tasks.all_sent()

    def _keep_line(self, key: tuple[int, int], line: Finished) -> None:
        self.arrivals += 1
        if self._finished.pop(key, None) is None and len(self._finished) >= KEPT_FINISHED:
            self._finished.popitem(last=False)
        self._finished[key] = line

    def _count_failure(self, line: Finished) -> None:
        name = line.failure or ""
        if name not in self.failures and len(self.failures) >= MOST_FAILURE_CLASSES:
            name = OTHER_CLASSES
        tally = self.failures.setdefault(name, FailureTally())
        tally.count += 1
        tally.last_at, tally.last_reason = line.at, line.reason

    def _run_control(self, event: dict[str, Any], _now: float) -> None:
        self.stop_action, self.stop_by = _text(event, "action") or None, _text(event, "by")
        if self.phase is Phase.COLLECTING and self.stop_action in ("drain", "cancel"):
            self.phase = Phase.DRAINING

    def _metrics_written(self, event: dict[str, Any], _now: float) -> None:
        metrics = event.get("key_metrics")
        self.key_metrics = metrics if isinstance(metrics, dict) else None

    def _run_summary(self, event: dict[str, Any], now: float) -> None:
        self.summary = event
        for name in ("scored", "failed"):
            count = _whole(event, name)
            if count is not None:
                setattr(self, name, count)
        self._end(_text(event, "state"), now)

    def _run_ended(self, event: dict[str, Any], now: float) -> None:
        self.error = _text(event, "error") or None
        self._end(_text(event, "state"), now)

    def _end(self, state: str, now: float) -> None:
        self.phase = {"done": Phase.DONE, "stopped": Phase.STOPPED}.get(state, Phase.FAILED)
        self.ended_at = now
        self.waiting = None
        self._in_flight.clear()
        if self.missing == 0:
            self._tasks.all_back()

    def _notice(self, event: dict[str, Any], now: float) -> None:
        self.notices.append(Remark(now, _text(event, "level") or "info", _text(event, "text")))

    def _agent(self, name: Any) -> AgentProgress:
        return self.agents.setdefault(str(name), AgentProgress())


def _text(event: Mapping[str, Any], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _whole(event: Mapping[str, Any], key: str) -> int | None:
    value = event.get(key)
    return value if type(value) is int else None


def _count(event: Mapping[str, Any], key: str) -> int | None:
    value = event.get(key)
    return value if type(value) is int and value >= 0 else None
