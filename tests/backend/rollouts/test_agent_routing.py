"""Rows to agents: sources, names and pairings, on plain configuration trees."""

from __future__ import annotations

from typing import Any

import pytest

from backend.config.errors import UnsupportedAgentPairingError
from backend.rollouts.agent_routing import AgentRoutingError, check_agents, check_pairings, resolve_sources


def agent(kind: str, resources_server: str | None = None) -> dict[str, Any]:
    reference = {"resources_server": {"type": "resources_servers", "name": resources_server}} if resources_server else {}
    return {"responses_api_agents": {kind: {"entrypoint": "app.py", **reference}}}


def resources(pins: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    datasets = [{"name": pin, "agent": pin} for pin in pins] + [{"name": "no_pin"}]
    return {"resources_servers": {"toy": {"entrypoint": "app.py", "datasets": datasets, **fields}}}


TREE = {
    "limit": 3,
    "policy_model": {"responses_api_models": {"m": {"entrypoint": "app.py"}}},
    "solo": resources(allowed_agents="simple_agent"),
    "solo_agent": agent("simple_agent", "solo"),
    "shared": resources(("second_agent",), allowed_agents=["simple_agent", "other_agent"]),
    "first_agent": agent("simple_agent", "shared"),
    "second_agent": agent("hermes_agent", "shared"),
    "crowded": resources(),
    "third_agent": agent("simple_agent", "crowded"),
    "fourth_agent": agent("simple_agent", "crowded"),
    "torn": resources(("third_agent", "fourth_agent")),
    "astray": resources(("solo_agent",)),
    "lonely": resources(),
    "unbound": agent("simple_agent", "???"),
    "free_agent": agent("free"),
}


def test_sources_that_settle_the_agent() -> None:
    assert resolve_sources(["solo", "shared", "free_agent", "solo"], TREE) == {
        "solo": "solo_agent",
        "shared": "second_agent",
        "free_agent": "free_agent",
    }


def test_all_sources_that_do_not_are_reported() -> None:
    sources = ["crowded", "torn", "astray", "lonely", "policy_model", "solos", "limit"]
    with pytest.raises(AgentRoutingError, match="7 task_source") as caught:
        resolve_sources(sources, TREE)
    expected = (
        "several agents use it: third_agent, fourth_agent",
        "pin different agents: third_agent, fourth_agent",
        "pin 'solo_agent', which is no agent that uses it (these do: none)",
        "no agent uses it",
        "it is a model server",
        "no server instance has this name (Did you mean `solo`?)",
        "no server instance has this name",
    )
    for source, problem, line in zip(sources, expected, caught.value.details, strict=True):
        assert line.startswith(f"task_source '{source}': ") and problem in line


def test_agent_names() -> None:
    check_agents(["solo_agent", "free_agent"], TREE)
    with pytest.raises(ValueError, match="3 of the agents") as caught:
        check_agents(["solo_agnt", "solo", "zzz", "solo_agent"], TREE)
    assert "Did you mean `solo_agent`?" in str(caught.value)
    assert "'solo' exists but is not an agent" in str(caught.value)


def test_pairings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING", raising=False)
    check_pairings([("solo_agent", "solo"), ("first_agent", "solo"), ("third_agent", None), ("free_agent", "lonely")], TREE)
    with pytest.raises(UnsupportedAgentPairingError, match="2 pairing") as caught:
        check_pairings([("second_agent", "shared"), ("free_agent", "solo"), ("second_agent", None)], TREE)
    assert caught.value.details == (
        "'second_agent' (hermes_agent) on 'shared', which allows simple_agent, other_agent",
        "'free_agent' (free) on 'solo', which allows simple_agent",
    )


@pytest.mark.parametrize(("value", "allowed"), [("1", True), ("yes", True), ("0", False), ("False", False), ("", False)])
def test_pairings_may_be_waived(value: str, allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING", value)
    if allowed:
        check_pairings([("second_agent", "shared")], TREE)
    else:
        with pytest.raises(UnsupportedAgentPairingError):
            check_pairings([("second_agent", "shared")], TREE)
    check_pairings([("second_agent", "shared")], {**TREE, "allow_unsupported_pairing": True})
