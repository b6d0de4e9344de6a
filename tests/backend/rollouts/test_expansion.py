"""Expansion beyond the recorded cases: properties over random inputs, routing, numbering, errors with their places."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.datasets.prompt import PromptConfig, PromptConflictError
from backend.errors import GymError
from backend.rollouts.expansion import ExpansionPlan, plan_expansion
from backend.rollouts.expansion_options import ExpansionOptions
from backend.rollouts.input_rows import file_rows, memory_rows


def plan(rows: list[dict[str, Any]], **options: Any) -> ExpansionPlan:
    return plan_expansion(memory_rows(rows), ExpansionOptions(**options))


def row(question: str = "q", **fields: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": question}, **fields}


def indices(rows: Any) -> list[tuple[int, int]]:
    return [(expanded["_ng_task_index"], expanded["_ng_rollout_index"]) for expanded in rows]


AGENTS = st.sampled_from(["a", "b", "c"])
ROWS = st.lists(
    st.builds(
        lambda question, agent, source, task: row(
            question,
            **({"agent_ref": {"name": agent}} if agent else {}),
            **({"task_source": source or "rs"} if source or not agent else {}),
            **({"_ng_task_index": task} if task is not None else {}),
        ),
        st.sampled_from(["q0", "q1", "q2"]),
        st.none() | AGENTS,
        st.none() | st.sampled_from(["rs", "other"]),
        st.none() | st.integers(0, 3),
    ),
    max_size=8,
)
OPTIONS = st.builds(
    ExpansionOptions,
    limit=st.none() | st.integers(1, 5),
    num_repeats=st.integers(1, 3) | st.fixed_dictionaries({"_default": st.integers(1, 2)}, optional={"a": st.integers(1, 3)}),
    add_seed=st.booleans(),
    params=st.just({}) | st.just({"temperature": 0.5}),
    agent_map=st.just({}) | st.just({"a": "z"}) | st.just({"rs": "y"}) | st.just({"_default": "w"}),
    fan_out=st.just({}) | st.just({"a": ("b", "c")}) | st.just({"rs": ("a", "b")}),
)


@given(ROWS, OPTIONS)
def test_counts_numbering_and_untouched_input(rows: list[dict[str, Any]], options: ExpansionOptions) -> None:
    before = copy.deepcopy(rows)
    made = plan_expansion(memory_rows(rows), options)
    expanded = list(made.rows({"rs": "agent", "other": "agent"}))
    assert rows == before
    assert len(expanded) == made.rollouts == sum(made.planned.values())
    assert len({task for task, _ in indices(expanded)}) == made.tasks
    assert made.input_rows == min(len(rows), options.limit or len(rows))

    # Rollout numbers run from 0 without gaps within each task.
    running: Counter[int] = Counter()
    for task, rollout in indices(expanded):
        assert rollout == running[task]
        running[task] += 1

    # Rows share a task when they bring the same number or are equal, and never otherwise.
    given_tasks = {entry["_ng_task_index"] for entry in rows if "_ng_task_index" in entry}
    for entry in expanded:
        assert entry["agent_ref"]["name"]
        params = entry["responses_create_params"]
        assert params["input"] in ("q0", "q1", "q2")
        if options.add_seed:
            assert json.loads(params["metadata"]["extra_body"]) == {"seed": entry["_ng_rollout_index"]}
    questions: dict[int, set[str]] = {}
    for entry in expanded:
        if entry["_ng_task_index"] not in given_tasks:
            questions.setdefault(entry["_ng_task_index"], set()).add(entry["responses_create_params"]["input"])
    assert all(len(asked) == 1 for asked in questions.values())

    # Reading again gives the same rows, and no two share what a receiver might change.
    assert list(made.rows({"rs": "agent", "other": "agent"})) == expanded
    assert len({id(entry["responses_create_params"]) for entry in expanded}) == len(expanded)


def test_rows_are_yielded_one_by_one() -> None:
    read = []

    def source() -> Any:
        for entry in memory_rows([row(f"q{number}", agent_ref={"name": "a"}) for number in range(5)])():
            read.append(entry)
            yield entry

    made = plan_expansion(source, ExpansionOptions(num_repeats=2))
    read.clear()
    rows = made.rows()
    assert [next(rows)["responses_create_params"]["input"] for _ in range(3)] == ["q0", "q0", "q1"]
    assert len(read) == 2


def test_supplied_numbers_are_avoided_even_when_they_come_later() -> None:
    rows = [row("x", agent_ref={"name": "a"}), row("y", agent_ref={"name": "a"}, _ng_task_index=0)]
    rows += [row("z", agent_ref={"name": "a"}), row("w", agent_ref={"name": "a"}, _ng_task_index=2)]
    assert indices(plan(rows).rows()) == [(1, 0), (0, 0), (3, 0), (2, 0)]


def test_equal_rows_are_counted() -> None:
    rows = [row("x", agent_ref={"name": "a"}), {"agent_ref": {"name": "a"}, **row("x")}, row("y", agent_ref={"name": "a"})]
    made = plan(rows)
    assert (made.input_rows, made.tasks, made.duplicate_rows) == (3, 2, 1)


def test_equal_lines_are_one_task_whatever_ends_them(tmp_path: Path) -> None:
    line = '{"responses_create_params": {}, "agent_ref": {"name": "a"}}'
    (tmp_path / "rows.jsonl").write_bytes(f"{line}\n{line}\r\n{line}".encode())
    made = plan_expansion(file_rows("rows.jsonl", [tmp_path]), ExpansionOptions())
    assert (made.tasks, made.duplicate_rows, indices(made.rows())) == (1, 2, [(0, 0), (0, 1), (0, 2)])


def test_sources_stay_unresolved_until_their_agents_are_known() -> None:
    made = plan([row(task_source="rs"), row(task_source="rs", agent_ref={"name": "a"}), row(agent_ref={"name": "b"})])
    assert dict(made.planned) == {(None, "rs"): 1, ("a", "rs"): 1, ("b", None): 1}
    assert made.baked_rows == 1
    assert "agent_ref" not in next(made.rows())
    assert [entry["agent_ref"]["name"] for entry in made.rows({"rs": "z"})] == ["z", "a", "b"]


def test_a_null_agent_is_none() -> None:
    assert dict(plan([row(task_source="rs", agent_ref=None)]).planned) == {(None, "rs"): 1}


def test_fan_out_and_repeats_go_by_the_rows_own_agent_or_the_mapped_one() -> None:
    rows = [row(agent_ref={"name": "old"})]
    for key in ("old", "new"):
        made = plan(rows, agent_map={"old": "new"}, fan_out={key: ("x", "y")}, num_repeats={"old": 2})
        assert [entry["agent_ref"]["name"] for entry in made.rows()] == ["x", "x", "y", "y"]
        assert indices(made.rows()) == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_names_that_no_row_uses_are_reported_once() -> None:
    rows = [row(agent_ref={"name": "a"})] * 3
    made = plan(rows, num_repeats={"a": 1, "typo": 2}, fan_out={"other": ("b",)}, agent_map={"a": "z"})
    assert len(made.warnings) == 3
    assert "a -> z" in made.warnings[0] and "typo" in made.warnings[1] and "other" in made.warnings[2]


def test_skills_are_stamped() -> None:
    reference = {"path": "skills", "hash": "0" * 12, "skills": []}
    (only,) = plan([row(agent_ref={"name": "a"})], skills_ref=reference).rows()
    assert only["skills_ref"] == reference and only["skills_ref"] is not reference


def test_rows_with_input_and_prompt_are_named_together() -> None:
    rows: list[dict[str, Any]] = [row(agent_ref={"name": "a"}), {"agent_ref": {"name": "a"}}, row(agent_ref={"name": "a"})]
    with pytest.raises(PromptConflictError, match=r"Violating rows: \[0, 2\]"):
        plan(rows, prompt=PromptConfig(user="u"))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"responses_create_param": {}, "agent_ref": {"name": "a"}}', "rename `responses_create_param`"),
        ('{"responses_create_params": null, "agent_ref": {"name": "a"}}', "must be an object, not None"),
        ('{"responses_create_params": {}, "agent_ref": "a"}', "agent_ref must be an object"),
        ('{"responses_create_params": {}, "agent_ref": {"name": 3}}', "agent_ref must be an object"),
        ('{"responses_create_params": {}, "task_source": 3}', "task_source must be the name"),
        ('{"responses_create_params": {}, "agent_ref": {"name": "a"}, "_ng_task_index": "0"}', "must be an integer"),
        ('{"responses_create_params": {"metadata": {"extra_body": "["}}, "agent_ref": {"name": "a"}}', "extra_body"),
        ('{"responses_create_params": {"metadata": 3}, "agent_ref": {"name": "a"}}', "extra_body"),
        ('{"responses_create_params"', "not valid JSON"),
        ("[]", "expected a JSON object"),
        ('{"responses_create_params": {}}', "1 row(s) name no agent: 1 (counted from 0)"),
    ],
)
def test_problems_have_a_file_and_a_line(line: str, named: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"responses_create_params": {}, "agent_ref": {"name": "a"}}\n\n' + line + "\n")
    with pytest.raises(GymError) as caught:
        plan_expansion(file_rows("rows.jsonl", [tmp_path]), ExpansionOptions(add_seed=True))
    assert named in str(caught.value)
    assert str(caught.value).startswith(f"{file}:3")


def test_a_missing_input_file_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(GymError, match=r"none\.jsonl is not there") as caught:
        file_rows("none.jsonl", [tmp_path])
    assert "--input" in str(caught.value.hint)


def test_an_input_that_changes_between_the_passes_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"responses_create_params": {}, "agent_ref": {"name": "a"}}\n')
    made = plan_expansion(file_rows(file, []), ExpansionOptions())
    file.write_text('{"responses_create_params": {"top_p": 1}, "agent_ref": {"name": "a"}}\n')
    with pytest.raises(GymError, match="changed while"):
        list(made.rows())


def test_an_empty_input_is_an_empty_plan() -> None:
    made = plan([])
    assert (made.rollouts, made.tasks, list(made.rows())) == (0, 0, [])
