"""What a list shows of a row."""

from __future__ import annotations

from pathlib import Path

from backend.errors import Place
from backend.rollouts.rollout_facts import RowFacts, RowPlace, Unreadable, facts_of

PLACE = RowPlace(4, "rollouts", Path("m.jsonl"), 5, 100, 50)


def test_facts_of_a_finished_rollout() -> None:
    record = {
        "responses_create_params": {"input": "2+2?"},
        "response": {
            "status": "completed",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]}],
            "usage": {
                "input_tokens": 9, "output_tokens": 3, "total_tokens": 12,
                "input_tokens_details": {"cached_tokens": 1}, "output_tokens_details": {"reasoning_tokens": 2},
            },
        },
        "reward": 1.0, "_ng_task_index": 183, "_ng_rollout_index": 2, "_ng_attempt_index": 1,
        "agent_ref": {"name": "math_agent"}, "ng_perf": {"total_latency_ms": 16100.0, "num_turns": 3},
    }  # fmt: skip
    facts = facts_of(PLACE, record)
    assert facts == RowFacts(
        PLACE, task=183, rollout=2, attempt=1, reward=1.0, end="stop", input_tokens=9, output_tokens=3, reasoning_tokens=2,
        cached_tokens=1, turns=3, seconds=16.1, preview="4", agent="math_agent",
    )  # fmt: skip
    assert (facts.index, facts.source, facts.line, facts.size) == (4, "rollouts", 5, 50)


def test_indices_may_have_any_type() -> None:
    facts = facts_of(PLACE, {"_ng_task_index": "hard", "_ng_rollout_index": [1]})
    assert (facts.task, facts.rollout, facts.turns) == ("hard", "[1]", 0)


def test_an_unreadable_row_says_where_it_is() -> None:
    assert str(Unreadable("not valid JSON", Place("m.jsonl", 7), b"{")) == "m.jsonl:7: not valid JSON"
