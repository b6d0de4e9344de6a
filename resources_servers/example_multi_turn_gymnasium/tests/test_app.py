"""Conversations through the real application."""

from __future__ import annotations

from typing import Any

import pytest

from resources_servers.example_multi_turn_gymnasium.app import ExampleMultiTurnEnv
from tests.component_servers import client_of, make_server, message, response_of

ROW = {
    "responses_create_params": {"input": "Take 7, double it."},
    "follow_ups": ["Subtract 4.", "Thanks."],
    "expected_answer": "Ten",
}


def step_of(text: str, row: dict[str, Any] = ROW) -> dict[str, Any]:
    return {**row, "response": response_of(message(text))}


@pytest.mark.parametrize(("last", "reward"), [("It was TEN.", 1.0), ("11", 0.0), ("", 0.0)])
async def test_a_conversation(last: str, reward: float) -> None:
    server = make_server(ExampleMultiTurnEnv)
    async with client_of(server) as client:
        assert (await client.post("/reset", json=ROW)).json() == {"observation": None, "info": {}}
        for text, follow_up in (("14", "Subtract 4."), ("ten", "Thanks.")):
            answer = (await client.post("/step", json=step_of(text))).json()
            assert (answer["observation"], answer["reward"], answer["terminated"]) == (follow_up, 0.0, False)
        answer = (await client.post("/step", json=step_of(last))).json()
    assert answer == {"observation": None, "reward": reward, "terminated": True, "truncated": False, "info": {}}
    assert server.session_state == {}


async def test_without_follow_ups_the_first_answer_is_judged() -> None:
    row = {key: value for key, value in ROW.items() if key != "follow_ups"}
    async with client_of(make_server(ExampleMultiTurnEnv)) as client:
        await client.post("/reset", json=row)
        answer = (await client.post("/step", json=step_of("ten", row))).json()
    assert (answer["reward"], answer["terminated"]) == (1.0, True)


async def test_a_row_that_expects_nothing_is_refused_at_the_reset() -> None:
    async with client_of(make_server(ExampleMultiTurnEnv)) as client:
        answer = await client.post("/reset", json={"responses_create_params": {"input": "x"}, "follow_ups": []})
    assert answer.status_code == 500 and "expected_answer" in answer.json()
