"""Rollouts for tests: a seeded generator of records with everything a reader has to cope with, and files of any number of rows."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

AGENT = {"name": "sums_simple_agent"}
HOSTILE = "[/red] [bold \x1b[31mred\x1b[0m \x1b]52;c;aGk=\x07 \x9b2J \u202eevil\u2069 \x00 日本語 👩‍👩‍👧 e\u0301 [@click=app.quit]x[/]\r\nsecond\tline"
QUESTION = "Find the number of ordered pairs (a, b) with a and b from 0 to 8 and a*b = 3 modulo 7."
BAD_LINE = 9
"""1-based line of the sample file that is no JSON."""


def message(role: str, text: str) -> dict[str, Any]:
    """A message item; what the assistant says has content parts, as endpoints answer."""
    if role == "assistant":
        return {
            "id": "msg_1",
            "type": "message",
            "role": role,
            "status": "completed",
            "content": [{"type": "output_text", "text": text}],
        }
    return {"type": "message", "role": role, "content": text}


def reasoning(text: str) -> dict[str, Any]:
    """What the model thought before it spoke."""
    return {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def tool_call(call: str, code: str) -> dict[str, Any]:
    """A call of the tool `python`."""
    return {
        "type": "function_call",
        "id": f"fc_{call}",
        "call_id": call,
        "name": "python",
        "arguments": json.dumps({"code": code}),
    }


def tool_result(call: str, output: str) -> dict[str, Any]:
    """What the tool answered."""
    return {"type": "function_call_output", "call_id": call, "output": output}


def record(task: int, rollout: int, reward: float, output: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """A scored rollout. `more` overrides or adds top-level keys."""
    written = sum(len(json.dumps(item)) // 4 for item in output)
    return {
        "responses_create_params": {
            "input": [
                message("system", "Answer briefly and put the result in a box."),
                message("user", f"{QUESTION} (task {task})"),
            ],
            "temperature": 0.2,
            "tools": [{"type": "function", "name": "python", "parameters": {}}],
        },
        "response": {
            "id": f"resp_{task}_{rollout}",
            "created_at": 1_795_000_000.0,
            "completed_at": 1_795_000_016.0,
            "model": "small-7b",
            "object": "response",
            "status": "completed",
            "output": list(output),
            "usage": {
                "input_tokens": 400 + task,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": written // 2},
                "total_tokens": 400 + task + written,
            },
        },
        "reward": reward,
        "extracted_answer": "12" if reward else "13",
        "expected_answer": "12",
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
        "agent_ref": AGENT,
        **more,
    }


def failure(task: int, rollout: int, kind: str, reason: str, status: int | None) -> dict[str, Any]:
    """A failed attempt, as the failures sidecar holds it."""
    return {
        "_ng_failure_class": kind,
        "_ng_failure_type": "ClientResponseError",
        "_ng_failure_message": reason,
        "_ng_failure_http_status": status,
        "_ng_failure_response_body": '{"detail": "the model server gave up"}',
        "failure_reason": reason,
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
        "agent_ref": AGENT,
    }


def sample_lines(seed: int = 7) -> list[str]:
    """Twelve lines: four repeats of task 0 (the last one only in the sidecar), tools that fail, orphans, a cut answer, hostile text, wrong types, a bad row."""
    dice = random.Random(seed)

    def thought() -> str:
        words = ("pairs", "residues", "modulo", "consider", "seven", "case", "count", "period", "therefore", "again")
        return " ".join(dice.choice(words) for _ in range(60))

    solved = [
        reasoning(thought()),
        message("assistant", "I will check small cases first."),
        tool_call("call_1", "sum(1 for a in range(9)\n    for b in range(9) if a * b % 7 == 3)"),
        tool_result("call_1", "12"),
        message("assistant", "The count repeats with **period 7**, hence\n\nThe answer is \\boxed{12}."),
    ]
    wrong = [*solved[:4], message("assistant", "The count repeats with **period 7**, hence\n\nThe answer is \\boxed{13}.")]
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    length = record(2, 0, 0.0, [reasoning(thought()), message("assistant", "So we need to consider " + thought())])
    length["response"] |= cut
    broken_call = [
        tool_call("call_2", "1/0"),
        tool_result("call_2", "Error: ZeroDivisionError: division by zero"),
        message("assistant", "I give up."),
    ]
    orphans = [
        tool_result("call_9", "nobody asked"),
        tool_call("call_8", "print(1)"),
        message("assistant", "The answer is \\boxed{12}."),
    ]
    rows: list[Any] = [
        record(0, 0, 1.0, solved),
        record(0, 1, 0.0, wrong),
        record(0, 2, 0.5, [message("assistant", "Half an answer.")]),
        record(1, 0, 0.0, broken_call),
        record(1, 1, 1.0, orphans),
        length,
        record(2, 1, 1.0, [reasoning(thought()), message("assistant", "\\boxed{12}")]),
        record(
            3, 0, 1.0, [message("assistant", HOSTILE), tool_call("call_3", HOSTILE), tool_result("call_3", HOSTILE)], note=HOSTILE
        ),
        '{"reward": 1.0, "_ng_task_index": 3, "response": {"outp',
        record(4, 0, 1.0, [message("assistant", "Easy.")]),
        record(4, 1, 1.0, [message("assistant", "Easy as well.")]),
        {
            "responses_create_params": 7,
            "response": ["no", {"object": None}],
            "reward": "high",
            "_ng_task_index": 5,
            "_ng_rollout_index": 0,
        },
    ]
    return [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]


def write_samples(folder: Path, name: str = "m.jsonl", seed: int = 7) -> Path:
    """The sample file and its failures sidecar; the rollouts file."""
    path = folder / name
    path.write_bytes("".join(line + "\n" for line in sample_lines(seed)).encode("utf-8", "surrogatepass"))
    failures = [
        failure(0, 3, "timeout_exceeded", "the agent ran out of the time it allows itself", None),
        failure(5, 1, "agent_run_error", "the agent answered HTTP 500: " + HOSTILE, 500),
    ]
    sidecar = folder / f"{path.stem}_failures.jsonl"
    sidecar.write_text("".join(json.dumps(row) + "\n" for row in failures), "utf-8")
    return path


def write_many(path: Path, rows: int, repeats: int = 4, size: int = 1000) -> Path:
    """`rows` short rollouts of about `size` bytes, `repeats` of each task; every tenth has reward 0."""
    text = ("word " * (size // 5))[: max(0, size - 600)]
    with path.open("w", encoding="utf-8") as file:
        for index in range(rows):
            task, rollout = divmod(index, repeats)
            file.write(
                f'{{"responses_create_params":{{"input":[{{"role":"user","content":"question {task}"}}],"temperature":0.2}},'
                f'"response":{{"id":"r{index}","model":"small-7b","object":"response","status":"completed","created_at":1.0,'
                f'"output":[{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text} {index}"}}]}}],'
                f'"usage":{{"input_tokens":40,"output_tokens":{index % 900},"total_tokens":{40 + index % 900}}}}},'
                f'"reward":{0.0 if index % 10 == 3 else 1.0},"_ng_task_index":{task},"_ng_rollout_index":{rollout},'
                f'"agent_ref":{{"name":"sums_simple_agent"}}}}\n'
            )
    return path
