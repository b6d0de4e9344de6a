"""Counters of sessions, through the real application."""

from __future__ import annotations

import pytest

from resources_servers.example_session_state_mgmt.app import StatefulCounterResourcesServer
from tests.component_servers import client_of, judged, make_server

ROW = {"initial_count": 3, "expected_count": 6}


async def test_a_session_from_seed_to_verdict() -> None:
    server = make_server(StatefulCounterResourcesServer)
    async with client_of(server) as client:
        assert (await client.post("/seed_session", json=ROW)).json() == {}
        for count in (1, 2):
            assert (await client.post("/increment_counter", json={"count": count})).json() == {"success": True}
        assert (await client.post("/get_counter_value")).json() == {"count": 6}
        assert (await client.post("/verify", json=judged(**ROW))).json()["reward"] == 1.0
        assert server.session_id_to_counter == {}
        assert (await client.post("/verify", json=judged(**ROW))).json()["reward"] == 0.0


@pytest.mark.parametrize(("added", "reward"), [((), 0.0), ((3,), 1.0), ((4, -1), 1.0), ((6,), 0.0)])
async def test_the_counter_decides(added: tuple[int, ...], reward: float) -> None:
    async with client_of(make_server(StatefulCounterResourcesServer)) as client:
        await client.post("/seed_session", json=ROW)
        for count in added:
            await client.post("/increment_counter", json={"count": count})
        assert (await client.post("/verify", json=judged(**ROW))).json()["reward"] == reward


async def test_the_first_seed_counts() -> None:
    async with client_of(make_server(StatefulCounterResourcesServer)) as client:
        for start in (3, 100):
            await client.post("/seed_session", json={"initial_count": start})
        assert (await client.post("/get_counter_value")).json() == {"count": 3}


async def test_sessions_do_not_mix_and_unseeded_ones_start_at_zero() -> None:
    server = make_server(StatefulCounterResourcesServer)
    async with client_of(server) as seeded, client_of(server) as unseeded:
        await seeded.post("/seed_session", json=ROW)
        await unseeded.post("/increment_counter", json={"count": 5})
        assert (await seeded.post("/get_counter_value")).json() == {"count": 3}
        assert (await unseeded.post("/get_counter_value")).json() == {"count": 5}
        nobody = judged(initial_count=0, expected_count=0)
        async with client_of(server) as unknown:
            assert (await unknown.post("/verify", json=nobody)).json()["reward"] == 0.0


async def test_bad_requests() -> None:
    async with client_of(make_server(StatefulCounterResourcesServer)) as client:
        assert (await client.post("/seed_session", json={})).status_code == 422
        assert (await client.post("/increment_counter", json={"count": "many"})).status_code == 422
        assert (await client.get("/reverify_mode")).json() == "unsupported"
