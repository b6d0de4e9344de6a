from __future__ import annotations

import pytest

from backend.config.errors import (
    AgentCompositionError,
    ConfigError,
    UnsupportedAgentOverrideError,
    UnsupportedAgentPairingError,
)
from backend.config.resolution import resolve_config

GPQA = """\
gpqa_mcqa_resources_server: {resources_servers: {mcqa: {entrypoint: app.py, domain: knowledge}}}
gpqa_mcqa_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      max_steps: 3
      resources_server: {type: resources_servers, name: gpqa_mcqa_resources_server}
      model_server: {type: responses_api_models, name: policy_model}
      datasets: [{name: gpqa, type: example, jsonl_fpath: x.jsonl}]
after: 1
policy_model: {responses_api_models: {openai_model: {entrypoint: app.py}}}
"""
HERMES = """\
hermes_agent:
  responses_api_agents:
    hermes_agent:
      entrypoint: app.py
      turns: 5
      resources_server: {type: resources_servers, name: ???}
      model_server: {type: responses_api_models, name: policy_model}
""".replace("???", "'???'")
BLOCK = "gpqa_mcqa_hermes_agent.responses_api_agents.hermes_agent"


def resolve(write, request_for, *overrides: str, gpqa: str = GPQA, **files: str):
    write({"gpqa.yaml": gpqa, "hermes.yaml": HERMES, **files})
    return resolve_config(request_for("gpqa.yaml", "hermes.yaml", *files, overrides=overrides))


def test_the_unbound_agent_takes_the_place_and_the_ties_of_the_other(write, request_for) -> None:
    resolved = resolve(write, request_for)
    assert [key for key in resolved.tree if "agent" in key or key == "after"] == ["after", "gpqa_mcqa_hermes_agent", "agent_map"]
    assert resolved.get(BLOCK) == {
        "entrypoint": "app.py",
        "turns": 5,
        "resources_server": {"type": "resources_servers", "name": "gpqa_mcqa_resources_server"},
        "model_server": {"type": "responses_api_models", "name": "policy_model"},
        "datasets": [{"name": "gpqa", "type": "example", "jsonl_fpath": "x.jsonl"}],
        "host": "127.0.0.1",
        "port": None,
    }
    assert resolved.tree["agent_map"] == {"gpqa_mcqa_simple_agent": "gpqa_mcqa_hermes_agent"}
    assert resolved.origins.place(f"{BLOCK}.turns").file.endswith("hermes.yaml")
    assert resolved.origins.place(f"{BLOCK}.datasets").file.endswith("gpqa.yaml")


def test_overrides_reach_the_composed_agent_with_old_and_new_keys(write, request_for) -> None:
    resolved = resolve(write, request_for, f"++{BLOCK}.turns=9", f"+{BLOCK}.brand_new=1")
    assert (resolved.get(f"{BLOCK}.turns"), resolved.get(f"{BLOCK}.brand_new")) == (9, 1)
    assert resolved.warnings == ()
    on_standalone = resolve(write, request_for, "++hermes_agent.responses_api_agents.hermes_agent.turns=7")
    assert on_standalone.get(f"{BLOCK}.turns") == 7


def test_overrides_for_an_agent_that_never_comes(write, request_for) -> None:
    with pytest.raises(UnsupportedAgentOverrideError, match="gpqa_mcqa_hermes_agent") as caught:
        resolve(write, request_for, "++gpqa_mcqa_hermes_agen.responses_api_agents.hermes_agent.turns=9")
    assert caught.value.hint == "Did you mean `gpqa_mcqa_hermes_agent`?"


def test_overrides_on_the_replaced_agent_are_remarked(write, request_for) -> None:
    resolved = resolve(write, request_for, "++gpqa_mcqa_simple_agent.responses_api_agents.simple_agent.max_steps=9")
    assert "has no effect" in resolved.warnings[0]


def test_an_agent_bound_by_hand_is_not_swapped(write, request_for) -> None:
    resolved = resolve(
        write,
        request_for,
        "+hermes_agent.responses_api_agents.hermes_agent.resources_server.name=gpqa_mcqa_resources_server",
        "+third.responses_api_agents.hermes_agent.note=1",
    )
    agents = [server.name for server in resolved.servers if server.kind == "responses_api_agents"]
    assert agents == ["gpqa_mcqa_simple_agent", "hermes_agent"]
    assert "agent_map" not in resolved.tree
    assert resolved.get("third.responses_api_agents.hermes_agent.note") == 1


