"""The program around the screens: palette, help, jump, themes, drawing with ASCII, rebinding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.color import Color
from textual.widgets import OptionList

from gym_tui.app import WorkbenchApp
from gym_tui.help_screen import HelpScreen, help_lines
from gym_tui.jump import JumpOverlay
from gym_tui.palette import Palette
from gym_tui.screen_table import SCREENS
from gym_tui.settings import read_choices
from gym_tui.themes import OWN
from screens.widgets.frame import FrameLine
from screens.widgets.key_table import KEYS, SCOPES
from screens.widgets.virtual_list import VirtualList
from tests.gym_tui.small_screens import SmallScreen, small_workbench
from tests.workbench import NARROW, WIDE, heartbeat, lines, settle, text_of, workbench


def options(app: WorkbenchApp) -> list[str]:
    found = app.screen.query_one(OptionList)
    return [str(found.get_option_at_index(index).prompt) for index in range(found.option_count)]


def palette_ready(app: WorkbenchApp) -> bool:
    return isinstance(app.screen, Palette) and app.screen.query_one(OptionList).option_count > 0


async def test_the_palette_offers_screens_commands_keys_and_themes(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        async with heartbeat(0.3):
            await pilot.press("ctrl+p")
            await settle(pilot, lambda: palette_ready(app))
        found = options(app)
        assert "screen: Rollouts: follow a run as it goes" in found
        assert "theme: gym-light" in found
        assert any(option.startswith("run: gym eval run:") for option in found)
        assert "Lists: next row (j ↓)" in found
        assert "Everywhere: next theme (T)" in found
        assert not any(option.startswith("Jobs: stop") for option in found), "the drawer is not open"


async def test_the_palette_runs_what_is_chosen(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot, lambda: palette_ready(app))
        await pilot.press(*"thmonokai")
        await settle(pilot, lambda: palette_ready(app) and options(app) == ["theme: monokai"])
        await pilot.press("enter")
        await settle(pilot, lambda: app.theme == "monokai")
        await pilot.press("ctrl+p")
        await settle(pilot, lambda: palette_ready(app))
        await pilot.press(*"next", "space", *"row")
        await settle(pilot, lambda: palette_ready(app) and options(app)[0].startswith("Lists: next row"))
        await pilot.press("enter")
        await settle(pilot, lambda: app.front.query_one("#rows", VirtualList).cursor == 1)
        assert app.theme == "monokai"


async def test_the_palette_finds_runs_whatever_they_are_called(tmp_path: Path) -> None:
    name = "[red]x[] 日本.jsonl"
    (tmp_path / name).write_text('{"reward": 1.0}\n')
    folder = tmp_path / f"{name.removesuffix('.jsonl')}_run"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"state": "done", "output": name}))
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot, lambda: palette_ready(app))
        await pilot.press(*"open")
        await settle(pilot, lambda: palette_ready(app) and f"open: {name}" in options(app))
        assert f"open: {name}" in text_of(app)


def test_help_lists_every_key_once_and_narrows_by_words() -> None:
    shown = {key.name: key.keys for key in KEYS}
    everything = help_lines(list(SCOPES), shown)
    assert sorted(line.name for line in everything if line.name) == sorted(key.name for key in KEYS)
    found = [line.name for line in help_lines(list(SCOPES), shown, "COPY command") if line.name]
    assert found == ["screen.copy_command", "jobs.copy_command"]
    assert help_lines(list(SCOPES), shown, "no such thing") == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_help_shows_what_its_columns_cut(tmp_path: Path, size: tuple[int, int]) -> None:
    app = workbench(tmp_path, "results")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("question_mark", "slash", *"servers.restart", "enter", "home", "down")
        end = "has ended at once"
        await settle(pilot, lambda: end in text_of(app))
        assert app.screen.query_one("#whole").region.height >= 1
        await pilot.press("slash", *"app.help", "enter", "home", "down")
        await settle(pilot, lambda: end not in text_of(app) and "all keys, with a search" in text_of(app))
        assert not app.screen.query_one("#whole").display


async def test_help_begins_with_the_focused_widget_and_shows_keys_as_bound_now(tmp_path: Path) -> None:
    app = small_workbench(tmp_path, keymap={"list.down": "ctrl+d"})
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+d")
        await settle(pilot)
        assert app.front.query_one("#rows", VirtualList).cursor == 1
        await pilot.press("f1")
        await settle(pilot)
        assert isinstance(app.screen, HelpScreen)
        text = lines(app)
        assert "Rows: j k and the arrows move" in "\n".join(text)
        first = next(line for line in text if "list." in line)
        assert "^d" in first and "next row" in first
        assert "$GYM_TUI_HOME/config/keys.toml" in "\n".join(text)
        await pilot.press("slash", *"quit")
        await settle(pilot)
        assert "app.quit" in text_of(app) and "list.down" not in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "list.down" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is app.front


async def test_jump_goes_to_panes_tabs_and_keys(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        screen = app.front
        assert isinstance(screen, SmallScreen)
        await pilot.press("ctrl+o")
        await settle(pilot)
        assert isinstance(app.screen, JumpOverlay)
        assert "╭ a uns" in text_of(app) and "╭ s ther" in text_of(app)
        await pilot.press("s")
        await settle(pilot)
        assert screen.current_pane() is screen.panes()[1]
        await pilot.press("ctrl+o")
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is screen
        await pilot.press("ctrl+o")
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot, lambda: app.current_mode == "rollouts")


async def test_a_click_on_a_letter_goes_there_and_elsewhere_closes(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+o")
        await settle(pilot)
        await pilot.click(offset=(50, 20))
        await settle(pilot)
        assert app.screen is app.front and app.current_mode == "results"
        await pilot.press("ctrl+o")
        await settle(pilot)
        place = app.screen.query("Static")[1].region
        await pilot.click(offset=(place.x + 1, place.y))
        await settle(pilot)
        screen = app.front
        assert isinstance(screen, SmallScreen) and screen.current_pane() is screen.panes()[1]


async def test_the_theme_key_cycles_and_the_choice_is_remembered(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        seen = [app.theme]
        for _ in range(4):
            await pilot.press("T")
            await settle(pilot)
            seen.append(app.theme)
        assert seen == ["gym-dark", "gym-light", "ansi-dark", "ansi-light", "gym-dark"]
        assert read_choices() == {"theme": "gym-dark"}


def contrast(one: Color, other: Color) -> float:
    """Contrast ratio of WCAG 2.1, from relative luminances."""

    def luminance(color: Color) -> float:
        parts = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in color.normalized]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [theme.name for theme in OWN])
async def test_our_themes_can_be_read(tmp_path: Path, theme: str) -> None:
    """All text has the contrast of WCAG 2.1 AA, 4.5; lines and bars are no text."""
    app = small_workbench(tmp_path, theme=theme)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await settle(pilot)
        for key in ("", "J", "question_mark"):
            if key:
                await pilot.press(key)
            await settle(pilot)
            area = app.screen.query_one("#help").region if isinstance(app.screen, HelpScreen) else app.screen.region
            for strip in app.screen._compositor.render_strips()[area.y : area.bottom]:
                for segment in strip.crop(area.x, area.right):
                    style = segment.style
                    if style is None or style.color is None or style.bgcolor is None or not any(map(str.isalnum, segment.text)):
                        continue
                    front, back = Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)
                    assert contrast(front, back) >= 4.5, (segment.text, style)


async def test_everything_can_be_drawn_with_ascii(tmp_path: Path) -> None:
    app = small_workbench(tmp_path, ascii=True)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await settle(pilot)

        async def check(what: str) -> None:
            await settle(pilot)
            wrong = [line for line in lines(app) if not line.isascii()]
            assert not wrong, f"{what}: {wrong}"

        await check("screen")
        for key in ("question_mark", "ctrl+o", "colon", "J"):
            await pilot.press(key)
            await check(key)
            await pilot.press("escape")
            await settle(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot, lambda: palette_ready(app))
        await check("palette")
        await pilot.press("escape")
        for severity in ("information", "warning", "error"):
            app.tell("told ✗ …", severity)
        await check("toasts")
        app.open_screen("viewer")
        await check("another screen")


async def test_what_users_write_stays_when_drawn_with_ascii(tmp_path: Path) -> None:
    app = small_workbench(tmp_path, ascii=True)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await settle(pilot)
        app.tell("größer 日本")
        await settle(pilot)
        assert "größer 日本" in text_of(app)


@pytest.mark.parametrize("theme", ["gym-dark", "gym-light", "ansi-dark", "ansi-light"])
async def test_without_colours_the_cursor_is_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theme: str) -> None:
    """In shades of grey for themes with colours of their own; reversed where the terminal's are used, which are not known."""
    monkeypatch.setenv("NO_COLOR", "1")
    app = small_workbench(tmp_path, theme=theme)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        strips = app.screen._compositor.render_strips()
        under, beside = (next(iter(strips[y].crop(3, 8))).style for y in (3, 4))
        assert under is not None and beside is not None
        if theme.startswith("ansi"):
            assert under.reverse and not beside.reverse
            assert {style.color.name for style in (under, beside) if style.color} == {"default"}
        else:
            for style in (under, beside):
                assert style.color is not None and style.bgcolor is not None
                red, green, blue = Color.from_rich_color(style.bgcolor).rgb
                assert red == green == blue
                assert contrast(Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)) >= 4.5
            assert under.bgcolor != beside.bgcolor


