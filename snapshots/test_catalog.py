"""The Catalog screen in pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from backend.catalog.entries import Catalog
from backend.catalog.listing import whole_catalog
from backend.errors import GymError
from gym_tui.app import WorkbenchApp
from screens.catalog import finding
from screens.catalog import screen as screen_module
from screens.widgets.background import Reporter
from screens.widgets.pane import Pane, PaneState
from screens.widgets.virtual_list import VirtualList
from tests.component_samples import write_catalog, write_hostile, write_many, write_model
from tests.run_folders import write_run
from tests.workbench import NARROW, NOW, WIDE, workbench

Picture = Callable[..., bool]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, the only folder that is searched."""
    monkeypatch.setattr("backend.io.roots.INSTALL_ROOT", tmp_path)
    monkeypatch.delenv("NEMO_GYM_EXTRA_ROOTS", raising=False)
    return tmp_path


@pytest.fixture
def catalog(root: Path) -> Path:
    """Eleven components, and a run that used one of them."""
    write_catalog(root)
    command = ["gym", "eval", "run", "--benchmark", "math_verified", "--output", "results/small-t02.jsonl"]
    write_run(root / "results/small-t02.jsonl", started_at=NOW - 7200, command=command)
    return root


def listing(**settings: Any) -> WorkbenchApp:
    return workbench(Path(), "catalog", **settings)


def pressing(*keys: str) -> Callable[[Pilot[Any]], Any]:
    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press(*keys)

    return steps


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_components(picture: Picture, size: tuple[int, int]) -> None:
    assert picture(listing(), size, ["[all 11]", "bench 3", "math_hard_verified", "no data", "! math_proof_verifier", "broken"])


@pytest.mark.usefixtures("catalog")
def test_components_light(picture: Picture) -> None:
    assert picture(listing(theme="gym-light"), WIDE, ["[all 11]"])


@pytest.mark.usefixtures("catalog")
def test_ascii(picture: Picture) -> None:
    assert picture(listing(ascii=True), WIDE, ["[all 11]", "> aime24_verified"], hides=["╭", "▸", "—", "⏎"])


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_readme(picture: Picture, size: tuple[int, int]) -> None:
    assert picture(
        listing(), size, ["math_verified · benchmark", "Needs", "choose one with --model-type"],
        steps=pressing("j", "j", "enter"),
    )  # fmt: skip


@pytest.mark.usefixtures("catalog")
def test_configuration(picture: Picture) -> None:
    assert picture(
        listing(), WIDE, ["[Config]", "▾ benchmarks/math_verified/config.yaml", "▸ resources_servers/math_with_judge"],
        steps=pressing("j", "j", "right_square_bracket"),
    )  # fmt: skip


@pytest.mark.usefixtures("catalog")
def test_a_secret_in_a_configuration(picture: Picture) -> None:
    assert picture(
        listing(), WIDE, ["api_key: ****"], hides=["sk-live"],
        steps=pressing("slash", *"openai", "enter", "right_square_bracket"),
    )  # fmt: skip


@pytest.mark.usefixtures("catalog")
def test_data(picture: Picture) -> None:
    assert picture(
        listing(), WIDE, ["[Data]", "500 rows", "first row", "What is 2 plus 3?"],
        steps=pressing("j", "j", "right_square_bracket", "right_square_bracket"),
    )  # fmt: skip


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_links(picture: Picture, size: tuple[int, int]) -> None:
    assert picture(
        listing(), size, ["Composition", "simple_agent", "⏎ jump", "chosen at run time", "Used in 1 run", "results/small-t02"],
        steps=pressing("j", "j", "left_square_bracket", "enter", "j"),
    )  # fmt: skip


@pytest.mark.usefixtures("catalog")
def test_used_by(picture: Picture) -> None:
    assert picture(
        listing(), WIDE, ["Used by 3", "aime24_verified"], steps=pressing("slash", *"judge", "enter", "left_square_bracket")
    )


@pytest.mark.usefixtures("catalog")
def test_broken(picture: Picture) -> None:
    assert picture(
        listing(), WIDE, ["! Broken", "line 15, column", "14  proofs: [a, b"], steps=pressing("slash", *"status:broken", "enter")
    )


@pytest.mark.usefixtures("catalog")
def test_missing_data(picture: Picture) -> None:
    assert picture(listing(), WIDE, ["the data set math_hard_verified is not there"], steps=pressing("j"))


