"""The Viewer in pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gym_tui.app import WorkbenchApp
from screens.viewer.screen import ViewerScreen
from screens.widgets.filter_box import FilterBox
from tests.rollout_samples import record, write_samples
from tests.run_samples import live_run
from tests.workbench import NARROW, WIDE, settle, workbench

Picture = Callable[..., bool]
SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])


def viewing(folder: Path, **settings: Any) -> WorkbenchApp:
    return workbench(write_samples(folder), "viewer", **settings)


def pressing(*keys: str) -> Callable[[Pilot[Any]], Any]:
    async def steps(pilot: Pilot[Any]) -> None:
        for key in keys:
            await pilot.press(key)
            await settle(pilot)

    return steps


def writing(text: str, *before: str, then: tuple[str, ...] = ("enter",)) -> Callable[[Pilot[Any]], Any]:
    async def steps(pilot: Pilot[Any]) -> None:
        await pressing(*before)(pilot)
        box = pilot.app.focused
        assert isinstance(box, FilterBox)
        box.value = text
        await settle(pilot)
        await pressing(*then)(pilot)

    return steps


def on_row(row: int) -> Callable[[Pilot[Any]], Any]:
    async def steps(pilot: Pilot[Any]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, ViewerScreen)
        screen.select(row)
        await settle(pilot)

    return steps


@SIZES
def test_conversation(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    steps = pressing("enter") if size == NARROW else None
    assert picture(viewing(tmp_path), size, ["0 · repeat 1 of 4", "▾ tool call  python (code)"], steps=steps)


def test_conversation_light(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path, theme="gym-light"), WIDE, ["0 · repeat 1 of 4", "6 tasks · 1 unreadable"])


def test_ascii(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path, ascii=True), WIDE, ["[#]_ % x", "- assistant"], hides=["■", "▾", "╭", "┃"])


@SIZES
def test_list(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    assert picture(viewing(tmp_path), size, ["13 rollouts · 1", "timeou", "bad row"], steps=pressing("g"))


def test_folded(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path), WIDE, ["▸ assistant", "▸ tool call"], steps=pressing("e"), hides=["▾"])


def test_tool_error_and_orphans(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path), WIDE, ["! tool result", "orphan: no call", "no result"], steps=on_row(4))


def test_failed(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path), WIDE, ["failure  timeout_exceeded", "end: timeout"], steps=on_row(12))


def test_bad_row(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path), WIDE, ["! row 9 unreadable", "not valid JSON"], steps=on_row(8))


def test_hostile(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path), WIDE, ["[/red] [bold ␛[31mred"], steps=on_row(7))


def test_search(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path), WIDE, ["hit 1 of"], steps=writing("answer", "tab", "slash"))


def test_filter(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path), WIDE, ["3 of 6 tasks"], steps=writing("reward<1", "slash"))


def test_filter_not_understood(picture: Picture, tmp_path: Path) -> None:
    assert picture(
        viewing(tmp_path), WIDE, ["`rewrd<1`", "the list is as it was before"], steps=writing("rewrd<1", "slash", then=())
    )


@SIZES
def test_diff(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    assert picture(viewing(tmp_path), size, ["[-12-]", "{+13+}", "1 of 7 turns differ"], steps=pressing("d"))


def test_markdown_off(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path), WIDE, ["**period 7**"], steps=pressing("m"))


def test_raw(picture: Picture, tmp_path: Path) -> None:
    assert picture(viewing(tmp_path), WIDE, ['"responses_create_params": {'], steps=pressing("v"))


@SIZES
def test_nothing_open(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    assert picture(workbench(tmp_path, "viewer"), size, ["this folder is no run", ":open FILE"])


def test_no_rows(picture: Picture, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("")
    assert picture(workbench(path, "viewer"), WIDE, ["0 rows in empty.jsonl"])


@SIZES
def test_no_rollout_yet(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    path = live_run(tmp_path, done=0)
    path.unlink()
    assert picture(workbench(path, "viewer"), size, ["no rollout yet", "4 follows the run live"], hides=["cannot read"])


def test_cannot_open(picture: Picture, tmp_path: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, ViewerScreen)
        screen.open_path(Path("nothing.jsonl"))
        await settle(pilot)

    assert picture(workbench(tmp_path, "viewer"), WIDE, ["✗ there is no run nothing.jsonl", "ctrl+r"], steps=steps)


def test_gone(picture: Picture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("screens.viewer.loading.FOLLOW_EVERY", 0.05)

    async def steps(pilot: Pilot[Any]) -> None:
        (tmp_path / "m.jsonl").unlink()
        await settle(pilot, lambda: "the file is gone" in "\n".join(pilot.app.screen.lines_on_screen()))  # type: ignore[attr-defined]

    assert picture(viewing(tmp_path), WIDE, ["the file is gone"], steps=steps)


@SIZES
def test_lost(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    path = live_run(tmp_path, done=6, total=6, state="done", scored=6, failed=0)
    path.unlink()
    said = ["✗ the file m.jsonl is gone", "it had written 6", "ctrl+r looks again"]
    assert picture(workbench(path, "viewer"), size, said, hides=["failed attempts"])


def test_rewards_of_all_kinds(picture: Picture, tmp_path: Path) -> None:
    path = write_samples(tmp_path)
    with path.open("a") as file:
        file.write("".join(json.dumps(record(6, repeat, reward, [])) + "\n" for repeat, reward in enumerate((-0.5, 2.0))))
    assert picture(workbench(path, "viewer"), WIDE, ["■ 1 or more  □ 0 or less  ▒ between", "✗ failed  · no score"])
