from __future__ import annotations

from backend.catalog.server_metadata import ServerMetadata, visit_agent_server, visit_resources_server

CONFIG = {
    "config_paths": ["a.yaml"],
    "agent": {"responses_api_agents": {"simple_agent": {"entrypoint": "app.py", "description": "asks"}}},
    "server": {"resources_servers": {"sums": {"domain": "math", "verified": True, "value": "adding", "other": 1}}},
    "second": {"resources_servers": {"more": {"domain": "games"}}},
}


def test_the_first_block_of_each_kind() -> None:
    assert visit_resources_server(CONFIG) == ServerMetadata(domain="math", verified=True, value="adding")
    assert visit_agent_server(CONFIG) == ServerMetadata(description="asks")


def test_nothing_to_be_seen() -> None:
    assert visit_resources_server({"a": {"responses_api_models": {"m": {}}}, "b": 1}) == ServerMetadata()
