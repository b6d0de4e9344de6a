"""What stopping means, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backend.errors import GymError
from backend.servers.stack_record import StackRecord
from screens.servers import stopping
from screens.servers.board import Board, Snapshot
from tests.server_samples import samples, stack
from tests.workbench import NOW


def look(*records: StackRecord, **measured: Any) -> Snapshot:
    board = Board()
    board.note([samples(record, **measured) for record in records])
    return board.look(records, NOW)


def test_a_stack_is_stopped_by_its_name_where_that_is_enough() -> None:
    one, same, nameless = stack(), stack("other"), stack("third", name="")
    alone, both = look(one, nameless), look(one, same)
    assert stopping.stop_words(alone.stacks[0], alone) == ["env", "stop", "math_verified"]
    assert stopping.stop_words(alone.stacks[1], alone) == ["env", "stop", "third"]
    assert stopping.stop_words(both.stacks[1], both) == ["env", "stop", "other"]


def test_the_question_names_what_depends_on_it() -> None:
    snapshot = look(stack(run="results/m_run"), math_with_judge={"in_flight": 12})
    (view,) = snapshot.stacks
    model = snapshot.server((view.record.id, "policy_model"))
    assert stopping.what_stops(view, model) == (
        "the stack math_verified: 3 servers; policy_model is called by math_with_judge, simple_agent; 12 requests in flight; "
        "the run m.jsonl ends with it"
    )
    assert stopping.what_stops(view, None).startswith(
        "the stack math_verified: 3 servers; math_with_judge calls policy_model; simple_agent calls math_with_judge, policy_model;"
    )


def test_all_stacks_are_named() -> None:
    snapshot = look(stack(), stack("other", name="tools", run="x/tools_run"))
    assert stopping.what_stops_with_all(snapshot.stacks) == "2 stacks with 6 servers: math_verified, tools (the run tools.jsonl)"


def test_a_stack_starts_again_with_its_words() -> None:
    assert stopping.start_words(stack()) == ["env", "start", "--benchmark", "math_verified", "--model-type", "openai_model"]
    assert stopping.config_words(stack()) == ("--benchmark", "math_verified", "--model-type", "openai_model")
    assert stopping.typed_command(stack()) == "gym env start --benchmark math_verified --model-type openai_model"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"run": "results/m_run"}, "belongs to a run"),
        ({"command": ()}, "not known how"),
        ({"command": ("gym", "env", "start", "--model-api-key", "****")}, "holds a key"),
    ],
)
def test_what_cannot_be_repeated_is_said(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(GymError, match=message):
        stopping.start_words(stack(**facts))


def test_only_stacks_of_their_own_have_words_for_config() -> None:
    record = replace(stack(), command=("gym", "eval", "run", "--benchmark", "x"))
    assert stopping.config_words(record) == ()
