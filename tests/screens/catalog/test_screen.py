"""The Catalog screen as somebody uses it, over real folders of components."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from backend.errors import GymError
from gym_tui.app import WorkbenchApp
from screens.catalog import finding
from screens.catalog import screen as screen_module
from screens.catalog.detail_pane import DetailPane
from screens.catalog.screen import CatalogScreen
from screens.widgets.filter_box import FilterBox
from screens.widgets.frame import FrameLine
from screens.widgets.pane import Pane, PaneState
from screens.widgets.virtual_list import VirtualList
from screens.widgets.virtual_text import VirtualText
from screens.widgets.workbench import Target
from tests.component_samples import (
    SECRET,
    write_benchmark,
    write_catalog,
    write_hostile,
    write_many,
    write_model,
)
from tests.run_folders import write_run
from tests.workbench import NARROW, NOW, WIDE, NotingWorkbench, heartbeat, noting_workbench, settle, text_of

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: nothing but it is searched."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("backend.io.roots.INSTALL_ROOT", tmp_path)
    monkeypatch.delenv("NEMO_GYM_EXTRA_ROOTS", raising=False)
    return tmp_path


@pytest.fixture
def catalog(root: Path) -> Path:
    """Eleven components."""
    write_catalog(root)
    return root


def app_for(path: Path) -> NotingWorkbench:
    return noting_workbench(path, "catalog")


def of(app: WorkbenchApp) -> CatalogScreen:
    assert isinstance(app.screen, CatalogScreen)
    return app.screen


def rows(app: WorkbenchApp) -> VirtualList:
    return of(app).query_one("#component-list", VirtualList)


def names(app: WorkbenchApp) -> list[str]:
    shown = rows(app).rows
    return [str(shown.key(index)[1]) for index in range(len(shown))]  # type: ignore[index]


def current(app: WorkbenchApp) -> str:
    key = rows(app).cursor_key
    return str(key[1]) if isinstance(key, tuple) else ""


def pane(app: WorkbenchApp, name: str = "components") -> Pane:
    return of(app).query_one(f"#{name}", Pane)


def detail(app: WorkbenchApp) -> DetailPane:
    return of(app).query_one("#detail", DetailPane)


async def test_all_kinds_are_listed_with_what_is_known(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await settle(pilot)
        assert names(app) == [
            "aime24_verified", "math_hard_verified", "math_verified", "walk", "simple_agent", "tool_agent", "openai_model",
            "vllm_model", "math_proof_verifier", "math_with_judge", "multi_verify_math",
        ]  # fmt: skip
        text = text_of(app)
        for wanted in ("[all 11]", "bench 3", "env 1", "agent 2", "model 2", "rs 3", "!2", "no data", "broken", "games"):
            assert wanted in text
        assert "$ gym list benchmarks aime24_verified" in text
        assert pane(app).state is PaneState.READY and "11 · by kind" in text
        assert "aime24_verified · benchmark" in str(pane(app, "detail").border_title)


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, app: WorkbenchApp) -> Iterator[threading.Event]:
    """Files are read once the event is set; names come at once."""
    go = threading.Event()
    real = finding.whole_catalog
    monkeypatch.setattr(finding, "whole_catalog", lambda roots: (go.wait(20), real(roots))[1])
    yield go
    go.set()


async def test_names_are_there_before_any_file_is_read(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_for(catalog)
    with held(monkeypatch, app) as go:
        async with app.run_test(size=WIDE) as pilot:
            await settle(pilot, lambda: len(names(app)) == 11, idle=False)
            text = text_of(app)
            assert "…" in text and "reading · 11" in text and "no data" not in text
            await pilot.press("slash", *"judge", "enter")
            assert names(app) == ["math_with_judge"], "the filter works on names"
            await pilot.press("c", "r", "y")
            assert app.asked == [] and "still being read" in app.notices[0][2]
            go.set()
            await settle(pilot)
            assert names(app) == ["math_with_judge"] and "1 of 11" in text_of(app)
            assert "Compares with a judge" in text_of(app)


async def test_the_filter_finds_letters_lights_them_and_puts_the_best_under_the_cursor(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await settle(pilot)
        await pilot.press("end", "slash", *"mathj")
        await settle(pilot)
        assert names(app) == ["math_with_judge"] and current(app) == "math_with_judge"
        assert "1 of 11 · by match" in text_of(app) and "[all 1]" in text_of(app)
        assert rows(app).rows.row(0).cells[0].lit == (0, 1, 2, 3, 10)  # type: ignore[union-attr]
        await pilot.press("enter")
        await settle(pilot)
        assert rows(app).has_focus
        await pilot.press("escape")
        await settle(pilot)
        assert len(names(app)) == 11 and current(app) == "math_with_judge", "the cursor stays"


async def test_exact_terms_and_a_mistake_in_them(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"kind:rs -judge")
        await settle(pilot)
        assert names(app) == ["math_proof_verifier", "multi_verify_math"]
        await pilot.press(*" domian:x")
        await settle(pilot)
        assert "no `domian`" in text_of(app) and "domain" in text_of(app)
        assert names(app) == ["math_proof_verifier", "multi_verify_math"]


async def test_nothing_matched_names_what_is_near_and_escape_shows_all(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"opanei_mod")
        await settle(pilot)
        message = pane(app).message_text
        assert "No component matches opanei_mod" in message and "openai_model" in message
        box = of(app).query_one(FilterBox)
        assert box.region.height == 1 and "opanei_mod" in text_of(app)
        assert pane(app, "detail").state is PaneState.EMPTY
        assert "$ gym search opanei_mod" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert len(names(app)) == 11 and pane(app).state is PaneState.READY


async def test_chips_narrow_by_key_and_by_click(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("f")
        await settle(pilot)
        assert names(app) == ["aime24_verified", "math_hard_verified", "math_verified"]
        assert "[bench 3]" in text_of(app) and "3 of 11" in text_of(app)
        await pilot.press("f", "f", "f", "f")
        assert len(names(app)) == 3 and "[rs 3]" in text_of(app)
        await pilot.press("f")
        assert len(names(app)) == 11
        chips = of(app).query_one("#chips", FrameLine)
        at = next(x for x in range(60) if (part := chips.part_at(x)) and "model" in part.text)
        assert await pilot.click("#chips", offset=(at + 1, 0))
        await settle(pilot)
        assert names(app) == ["openai_model", "vllm_model"]
        assert await pilot.click("#chips", offset=(at + 1, 0))
        await pilot.press("F")
        await settle(pilot)
        assert names(app) == ["math_hard_verified", "math_proof_verifier"] and "[!2]" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert len(names(app)) == 11


async def test_orders(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("s")
        assert names(app)[:2] == ["aime24_verified", "math_hard_verified"] and "by name" in str(pane(app).border_title)
        await pilot.press("S")
        assert names(app)[0] == "walk" and "by name, reversed" in str(pane(app).border_title)
        assert await pilot.click("#component-list", offset=(53, 0))
        await settle(pilot)
        assert names(app)[:2] == ["math_proof_verifier", "math_hard_verified"]


async def test_the_detail_follows_the_cursor_once_it_rests(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from screens.catalog import detail_pane

    read: list[str] = []
    real = detail_pane.read_component
    monkeypatch.setattr(
        detail_pane, "read_component", lambda entry, roots, cancelled: (read.append(entry.name), real(entry, roots, cancelled))[1]
    )
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await settle(pilot)
        read.clear()
        rows(app).move_to(1)
        rows(app).move_to(2)
        await settle(pilot)
        assert read == ["math_verified"]
        text = text_of(app)
        assert "Math verified" in text and "symbolic" in text and "*symbolic*" not in text
        assert "choose one with --model-type" in text


async def test_tabs_by_key_and_by_click(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("j", "j", "right_square_bracket")
        await settle(pilot)
        assert "[Config]" in text_of(app) and " 3  math_verified_rs:" in text_of(app)
        await pilot.press("right_square_bracket")
        await settle(pilot)
        assert "[Data]" in text_of(app) and "500 rows" in text_of(app)
        await pilot.press("left_square_bracket", "left_square_bracket", "left_square_bracket")
        await settle(pilot)
        assert "[Links]" in text_of(app) and "⏎ jump" in text_of(app)
        assert await pilot.click("#detail-tabs", offset=(3, 0))
        await settle(pilot)
        assert "[Readme]" in text_of(app)


async def test_links_are_followed_by_key_and_by_click_and_back(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"math_ver", "enter", "left_square_bracket", "enter")
        await settle(pilot)
        assert detail(app).text.has_focus
        await pilot.press("j", "enter")
        await settle(pilot)
        assert current(app) == "simple_agent" and len(names(app)) == 11, "the filter hid it"
        assert "simple_agent · agent" in text_of(app)
        await pilot.press("minus")
        await settle(pilot)
        assert current(app) == "math_verified"
        y = next(y for y, line in enumerate(detail(app).text.visible_text()) if "math_with_judge" in line)
        assert await pilot.click(VirtualText, offset=(8, y))
        await settle(pilot)
        assert current(app) == "math_with_judge" and "Used by 3" in text_of(app)
        await pilot.press("minus", "minus")
        await settle(pilot)
        assert "no jump" in app.notices[-1][2]


async def test_runs_that_used_a_component(catalog: Path) -> None:
    for name, benchmark, age in (("a", "aime24_verified", 600), ("b", "aime24_verified", 7200), ("c", "other", 60)):
        write_run(
            catalog / f"results/{name}.jsonl",
            started_at=NOW - age,
            command=["gym", "eval", "run", "--benchmark", benchmark, "--output", f"results/{name}.jsonl"],
        )
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("left_square_bracket")
        await settle(pilot)
        text = text_of(app)
        assert "Used in 2 runs" in text and text.index("results/a") < text.index("results/b") and "10 min" in text
        y = next(y for y, line in enumerate(detail(app).text.visible_text()) if "results/b" in line)
        assert await pilot.click(VirtualText, offset=(8, y))
        assert app.asked == [("results", Target(catalog / "results/b.jsonl"))]
        await pilot.press("escape", "j")
        await settle(pilot)
        assert "Used in no run" in text_of(app)


async def test_what_is_broken_says_where(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"status:broken", "enter")
        await settle(pilot)
        text = text_of(app)
        assert names(app) == ["math_proof_verifier"]
        assert "! Broken" in text and "14  proofs: [a, b" in text and "line 15, column" in text


async def test_marks_open_config_and_run_in_their_order(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("c")
        assert app.asked.pop() == ("config", Target(catalog, words=("--benchmark", "aime24_verified")))
        await pilot.press("f", "f", "f", "f", "j", "space", "f", "f", "home", "space", "space")
        assert "3 marked" in text_of(app)
        await pilot.press("k", "space", "c", "r", "y")
        assert app.asked == [
            ("config", Target(catalog, words=("--model-type", "vllm_model", "--benchmark", "aime24_verified"))),
            ("prefill", "eval run --model-type vllm_model --benchmark aime24_verified --output results/aime24_verified.jsonl"),
            ("copy", "--benchmark math_verified"),
        ]
        (catalog / "benchmarks/aime24_verified/config.yaml").unlink()
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert "1 marked" in text_of(app)


async def test_copies_in_the_detail_without_line_numbers_and_secrets(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"openai", "enter", "right_square_bracket", "enter", "y", "Y")
        await settle(pilot)
        (_, copied), (_, command) = app.asked
        assert copied.startswith("policy_model:\n") and SECRET not in copied
        assert command == "gym list models openai_model"


async def test_files_that_change_are_seen_on_asking_and_on_coming_back(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        write_benchmark(catalog, "fresh", "new here", rows=1)
        shutil.rmtree(catalog / "environments")
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert "fresh" in names(app) and "walk" not in names(app)
        assert current(app) == "aime24_verified"
        write_model(catalog, "later_model")
        of(app).post_message(screen_module.events.ScreenResume())
        await settle(pilot, lambda: "later_model" in names(app))


async def test_nothing_at_all_says_where_it_looked(root: Path) -> None:
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert pane(app).state is PaneState.EMPTY
        assert "No components below" in pane(app).message_text and "NEMO_GYM_EXTRA_ROOTS" in pane(app).message_text
        await pilot.press("enter", "space", "c", "r", "y", "o", "O", "f", "F", "s", "S", "minus", "right_square_bracket")
        await settle(pilot)
        assert app.asked == []
        await pilot.press("escape")
        write_model(root, "openai_model")
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert names(app) == ["openai_model"] and pane(app).state is PaneState.READY


async def test_a_catalogue_that_cannot_be_read_fails_and_then_is_old(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_roots: object) -> None:
        raise GymError("the disk is on fire", hint="call somebody")

    real = finding.whole_catalog
    monkeypatch.setattr(finding, "whole_catalog", refuse)
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert pane(app).state is PaneState.FAILED
        assert "the disk is on fire" in text_of(app) and "call somebody" in text_of(app) and "ctrl+r" in text_of(app)
        await pilot.press("slash", "m")
        await settle(pilot)
        assert pane(app).state is PaneState.FAILED
        await pilot.press("escape", "escape")
        monkeypatch.setattr(finding, "whole_catalog", real)
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert pane(app).state is PaneState.READY and len(names(app)) == 11
        monkeypatch.setattr(finding, "whole_catalog", refuse)
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert pane(app).state is PaneState.STALE and len(names(app)) == 11 and "the disk is on fire" in text_of(app)
        await pilot.press("slash", "m")
        await settle(pilot)
        assert pane(app).state is PaneState.STALE and "the disk is on fire" in text_of(app)


async def test_a_component_that_is_asked_for_gets_the_cursor(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        app.open_screen("catalog", Target(catalog, words=("--model-type", "vllm_model")))
        await settle(pilot)
        assert current(app) == "vllm_model"
        app.open_screen("catalog", Target(catalog, words=("--benchmark", "nowhere")))
        await settle(pilot)
        assert current(app) == "vllm_model" and "has no --benchmark nowhere" in app.notices[-1][2]


async def test_narrow_terminals_show_one_pane_and_escape_goes_back(catalog: Path) -> None:
    app = app_for(catalog)
    async with app.run_test(size=NARROW) as pilot:
        await settle(pilot)
        assert "NAME" in text_of(app) and "[Readme]" not in text_of(app)
        await pilot.press("j", "j", "enter")
        await settle(pilot)
        assert "math_verified · benchmark" in text_of(app) and "NAME" not in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "NAME" in text_of(app) and current(app) == "math_verified"
        await pilot.resize_terminal(60, 16)
        await settle(pilot)
        assert "math_verified" in text_of(app) and "bench 3" in text_of(app)


async def test_the_file_is_opened_where_it_is_broken(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda words, check: ran.append(list(words)))
    monkeypatch.setenv("PAGER", "less -S")
    monkeypatch.setenv("EDITOR", "vim")
    monkeypatch.delenv("VISUAL", raising=False)
    app = app_for(catalog)
    monkeypatch.setattr(app, "suspend", nullcontext)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"proof", "enter")
        await settle(pilot)
        await pilot.press("O", "o")
        await settle(pilot)
        path = str(catalog / "resources_servers/math_proof_verifier/configs/math_proof_verifier.yaml")
        assert ran == [["vim", "+15", path], ["less", "-S", "+15", path]]
        await pilot.press("escape", "home", "j", "j")
        await settle(pilot)
        assert current(app) == "math_verified"
        await pilot.press("o", "right_square_bracket", "o", "enter", "j", "o")
        folder, server = catalog / "benchmarks/math_verified", catalog / "resources_servers/math_with_judge"
        opened = [Path(words[-1]) for words in ran[2:]]
        assert opened == [folder / "README.md", folder / "config.yaml", server / "configs/math_with_judge.yaml"]


async def test_a_terminal_that_cannot_be_handed_over_is_told(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "cat")
    app = app_for(catalog)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("o")
        await settle(pilot)
        assert "cannot be handed to a pager" in app.notices[-1][2]


async def test_hostile_names_and_texts_are_only_text(root: Path) -> None:
    write_hostile(root)
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert len(names(app)) == 4
        seen = ""
        for _ in range(4):
            for _ in range(4):
                await pilot.press("right_square_bracket")
                await settle(pilot)
                seen += text_of(app)
            await pilot.press("y", "r", "j")
        assert "[red]x[" in seen and "日本語" in seen and "esc␛[31mname" in seen
        assert not set(seen) & {"\x1b", "\x07", "\x9b"}


@pytest.mark.slow
async def test_hundreds_of_components_never_block(root: Path) -> None:
    write_many(root, 314)
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await settle(pilot)
        assert len(names(app)) > 300
        await pilot.press("slash", *"comp", "space", *"12", "enter", *"jjjj", "escape", "end", "pageup", "f", "s", "S", "f")
        await settle(pilot)
    key = await _cpu_of_a_key(root)
    assert key < 0.03, f"a key in the filter costs {key * 1000:.0f} ms"


async def _cpu_of_a_key(root: Path) -> float:
    """CPU seconds until the list is drawn anew after a key, at best of some."""
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("slash")
        await settle(pilot)
        costs = []
        for text in ("c", "co", "com", "comp", "com", "co", "c"):
            begin = time.process_time()
            of(app).wish = screen_module.Wish(text)
            rows(app).visible_text()
            costs.append(time.process_time() - begin)
            await pilot.pause()
        return min(costs)


async def test_a_long_readme_never_blocks(root: Path) -> None:
    part = "## Part\n\nSome *text* with `code` and a [link](http://x).\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    write_benchmark(root, "long", "with much to read", readme=part * 550)
    write_model(root, "other")
    app = app_for(root)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await settle(pilot)
        await pilot.press("j", "k", "enter", "end", "home")
        await settle(pilot)
        assert "with much to read" in text_of(app)
