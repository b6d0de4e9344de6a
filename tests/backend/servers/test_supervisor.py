"""A stack within this process: what it says to whom it is started by."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from backend.config.request import ConfigRequest
from backend.config.resolution import resolve_config
from backend.events import Event
from backend.servers.ports import HEAD_SERVER_NAME
from backend.servers.server_events import ServerReady, StackProgress, StackReady
from backend.servers.supervisor import Stack, StackOptions
from backend.servers.warm_parent_link import WarmParentLink


async def test_everything_that_happens_until_all_are_ready_is_told_also_to_one_who_listens_late(
    tiny_tree: Path, free_port: int
) -> None:
    overrides = (f"++head_server.port={free_port}",)
    resolved = resolve_config(ConfigRequest(("tiny.yaml",), overrides=overrides, cwd=tiny_tree))
    told: list[Event] = []
    async with (
        asyncio.timeout(60),
        Stack(resolved, WarmParentLink(), StackOptions()) as stack,
        aclosing(stack.start()) as starting,
    ):
        async for event in starting:
            told.append(event)
            if isinstance(event, StackProgress):
                while not all(process.ready for process in stack.processes.values()):
                    await asyncio.sleep(0.01)
    assert isinstance(told[-1], StackReady)
    ready = sorted(event.name for event in told if isinstance(event, ServerReady))
    assert ready == sorted(["tiny_a", "tiny_b", "tiny_c", HEAD_SERVER_NAME])
