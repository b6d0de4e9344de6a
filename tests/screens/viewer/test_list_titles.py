"""What the borders of the list and its legend say of rows of all kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from screens.viewer.list_titles import CountTexts, titles
from screens.viewer.repeat_strip import legend
from tests.rollout_samples import record
from tests.viewer_desk import RESTYLED, viewing
from tests.workbench import WIDE, lines, settle

COUNTS = CountTexts(("13 rollouts by size · 2 unreadable", "13 rollouts by size · 2 !"), ("13 by size · 2 !", "13 by size"))


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (60, ("long_name.jsonl", "13 rollouts by size · 2 unreadable")),
        (42, ("long_name.jsonl", "13 rollouts by size · 2 !")),
        (34, ("", "13 rollouts by size · 2 unreadable")),
        (26, ("", "13 rollouts by size · 2 !")),
        (20, ("", "13 by size · 2 !")),
        (12, ("", "13 by size")),
        (3, ("", "13 by size")),
        (0, ("long_name.jsonl", "13 rollouts by size · 2 unreadable")),
    ],
)
def test_what_fits_into_the_border(width: int, expected: tuple[str, str]) -> None:
    assert titles("long_name.jsonl", COUNTS, width) == expected


def test_the_legend_is_true_of_all_rewards() -> None:
    assert legend() == "■ 1  □ 0  ▒ between  ✗ failed"
    assert legend(more=True, negative=True, unscored=True).split("  ") == [
        "■ 1 or more", "□ 0 or less", "▒ between", "✗ failed", "· no score",
    ]  # fmt: skip
    for width in range(12, 60):
        rows = legend(width, more=True, negative=True, unscored=True).split("\n")
        assert max(map(len, rows)) <= width and len("  ".join(rows)) == 57


@pytest.mark.slow
async def test_rows_that_cannot_be_read_are_no_tasks(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    rewards = [1.0, -0.5, 0.0, 0.5, 1.0, 1.0, 1.0]
    rows = [json.dumps(record(task, 0, reward, [])) for task, reward in enumerate(rewards)]
    path.write_text("".join(row + "\n" for row in [*rows, *["{"] * 4, "[]"]))
    async with viewing(path, stall=RESTYLED) as desk:
        assert "7 tasks · 5 unreadable ─╮" in lines(desk.app)[1] and "12 rows" in desk.text
        assert "■ 1  □ 0 or less  ▒ between" in desk.text and "no score" not in desk.text
        assert "1 or more" not in desk.text
        await desk.press("slash")
        await desk.write("reward<1", "enter")
        assert "3 of 7 tasks ─╮" in lines(desk.app)[1]
        await desk.press("escape", "g")
        assert "m.jsonl  7 rollouts · 5 unreadable ─╮" in lines(desk.app)[1]
        await desk.press("s", "s", "s")
        assert "m.jsonl ─ 7 rollouts by size · 5 ! ─╮" in lines(desk.app)[1]
        await desk.press("s", "g")
        with path.open("a") as file:
            file.write(json.dumps(record(7, 0, 2.0, [])) + "\n" + json.dumps(record(8, 0, None, [])) + "\n")  # type: ignore[arg-type]
        await settle(desk.pilot, lambda: "9 tasks · 5 unreadable ─╮" in lines(desk.app)[1])
        assert "■ 1 or more" in desk.text and "· no score" in desk.text
        await desk.pilot.resize_terminal(WIDE[0] + 40, WIDE[1])
        await desk.press("z")
        assert "■ 1 or more  □ 0 or less  ▒ between  ✗ failed  · no score" in desk.text
