"""Pictures of what the program puts around and above the screens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from gym_tui.palette import Palette
from tests.gym_tui.small_screens import small_workbench
from tests.workbench import NARROW, WIDE, settle

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])


@SIZES
@pytest.mark.parametrize("theme", ["gym-dark", "gym-light"])
def test_help(picture: Any, size: tuple[int, int], theme: str) -> None:
    async def open_help(pilot: Pilot[Any]) -> None:
        await pilot.press("question_mark")

    assert picture(small_workbench(Path.cwd(), theme=theme), size, ["Help", "next row", "WHAT IT DOES"], steps=open_help)


@SIZES
def test_palette(picture: Any, size: tuple[int, int]) -> None:
    async def open_palette(pilot: Pilot[Any]) -> None:
        await pilot.press("ctrl+p")
        await settle(pilot, lambda: isinstance(pilot.app.screen, Palette) and pilot.app.screen.has_class("-ready"))
        await pilot.press(*"themegym")
        await settle(pilot, lambda: pilot.app.screen.query_one(OptionList).option_count == 2)

    assert picture(small_workbench(Path.cwd()), size, ["theme: gym-dark", "theme: gym-light"], steps=open_palette)


@SIZES
def test_command_line(picture: Any, size: tuple[int, int]) -> None:
    async def wrong_line(pilot: Pilot[Any]) -> None:
        pilot.app.prefill_command("eval run --split ")  # type: ignore[attr-defined]
        await settle(pilot)
        await pilot.press("enter")

    shows = ["expected one argument", "validation", ": eval run --split"]
    assert picture(small_workbench(Path.cwd()), size, shows, steps=wrong_line)


@SIZES
def test_jump(picture: Any, size: tuple[int, int]) -> None:
    async def open_jump(pilot: Pilot[Any]) -> None:
        await pilot.press("ctrl+o")

    assert picture(small_workbench(Path.cwd()), size, [" a uns [/x]"], steps=open_jump)


@SIZES
@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
def test_drawer(picture: Any, size: tuple[int, int], ascii_only: bool) -> None:
    async def open_drawer(pilot: Pilot[Any]) -> None:
        await pilot.press("J")

    shows = ["Nothing was started from here.", "Nothing was told yet."]
    assert picture(small_workbench(Path.cwd(), ascii=ascii_only), size, shows, steps=open_drawer)