async def test_notices_are_never_markup_and_are_kept(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await settle(pilot)
        app.tell("[/red] [bold \x1b[31m\nsecond", "error")
        await settle(pilot)
        assert "[/red] [bold ␛[31m ⏎ second" in text_of(app)
        for number in range(300):
            app.notices.append((0.0, "information", str(number)))
        app.tell("last")
        assert len(app.notices) == 200


async def test_copies_go_through_one_place(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("y", "Y")
        app.copy_to_clipboard("selected")
        app.copy_text("gym eval run --model-api-key abcdefgh", "the command")
        await settle(pilot)
        told = [text for _, _, text in app.notices]
        assert told[0].startswith("copied the thing (7 characters)")
        assert told[1].startswith("copied the command (21 characters)")
        assert told[2].startswith("copied the selection (8 characters)")
        assert not any("abcdefgh" in text for text in told)


async def test_ctrl_c_says_how_to_leave(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("ctrl+c")
        await settle(pilot)
        assert app.notices[-1][2].startswith("q leaves")


async def test_opening_a_screen_closes_what_is_above_the_old_one(tmp_path: Path) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        await settle(pilot)
        app.open_screen("viewer")
        await settle(pilot, lambda: app.current_mode == "viewer")
        app.open_screen("results")
        await settle(pilot)
        assert app.screen is app.front


@pytest.mark.parametrize("screen", [entry.name for entry in SCREENS])
async def test_every_screen_can_be_drawn_with_ascii(tmp_path: Path, screen: str) -> None:
    app = workbench(tmp_path, screen, ascii=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        wrong = [line for line in lines(app) if not line.isascii()]
        assert not wrong


@pytest.mark.parametrize("above", ["", "J", "colon", "question_mark"])
async def test_tabs_and_keys_fit_as_soon_as_the_terminal_has_another_width(tmp_path: Path, above: str) -> None:
    app = small_workbench(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        before = frame_of(app)
        assert "4 Rollouts" in before[0] and "Next pane" in before[1]
        if above:
            await pilot.press(above)
            await settle(pilot)
        await pilot.resize_terminal(*NARROW)
        await settle(pilot, lambda: "[7 Results]" in frame_of(app)[0] and "Rollouts" not in frame_of(app)[0])
        await pilot.resize_terminal(60, 16)
        await settle(pilot, lambda: len(frame_of(app)[1]) <= 60)
        await pilot.resize_terminal(*WIDE)
        await settle(pilot, lambda: frame_of(app) == before)


def frame_of(app: WorkbenchApp) -> tuple[str, str]:
    """Tabs and keys of the screen in front, whatever is open above it."""
    tabs, keys = (app.front.query_one(name, FrameLine) for name in ("#tabs", "#keys"))
    return "".join(part.text for part in tabs.left), "".join(part.text for part in keys.left)
