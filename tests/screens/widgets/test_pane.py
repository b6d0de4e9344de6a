"""A pane in its five states, and what its border says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rich.cells import cell_len
from textual.app import App
from textual.widgets import Static

from screens.widgets import glyphs
from screens.widgets.background import Failure
from screens.widgets.columns import Column
from screens.widgets.pane import Pane, PaneState
from screens.widgets.virtual_list import VirtualList
from tests.workbench import lines, text_of

HOSTILE = "[/red][bold \x1b]0;owned\x07‮"


@pytest.fixture(autouse=True)
def unicode_signs() -> Iterator[None]:
    yield
    glyphs.use(glyphs.UNICODE)


class Bench(App[None]):
    def compose(self) -> Any:
        with Pane("Runs", id="a"):
            yield Static("the content", markup=False)
        with Pane("Other", id="b"):
            yield Static("the neighbour", markup=False)


def pane(app: Bench) -> Pane:
    return app.query_one("#a", Pane)


async def test_the_border_has_two_titles_and_a_foot() -> None:
    app = Bench()
    async with app.run_test(size=(60, 12)) as pilot:
        pane(app).set_heading(right="3 of 12", foot="a hint")
        await pilot.pause()
        shown = lines(app)
        assert shown[0].startswith("╭─ Runs ─") and shown[0].endswith("─ 3 of 12 ─╮")
        assert cell_len(shown[0]) == 60
        assert "─ a hint ─╯" in shown[5]
        pane(app).set_heading(title="Other runs")
        await pilot.pause()
        assert "Other runs" in lines(app)[0] and "3 of 12" in lines(app)[0]


@pytest.mark.parametrize("width", [60, 30, 16, 12, 9])
async def test_long_titles_are_shortened_and_the_right_one_is_kept_as_far_as_it_fits(width: int) -> None:
    app = Bench()
    async with app.run_test(size=(width, 12)) as pilot:
        pane(app).set_heading("日本語 " * 20, "r" * 8, "f" * 200)
        await pilot.pause()
        assert all(cell_len(line) <= width for line in lines(app))


async def test_states_replace_the_content_or_keep_it() -> None:
    app = Bench()
    async with app.run_test(size=(60, 14)) as pilot:
        wanted = pane(app)

        async def shown() -> str:
            await pilot.pause()
            assert "the neighbour" in text_of(app)
            return text_of(app)

        wanted.show_loading("looking for runs, 12 folders")
        assert "12 folders" in await shown() and "the content" not in await shown() and wanted.state is PaneState.LOADING
        wanted.show_ready()
        assert "the content" in await shown() and wanted.state is PaneState.READY
        wanted.show_loading("43 %", keep=True)
        assert "the content" in await shown() and "43 %" in lines(app)[0]
        wanted.show_stale("12 s old")
        assert "the content" in await shown() and "12 s old" in lines(app)[0] and wanted.has_class("-stale")
        wanted.show_empty("No runs", "r starts one")
        assert "No runs" in await shown() and "r starts one" in text_of(app) and "the content" not in text_of(app)
        assert not wanted.has_class("-stale") and wanted.state is PaneState.EMPTY
        wanted.show_failure(Failure("cannot read it", "look at its rights"), "ctrl+r tries again")
        text = await shown()
        assert "✗ cannot read it" in text and "look at its rights" in text and "ctrl+r tries again" in text
        assert wanted.message_text.startswith("✗ cannot read it")
        wanted.show_ready()
        assert "the content" in await shown() and wanted.message_text == ""
        assert "12 s old" not in lines(app)[0]


async def test_hostile_texts_stay_texts_in_every_place() -> None:
    app = Bench()
    async with app.run_test(size=(90, 20)) as pilot:
        wanted = pane(app)
        wanted.set_heading(HOSTILE, HOSTILE, HOSTILE)
        for show in (
            lambda: wanted.show_loading(HOSTILE),
            lambda: wanted.show_loading(HOSTILE, keep=True),
            lambda: wanted.show_stale(HOSTILE),
            lambda: wanted.show_empty(HOSTILE, HOSTILE),
            lambda: wanted.show_failure(Failure(HOSTILE, HOSTILE), HOSTILE),
        ):
            show()
            await pilot.pause()
            text = text_of(app).replace("\n", "")
            assert "[/red][bold ␛]0;owned␇" in text
            assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char == "‮" for char in text)


async def test_signs_are_ascii_when_that_is_wanted() -> None:
    glyphs.use(glyphs.ASCII)
    app = Bench()
    async with app.run_test(size=(60, 12)) as pilot:
        pane(app).set_heading("R" * 80, "3 of 12")
        pane(app).show_failure(Failure("broken"))
        await pilot.pause()
        assert str(pane(app).border_title).isascii() and pane(app).message_text == "x broken"


class Lists(App[None]):
    def compose(self) -> Any:
        for name in ("a", "b"):
            with Pane(name, id=name):
                yield VirtualList([Column("n", "NAME")], id=f"list-{name}")


async def test_a_list_keeps_the_focus_when_a_message_takes_its_place() -> None:
    app = Lists()
    async with app.run_test(size=(60, 12)) as pilot:
        first, pane = app.query_one("#list-a"), app.query_one("#a", Pane)
        first.focus()
        await pilot.pause()
        pane.show_empty("Nothing matches.", "esc takes the filter away")
        await pilot.pause()
        assert app.focused is first
        assert "Nothing matches." in text_of(app) and "NAME" not in "\n".join(lines(app)[:6])
        pane.show_ready()
        await pilot.pause()
        assert app.focused is first and first.size.height > 1
