"""The tools and the verdict on the last hand-in, through the real application. Values are sums of code points."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources_servers.example_multi_step.app import ExampleMultiStepResourcesServer, synonym_value
from tests.component_servers import call, client_of, judged, make_server, message

# ord("a") = 97, ord("b") = 98, ord("c") = 99
ROW = {
    "id": 0, "expected_synonyms": ["a", "ab"], "expected_synonym_values": [97, 195],
    "minefield_label": "c", "minefield_label_value": 99,
}  # fmt: skip


def hand_in(*values: int) -> dict[str, Any]:
    return call("extract_synonym_values", json.dumps({"synonym_values": list(values)}))


async def verdict_on(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    async with client_of(make_server(ExampleMultiStepResourcesServer)) as client:
        answer = await client.post("/verify", json=judged(*output, **{**ROW, **fields}))
    assert answer.status_code == 200, answer.text
    verdict: dict[str, Any] = answer.json()
    return verdict


async def test_tools() -> None:
    async with client_of(make_server(ExampleMultiStepResourcesServer)) as client:
        assert (await client.post("/get_synonym_value", json={"synonym": "ab"})).json() == {"synonym_value": 195}
        assert (await client.post("/extract_synonym_values", json={"synonym_values": [1]})).json() == {"success": True}
        assert (await client.post("/extract_synonym_values", json={"synonym_values": ["x"]})).status_code == 422


@given(st.text(), st.text())
def test_the_value_of_a_text_is_that_of_its_parts(first: str, second: str) -> None:
    assert synonym_value(first + second) == synonym_value(first) + synonym_value(second)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([hand_in(97, 195)], (1.0, [97, 195], True, 1.0, False, False)),
        ([hand_in(1), message("oh"), hand_in(97, 195)], (1.0, [97, 195], True, 1.0, False, False)),
        ([hand_in(97, 195), hand_in(97)], (0.0, [97], False, 0.5, False, False)),
        ([hand_in(195, 97)], (0.0, [195, 97], False, 1.0, False, True)),
        ([hand_in(97, 97, 195)], (0.0, [97, 97, 195], False, 1.0, False, True)),
        ([hand_in(99, 97)], (0.0, [99, 97], False, 0.5, True, False)),
        ([hand_in()], (0.0, [], False, 0.0, False, False)),
        ([call("get_synonym_value", '{"synonym": "a"}')], (0.0, [], False, 0.0, False, False)),
        ([], (0.0, [], False, 0.0, False, False)),
    ],
)
async def test_verdicts(output: list[dict[str, Any]], expected: tuple[Any, ...]) -> None:
    verdict = await verdict_on(*output)
    found = [
        verdict[key]
        for key in (
            "reward", "parsed_synonym_values", "accuracy", "set_overlap", "original_term_minefield_hit",
            "order_instruction_following_failure",
        )
    ]  # fmt: skip
    assert tuple(found) == expected
    assert verdict["failure_reason"] is None
    assert {key: verdict[key] for key in ROW} == ROW


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("{", "the arguments of the last extract_synonym_values are not JSON: "),
        ("[" * 100_000, "the arguments of the last extract_synonym_values are not JSON: "),
        ("{}", "the last extract_synonym_values has wrong arguments: Field required"),
        ('{"synonym_values": [1.5]}', "the last extract_synonym_values has wrong arguments: "),
        ("[]", "the last extract_synonym_values has wrong arguments: "),
    ],
)
async def test_a_hand_in_that_cannot_be_read_is_worth_nothing(arguments: str, reason: str) -> None:
    verdict = await verdict_on(call("extract_synonym_values", arguments))
    assert (verdict["reward"], verdict["parsed_synonym_values"]) == (0.0, [])
    assert verdict["failure_reason"].startswith(reason)


async def test_a_row_that_expects_nothing_is_named() -> None:
    verdict = await verdict_on(hand_in(), expected_synonym_values=[])
    assert (verdict["reward"], verdict["set_overlap"], verdict["failure_reason"]) == (0.0, 0.0, "the row expects no values")
