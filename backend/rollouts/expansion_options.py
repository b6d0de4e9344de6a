"""The settings that shape the rows of a run, read from the resolved configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.errors import UsageError

if TYPE_CHECKING:
    from backend.datasets.prompt import PromptConfig

DEFAULT = "_default"
"""The key of `agent_map` and `num_repeats` for whatever is not named."""


@dataclass(frozen=True, slots=True)
class ExpansionOptions:
    """How input rows become rollouts; `expansion_options` makes one from a configuration and checks it."""

    limit: int | None = None
    """Only so many input rows, duplicates counted."""
    num_repeats: int | Mapping[str, int] = 1
    """Rollouts per row, or per agent or `task_source` with `_default` for the others."""
    add_seed: bool = False
    """Give each rollout its index as the sampling seed."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Replaces keys of every row's `responses_create_params`, not merging below them."""
    prompt: PromptConfig | None = None
    agent_map: Mapping[str, str] = field(default_factory=dict)
    """Agent by the row's agent or `task_source`, with `_default` for the others."""
    fan_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Agents that each run a row, by its agent or `task_source`."""
    skills_ref: Mapping[str, Any] | None = None
    """Stamped on every row."""


def expansion_options(config: Mapping[str, Any], roots: Sequence[Path]) -> ExpansionOptions:
    """The options in `config`, where null means absent; raises UsageError for values that cannot be meant."""
    params = config.get("responses_create_params") or {}
    if not isinstance(params, Mapping):
        raise _invalid("responses_create_params", "must be a mapping", params)
    prompt = config.get("prompt_config")
    return ExpansionOptions(
        limit=_at_least_one("limit", config.get("limit")),
        num_repeats=_repeats(config.get("num_repeats")),
        add_seed=bool(config.get("num_repeats_add_seed")),
        params=dict(params),
        prompt=_prompt_config(prompt, roots) if prompt else None,
        agent_map=_agent_map(config.get("agent_name"), config.get("agent_map")),
        fan_out=_fan_out(config.get("fan_out")),
        skills_ref=_skills_ref(config.get("skills"), roots),
    )


def _prompt_config(path: str, roots: Sequence[Path]) -> PromptConfig:
    from backend.datasets.prompt import load_prompt_config  # not at the top: most runs have no prompt, and it loads pydantic

    return load_prompt_config(path, roots)


def _skills_ref(skills: Any, roots: Sequence[Path]) -> Mapping[str, Any] | None:
    path = skills.get("path") if isinstance(skills, Mapping) else skills
    if path is None:
        return None
    if not isinstance(skills, Mapping) or not isinstance(path, str) or not path:
        raise _invalid("skills", "must be a mapping with `path`, a folder of skills", skills)
    from backend.datasets.skills import skills_ref_of

    return skills_ref_of(path, roots)


def _repeats(value: Any) -> int | Mapping[str, int]:
    if isinstance(value, Mapping):
        return {str(name): _at_least_one(f"num_repeats.{name}", number) or 1 for name, number in value.items()}
    return _at_least_one("num_repeats", value) or 1


def _agent_map(agent_name: Any, agent_map: Any) -> Mapping[str, str]:
    if not isinstance(agent_map or {}, Mapping):
        raise _invalid("agent_map", "must be a mapping from agent or task_source to agent", agent_map)
    result = {str(old): _agent(f"agent_map.{old}", new) for old, new in (agent_map or {}).items()}
    if agent_name is not None:
        name = _agent("agent_name", agent_name)
        if result.setdefault(DEFAULT, name) != name:
            raise UsageError(
                f"invalid configuration: agent_name ({name}) and agent_map.{DEFAULT} ({result[DEFAULT]}) name different agents",
                hint="give only one of them",
            )
    return result


def _fan_out(value: Any) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value or {}, Mapping):
        raise _invalid("fan_out", "must be a mapping from agent or task_source to a list of agents", value)
    result = {}
    for name, agents in (value or {}).items():
        key = f"fan_out.{name}"
        if not isinstance(agents, list | tuple) or not agents:
            raise _invalid(key, "must be a list of at least one agent", agents)
        targets = tuple(_agent(key, agent) for agent in agents)
        if len(set(targets)) < len(targets):
            raise _invalid(key, "must not name an agent twice", list(agents))
        result[str(name)] = targets
    return result


def _agent(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value or value == DEFAULT:
        raise _invalid(key, "must be the name of an agent", value)
    return value


def _at_least_one(key: str, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _invalid(key, "must be a whole number of at least 1", value, hint=_HINTS.get(key))
    return value


_HINTS = {"limit": "leave it out to run all rows"}


def _invalid(key: str, rule: str, value: Any, hint: str | None = None) -> UsageError:
    return UsageError(f"invalid configuration: {key} ({rule}, not {value!r})", hint=hint)
