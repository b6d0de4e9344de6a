from __future__ import annotations

import sys
import types
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from backend.config.config_types import ModelServerRef
from backend.servers.model_call_records import ModelCallRecord
from backend.servers.observation_join import with_compaction_calls
from backend.servers.rollout_observability import (
    AgentInvocation,
    AgentObservationBundle,
    ContextCompactionObservation,
    ModelCallRef,
    ObservationGap,
    ObservationModel,
    SandboxObservation,
    ToolCallObservation,
    TrajectoryRecord,
    TrajectoryTurn,
    join_model_call_observations,
)

MODEL = ModelServerRef(type="responses_api_models", name="policy_model")


def call(number: int, response: str | None = None) -> ModelCallRecord:
    return ModelCallRecord(model_call_id=f"c{number}", model_ref=MODEL, response_id=response or f"r{number}")


def by_response(response: str) -> ModelCallRef:
    return ModelCallRef(model_ref=MODEL, response_id=response)


def bundle(*records: Any) -> AgentObservationBundle:
    return AgentObservationBundle(source="test", records=list(records))


def test_a_bundle_survives_json() -> None:
    message = {"type": "message", "role": "user", "content": "hi"}
    whole = bundle(
        AgentInvocation(invocation_id="root", status="completed", conversation=[message]),
        ToolCallObservation(invocation_id="root", tool_call_id="t", started_at=1.0, duration_ms=5),
        ContextCompactionObservation(invocation_id="root", outcome="aborted", before_model_call=by_response("r1")),
        SandboxObservation(role="agent", provider="local", exit_code=0),
    )
    again = AgentObservationBundle.model_validate(whole.model_dump(mode="json"))
    assert again == whole
    assert [record.kind for record in again.records] == ["agent_invocation", "tool_call", "context_compaction", "sandbox"]


