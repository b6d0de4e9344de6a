"""Runs as they lie on disk, written with fixed times: for tests of whatever reads results."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

START = 1_794_990_000.0
"""When sample runs start: 2026-11-18 08:33:20 UTC."""
DEAD_PID = 4_194_305
"""Above what Linux gives out."""


def write_events(path: Path, events: Iterable[Mapping[str, Any]], start: float = START) -> None:
    """An event file; each event may have `after`, the seconds since the start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for number, event in enumerate(events):
            fields = dict(event)
            at = start + float(fields.pop("after", number))
            file.write(json.dumps({"v": 1, "seq": number, "t": at, **fields}) + "\n")


def write_run_record(folder: Path, stem: str, state: str, **facts: Any) -> None:
    """A run's record, with defaults for what is not given."""
    record = {
        "state": state,
        "command": [
            "gym",
            "eval",
            "run",
            "--benchmark",
            "first_steps",
            "--model-type",
            "llama_cpp_model",
            "--output",
            f"{stem}.jsonl",
        ],
        "cwd": str(folder),
        "host": "node7",
        "pid": DEAD_PID,
        "started_at": START,
        "ended_at": None if state == "running" else START + 252,
        "versions": {"gym_tui": "0.1.0", "nemo_gym": "0.6.0", "python": "3.11.7", "platform": "linux"},
        "output": str(folder / f"{stem}.jsonl"),
        "serve": True,
        "inputs": "rows.jsonl",
        "rollouts": 4,
        "agents": {"first_steps_agent": 4},
        "config": {"policy_model_name": "small-7b"},
        **facts,
    }
    path = folder / f"{stem}_run" / "run.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    os.utime(path, (START, START))


def finished(task: int, rollout: int, reward: float | None = None, **fields: Any) -> dict[str, Any]:
    """A `rollout.finished` event."""
    return {
        "type": "rollout.finished", "task": task, "rollout": rollout, "agent": "first_steps_agent", "seconds": 2.5, "reward": reward,
        "failure": None, "reason": None, "http_status": None, "input_tokens": 120, "output_tokens": 30, "offset": None, **fields,
    }  # fmt: skip


def started(task: int, rollout: int, **fields: Any) -> dict[str, Any]:
    """A `rollout.started` event."""
    return {"type": "rollout.started", "task": task, "rollout": rollout, "agent": "first_steps_agent", **fields}


def planned(total: int, concurrency: int = 4) -> list[dict[str, Any]]:
    """The events of a run up to its first rollout, three servers ready."""
    names = ("mcqa_resources_server", "first_steps_agent", "policy_model")
    kinds = ("resources_servers", "responses_api_agents", "responses_api_models")
    events: list[dict[str, Any]] = [
        {
            "type": "run.planned", "output": "m.jsonl", "inputs": "rows.jsonl", "rollouts": total, "concurrency": concurrency,
            "agents": {"first_steps_agent": total},
        },
        {"type": "stack.starting", "servers": list(names), "head_url": "http://127.0.0.1:11000"},
    ]  # fmt: skip
    for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        url = f"http://127.0.0.1:{12000 + number}"
        events.append({
            "type": "server.started", "name": name, "kind": kind, "implementation": "sample", "pid": 100 + number, "url": url,
        })  # fmt: skip
    events += [{"type": "server.ready", "name": name, "seconds": 1.2} for name in names]
    events += [{"type": "stack.ready", "seconds": 1.3, "instances": []}, {"type": "collection.started", "total": total}]
    return events


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """A JSON-lines file; gives back where each row begins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    offsets, offset = [], 0
    with open(path, "wb") as file:
        for row in rows:
            data = json.dumps(row, ensure_ascii=False).encode() + b"\n"
            offsets.append(offset)
            offset += file.write(data)
    return offsets


def sample_answer(task: int, reward: float, text: str) -> dict[str, Any]:
    """A record of the rollouts file."""
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {
        "responses_create_params": {"input": f"question {task}"},
        "response": {"status": "completed", "output": [message], "usage": {"input_tokens": 120, "output_tokens": 30}},
        "reward": reward, "_ng_task_index": task, "_ng_rollout_index": 0, "agent_ref": {"name": "first_steps_agent"},
    }  # fmt: skip


def live_run(folder: Path, done: int = 12, total: int = 40, *, state: str = "running", stem: str = "m", **facts: Any) -> Path:
    """A run of `total` rollouts of which `done` have finished (number 5 failed) and two more were started; gives its rollouts file.

    The last event is `30 + 5 * done` seconds after the start.
    """
    rewards = (0.0, 1.0, 0.5)
    offsets = write_rows(
        folder / f"{stem}.jsonl", [sample_answer(task, rewards[task % 3], f"The answer is {task}.") for task in range(done)]
    )
    rows = [{"_ng_task_index": task, "_ng_rollout_index": 0, "responses_create_params": {"input": "q"}} for task in range(total)]
    write_rows(folder / f"{stem}_materialized_inputs.jsonl", rows)
    events = [{**event, "after": 0.1 * number} for number, event in enumerate(planned(total))]
    events += [started(task, 0, after=10 + task) for task in range(min(total, done + 2))]
    for task in range(done):
        after = 30 + 5 * task
        if task == 5:
            events.append(finished(5, 0, failure="agent_run_error", reason="HTTP 500: the tool server said no", after=after))
        else:
            seconds, tokens = 2.5 + task % 4, 40 + 15 * (task % 7)
            events.append(
                finished(task, 0, rewards[task % 3], after=after, offset=offsets[task], output_tokens=tokens, seconds=seconds)
            )
    stage = {"task": done, "rollout": 0, "stage": "model call 2", "detail": "policy_model", "since": START + 25 + 5 * done}
    if done < total:
        events.append({"type": "rollout.stage", **stage, "after": 30 + 5 * done})
    write_run_record(folder, stem, state, rollouts=total, **facts)
    events_file = folder / f"{stem}_run" / "events.ndjson"
    write_events(events_file, events)
    last = START + 30 + 5 * done
    os.utime(events_file, (last, last))
    logs = folder / f"{stem}_run" / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "policy_model.log").write_text("".join(f"request {number} answered [/ok]\n" for number in range(40)))
    return folder / f"{stem}.jsonl"


def add_events(run_folder: Path, events: Sequence[Mapping[str, Any]]) -> None:
    """More events of a run that goes on; `t` must be given."""
    with open(run_folder / "events.ndjson", "a", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps({"v": 1, "seq": 0, **event}) + "\n")
