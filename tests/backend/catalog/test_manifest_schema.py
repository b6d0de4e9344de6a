"""What makes a manifest valid; the verdicts are those of NeMo Gym 0.6.0 on the same inputs."""

from __future__ import annotations

from typing import Any

import pytest

from backend.catalog.manifest_schema import manifest_problems

DATASET = {"name": "d", "type": "example", "jsonl_fpath": "x.jsonl"}
BENCHMARK = {**DATASET, "type": "benchmark", "prepare_script": "p.py"}
VALID: dict[str, Any] = {
    "name": "a",
    "version": "0.1.0",
    "kind": "environment",
    "integration_profile": "custom-gym-verifier",
    "domain": "math",
    "description": "d",
    "modality": "text",
    "authors": ["me"],
    "reward": {"range": [0, 1], "higher_is_better": True},
    "resources_server": "mcqa",
    "agent_server": "simple_agent",
    "model_server": "policy_model",
    "datasets": [DATASET],
}
ORIGIN = {"source": "https://x", "ref": "a", "reconciled": "2026-01-01"}
DRIVER = {"integration_profile": "external-rollout-driver", "rollout_driver": "m.a:f"}
SUITE = {"kind": "benchmark", "canonical_split": "test", "standard_prompt_config": "p.yaml", "datasets": [BENCHMARK]}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"version": "x", "name": "a/../b", "modality": "zz", "resources_server": "a/b"},
        {"reward": {"range": ["0", "1"], "higher_is_better": "yes"}},
        {"reward": {"range": [-0.5, 1e3], "higher_is_better": 1}},
        *({"licensing": text} for text in ("MIT", "apache-2.0", "MIT OR Apache-2.0", "LicenseRef-x", "(MIT)", "internal")),
        {"integration_profile": "external-agent-loop", "model_server": None},
        {**DRIVER, "model_server": None},
        {"grading_mode": "x", "sandbox": None, "session_model": "step", "state": "none", "determinism": "seeded"},
        SUITE,
        {"canonical_split": "x"},
        {"datasets": [{**DATASET, "num_repeats": "2", "prepare_script": "p"}]},
        {"adopted_from": ORIGIN},
        {"adopted_from": {**ORIGIN, "source": "git@h:x"}, "lifecycle": "deprecated"},
    ],
)
def test_valid(changes: dict[str, Any]) -> None:
    assert manifest_problems(VALID | changes) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"version": 1}, "version must be a text, not 1; quote it"),
        ({"description": " "}, "description must not be empty"),
        ({"domain": "nosuch"}, "domain is 'nosuch'. Must be one of: 'math', 'coding'"),
        ({"domain": "Math"}, "Did you mean `math`?"),
        ({"integration_profile": "whatever"}, "integration_profile is 'whatever'"),
        ({"authors": []}, "authors must be a list of at least one element"),
        ({"authors": "me"}, "authors must be a list"),
        ({"authors": ["a", "a"]}, "authors names 'a' twice"),
        ({"authors": [""]}, "authors[0] must not be empty"),
        ({"reward": {"range": [1, 0], "higher_is_better": True}}, "reward.range must have its lower end first, not [1, 0]"),
        ({"reward": {"range": [0, 0], "higher_is_better": True}}, "reward.range must have"),
        ({"reward": {"range": [0, float("inf")], "higher_is_better": True}}, "reward.range must be two numbers"),
        ({"reward": {"range": [0, 1, 2], "higher_is_better": True}}, "reward.range must be two numbers"),
        ({"reward": {"range": [0, 1]}}, "reward lacks higher_is_better"),
        ({"reward": 5}, "reward must be a mapping"),
        *(({"licensing": text}, "licensing must be") for text in ("zz", None, "Apache 2.0", "MIT AND", "LicenseRef-")),
        ({"determinism": "x"}, "determinism is 'x'"),
        ({"model_server": None}, "the manifest lacks model_server"),
        ({**DRIVER, "rollout_driver": None}, "the manifest lacks rollout_driver"),
        ({**DRIVER, "rollout_driver": "m.a:f.g"}, "rollout_driver must be a function"),
        ({"rollout_driver": "m:f"}, "rollout_driver is for the profile external-rollout-driver only"),
        ({"grading_mode": 5}, "grading_mode must be a text"),
        ({"sandbox": True}, "sandbox must be a text"),
        ({"kind": "benchmark", "datasets": [BENCHMARK]}, "the manifest lacks canonical_split, standard_prompt_config"),
        ({**SUITE, "datasets": [DATASET]}, "datasets must hold one of type benchmark"),
        ({"datasets": []}, "datasets must be a list of at least one element"),
        ({"datasets": [DATASET, DATASET]}, "datasets names 'd' twice"),
        ({"datasets": [{**BENCHMARK, "prepare_script": None}]}, "datasets[0] lacks prepare_script"),
        ({"datasets": [{**DATASET, "num_repeats": 0}]}, "datasets[0].num_repeats must be a whole number"),
        ({"datasets": [{**DATASET, "license": "MIT"}]}, "datasets[0].license is not a key of a data set"),
        ({"adopted_from": {**ORIGIN, "source": "x"}}, "adopted_from.source must be the address"),
        ({"adopted_from": {**ORIGIN, "ref": "a b"}}, "adopted_from.ref must be a word"),
        ({"adopted_from": {**ORIGIN, "reconciled": "2026-13-01"}}, "adopted_from.reconciled must be a date"),
        ({"adopted_from": {"source": "https://x", "ref": "a"}}, "adopted_from lacks reconciled"),
        ({"lifecycle": "x"}, "lifecycle is 'x'"),
        ({"zzz": 1}, "zzz is not a key of a manifest"),
        ({"autors": ["me"]}, "Did you mean `authors`?"),
        ({5: 1}, "5 is not a key of a manifest"),
        ({"kind": ["environment"]}, "kind is ['environment']"),
    ],
)
def test_invalid(changes: dict[Any, Any], problem: str) -> None:
    (found,) = manifest_problems(VALID | changes)
    assert problem in found


def test_all_problems_are_told_at_once() -> None:
    assert manifest_problems({"name": "a", "version": "1", "kind": 5, "zz": 1}) == [
        "the manifest lacks integration_profile, domain, description, modality, authors, reward, resources_server, agent_server,"
        " datasets",
        "kind is 5. Must be one of: 'environment', 'benchmark'",
        "zz is not a key of a manifest",
    ]
