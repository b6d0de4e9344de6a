"""Which tool names become paths, and which arguments are JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from responses_api_agents.simple_agent.tool_calls import RESERVED_NAMES, RefusedToolCall, tool_arguments, tool_path


@pytest.mark.parametrize("name", ["get_weather", "email.send", "über", "search files", "verify_email", "Verify", "a.b-c:d"])
def test_names_that_become_paths(name: str) -> None:
    assert tool_path(name) == f"/{name}"


@pytest.mark.parametrize(
    "name",
    [
        *sorted(RESERVED_NAMES),
        " verify ",
        "",
        "  ",
        ".",
        "..",
        "a..b",
        "../verify",
        "ng-rollout/x/verify",
        "rain?city=Oslo",
        "rain#1",
        "a\\b",
        "%76erify",
        "veri\nfy",
        "rain\x00",
    ],
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(RefusedToolCall) as refusal:
        tool_path(name)
    assert json.loads(refusal.value.output) == {"error": f"There is no tool named {name!r}"}


@given(st.text(max_size=20))
def test_an_accepted_name_never_reaches_another_route(name: str) -> None:
    try:
        path = tool_path(name)
    except RefusedToolCall:
        return
    url = URL(f"http://localhost:1{path}")
    assert url.raw_path.count("/") == 1 and not url.raw_query_string and not url.raw_fragment
    assert url.path.strip("/").strip() not in RESERVED_NAMES | {""}


def test_arguments() -> None:
    assert tool_arguments('{"city": "Oslo", "days": [1, 2.5, null]}') == {"city": "Oslo", "days": [1, 2.5, None]}
    assert tool_arguments("[]") == []


@pytest.mark.parametrize("text", ["", "{", "{'city': 1}", "[" * 100_000])
def test_arguments_that_are_not_json(text: str) -> None:
    with pytest.raises(RefusedToolCall) as refusal:
        tool_arguments(text)
    assert json.loads(refusal.value.output)["error"].startswith("Invalid tool call arguments: ")
    assert "Error(" in json.loads(refusal.value.output)["error"]
