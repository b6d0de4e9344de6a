"""The Config screen in pictures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gym_tui.app import WorkbenchApp
from screens.config import screen as screen_module
from screens.config.screen import ConfigScreen
from screens.config.side_panes import WhyPane
from screens.config.tree_pane import TreePane
from screens.widgets.workbench import Target
from tests.config_samples import MATH, write_config
from tests.run_folders import write_run
from tests.workbench import NARROW, WIDE, settle, workbench

Picture = Callable[..., bool]
Steps = Callable[[Pilot[Any]], Awaitable[None]]
GRADING = "math.resources_servers.mcqa.grading_mode"
WORDS = ("--config", "math.yaml", "+num_repeats=4")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("platform.python_version", lambda: "3.x")
    write_config(tmp_path)
    return tmp_path


def configuration(path: Path, **settings: Any) -> WorkbenchApp:
    return workbench(path, "config", **settings)


def showing(*words: str, key: str = "", keys: tuple[str, ...] = (), line: str = "", focus: str = "") -> Steps:
    """Open a configuration, put the cursor on a key, press keys, and type a line into what they open."""

    async def steps(pilot: Pilot[Any]) -> None:
        app = pilot.app
        assert isinstance(app, WorkbenchApp)
        app.open_screen("config", Target(Path.cwd(), words=words))
        await settle(pilot)
        screen = app.front
        assert isinstance(screen, ConfigScreen)
        if key:
            assert screen.query_one(TreePane).go_to(key)
        if focus:
            screen.show_pane(focus)
        await settle(pilot)
        await pilot.press(*keys)
        await settle(pilot)
        if line:
            await pilot.press(*line)

    return steps


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_final_tree(picture: Picture, folder: Path, size: tuple[int, int]) -> None:
    assert picture(
        configuration(folder),
        size,
        ["stage 5/5 validated", "grading_mode", "lenient_boxed", "L3:7 ²", "overridden", "wins", "math.yaml:7"],
        steps=showing(*WORDS, key=GRADING),
        hides=["sk-not"],
    )


def test_final_tree_light(picture: Picture, folder: Path) -> None:
    assert picture(configuration(folder, theme="gym-light"), WIDE, ["validated"], steps=showing(*WORDS, key=GRADING))


def test_final_tree_ascii(picture: Picture, folder: Path) -> None:
    assert picture(configuration(folder, ascii=True), NARROW, ["< wins"], steps=showing(*WORDS, key=GRADING))


@pytest.mark.parametrize(
    ("presses", "shows"),
    [
        (1, ["stage 1/5 read", "L3 math.yaml", "_inherit_from"]),
        (2, ["stage 2/5 merged", "_inherit_from", "config_paths"]),
        (3, ["stage 3/5 inherited", "+ added"]),
        (4, ["stage 4/5 interpolated", "~ was ${policy_mode"]),
    ],
    ids=["read", "merged", "inherited", "interpolated"],
)
def test_stages(picture: Picture, folder: Path, presses: int, shows: list[str]) -> None:
    key = "policy_model.responses_api_models.openai_model.openai_model"
    assert picture(
        configuration(folder), WIDE, shows, steps=showing(*WORDS, key=key if presses > 3 else "", keys=("v",) * presses)
    )


def test_changed_only(picture: Picture, folder: Path) -> None:
    shows = ["only what changed", "− removed", "+ added"]
    assert picture(configuration(folder), WIDE, shows, steps=showing(*WORDS, keys=("v", "v", "v", "c")))


def test_inherited_key(picture: Picture, folder: Path) -> None:
    shows = ["inherited through _inherit_from: math_base (math.yaml:4)", "shared.yaml:5"]
    assert picture(configuration(folder), WIDE, shows, steps=showing(*WORDS, key="math.resources_servers.mcqa.domain"))


def test_masked_secret(picture: Picture, folder: Path) -> None:
    assert picture(
        configuration(folder),
        WIDE,
        ["•••••••• secret", "openai_api_key"],
        steps=showing(*WORDS, key="policy_model.responses_api_models.openai_model.openai_api_key"),
        hides=["sk-not"],
    )


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_problems(picture: Picture, folder: Path, size: tuple[int, int]) -> None:
    (folder / "env.yaml").unlink()
    shows = ["3 errors · 1 warning", "fix: --model-url <value>", "hint:"]
    words = ("--config", "math.yaml", "+temperature=0.2")
    assert picture(configuration(folder), size, shows, steps=showing(*words, keys=("}",), focus="problems"))


def test_problem_in_its_tree(picture: Picture, folder: Path) -> None:
    (folder / "env.yaml").unlink()
    assert picture(configuration(folder), NARROW, ["✗3 !0", "✗ "], steps=showing("--config", "math.yaml", keys=("}",)))


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_layers(picture: Picture, folder: Path, size: tuple[int, int]) -> None:
    (folder / "broken.yaml").write_text("a: [1\nb: 2\n")
    (folder / "other.yaml").write_text("split: train\n")
    words = (
        "--config",
        "math.yaml",
        "--config",
        "broken.yaml",
        "--config",
        "other.yaml",
        "b=2",
        "+num_repeats=4",
    )

    async def steps(pilot: Pilot[Any]) -> None:
        await showing(*words, focus="layers")(pilot)
        pilot.app.front.query_one("#layers").go_to_entry(2)  # type: ignore[attr-defined]
        await pilot.press("space")

    shows = ["✗ L4   broken", "○      --config other.yaml", "off", "✗      b=2", "↳ L3"]
    assert picture(configuration(folder), size, shows, steps=steps)


def test_found(picture: Picture, folder: Path) -> None:
    assert picture(configuration(folder), WIDE, [" of ", "model_server"], steps=showing(*WORDS, keys=("slash", *"model_server")))


def test_nothing_found(picture: Picture, folder: Path) -> None:
    shows = ["No key or value has zzz", "esc shows all again"]
    assert picture(configuration(folder), NARROW, shows, steps=showing(*WORDS, keys=("slash", *"zzz")))


def test_adding(picture: Picture, folder: Path) -> None:
    shows = ["grading_mode=", "++math.resources_servers.mcqa.grading_mode"]
    assert picture(configuration(folder), WIDE, shows, steps=showing(*WORDS, keys=("a",), line="++grading"))


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_no_layer(picture: Picture, tmp_path: Path, size: tuple[int, int]) -> None:
    assert picture(configuration(tmp_path), size, ["No layer yet", "Add a benchmark (a) or mark entries in Catalog (1)"])


def test_failed(picture: Picture, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_entries: Any, _reporter: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(screen_module, "resolve_entries", broken)
    assert picture(configuration(folder), WIDE, ["OSError: the disk is gone", "ctrl+r tries again"])


def test_stale(picture: Picture, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_entries: Any, _reporter: Any) -> Any:
        raise OSError("the disk is gone")

    async def steps(pilot: Pilot[Any]) -> None:
        await showing(*WORDS)(pilot)
        monkeypatch.setattr(screen_module, "resolve_entries", broken)
        await pilot.press("ctrl+r")

    assert picture(configuration(folder), WIDE, ["old", "the disk is gone", "num_repeats"], steps=steps)


def test_loading(picture: Picture, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_entries: Any, reporter: Any) -> Any:
        while reporter.wait(0.05):
            pass

    monkeypatch.setattr(screen_module, "resolve_entries", endless)
    assert picture(configuration(folder), WIDE, ["resolving"], idle=False)


def test_resolving_keeps_the_old_tree(picture: Picture, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_entries: Any, reporter: Any) -> Any:
        while reporter.wait(0.05):
            pass

    async def steps(pilot: Pilot[Any]) -> None:
        app = pilot.app
        assert isinstance(app, WorkbenchApp)
        app.open_screen("config", Target(Path.cwd(), words=WORDS))
        await settle(pilot, lambda: "lenient" in str(app.front.query_one(WhyPane)) or app.idle)
        monkeypatch.setattr(screen_module, "resolve_entries", endless)
        await pilot.press("ctrl+r")

    assert picture(configuration(folder), WIDE, ["resolving · ", "num_repeats"], steps=steps, idle=False)


@pytest.mark.parametrize("keys", [("d",), ("d", "i")], ids=["sides", "inline"])
def test_diff_of_stages(picture: Picture, folder: Path, keys: tuple[str, ...]) -> None:
    shows = ["now · inherited", "now · interpolated", "${policy_base_url}", "changed (secret)", "equal keys folded"]
    assert picture(configuration(folder), WIDE, shows, steps=showing(*WORDS, keys=("v",) * 4 + keys), hides=["sk-not"])


def test_diff_narrow(picture: Picture, folder: Path) -> None:
    shows = ["A  now · inherited   B  now · interpolated", "-  openai_model", "+  openai_model"]
    assert picture(configuration(folder), NARROW, shows, steps=showing(*WORDS, keys=("v",) * 4 + ("d",)))


def test_diff_with_a_run(picture: Picture, folder: Path) -> None:
    write_run(
        folder / "results" / "old.jsonl",
        config={"num_repeats": 1, "policy_model_name": "large-32b", "policy_api_key": "****", "seed": 17},
    )
    shows = [
        "A  results/old.jsonl",
        "B  now",
        "large-32b",
        "small-7b",
        "1 masked in a run record",
        "gym env diff results/old.jsonl",
    ]
    assert picture(configuration(folder), WIDE, shows, steps=showing(*WORDS, keys=("A", *"results/old.jsonl", "enter")))


def test_diff_of_two_files_with_all_keys(picture: Picture, folder: Path) -> None:
    (folder / "other.yaml").write_text(MATH.replace("lenient_boxed", "lenient_answer_colon"))

    async def steps(pilot: Pilot[Any]) -> None:
        await showing(*WORDS)(pilot)
        for keys in (("A", *"math.yaml", "enter"), ("B", *"other.yaml", "enter"), ("c",)):
            await pilot.press(*keys)
            await settle(pilot)

    shows = ["A  math.yaml", "B  other.yaml", "lenient_answer_co", "=  entrypoint"]
    assert picture(configuration(folder), WIDE, shows, steps=steps)


def test_diff_that_fails(picture: Picture, folder: Path) -> None:
    shows = ["there is no file or folder nothing_there", "A and B choose other sides, esc closes"]
    assert picture(configuration(folder), NARROW, shows, steps=showing(*WORDS, keys=("A", *"nothing_there", "enter")))


def test_hostile_values(picture: Picture, folder: Path) -> None:
    (folder / "evil.yaml").write_text(
        '"[/bold]\\e]0;t\\a": "[red]\\e[31m\\u202e\\x00"\n"日本": "名前\\n二行"\nlong: ' + "x" * 3000 + "\n1: {2: [3, {4: 5}]}\n"
    )
    words = ("--config", "evil.yaml", "++note=[/red] b's")
    assert picture(
        configuration(folder),
        WIDE,
        ["[/bold]␛]0;t␇", "[red]\\u001b[31m", "✗      ++note=[/red] b's"],
        steps=showing(*words, keys=("j", "j", "j", "j")),
    )
