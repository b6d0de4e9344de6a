"""Two repeats side by side, of any size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rollout_samples import HOSTILE, message, record
from tests.viewer_desk import viewing
from tests.workbench import settle

pytestmark = pytest.mark.slow


async def test_long_turns_beside_each_other_do_not_hold_up_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    texts = [
        "x" * 1_000_000,
        "日本語" * 100_000,
        "count the pairs, again; " * 20_000,
        "count the pears, again.\n" * 20_000,
        HOSTILE * 3000,
    ]
    rows = [record(0, number, 0.0, [message("assistant", text)]) for number, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    async with viewing(path) as desk:
        for number in range(2, len(texts) + 1):
            await desk.press("d")
            assert f"(diff of repeat 1 and repeat {number} of task 0)" in desk.text
            await settle(desk.pilot, lambda: "difference 1 of 1" in desk.text)
        await desk.press("e", "s", "pagedown", "escape")
        assert desk.title == "0 · repeat 1 of 5"
