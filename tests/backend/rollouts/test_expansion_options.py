"""Options of the expansion: how configuration values are read, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backend.datasets.prompt import PromptConfig
from backend.datasets.skills import folder_hash
from backend.errors import UsageError
from backend.rollouts.expansion_options import ExpansionOptions, expansion_options


def test_absent_and_null_are_the_same() -> None:
    keys = ("limit", "num_repeats", "num_repeats_add_seed", "responses_create_params", "prompt_config", "agent_name")
    nothing = dict.fromkeys((*keys, "agent_map", "fan_out"))
    assert expansion_options({}, []) == expansion_options(nothing, []) == ExpansionOptions()


def test_everything_given(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("user: u\n")
    config = {
        "limit": 3,
        "num_repeats": {"a": 2, "_default": 1},
        "num_repeats_add_seed": True,
        "responses_create_params": {"temperature": 1.0},
        "prompt_config": "p.yaml",
        "agent_name": "z",
        "agent_map": {"rs": "a"},
        "fan_out": {"a": ["b", "c"]},
        "skills": {"path": "s"},
        "some_server": {},
    }
    (tmp_path / "s" / "counting").mkdir(parents=True)
    (tmp_path / "s" / "counting" / "SKILL.md").write_text("---\nname: counting\n---\n")
    stamp = {
        "path": "s",
        "hash": folder_hash(tmp_path / "s"),
        "skills": [{"name": "counting", "description": None, "version": None}],
    }
    assert expansion_options(config, [tmp_path]) == ExpansionOptions(
        limit=3,
        num_repeats={"a": 2, "_default": 1},
        add_seed=True,
        params={"temperature": 1.0},
        prompt=PromptConfig(user="u"),
        agent_map={"rs": "a", "_default": "z"},
        fan_out={"a": ("b", "c")},
        skills_ref=stamp,
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("limit", 0),
        ("limit", -1),
        ("limit", True),
        ("limit", "3"),
        ("num_repeats", 0),
        ("num_repeats", 1.5),
        ("num_repeats", {"a": 0}),
        ("responses_create_params", [1]),
        ("agent_name", "_default"),
        ("agent_name", 3),
        ("agent_map", ["a"]),
        ("skills", "folder"),
        ("skills", {"path": 3}),
        ("agent_map", {"a": None}),
        ("fan_out", {"a": []}),
        ("fan_out", {"a": "b"}),
        ("fan_out", {"a": ["b", "b"]}),
        ("fan_out", {"a": ["_default"]}),
    ],
)
def test_what_cannot_be_meant(key: str, value: Any) -> None:
    with pytest.raises(UsageError, match=key):
        expansion_options({key: value}, [])


def test_two_default_agents_must_agree() -> None:
    with pytest.raises(UsageError, match="name different agents"):
        expansion_options({"agent_name": "a", "agent_map": {"_default": "b"}}, [])
    assert expansion_options({"agent_name": "a", "agent_map": {"_default": "a"}}, []).agent_map == {"_default": "a"}