def test_one_name_in_two_folders(picture: Picture, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (root, root / "more"):
        write_model(folder, "openai_model")
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "more")
    assert picture(listing(), WIDE, ["Several have this name", "used", "hidden"], steps=pressing("left_square_bracket"))


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_filtered(picture: Picture, size: tuple[int, int]) -> None:
    assert picture(listing(), size, ["math ver", "4 of 11 · by match", "math_verified"], steps=pressing("slash", *"math ver"))


@pytest.mark.usefixtures("catalog")
def test_one_kind_and_marks(picture: Picture) -> None:
    assert picture(
        listing(), WIDE, ["[bench 3]", "2 marked · 3 of 11", "* aime24_verified"], steps=pressing("f", "space", "space"),
    )  # fmt: skip


@pytest.mark.usefixtures("catalog")
def test_only_problems(picture: Picture) -> None:
    assert picture(listing(), NARROW, ["[!2]", "2 of 11"], hides=["openai_model"], steps=pressing("F"))


@pytest.mark.usefixtures("catalog")
def test_nothing_matches(picture: Picture) -> None:
    assert picture(
        listing(), NARROW, ["No component matches opanei_mod", "nearest: openai_model", "esc shows all"],
        steps=pressing("slash", *"opanei_mod"),
    )  # fmt: skip


@pytest.mark.usefixtures("catalog")
def test_filter_with_a_mistake(picture: Picture) -> None:
    assert picture(listing(), NARROW, ["there is no status `gone`", "openai_model"], steps=pressing("slash", *"status:gone"))


@pytest.mark.usefixtures("root")
def test_empty(picture: Picture) -> None:
    assert picture(listing(), WIDE, ["No components below", "NEMO_GYM_EXTRA_ROOTS", "No component under the cursor"])


@pytest.mark.usefixtures("catalog")
def test_failed(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "whole_catalog", _refuse)
    assert picture(listing(), NARROW, ["✗ the folder cannot be searched", "look at its rights", "ctrl+r tries again"])


@pytest.mark.usefixtures("catalog")
def test_stale(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_it(pilot: Pilot[Any]) -> None:
        monkeypatch.setattr(finding, "whole_catalog", _refuse)
        await pilot.press("ctrl+r")

    assert picture(listing(), WIDE, ["old · 11", "the folder cannot be searched", "math_verified"], steps=break_it)


def _refuse(_roots: object) -> None:
    raise GymError("the folder cannot be searched", hint="look at its rights")


@pytest.fixture
def held_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is read until the program ends."""

    def names_alone(roots: Sequence[Path], reporter: Reporter) -> Catalog:
        def whole(whole_roots: Sequence[Path]) -> Catalog:
            while reporter.wait(0.02):
                pass
            return whole_catalog(whole_roots)

        monkeypatch.setattr(finding, "whole_catalog", whole)
        return finding.find_components(roots, reporter)

    monkeypatch.setattr(screen_module, "find_components", names_alone)
    monkeypatch.setattr(WorkbenchApp, "begin_work", lambda _app: None)
    monkeypatch.setattr(WorkbenchApp, "end_work", lambda _app: None)


@pytest.mark.usefixtures("catalog", "held_reading")
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_loading(picture: Picture, size: tuple[int, int]) -> None:
    app = listing()

    def has_names(_app: object) -> bool:
        rows = app.screen.query_one("#component-list", VirtualList).rows
        return len(rows) == 11 and app.screen.query_one("#detail", Pane).state is PaneState.LOADING

    assert picture(app, size, ["reading · 11", "math_verified", "…"], hides=["no data"], until=has_names)


def test_hundreds(picture: Picture, root: Path) -> None:
    write_many(root)

    async def to_the_middle(pilot: Pilot[Any]) -> None:
        rows = pilot.app.screen.query_one("#component-list", VirtualList)
        rows.move_to(len(rows.rows) // 2, center=True)

    assert picture(listing(), WIDE, ["[all 314]", "component_2"], steps=to_the_middle)


def test_hostile_names(picture: Picture, root: Path) -> None:
    write_hostile(root)
    assert picture(listing(), WIDE, ["[red]x[", "日本語の問題集", "esc␛[31mname", "…"])


@pytest.mark.usefixtures("catalog")
def test_least_size(picture: Picture) -> None:
    assert picture(listing(), (60, 16), ["[all 11]", "math_verified"])


@pytest.mark.usefixtures("catalog")
def test_too_small(picture: Picture) -> None:
    assert picture(listing(), (40, 12), ["needs 60x16"], hides=["math_verified"])
