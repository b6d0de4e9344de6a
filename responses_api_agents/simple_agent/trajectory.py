"""What one pass through the loop did, as a trajectory record (schema 1.0 of `nemo_gym.rollout_observability`).

The loop notes it under a hidden key of its response, because only `/run` knows the task and its verdict; `finished` adds them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseFunctionToolCall, NeMoGymResponseReasoningItem
from responses_api_agents.simple_agent.loop import Conversation
from responses_api_agents.simple_agent.tool_calls import ToolOutcome

HIDDEN_KEY = "_ng_trajectory"
PUBLIC_KEY = "ng_trajectory"
_TASK_KEYS = ("task_id", "problem_id", "instance_id", "_ng_task_index")


class TrajectoryRecorder:
    """Notes each step of a conversation while it is led; an `Observer` of the loop."""

    def __init__(self, rollout_id: str, model_server: Mapping[str, Any]) -> None:
        self.rollout_id = rollout_id
        self.model_server = dict(model_server)
        self.invocation_id = uuid4().hex
        self.began = time.monotonic()
        self.turns: list[dict[str, Any]] = []
        self.tool_calls: list[dict[str, Any]] = []
        self.calls_asked_for = 0
        self.gaps: list[dict[str, Any]] = []
        self.conversation: list[dict[str, Any]] = []

    def turn(self, question: list[Any], answer: NeMoGymResponse, asked_at: float) -> None:
        """Note an answer of the model and all it was asked with."""
        self._follow(question)
        self.calls_asked_for += sum(isinstance(item, NeMoGymResponseFunctionToolCall) for item in answer.output)
        reasoning = [item for item in answer.output if isinstance(item, NeMoGymResponseReasoningItem)]
        others = [item for item in answer.output if not isinstance(item, NeMoGymResponseReasoningItem)]
        turn_no = len(self.turns) + 1
        if not answer.id:
            gap = {"code": "model_call_reference_unavailable", "invocation_id": self.invocation_id, "detail": f"turn:{turn_no}"}
            self.gaps.append(gap)
        self.turns.append(
            {
                "invocation_id": self.invocation_id,
                "rollout_id": self.rollout_id,
                "turn_no": turn_no,
                "timestamp": asked_at,
                "question": list(self.conversation),
                "answer": [_wire(item) for item in others],
                "reasoning_content": [_wire(item) for item in reasoning],
                "step_count": self.calls_asked_for,
                "model_calls": [{"model_ref": self.model_server, "response_id": answer.id}] if answer.id else [],
            }
        )

    def tool(self, call: NeMoGymResponseFunctionToolCall, outcome: ToolOutcome, started_at: float) -> None:
        """Note a tool call that has just ended."""
        ended_at = time.time()
        self.tool_calls.append(
            {
                "invocation_id": self.invocation_id,
                "tool_call_id": call.call_id,
                "tool_name": call.name,
                "started_at": started_at,
                "completed_at": max(started_at, ended_at),  # the system's clock may have been set back
                "duration_ms": max(0.0, (ended_at - started_at) * 1000),
                "timing_source": "harness",
                "status": "failed" if outcome.error_type else "completed",
                "error_type": outcome.error_type,
                "output": outcome.output,
            }
        )

    def record(self, conversation: Conversation, result: NeMoGymResponse) -> dict[str, Any]:
        """All that was noted, still without the task."""
        self._follow([*conversation.given, *conversation.items])
        cut_short = result.incomplete_details is not None or result.status == "incomplete"
        invocation = {
            "invocation_id": self.invocation_id,
            "status": "incomplete" if cut_short else "completed",
            "duration_ms": (time.monotonic() - self.began) * 1000,
            "model_calls": [call for turn in self.turns for call in turn["model_calls"]],
            "conversation": self.conversation,
        }
        return {
            "rollout_id": self.rollout_id,
            "invocations": [invocation],
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "gaps": self.gaps,
        }

    def _follow(self, items: list[Any]) -> None:
        """Take up what of a conversation, which only grows, is new."""
        self.conversation.extend(_wire(item) for item in items[len(self.conversation) :])


def _wire(item: Any) -> dict[str, Any]:
    wire: dict[str, Any] = item.model_dump(exclude_none=True)
    return wire


def finished(record: Mapping[str, Any], row: Mapping[str, Any], resolved: Any) -> dict[str, Any]:
    """`record` with the row's task and, when the verifier told it as a bool, whether the last turn resolved it."""
    task = str(next((row[key] for key in _TASK_KEYS if row.get(key) is not None), ""))
    turns = [{**turn, "task_id": task} for turn in record["turns"]]
    gaps = list(record["gaps"])
    if isinstance(resolved, bool):
        turns[-1:] = [{**turn, "resolved": resolved} for turn in turns[-1:]]
    else:
        gaps.append({"code": "resolution_unavailable"})
    return {"schema_version": "1.0", "task_id": task, **record, "turns": turns, "model_calls": [], "gaps": gaps}
