from __future__ import annotations

from typing import Any

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


def test_the_level_says_what_is_passed() -> None:
    instance: Any = CONFIG["server"]
    blocks = instance["resources_servers"]
    sums = ServerMetadata(domain="math", verified=True, value="adding")
    assert visit_resources_server(data=CONFIG, level=1) == sums
    assert visit_resources_server(instance, level=2) == sums
    assert visit_resources_server(blocks, level=3) == sums
    assert visit_resources_server(blocks["sums"], level=4) == sums
    assert visit_agent_server(data=CONFIG["agent"], level=2).description == "asks"  # type: ignore[arg-type]
    for level in (0, 2, 3, 4):
        assert visit_resources_server(CONFIG, level=level) == ServerMetadata()


def test_what_is_not_said() -> None:
    assert ServerMetadata(domain="math").to_dict() == {
        "domain": "math", "description": None, "verified": False, "verified_url": None, "value": None,
    }  # fmt: skip


def test_nothing_to_be_seen() -> None:
    assert visit_resources_server({"a": {"responses_api_models": {"m": {}}}, "b": 1}) == ServerMetadata()
