"""Every screen opens on what is there, and is drawn with its frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from gym_tui.screen_table import SCREENS
from tests.run_samples import START, live_run
from tests.workbench import NARROW, WIDE, settle, text_of, workbench


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_every_screen_opens(tmp_path: Path, size: tuple[int, int]) -> None:
    live_run(tmp_path)
    app = workbench(tmp_path, "results", now=START + 95)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for entry in SCREENS:
            await pilot.press(entry.digit)
            await settle(pilot)
            lines = text_of(app).splitlines()
            assert f"[{entry.digit} {entry.title}]" in lines[0]
            assert "? Help" in lines[-1]
            assert "╭─" in lines[1]
