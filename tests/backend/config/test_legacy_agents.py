"""Old agent names; what comes out is what NeMo Gym 0.6.0 makes of the same settings."""

from __future__ import annotations

from typing import Any

import pytest

from backend.config.resolution import resolve_config

OLD, NEW, COMPOSED = "reasoning_gym_hermes_agent", "hermes_reasoning_gym_agent", "hermes_reasoning_gym_hermes_agent"
BOUND = "resources_server: {type: resources_servers, name: rg}"
FILES = {
    "env.x.yaml": f"rg: {{resources_servers: {{rg: {{entrypoint: app.py, domain: math}}}}}}\n"
    f"{NEW}: {{responses_api_agents: {{simple_agent: {{entrypoint: app.py, {BOUND}}}}}}}\n",
    "hermes.yaml": f"hermes_agent: {{responses_api_agents: {{hermes_agent: {{entrypoint: app.py, {BOUND.replace('rg}', chr(39) + '???' + chr(39) + '}')}}}}}}}",
    "other.yaml": "mcqa_simple_agent: {responses_api_agents: {simple_agent: {entrypoint: app.py}}}",
}


@pytest.mark.parametrize(
    ("files", "words", "wanted"),
    [
        ((), (), {"agent_map": {OLD: NEW}}),
        ((), (f"+agent_name={OLD}",), {"agent_map": {OLD: NEW}, "agent_name": NEW}),
        ((), (f"+nm={OLD}", "+agent_name='${nm}'"), {"agent_name": NEW, "nm": OLD}),
        ((), (f"+agent_map={{q:{OLD}}}",), {"agent_map": {"q": NEW, OLD: NEW}}),
        ((), (f"+fan_out={{x:[{OLD},{NEW}]}}",), {"fan_out": {"x": [NEW, NEW]}}),
        ((), (f"+fan_out={{{OLD}:[a]}}",), {"fan_out": {OLD: ["a"]}}),
        ((), (f"+fan_out={{x:{OLD}}}",), {"fan_out": {"x": OLD}}),
        ((), (f"+num_repeats={{{OLD}:2}}",), {"num_repeats": {OLD: 2}}),
        ((), (f"+agent_map={{{OLD}:foo}}", f"+agent_name={OLD}"), {"agent_map": {OLD: "foo"}, "agent_name": NEW}),
        ((), (f"+agent_map={{{NEW}:zz}}", f"+agent_name={OLD}"), {"agent_map": {NEW: "zz"}, "agent_name": OLD}),
        ((), (f"+agent_map={{{NEW}:null}}",), {"agent_map": {NEW: None}}),
        ((), ("+agent_name=reasoning_gym_rewoo_agent",), {"agent_name": "reasoning_gym_rewoo_agent"}),
        ((), (f"++{OLD}=5", f"+agent_name={OLD}"), {"agent_name": OLD, "agent_map": None}),
        (
            ("other.yaml",),
            (f"+agent_map={{{NEW}:mcqa_simple_agent,q:{OLD}}}",),
            {"agent_map": {NEW: "mcqa_simple_agent", "q": "mcqa_simple_agent", OLD: "mcqa_simple_agent"}},
        ),
        (
            ("other.yaml",),
            (f"+agent_map={{{NEW}:foo,foo:mcqa_simple_agent}}",),
            {"agent_map": {NEW: "foo", "foo": "mcqa_simple_agent"}},
        ),
        (
            ("hermes.yaml",),
            (f"+agent_name={OLD}", f"+fan_out={{x:[{OLD}]}}"),
            {"agent_map": {NEW: COMPOSED, OLD: COMPOSED}, "agent_name": COMPOSED, "fan_out": {"x": [COMPOSED]}},
        ),
        (("hermes.yaml",), (f"+agent_map={{{NEW}:foo}}",), {"agent_map": {NEW: "foo"}}),
    ],
)
def test_old_names(write, request_for, files: tuple[str, ...], words: tuple[str, ...], wanted: dict[str, Any]) -> None:
    write(FILES)
    tree = resolve_config(request_for("env.x.yaml", *files, overrides=words)).tree
    assert {key: tree.get(key) for key in wanted} == wanted


def test_the_user_is_still_named_as_who_chose_the_agent(write, request_for) -> None:
    write(FILES)
    resolved = resolve_config(request_for("env.x.yaml", overrides=(f"+agent_name={OLD}",)))
    assert [setting.value for setting in resolved.origins.chain("agent_name")] == [OLD, NEW]
    assert str(resolved.origins.place("agent_name")) == f"+agent_name={OLD} (agent_name)"