@pytest.mark.parametrize(
    "fields",
    [
        {"model_ref": MODEL},
        {"response_id": "r"},
        {},
        {"model_call_id": "c", "extra": 1},
    ],
)
def test_a_reference_names_a_call(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ModelCallRef(**fields)


def test_references_get_the_ids_of_captured_calls() -> None:
    before = bundle(
        AgentInvocation(
            invocation_id="root", model_calls=[by_response("r1"), by_response("r2"), ModelCallRef(model_call_id="c1")]
        ),
        ContextCompactionObservation(invocation_id="root", before_model_call=by_response("r1"), model_calls=[by_response("r3")]),
        SandboxObservation(role="verifier"),
    )
    after = join_model_call_observations(before, [call(1), call(2), call(3)])
    invocation, compaction, sandbox = after.records
    assert isinstance(invocation, AgentInvocation)
    assert isinstance(compaction, ContextCompactionObservation)
    assert [reference.model_call_id for reference in invocation.model_calls] == ["c1", "c2"]
    assert invocation.model_calls[0] == ModelCallRef(model_call_id="c1", model_ref=MODEL, response_id="r1")
    assert compaction.before_model_call is not None
    assert compaction.before_model_call.model_call_id == "c1"
    assert [reference.model_call_id for reference in compaction.model_calls] == ["c3"]
    assert sandbox == SandboxObservation(role="verifier")
    assert after.gaps == []
    assert before.records[0].model_calls[0].model_call_id is None  # type: ignore[union-attr]


def test_references_that_fit_no_single_call_are_gaps() -> None:
    other = ModelCallRef(model_ref=ModelServerRef(type="responses_api_models", name="judge"), response_id="r1")
    before = bundle(
        AgentInvocation(invocation_id="root", model_calls=[by_response("r9"), by_response("twice"), other, by_response("r1")]),
        AgentInvocation(invocation_id="sub", model_calls=[by_response("r1")]),
    )
    after = join_model_call_observations(before, [call(1), call(2, "twice"), call(3, "twice")])
    assert [(gap.code, gap.invocation_id, gap.detail) for gap in after.gaps] == [
        ("model_call_reference_unmatched", "root", "model_calls:r9"),
        ("model_call_reference_ambiguous", "root", "model_calls:twice"),
        ("model_call_reference_unmatched", "root", "model_calls:r1"),
        ("model_call_reference_conflict", "sub", "model_calls:c1"),
    ]
    assert after.records[0].model_calls[0] == by_response("r9")  # type: ignore[union-attr]
    assert join_model_call_observations(after, [call(1), call(2, "twice"), call(3, "twice")]).gaps == after.gaps


@given(st.lists(st.sampled_from(["r1", "r2", "r3", "lost"]), max_size=6))
def test_joining_again_changes_nothing(responses: list[str]) -> None:
    calls = [call(1), call(2), call(3)]
    once = join_model_call_observations(
        bundle(AgentInvocation(invocation_id="a", model_calls=map(by_response, responses))), calls
    )
    assert join_model_call_observations(once, calls) == once


def test_where_nothing_was_captured_nothing_is_compared() -> None:
    before = bundle(AgentInvocation(invocation_id="root", model_calls=[by_response("r1")]))
    assert join_model_call_observations(before, []) == before


def turn(number: int, **fields: Any) -> TrajectoryTurn:
    return TrajectoryTurn(
        **(
            {"invocation_id": "root", "task_id": "0", "rollout_id": "0-0", "turn_no": number, "timestamp": 1.0, "step_count": 0}
            | fields
        )
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"turns": [turn(1), turn(1)]},
        {"turns": [turn(1, task_id="1")]},
        {"invocations": [AgentInvocation(invocation_id="a")] * 2},
        {"model_calls": [{"model_call_id": "c"}, {"model_call_id": "c"}]},
        {"schema_version": "2.0"},
        {"unknown": 1},
    ],
)
def test_a_trajectory_is_consistent(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TrajectoryRecord(task_id="0", rollout_id="0-0", **fields)


def test_lax_numbers_are_numbers() -> None:
    record = TrajectoryRecord.model_validate(
        {
            "task_id": "0",
            "rollout_id": "0-0",
            "turns": [turn(1).model_dump(), turn(1, invocation_id="sub").model_dump()],
            "model_calls": [{"response_metadata": {"status_code": "500"}, "token_stats": {"prompt_tokens": 12.0}}, {}],
            "gaps": [{"code": "turns_unavailable"}],
        }
    )
    assert record.model_calls[0].response_metadata.status_code == 500
    assert record.model_calls[0].token_stats.prompt_tokens == 12
    assert record.model_calls[1].response_metadata.response_id is None
    assert record.gaps == [ObservationGap(code="turns_unavailable")]
    with pytest.raises(ValidationError):
        turn(0)


def compacted(source: str = "talker") -> AgentObservationBundle:
    return AgentObservationBundle(source=source, records=[ContextCompactionObservation(invocation_id="root")])


def agent_module(monkeypatch: pytest.MonkeyPatch, **functions: Any) -> None:
    for name in ("responses_api_agents.talker_agent", "responses_api_agents.talker_agent.observability"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    for name, function in functions.items():
        monkeypatch.setattr(sys.modules["responses_api_agents.talker_agent.observability"], name, function, raising=False)


def test_an_agents_own_code_tells_which_calls_made_its_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    def associate(bundle: AgentObservationBundle, calls: list[ModelCallRecord]) -> AgentObservationBundle:
        reference = ModelCallRef(model_call_id=calls[0].model_call_id)
        return bundle.model_copy(update={"records": [bundle.records[0].model_copy(update={"model_calls": [reference]})]})

    agent_module(monkeypatch, associate_talker_compaction_calls=associate)
    (record,) = with_compaction_calls(compacted(), [call(1)]).records
    assert isinstance(record, ContextCompactionObservation)
    assert record.model_calls == [ModelCallRef(model_call_id="c1")]


def test_agents_without_such_code_say_nothing_and_broken_code_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    for source in ("nobody_has_this", "no identifier", "os.path"):
        assert with_compaction_calls(compacted(source), []) == compacted(source)
    agent_module(monkeypatch)
    assert with_compaction_calls(compacted(), []) == compacted()

    def broken(_bundle: Any, _calls: Any) -> Any:
        raise RuntimeError("no")

    agent_module(monkeypatch, associate_talker_compaction_calls=broken)
    after = with_compaction_calls(compacted(), [])
    assert [gap.code for gap in after.gaps] == ["compaction_model_call_join_failed"]
    assert after.records == compacted().records
    untouched = AgentObservationBundle(source="talker")
    assert with_compaction_calls(untouched, []) is untouched


def test_a_sandbox_may_be_the_environments() -> None:
    seen = SandboxObservation(role="environment", provider="docker", outcome="oom", resource_usage_source="cgroup")
    assert seen.model_dump(exclude_none=True) == {
        "kind": "sandbox", "role": "environment", "provider": "docker", "outcome": "oom", "resource_usage_source": "cgroup",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (SandboxObservation, {"role": "spectator"}),
        (SandboxObservation, {"role": "agent", "outcome": "zzz"}),
        (SandboxObservation, {"role": "agent", "invocation_id": "root"}),
        (ToolCallObservation, {"invocation_id": "root", "tool_call_id": "t", "status": "zzz"}),
        (ToolCallObservation, {"invocation_id": "root", "tool_call_id": "t", "timing_source": "clock"}),
        (ToolCallObservation, {"invocation_id": "root", "tool_call_id": "t", "started_at": 2.0, "completed_at": 1.0}),
        (ModelCallRef, {"model_call_id": ""}),
        (ModelCallRef, {"model_ref": MODEL, "response_id": ""}),
    ],
)
def test_what_cannot_be_is_refused(kind: type[ObservationModel], fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        kind(**fields)


def test_assignments_are_checked_too() -> None:
    seen = SandboxObservation(role="agent")
    seen.outcome = "timeout"
    with pytest.raises(ValidationError):
        seen.wall_time_s = -1.0
    assert (seen.outcome, seen.wall_time_s) == ("timeout", None)


@pytest.mark.parametrize(
    ("parents", "refused"),
    [
        ({"a": None, "b": "a", "c": "b", "d": "elsewhere"}, False),
        ({"a": "a"}, True),
        ({"a": "c", "b": "a", "c": "b", "d": None}, True),
    ],
)
def test_invocations_form_trees(parents: dict[str, str | None], refused: bool) -> None:
    records = [AgentInvocation(invocation_id=name, parent_invocation_id=parent) for name, parent in parents.items()]
    with pytest.raises(ValidationError) if refused else nullcontext():
        bundle(*records)


def test_an_invocation_is_reported_once() -> None:
    with pytest.raises(ValidationError, match="more than once"):
        bundle(AgentInvocation(invocation_id="a"), AgentInvocation(invocation_id="a"))
