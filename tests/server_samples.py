"""Sample stacks of servers: records in the state folder, with logs and events, and what was measured of them, all with fixed times."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from backend.io.homes import state_home
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stack_watch import ServerSample, StackSample
from backend.servers.stacks import process_created

STARTED = 1_794_999_276.0
"""724 s before the clock of a tested workbench."""
COMMAND = ("gym", "env", "start", "--benchmark", "math_verified", "--model-type", "openai_model")
LOG = [
    "INFO:     Started server process [4188]",
    "INFO:     Uvicorn running on http://127.0.0.1:11003 (Press CTRL+C to quit)",
    "2026-11-18 11:01:09,871 INFO POST /verify 200 12 ms task=17 rep=2",
    "2026-11-18 11:05:10,020 WARNING sympy timeout after 5 s, falling back task=18 rep=1",
    "2026-11-18 11:06:10,447 ERROR judge request failed: 503 [/red] \x1b[31mService Unavailable\x1b[0m",
    "    retry 1/3 in 0.5 s",
    "2026-11-18 11:06:11,002 INFO POST /verify 200 9 ms task=19 rep=3",
]


def server(name: str, kind: str, port: int, pid: int, **facts: Any) -> StackServer:
    """A server that answers."""
    usual: dict[str, Any] = {
        "implementation": name, "url": f"http://127.0.0.1:{port}", "folder": f"{kind}/{name}", "pid": pid, "state": "ready",
        "seconds": 3.0, "phase": "ready", "phase_since": STARTED + 3,
    }  # fmt: skip
    return StackServer(name, kind, **{**usual, **facts})


def stack(stack_id: str = "20261118-105436-ab12", **facts: Any) -> StackRecord:
    """A stack of a head server and three others that run, kept by a process of this test."""
    servers = (
        server("math_with_judge", "resources_servers", 11003, 4188, uses=("policy_model",)),
        server("simple_agent", "responses_api_agents", 11004, 4190, uses=("math_with_judge", "policy_model")),
        server("policy_model", "responses_api_models", 11005, 4192, implementation="openai_model", seconds=1.2),
        server("head_server", "head_server", 11000, 4121, seconds=0.4),
    )
    usual: dict[str, Any] = {
        "id": stack_id, "pid": os.getpid(), "created": process_created(os.getpid()), "started": STARTED, "command": COMMAND,
        "folder": "evaluations", "head_url": "http://127.0.0.1:11000", "state": "ready", "events": "", "servers": servers,
        "name": "math_verified", "machine": os.uname().nodename,
    }  # fmt: skip
    return StackRecord(**{**usual, **facts})


def with_logs(record: StackRecord, logs: Mapping[str, Sequence[str]] | None = None) -> StackRecord:
    """The stack with a log file per server and an event file in the working directory, all of them short."""
    folder = Path("logs", record.id)
    folder.mkdir(parents=True, exist_ok=True)
    servers = []
    for number, each in enumerate(record.servers):
        path = folder / f"{each.name}.log"
        lines = (logs or {"math_with_judge": LOG}).get(each.name, [f"INFO:     {each.name} answers"])
        path.write_text("".join(f"{line}\n" for line in lines))
        os.utime(path, (STARTED + 700 + 8 * number, STARTED + 700 + 8 * number))
        servers.append(replace(each, log=str(path)))
    events = folder / "events.ndjson"
    write_events(events, start_events(record))
    return replace(record, servers=tuple(servers), events=str(events))


def start_events(record: StackRecord) -> list[dict[str, Any]]:
    """The events of a start in which every step takes its time."""
    events: list[dict[str, Any]] = [{"type": "stack.starting", "t": STARTED, "servers": [each.name for each in record.servers]}]
    for each in record.servers:
        ready = STARTED + (each.seconds or 3.0)
        if each.state == "preparing":
            continue
        events.append({"type": "environment.ready", "servers": [each.name], "origin": "shared", "folder": "", "t": STARTED + 0.2})
        started = each.phase_since if each.state == "starting" else STARTED + 0.35
        events.append({"type": "server.started", "name": each.name, "pid": each.pid, "t": started})
        if each.state in ("ready", "ended"):
            events.append({"type": "server.phase", "name": each.name, "phase": "setting up", "t": ready - 0.1})
            events.append({"type": "server.ready", "name": each.name, "seconds": each.seconds, "t": ready})
        if each.state == "ended":
            events.append({"type": "server.ended", "name": each.name, "code": each.code, "t": STARTED + 600})
    return sorted(events, key=lambda event: float(event["t"]))


def write_events(path: Path, events: Sequence[dict[str, Any]]) -> None:
    """An event file with these events."""
    path.write_text("".join(json.dumps({"v": 1, "seq": number, **event}) + "\n" for number, event in enumerate(events)))


def keep(record: StackRecord) -> StackRecord:
    """Note the stack in the state folder, as its command would."""
    folder = state_home("stacks")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{record.id}.json").write_text(json.dumps(asdict(record)))
    return record


def forget(record: StackRecord) -> None:
    """The stack's command has ended."""
    (state_home("stacks") / f"{record.id}.json").unlink()


def sample(name: str, **facts: Any) -> ServerSample:
    """What was measured of a server that does well."""
    usual: dict[str, Any] = {
        "alive": True, "health": "success", "http_status": 200, "latency_ms": 5.0, "cpu_percent": 9.0, "memory": 240_000_000,
        "in_flight": 0, "requests": 1000, "errors": 0, "cpu_seconds": 60.0,
    }  # fmt: skip
    return ServerSample(name, **{**usual, **facts})


def samples(record: StackRecord, number: int = 0, **servers: dict[str, Any]) -> StackSample:
    """The `number`-th sample of a stack; `servers` holds what is different for some of them, a list per server or values."""
    measured = []
    for each in record.servers:
        facts = {
            key: value[number % len(value)] if isinstance(value, list) else value
            for key, value in servers.get(each.name, {}).items()
        }
        if each.state == "ended" or not each.pid:
            facts = {"alive": False, "health": "connection_error", "http_status": None, "latency_ms": None, "cpu_percent": None,
                     "memory": None, "in_flight": None, "requests": None, "errors": None, "error": "Connection refused", **facts}  # fmt: skip
        measured.append(sample(each.name, **facts))
    return StackSample(record, 1000.0 + number, tuple(measured))
