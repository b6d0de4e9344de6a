"""Asks every agent for the metrics of its rollouts, and writes them beside the rollouts.

Records go to the agent as a stream read from the rollouts file; this process keeps 24 bytes a rollout.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import aiohttp

from backend.errors import GymError
from backend.io.files import write_atomically
from backend.io.json_codec import dumps, dumps_indented, loads
from backend.io.jsonl import read_jsonl
from backend.io.row_keys import AGENT_REF, ROLLOUT, TASK
from backend.rollouts.control import LOST_CONNECTION_PAUSE_SECONDS
from backend.servers.http_client import RetryRule, send

LEFT_OUT = ("response", "responses_create_params", "ng_agent_observations", "ng_model_call_capture", "ng_trajectory")
TRIES = 2
_SENT_AT_ONCE = 1 << 16


@dataclass(slots=True)
class _Positions:
    """Where one agent's records are in the rollouts file, with the indices by which they are sorted."""

    tasks: array[int] = field(default_factory=lambda: array("q"))
    repeats: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))

    def in_order(self) -> array[int]:
        """Offsets by task and repeat; the newer of two records of one rollout counts, and stands alone."""
        tasks, repeats = self.tasks, self.repeats
        order = array("q", sorted(range(len(tasks)), key=lambda place: (tasks[place], repeats[place], place)))
        same_as_next = [
            tasks[place] == tasks[following] and repeats[place] == repeats[following] for place, following in pairwise(order)
        ]
        return array("q", (self.offsets[place] for place, again in zip_longest(order, same_as_next) if not again))


def metric_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """What metrics may look at: the record without transcripts and captures, with the response's usage if it has one."""
    kept = {key: value for key, value in record.items() if key not in LEFT_OUT}
    response = record.get("response")
    usage = response.get("usage") if isinstance(response, dict) else None
    if usage:
        kept["response"] = {"usage": usage}
    return kept


async def aggregate(
    rollouts: Path, output: Path, agents: Mapping[str, str], counted_as_zero: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Write the metrics of all agents to `output` and return them, ordered by agent name.

    `counted_as_zero` are failures that go into the denominator. One agent's failure loses only its own entry: what there is is
    written first, then `GymError` names the agents that failed. Returns an empty list, and writes nothing, without records.
    """
    positions = _index(rollouts)
    extra: dict[str, list[Mapping[str, Any]]] = {}
    for record in counted_as_zero:
        extra.setdefault(record[AGENT_REF]["name"], []).append(record)
    names = sorted({*positions, *extra})
    answers = await asyncio.gather(
        *(_ask(agents[name], rollouts, positions.get(name, _Positions()), extra.get(name, [])) for name in names),
        return_exceptions=True,
    )
    entries = []
    failed = {}
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, dict):
            entries.append({AGENT_REF: {"name": name}, **answer})
        elif isinstance(answer, Exception):
            failed[name] = answer
        else:
            raise answer
    if entries:
        write_atomically(output, dumps_indented(entries))
    if failed:
        raise GymError(
            f"no metrics from {', '.join(f'`{name}`' for name in failed)}; the rollouts are safe in {rollouts}",
            details=[f"{name}: {error}" for name, error in failed.items()],
        )
    return entries


def _index(rollouts: Path) -> dict[str, _Positions]:
    positions: dict[str, _Positions] = {}
    for line in read_jsonl(rollouts, allow_torn_tail=True):
        agent = (line.value.get(AGENT_REF) or {}).get("name")
        if agent:
            place = positions.setdefault(agent, _Positions())
            place.tasks.append(line.value[TASK])
            place.repeats.append(line.value[ROLLOUT])
            place.offsets.append(line.offset)
    return positions


async def _ask(base_url: str, rollouts: Path, positions: _Positions, extra: list[Mapping[str, Any]]) -> dict[str, Any]:
    for attempt in range(1, TRIES + 1):
        try:
            with open(rollouts, "rb") as file:
                response = await send(
                    "POST",
                    f"{base_url}/aggregate_metrics",
                    RetryRule(),
                    data=_body(file, positions, extra),
                    headers={"Content-Type": "application/json"},
                )
                content = await response.read()
            if response.ok:
                answer = loads(content)
                return {key: value for key, value in answer.items() if not (key == "perf_summary" and value is None)}
            reason = content[:500].decode("utf-8", "replace")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            reason = str(error) or repr(error)
            await asyncio.sleep(LOST_CONNECTION_PAUSE_SECONDS)
        if attempt == TRIES:
            raise GymError(f"POST {base_url}/aggregate_metrics: {reason}")
    raise AssertionError("unreachable")


async def _body(file: BinaryIO, positions: _Positions, extra: list[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    chunk = bytearray(b'{"verify_responses":[')
    separator = b""
    for offset in positions.in_order():
        file.seek(offset)
        chunk += separator + dumps(metric_record(loads(file.readline())))
        separator = b","
        if len(chunk) >= _SENT_AT_ONCE:
            yield bytes(chunk)
            chunk.clear()
    for record in extra:
        chunk += separator + dumps(metric_record(record))
        separator = b","
    yield bytes(chunk + b"]}")
