"""Where each rollout in flight is: asks every server what it works on, and tells what has changed.

The cost is bounded whatever is in flight: a look begins a second after the last one, later when looking takes long, and tells a limited
number of changes, of those rollouts first that were silent for longest. Servers that cannot tell are left alone.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from backend.config.schema import MODELS, RESOURCES
from backend.datasets.server_blocks import server_blocks
from backend.io.json_codec import loads
from backend.rollouts.run_events import RolloutStage
from backend.servers.addresses import server_url
from backend.servers.inflight import INFLIGHT_PATH

INTERVAL_SECONDS = 1.0
ANSWER_TIMEOUT_SECONDS = 2.0
MOST_CHANGES_TOLD = 200
"""Per look. An event is about 150 bytes: at a look a second never more than 110 MB an hour."""
_REST_PER_WORK = 20
"""Looking takes at most a twentieth of one core."""
_PHASES = {"POST /seed_session": "seed session", "POST /verify": "verify"}

InFlight = Mapping[str, tuple[int, int]]
"""Task and rollout index by rollout id."""
Say = Callable[[RolloutStage], bool]
"""Takes an event, or refuses it when there are too many already."""


@dataclass(frozen=True, slots=True)
class WatchedServer:
    """A server of the run."""

    name: str
    kind: str
    url: str


@dataclass(frozen=True, slots=True)
class Stage:
    """Where one rollout is. `since` is in seconds since the epoch, by this machine's clock."""

    name: str
    detail: str
    since: float
    count: int
    """Tells two calls of the same tool apart."""
    depth: int
    """0 for the agent, 1 for what it has called, 2 for the phases around its loop, during which other calls are parts of them."""

    def is_same(self, other: Stage) -> bool:
        """Whether nothing has changed; `since` is left out, because clocks of machines drift."""
        return (self.name, self.detail, self.count) == (other.name, other.detail, other.count)


def watched_servers(config: Mapping[str, Any]) -> list[WatchedServer]:
    """The servers of a configuration in which ports are filled in."""
    return [
        WatchedServer(block.instance, block.kind, server_url(block.fields["host"], block.fields["port"]))
        for block in server_blocks(config)
        if block.fields.get("host") and block.fields.get("port")
    ]


def stage_of(server: WatchedServer, what: str, count: int, since: float) -> Stage:
    """The stage of a rollout for which `server` does `what` (method and path) for the `count`-th time."""
    if server.kind == MODELS:
        return Stage(f"model call {count}", server.name, since, count, 1)
    if server.kind == RESOURCES:
        phase = _PHASES.get(what)
        return Stage(phase or f"tool {what.partition(' /')[2]}", server.name, since, count, 2 if phase else 1)
    return Stage("agent", server.name, since, 0, 0)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server works on, as it says itself. `offset` is what this machine's clock is ahead of the server's, in seconds."""

    server: WatchedServer
    work: tuple[Mapping[str, Any], ...]
    offset: float


def read_answer(server: WatchedServer, body: bytes, now: float) -> Answer | None:
    """The answer of `GET /inflight` that came at `now`; None when it is none."""
    try:
        answer = loads(body)
        items = tuple(answer["work"])
        well_formed = all(
            isinstance(item["what"], str) and isinstance(item["count"], int) and isinstance(item["since"], int | float)
            for item in items
            if item["rollout_id"] is not None and (item["run"] is None or isinstance(item["run"], str))
        )
        return Answer(server, items, now - answer["now"]) if well_formed else None
    except (ValueError, TypeError, KeyError):
        return None


def merge_stages(answers: Iterable[Answer], run: str) -> dict[str, Stage]:
    """One stage per rollout id out of the servers' answers: the innermost, and of several the one begun last.

    Work of other runs, told apart by the tag `run`, is left out.
    """
    stages: dict[str, Stage] = {}
    for answer in answers:
        for work in answer.work:
            rollout_id = work["rollout_id"]
            if rollout_id is None or work["run"] not in (None, run):
                continue
            stage = stage_of(answer.server, work["what"], work["count"], work["since"] + answer.offset)
            known = stages.get(rollout_id)
            if known is None or (stage.depth, stage.since) > (known.depth, known.since):
                stages[rollout_id] = stage
    return stages


class StageWatch:
    """Watches the servers of one run. `in_flight` is the collector's own mapping and changes meanwhile; `run` is the run's tag."""

    def __init__(self, servers: Sequence[WatchedServer], run: str, in_flight: InFlight) -> None:
        self._servers = list(servers)
        self._run = run
        self._in_flight = in_flight
        self._answers: dict[str, Answer] = {}
        self._told: dict[str, tuple[Stage, float]] = {}

    async def watch(self, say: Say) -> None:
        """Look about once a second until cancelled, or until no server is left that can tell."""
        connector = aiohttp.TCPConnector(limit=0)  # of its own: the run's may have every connection in use
        timeout = aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_SECONDS)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
            while self._servers:
                await asyncio.sleep(INTERVAL_SECONDS)
                if not self._in_flight:
                    continue
                bodies = await asyncio.gather(*(self._ask(session, server) for server in self._servers))
                began = time.process_time()
                for server, body in zip(tuple(self._servers), bodies, strict=True):
                    if body is not None:
                        self._take(server, body)
                self.tell_changes(say)
                await asyncio.sleep(_REST_PER_WORK * (time.process_time() - began))

    def tell_changes(self, say: Say) -> None:
        """Say what has changed since it was last said. Rollouts that have finished meanwhile are left out, and forgotten."""
        now = time.time()
        self._told = {rollout_id: told for rollout_id, told in self._told.items() if rollout_id in self._in_flight}
        changed = []
        for rollout_id, stage in merge_stages(self._answers.values(), self._run).items():
            told = self._told.get(rollout_id)
            if rollout_id in self._in_flight and (told is None or not told[0].is_same(stage)):
                changed.append((told[1] if told else 0.0, rollout_id, stage))
        for _, rollout_id, stage in heapq.nsmallest(MOST_CHANGES_TOLD, changed, key=lambda change: change[0]):
            task, rollout = self._in_flight[rollout_id]
            # The agent's own request began with the rollout: where the rollout comes back to it, that is no longer the stage's begin.
            since = now if stage.depth == 0 and rollout_id in self._told else stage.since
            if not say(RolloutStage(task, rollout, stage.name, stage.detail, round(since, 3))):
                return
            self._told[rollout_id] = (stage, now)

    async def _ask(self, session: aiohttp.ClientSession, server: WatchedServer) -> bytes | None:
        """What the server answers; nothing when it is not there; None when it does not come to answering."""
        try:
            async with session.get(server.url + INFLIGHT_PATH, allow_redirects=False) as response:
                return await response.read() if response.status == 200 else b"no such route"
        except TimeoutError:
            return None  # a verifier that computes: what it said last is still the best guess
        except (aiohttp.ClientError, OSError):
            return b""

    def _take(self, server: WatchedServer, body: bytes) -> None:
        self._answers.pop(server.name, None)
        if body:
            answer = read_answer(server, body, time.time())
            if answer is not None:
                self._answers[server.name] = answer
            else:
                self._servers.remove(server)