@pytest.mark.parametrize(
    ("old", "implementation", "new"),
    [
        ("gpqa_simple_agent", "simple_agent", "gpqa_hermes_agent"),
        ("simple_agent", "simple_agent", "hermes_agent"),
        ("quiz_agent", "simple_agent", "quiz_hermes_agent"),
        ("plain", "simple_agent", "plain_hermes_agent"),
    ],
)
def test_new_names(write, request_for, old: str, implementation: str, new: str) -> None:
    text = GPQA.replace("gpqa_mcqa_simple_agent", old).replace("    simple_agent:", f"    {implementation}:")
    assert resolve(write, request_for, gpqa=text).tree["agent_map"] == {old: new}


def test_user_entries_of_agent_map_win(write, request_for) -> None:
    resolved = resolve(write, request_for, "+agent_map={gpqa_mcqa_simple_agent: other, x: y}")
    assert resolved.tree["agent_map"] == {"gpqa_mcqa_simple_agent": "other", "x": "y"}


@pytest.mark.parametrize(
    "override",
    [
        "+agent_name=gpqa_mcqa_simple_agent",
        "+agent_map={old: gpqa_mcqa_simple_agent}",
        "+fan_out=[gpqa_mcqa_simple_agent]",
    ],
)
def test_settings_that_name_a_replaced_agent(write, request_for, override: str) -> None:
    with pytest.raises(AgentCompositionError) as caught:
        resolve(write, request_for, override)
    assert "'gpqa_mcqa_simple_agent' is now 'gpqa_mcqa_hermes_agent'" in caught.value.details[0]


def test_nothing_to_replace_and_too_many_unbound(write, request_for) -> None:
    write({"hermes.yaml": HERMES, "second.yaml": HERMES.replace("hermes_agent:\n  resp", "second:\n  resp")})
    with pytest.raises(AgentCompositionError, match="no loaded agent has one"):
        resolve_config(request_for("hermes.yaml"))
    with pytest.raises(AgentCompositionError, match="2 agents have no resources server: 'hermes_agent', 'second'"):
        resolve_config(request_for("hermes.yaml", "second.yaml"))


def test_a_taken_name(write, request_for) -> None:
    with pytest.raises(AgentCompositionError, match="that name is taken"):
        resolve(write, request_for, **{"more.yaml": "gpqa_mcqa_hermes_agent: {note: 1}"})


@pytest.mark.parametrize("allowed", ["[simple_agent]", "simple_agent"])
def test_pairing_guard(write, request_for, monkeypatch, allowed: str) -> None:
    monkeypatch.delenv("NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING", raising=False)
    text = GPQA.replace("domain: knowledge", f"domain: knowledge, allowed_agents: {allowed}")
    with pytest.raises(UnsupportedAgentPairingError, match="'gpqa_mcqa_resources_server'") as caught:
        resolve(write, request_for, gpqa=text)
    assert caught.value.hint == "Select one of: simple_agent; or pass --allow-unsupported-pairing"
    assert resolve(write, request_for, "+allow_unsupported_pairing=true", gpqa=text).get(f"{BLOCK}.turns") == 5
    for value, passes in (("1", True), ("yes", True), ("0", False), ("False", False), ("", False)):
        monkeypatch.setenv("NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING", value)
        if passes:
            assert resolve(write, request_for, gpqa=text).get(f"{BLOCK}.turns") == 5
        else:
            with pytest.raises(UnsupportedAgentPairingError):
                resolve(write, request_for, gpqa=text)


def test_allowed_agents_of_a_wrong_kind(write, request_for) -> None:
    with pytest.raises(ConfigError, match="must be a list of agent names"):
        resolve(write, request_for, gpqa=GPQA.replace("domain: knowledge", "domain: knowledge, allowed_agents: {a: 1}"))


def test_legacy_agent_names_are_mapped(write, request_for) -> None:
    write({"x.yaml": "hermes_reasoning_gym_agent: {responses_api_agents: {hermes_agent: {entrypoint: app.py}}}"})
    assert resolve_config(request_for("x.yaml")).tree["agent_map"] == {"reasoning_gym_hermes_agent": "hermes_reasoning_gym_agent"}
    resolved = resolve_config(request_for("x.yaml", overrides=("+agent_map={}",)))
    assert resolved.tree["agent_map"] == {"reasoning_gym_hermes_agent": "hermes_reasoning_gym_agent"}
