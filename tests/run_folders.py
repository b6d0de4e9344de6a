"""Writes the folders of runs without running anything: records, events, results, as small files."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

BEGAN = 1_700_000_000.0
AGENT = "first_steps_agent"


def event(kind: str, at: float, /, **fields: Any) -> dict[str, Any]:
    return {"v": 1, "seq": 0, "t": at, "type": kind, **fields}


def started(task: int, rollout: int = 0, at: float = BEGAN, **more: Any) -> dict[str, Any]:
    return event("rollout.started", at, task=task, rollout=rollout, agent=AGENT, **more)


def finished(task: int, rollout: int = 0, at: float = BEGAN + 1, **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "seconds": 1.0, "reward": 1.0, "failure": None, "reason": None, "http_status": None,
        "input_tokens": 100, "output_tokens": 10, "offset": 0, "attempt": 0,
    }  # fmt: skip
    return event("rollout.finished", at, task=task, rollout=rollout, agent=AGENT, **{**fields, **more})


def failed(task: int, rollout: int = 0, at: float = BEGAN + 1, name: str = "agent_run_error", **more: Any) -> dict[str, Any]:
    return finished(task, rollout, at, **{"reward": None, "failure": name, "reason": "it broke", **more})


def summary(at: float, scored: int, failures: int, missing: int, mean: float, state: str = "done") -> dict[str, Any]:
    row = {
        "agent": AGENT, "name": "reward/mean", "value": mean, "scale": "0-1", "scored": scored, "failed": failures,
        "missing": missing, "interval": {"low": mean - 0.1, "high": mean + 0.1, "method": "normal"},
    }  # fmt: skip
    return event(
        "run.summary", at, state=state, scores=[row], total=scored + failures + missing,
        scored=scored, failed=failures, missing=missing, failure_classes={},
    )  # fmt: skip


def record(output: Path, /, **changes: Any) -> dict[str, Any]:
    """A run record; `changes` replace its keys."""
    command = ["gym", "eval", "run", "--benchmark", "first_steps", "--output", str(output)]
    return {
        "state": "done",
        "command": command,
        "cwd": str(output.parent),
        "output": str(output),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started_at": BEGAN,
        "ended_at": BEGAN + 60,
        "rollouts": 10,
        "agents": {AGENT: 10},
        "config": {"policy_model_name": "small-7b", "split": "benchmark"},
        "scored": 10,
        "failed": 0,
        "missing": 0,
        **changes,
    }


def write_events(path: Path, events: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in events))


def write_run(output: Path, /, events: list[dict[str, Any]] | None = None, **changes: Any) -> Path:
    """The rollouts file, the materialized inputs and the run folder of a run; gives the run folder."""
    folder = output.with_name(f"{output.stem}_run")
    folder.mkdir(parents=True)
    output.write_text("")
    output.with_name(f"{output.stem}_materialized_inputs.jsonl").write_text("{}\n")
    (folder / "run.json").write_text(json.dumps(record(output, **changes)))
    write_events(folder / "events.ndjson", [summary(BEGAN + 60, 10, 0, 0, 0.5)] if events is None else events)
    return folder
