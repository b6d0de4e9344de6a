"""How the servers of the stacks on this machine are doing: alive, answering, how busy, how big.

For `gym env status` and for the Servers screen. Standard library and psutil only, no event loop: it runs in a command and in a
screen's thread alike. All probes go out at once and together take 2 s at most.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from backend.servers.process_identity import process_age
from backend.servers.process_tree import descendants
from backend.servers.stack_record import StackRecord, StackServer

PROBE_SECONDS = 2.0
_LONGEST_ANSWER = 4 << 20
_INFLIGHT_PATH = "/inflight"


@dataclass(frozen=True, slots=True)
class ServerSample:
    """One server at one moment. What could not be found out is None."""

    name: str
    alive: bool
    """Whether its process runs."""
    health: str
    """Of `GET /`: `success` (any HTTP answer), `connection_error` (also: not ready yet), `timeout` (2 s), `unknown_error`."""
    http_status: int | None = None
    latency_ms: float | None = None
    """Of `GET /`, connecting included."""
    cpu_percent: float | None = None
    """Of one core, its tools and workers included: since the sample before, at the first one since the process began."""
    memory: int | None = None
    """Resident bytes of the process and all below it; pages that forked servers share count in each."""
    in_flight: int | None = None
    """Requests that it is answering; None where it does not tell (`GET /inflight`)."""
    requests: int | None = None
    """Requests answered since it began, without `GET /` and `GET /inflight`."""
    errors: int | None = None
    """Those of them with a status of 500 and up."""
    error: str = ""
    """Why the probe failed, in a few words."""
    cpu_seconds: float | None = None
    """CPU time used since the process began: what the next sample's `cpu_percent` is counted from."""


@dataclass(frozen=True, slots=True)
class StackSample:
    """A stack at one moment; `servers` has one sample per server of the record, in its order."""

    record: StackRecord
    at: float
    """On the monotonic clock."""
    servers: tuple[ServerSample, ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a server said to the two questions."""

    health: str
    http_status: int | None = None
    latency_ms: float | None = None
    in_flight: int | None = None
    requests: int | None = None
    errors: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Usage:
    """What a process and all below it use. `age` is in seconds."""

    cpu_seconds: float
    memory: int
    age: float


def sample_stacks(records: Sequence[StackRecord], earlier: Iterable[StackSample] = ()) -> tuple[StackSample, ...]:
    """One sample per record, in its order, for instance of `running_stacks()`; `earlier` are those of the call before."""
    servers = [server for record in records for server in record.servers]
    answers = _ask_all([server.url for server in servers if server.state == "ready"])
    at = time.monotonic()
    usages = _usages({server.pid for server in servers if server.pid})
    before = {(sample.record.id, server.name): (sample.at, server) for sample in earlier for server in sample.servers}
    samples = []
    for record in records:
        ours = tuple(
            _server_sample(
                server,
                answers.get(server.url) or _silence(server),
                usages.get(server.pid),
                at,
                before.get((record.id, server.name)),
            )
            for server in record.servers
        )
        samples.append(StackSample(record, at, ours))
    return tuple(samples)


def _silence(server: StackServer) -> _Answer:
    """Of a server that is not asked: its socket is there before it is, and would keep the question for later."""
    return _Answer("connection_error", error="it has ended" if server.state == "ended" else "it is not ready yet")


def _server_sample(
    server: StackServer, answer: _Answer, usage: _Usage | None, at: float, before: tuple[float, ServerSample] | None
) -> ServerSample:
    return ServerSample(
        name=server.name,
        alive=usage is not None,
        health=answer.health,
        http_status=answer.http_status,
        latency_ms=answer.latency_ms,
        cpu_percent=_cpu_percent(usage, at, before) if usage is not None else None,
        memory=usage.memory if usage is not None else None,
        in_flight=answer.in_flight,
        requests=answer.requests,
        errors=answer.errors,
        error=answer.error,
        cpu_seconds=usage.cpu_seconds if usage is not None else None,
    )


def _cpu_percent(usage: _Usage, at: float, before: tuple[float, ServerSample] | None) -> float:
    used, seconds = usage.cpu_seconds, usage.age
    if before is not None and before[1].cpu_seconds is not None:
        used, seconds = used - before[1].cpu_seconds, at - before[0]
    # A tool that ended took its share with it, and the system counts in ticks.
    return max(0.0, round(100 * used / seconds, 1)) if seconds > 0 else 0.0


def _usages(pids: set[int]) -> dict[int, _Usage]:
    """CPU and memory of the processes `pids`, each with all that descend from it; those that are gone are left out."""
    usages = {}
    for pid, below in descendants(pids).items():
        found = [usage for usage in map(_own_usage, below) if usage is not None]
        own = _own_usage(pid)
        if own is not None:
            usages[pid] = _Usage(
                own.cpu_seconds + sum(usage.cpu_seconds for usage in found),
                own.memory + sum(usage.memory for usage in found),
                own.age,
            )
    return usages


def _own_usage(pid: int) -> _Usage | None:
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            times = process.cpu_times()
            age = process_age(pid)
            if age is None:
                age = time.time() - process.create_time()
            return _Usage(times.user + times.system, process.memory_info().rss, age)
    except psutil.Error:
        return None


def _ask_all(urls: Iterable[str]) -> dict[str, _Answer]:
    """The answers of all servers, asked at once; one that has not answered after `PROBE_SECONDS` is not waited for."""
    answers: dict[str, _Answer] = {}
    threads = []
    for url in dict.fromkeys(urls):
        # Daemons: one that hangs on a server that drips its answer must not hold up the end of the program.
        thread = threading.Thread(target=_ask, args=(url, answers), name="server-probe", daemon=True)
        thread.start()
        threads.append((url, thread))
    deadline = time.monotonic() + PROBE_SECONDS
    for _, thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = _Answer("timeout", error=f"no answer within {PROBE_SECONDS:g} s")
    return {url: answers.get(url, late) for url, _ in threads}


def _ask(url: str, answers: dict[str, _Answer]) -> None:
    answers[url] = _answer_of(url)


def _answer_of(url: str) -> _Answer:
    place = urlsplit(url)
    if not place.hostname:
        return _Answer("unknown_error", error="it has no address")
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=PROBE_SECONDS)
    try:
        began = time.monotonic()
        status, _ = _get(connection, "/")
        latency = (time.monotonic() - began) * 1000
        in_flight, requests, errors = _work(connection)
        return _Answer("success", status, round(latency, 1), in_flight, requests, errors)
    except TimeoutError:
        return _Answer("timeout", error=f"no answer within {PROBE_SECONDS:g} s")
    except OSError as error:
        return _Answer("connection_error", error=error.strerror or type(error).__name__)
    except http.client.HTTPException as error:
        return _Answer("unknown_error", error=f"not an HTTP answer ({type(error).__name__})")
    finally:
        connection.close()


def _work(connection: http.client.HTTPConnection) -> tuple[int | None, int | None, int | None]:
    """Requests in flight, answered, failed; None where the server does not tell."""
    try:
        status, body = _get(connection, _INFLIGHT_PATH)
        told = json.loads(body) if status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None, None, None
    if not isinstance(told, dict) or not isinstance(told.get("work"), list):
        return None, None, None
    return len(told["work"]), _count(told.get("requests")), _count(told.get("errors"))


def _get(connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read(_LONGEST_ANSWER)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
