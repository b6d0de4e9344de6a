"""A file of many rows: the list is there at once, the loop never stands still, and memory hardly grows."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import psutil
import pytest

from screens.viewer.screen import ViewerScreen
from screens.widgets.workbench import Target
from tests.rollout_samples import write_many
from tests.workbench import WIDE, heartbeat, settle, text_of, workbench

ROWS = 200_000
TASKS = ROWS // 4
AT_FIRST = TASKS // 10
"""The list is there before more tasks than these have been read. `tests/perf/workbench.py` measures the seconds, which other work stretches."""
MEMORY = 60e6


@pytest.mark.slow
async def test_two_hundred_thousand_rows(tmp_path: Path) -> None:
    path = write_many(tmp_path / "big.jsonl", ROWS, size=900)
    app = workbench(tmp_path, "viewer")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, ViewerScreen)
        gc.collect()
        before = psutil.Process().memory_info().rss
        async with heartbeat():
            screen.show_target(Target(path))
            while not len(screen.tasks.rows.rows):
                await asyncio.sleep(0.005)
            at_first = len(screen.tasks.rows.rows)
            await settle(pilot, seconds=120)
            assert at_first < AT_FIRST < len(screen.tasks.rows.rows) == TASKS
        assert "50 000 tasks" in text_of(app)
        assert screen.conversation.heading == "0 · repeat 1 of 4"
        async with heartbeat():
            await pilot.press("end")
            await settle(pilot)
            assert screen.conversation.heading == "49999 · repeat 1 of 4"
            assert screen.go_to("100001")
            await settle(pilot)
            assert screen.conversation.heading == "25000 · repeat 1 of 4"
            await pilot.press("right_curly_bracket")
            await settle(pilot)
            assert screen.conversation.heading == "25000 · repeat 4 of 4"
        grown = psutil.Process().memory_info().rss - before
        assert grown < MEMORY, f"{grown / 1e6:.0f} MB"
