"""The Config screen as somebody uses it, over real files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gym_tui.app import WorkbenchApp
from gym_tui.command_line import CommandLine
from screens.config import screen as screen_module
from screens.config.screen import ConfigScreen
from screens.config.side_panes import LayersPane, ProblemsPane, WhyPane
from screens.config.tree_pane import TreePane
from screens.widgets.frame import CommandEcho
from screens.widgets.pane import Pane, PaneState
from screens.widgets.virtual_list import VirtualList
from screens.widgets.workbench import Target
from tests.config_samples import MATH, SECRET, write_config
from tests.run_folders import write_run
from tests.workbench import NARROW, WIDE, heartbeat, lines, settle, text_of, workbench

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_config(tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


class Workbench(WorkbenchApp):
    """Notes what the screen asks for instead of doing it."""

    asked: list[tuple[str, Any]]

    def prefill_command(self, text: str, folder: str | None = None) -> None:
        self.asked.append(("prefill", text))

    def copy_text(self, text: str, what: str) -> None:
        self.asked.append((what, text))


def app_for(path: Path) -> Workbench:
    plain = workbench(path, "config")
    app = Workbench(plain.settings, clock=plain.clock)
    app.animation_level = "none"
    app.asked = []
    return app


def of(app: WorkbenchApp) -> ConfigScreen:
    screen = app.front
    assert isinstance(screen, ConfigScreen)
    return screen


async def opened(
    app: WorkbenchApp, pilot: Pilot[Any], words: Sequence[str] = ("--config", "math.yaml", "+num_repeats=4")
) -> None:
    await settle(pilot)
    app.open_screen("config", Target(Path.cwd(), words=tuple(words)))
    await settle(pilot)


def pane(app: WorkbenchApp, name: str = "tree") -> Pane:
    return of(app).query_one(f"#{name}", Pane)


def layers(app: WorkbenchApp) -> list[str]:
    rows = of(app).query_one(LayersPane).rows_list.rows
    return [f"{row.sign} {' '.join(cell.text for cell in row.cells)}".rstrip() for row in map(rows.row, range(len(rows)))]  # type: ignore[union-attr]


def tree(app: WorkbenchApp) -> list[str]:
    rows = of(app).query_one(TreePane).rows_list.rows
    return [str(rows.key(index)) for index in range(len(rows))]


def cell(app: WorkbenchApp, key: str) -> tuple[str, str, str]:
    """The cells of a key, and in front of the first one the sign."""
    rows = of(app).query_one(TreePane).rows_list.rows
    row = rows.row(tree(app).index(key))
    label, value, source = (each.text for each in row.cells)  # type: ignore[union-attr]
    return f"{row.sign}{label}", value, source


async def go(app: WorkbenchApp, pilot: Pilot[Any], key: str) -> None:
    assert of(app).query_one(TreePane).go_to(key)
    await settle(pilot)


def why(app: WorkbenchApp) -> list[str]:
    text = of(app).query_one(WhyPane).text
    return [text.plain_text(index).strip() for index in range(len(text.blocks))]


def echo(app: WorkbenchApp) -> str:
    line = of(app).query_one("#echo", CommandEcho)
    return line.words or f"({line.note})"


def told(app: WorkbenchApp) -> str:
    return app.notices[-1][2]


async def typed(app: WorkbenchApp, pilot: Pilot[Any], text: str) -> None:
    """Type a line into the open command line, in place of what is there, and confirm it."""
    assert isinstance(app.screen, CommandLine)
    app.screen._line.value = text
    await pilot.press("enter")
    await settle(pilot)


GRADING = "math.resources_servers.mcqa.grading_mode"
MODEL = "policy_model.responses_api_models.openai_model"


async def test_layers_tree_and_reasons_of_a_configuration(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await opened(app, pilot)
        assert layers(app) == [
            "✓ L1 defaults", "✓ L2 shared ↳ L3", "✓ L3 math", "✓ L4 env.yaml", "✓ L5 +num_repeats=4",
        ]  # fmt: skip
        assert cell(app, GRADING) == ("grading_mode", "lenient_boxed", "L3:7 ²")
        assert cell(app, f"{MODEL}.openai_model") == ("openai_model", "small-7b  ~ was ${policy_model_name}", "L3:24")
        assert cell(app, "num_repeats")[1:] == ("4", "L5")
        assert pane(app).state is PaneState.READY and "stage 5/5 validated" in text_of(app)
        assert echo(app) == "gym env resolve --config math.yaml +num_repeats=4"
        await go(app, pilot, GRADING)
        chain = why(app)
        assert chain[0].split() == ["L2", "shared.yaml:6", "strict_single_letter_boxed", "overridden"]
        assert chain[1] == "inherited through _inherit_from: math_base (math.yaml:4)"
        assert chain[2].split() == ["L3", "math.yaml:7", "lenient_boxed", "◀", "wins"]
        assert "2 writers" in text_of(app)


async def test_the_first_look_is_at_env_yaml_alone(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert layers(app) == ["✓ L1 defaults", "✓ L2 env.yaml"]
        assert cell(app, "policy_model_name")[1] == "small-7b"


async def test_without_layers_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = app_for(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert pane(app).state is PaneState.EMPTY
        assert "Add a benchmark (a) or mark entries in Catalog (1)" in text_of(app)
        await pilot.press("space", "d", "v", "}", "y", "f", "c", "i")
        await settle(pilot)
        # nor is there a place in the defaults to speak of
        assert (pane(app).heading, pane(app).right, pane(app, "layers").right) == ("Resolved", "", "")
        assert why(app) == [] and pane(app, "why").heading == "Why"


async def test_another_configuration_begins_at_its_top(folder: Path) -> None:
    """Also where the screen comes back to front, and so resolves what it had once more, when it is given other words."""
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("down", "down")
        app.switch_mode("results")
        await settle(pilot)
        await opened(app, pilot)
        assert pane(app).query_one("#tree-list", VirtualList).cursor == 0


async def test_secrets_are_dots_everywhere(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        await go(app, pilot, "policy_api_key")
        assert cell(app, "policy_api_key")[1] == "•••••••• secret"
        assert cell(app, f"{MODEL}.openai_api_key")[1].startswith("•••••••• secret")
        assert SECRET not in text_of(app) and SECRET not in "".join(why(app))
        await go(app, pilot, f"{MODEL}.openai_api_key")
        assert SECRET not in "".join(why(app))
        await pilot.press("v", "v", "v", "v", "d")
        await settle(pilot)
        await pilot.press("y", "c")
        await settle(pilot)
        assert SECRET not in str(app.asked) and SECRET not in text_of(app)
        assert "changed (secret)" in str(app.asked)


async def test_stages_step_and_changed_keys_are_told(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot, heartbeat():
        await opened(app, pilot)
        await pilot.press("v")
        await settle(pilot)
        assert "stage 1/5 read" in text_of(app) and "L3 math.yaml" in tree(app)
        await pilot.press("v")
        await settle(pilot)
        assert "stage 2/5 merged" in text_of(app)
        await pilot.press("v", "c")
        await settle(pilot)
        assert "stage 3/5 inherited" in text_of(app)
        assert "math._inherit_from" in tree(app) and cell(app, "math._inherit_from")[1].endswith("− removed")
        assert "num_repeats" not in tree(app)
        assert cell(app, "math.resources_servers.mcqa.domain")[1] == "math  + added"
        await pilot.press("escape", "V", "V", "V")
        await settle(pilot)
        assert "stage 5/5 validated" in text_of(app) and "num_repeats" in tree(app)


async def test_find_narrows_to_matches_and_what_is_above_them(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        await pilot.press("slash", *"lenient")
        await settle(pilot)
        assert tree(app) == ["math", "math.resources_servers.mcqa", GRADING]
        assert "1 of " in text_of(app)
        await pilot.press(*"zzz")
        await settle(pilot)
        assert pane(app).state is PaneState.EMPTY and "No key or value has lenientzzz" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert len(tree(app)) > 20


async def test_folds_and_cursor_survive_a_new_resolution(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        await go(app, pilot, "math")
        await pilot.press("enter")
        await settle(pilot)
        assert GRADING not in tree(app)
        await go(app, pilot, "math_agent")
        (folder / "math.yaml").write_text(MATH.replace("lenient_boxed", "lenient_answer_colon"))
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert GRADING not in tree(app)
        assert of(app).query_one(TreePane).rows_list.cursor_key == "math_agent"
        await go(app, pilot, GRADING)
        assert cell(app, GRADING)[1] == "lenient_answer_colon"


async def test_problems_lead_to_their_keys_and_to_what_mends_them(folder: Path) -> None:
    (folder / "env.yaml").unlink()
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, ["--config", "math.yaml", "+temperature=0.2"])
        problems = of(app).query_one(ProblemsPane)
        assert "3 errors" in problems.right and "1 warning" in problems.right
        await pilot.press("{")
        await settle(pilot)
        assert of(app).query_one(TreePane).rows_list.cursor_key == "temperature"
        await pilot.press("}")
        await settle(pilot)
        key = of(app).query_one(TreePane).rows_list.cursor_key
        assert key == f"{MODEL}.openai_base_url" and cell(app, str(key))[0] == "✗openai_base_url"
        assert any(block.startswith("✗") for block in why(app))
        await pilot.press("shift+tab", "y")
        await settle(pilot)
        assert app.asked[-1] == ("the fix", "--model-url <value>")
        await pilot.press("a")
        await settle(pilot)
        await typed(app, pilot, "--model-url http://localhost:1/v1 --model tiny")
        assert echo(app).endswith("--model-url http://localhost:1/v1 --model tiny")
        assert "1 error" in problems.right and layers(app)[-1] == "! L6 +temperature=0.2"


async def test_a_layer_is_switched_off_moved_changed_and_removed(folder: Path) -> None:
    (folder / "other.yaml").write_text("num_repeats: 2\nsplit: train\n")
    app = app_for(folder)
    words = ["--config", "math.yaml", "--config", "other.yaml", "+num_repeats=4", "++num_repeats=5"]
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, words)
        assert cell(app, "num_repeats")[1].startswith("5")
        pane_ = of(app).query_one(LayersPane)
        of(app).show_pane("layers")
        await settle(pilot)
        pane_.go_to_entry(3)
        await pilot.press("space")
        await settle(pilot)
        assert layers(app)[-1] == "○  ++num_repeats=5 off" and cell(app, "num_repeats")[1].startswith("4")
        assert echo(app) == "gym env resolve --config math.yaml --config other.yaml +num_repeats=4"
        await pilot.press("space")
        await settle(pilot)
        assert cell(app, "num_repeats")[1].startswith("5")
        pane_.go_to_entry(1)
        await pilot.press("<")
        await settle(pilot)
        assert echo(app).startswith("gym env resolve --config other.yaml --config math.yaml")
        assert pane_.line is not None and pane_.line.title == "other.yaml"
        pane_.go_to_entry(3)
        await pilot.press("e")
        await settle(pilot)
        await typed(app, pilot, "++num_repeats=7")
        assert cell(app, "num_repeats")[1].startswith("7")
        pane_.go_to_entry(3)
        await pilot.press("delete")
        await settle(pilot)
        assert echo(app).endswith("+num_repeats=4")


async def test_a_key_of_the_tree_is_set_where_it_stands(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        await go(app, pilot, "num_repeats")
        await pilot.press("e")
        await settle(pilot)
        assert isinstance(app.screen, CommandLine)
        await pilot.press("backspace", "9", "enter")
        await settle(pilot)
        assert cell(app, "num_repeats")[1].startswith("9")
        assert echo(app).endswith("+num_repeats=4 ++num_repeats=9")


async def test_layers_of_no_word_say_why_they_stay(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        of(app).show_pane("layers")
        await settle(pilot)
        for steps, reason in (("", "defaults only fill gaps"), ("j", "L2 is included by L3"), ("jj", "env.yaml is always read")):
            await pilot.press(*steps, "space")
            await settle(pilot)
            assert reason in told(app)
        await pilot.press("j", ">")
        await settle(pilot)
        assert "the last override" in told(app)


async def test_a_wrong_line_stays_open_with_its_message(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        for text, message in (
            ("--modle x", "unrecognized"), ("policy_api_key=sk-123456789", "keys do not go"), ("'a", "quotation mark"),
            ("--json", "only changes what is printed"),
        ):  # fmt: skip
            await pilot.press("a")
            await settle(pilot)
            await typed(app, pilot, text)
            assert isinstance(app.screen, CommandLine) and message in app.screen.message
            await pilot.press("escape")
            await settle(pilot)
        assert echo(app) == "gym env resolve --config math.yaml +num_repeats=4"


async def test_completion_knows_flags_names_files_and_keys(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        await pilot.press("a")
        await settle(pilot)
        line = app.screen
        assert isinstance(line, CommandLine)
        for text, wanted in (
            ("--bench", "--benchmark "), ("--benchmark fi", "--benchmark first_steps "), ("sha", "shared.yaml "),
            ("++math.res", f"++{GRADING}="), ("temper", None), ("+num_rep", "+num_repeats="),
        ):  # fmt: skip
            found = [each.text for each in line._complete(text)]
            assert wanted is None or wanted in found, f"{text}: {found}"


async def test_one_broken_entry_does_not_hide_the_others(folder: Path) -> None:
    (folder / "broken.yaml").write_text("a: [1\nb: 2\n")
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, ["--config", "math.yaml", "--config", "broken.yaml", "--benchmark", "no_such", "+num_repeats=4"])
        shown = layers(app)
        assert "✗ L4 broken" in shown and any(line.startswith("✗  --benchmark no_such") for line in shown)
        assert cell(app, GRADING)[1] == "lenient_boxed"
        text = "\n".join(str(each) for each in of(app)._findings())
        assert "broken.yaml:2" in text and "no_such" in text


async def test_edits_in_a_row_are_resolved_once_and_old_results_are_dropped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_for(folder)
    calls: list[int] = []
    real = screen_module.resolve_entries

    def counted(entries: Any, reporter: Any) -> Any:
        calls.append(len(entries))
        return real(entries, reporter)

    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        monkeypatch.setattr(screen_module, "resolve_entries", counted)
        screen = of(app)
        for number in range(5):
            screen._edit((*screen._entries, *screen_module.words.entries_of([f"++limit={number}"])))
        assert pane(app).state is PaneState.LOADING and "resolving" in str(pane(app).border_title)
        assert GRADING in tree(app)
        await settle(pilot)
        assert calls == [7] and cell(app, "limit")[1].startswith("4")


async def test_a_failing_resolution_keeps_the_old_tree_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_entries: Any, _reporter: Any) -> Any:
        raise OSError("the disk is gone\x1b[31m")

    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        monkeypatch.setattr(screen_module, "resolve_entries", broken)
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert pane(app).state is PaneState.STALE and GRADING in tree(app)
        assert "the disk is gone␛[31m" in text_of(app)
    fresh = app_for(folder)
    async with fresh.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert pane(fresh).state is PaneState.FAILED and "ctrl+r tries again" in text_of(fresh)


async def test_stages_are_compared_side_by_side_and_inline(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        await pilot.press("v", "v", "v", "v")
        await settle(pilot)
        await pilot.press("d")
        await settle(pilot)
        text = text_of(app)
        assert "A  now · inherited" in text and "B  now · interpolated" in text
        assert "${policy_base_url}" in text and "small-7b" in text and "equal keys folded" in text
        assert "~  openai_model" in text and "L3:24" in text
        assert echo(app).startswith("(compares stages")
        left, right = of(app)._diff.lists
        await pilot.press("}")
        await settle(pilot)
        assert left.cursor == right.cursor > 0
        await pilot.press("c")
        await settle(pilot)
        assert "lenient_boxed" in text_of(app)
        await pilot.press("c", "i")
        await settle(pilot)
        text = text_of(app)
        assert "A  now · inherited   B  now · interpolated" in text
        rows = [line for line in lines(app) if "  openai_model " in line]
        assert len(rows) == 2 and " - " in rows[0] and " + " in rows[1]
        await pilot.press("escape")
        await settle(pilot)
        assert not of(app).is_comparing and echo(app).startswith("gym env resolve")


async def test_now_is_compared_with_a_run_and_a_file(folder: Path) -> None:
    config = {"num_repeats": 1, "policy_model_name": "large-32b", "policy_api_key": "****"}
    write_run(folder / "results" / "old.jsonl", config=config)
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        await pilot.press("A")
        await settle(pilot)
        assert any(each.shown == "results/old.jsonl" for each in app.screen._complete("res"))  # type: ignore[attr-defined]
        await typed(app, pilot, "results/old.jsonl")
        text = text_of(app)
        assert "A  results/old.jsonl" in text and "B  now" in text
        assert "large-32b" in text and "small-7b" in text and "1 masked in a run record, not comparable" in text
        assert echo(app) == "gym env diff results/old.jsonl '--config math.yaml +num_repeats=4'"
        await pilot.press("s")
        await settle(pilot)
        assert "A  now" in text_of(app) and "B  results/old.jsonl" in text_of(app)
        await pilot.press("B")
        await settle(pilot)
        await typed(app, pilot, "shared.yaml")
        assert "B  shared.yaml" in text_of(app)
        await pilot.press("B")
        await settle(pilot)
        await typed(app, pilot, "nothing_there")
        assert "there is no file or folder nothing_there" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)


async def test_copies_runs_and_the_editor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Sequence[str]] = []
    monkeypatch.setattr(screen_module, "run_outside", lambda _app, _what, words: ran.append(words))
    monkeypatch.setenv("EDITOR", "vim")
    monkeypatch.delenv("VISUAL", raising=False)
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, ["--config", "math.yaml", "--no-model", "++name=a b's", "++empty="])
        await go(app, pilot, GRADING)
        await pilot.press("y", "Y", "r", "o")
        await settle(pilot)
        assert app.asked == [
            ("the key", GRADING),
            ("the command", "gym env resolve --config math.yaml --no-model '++name=a b'\"'\"'s' ++empty="),
            ("prefill", "eval run --config math.yaml '++name=a b'\"'\"'s' ++empty= "),
        ]
        assert ran == [["vim", "+7", str(folder / "math.yaml")]]
        await pilot.press("f", "k", "k")
        await settle(pilot)
        of(app).query_one(WhyPane).text.move_to(0)
        await pilot.press("o")
        await settle(pilot)
        assert ran[-1] == ["vim", "+6", str(folder / "shared.yaml")]
        await go(app, pilot, "empty")
        of(app).show_pane("tree")
        await pilot.press("o")
        await settle(pilot)
        assert "no file wrote this down" in told(app)


async def test_an_included_layer_shows_what_it_sets(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        of(app).show_pane("layers")
        await pilot.press("j", "enter")
        await settle(pilot)
        assert "stage 1/5 read" in text_of(app)
        assert of(app).query_one(TreePane).rows_list.cursor_key == "L2 shared.yaml"


@pytest.mark.parametrize("size", [NARROW, (60, 16), (40, 12)])
async def test_narrow_terminals_show_one_pane_and_the_reasons(folder: Path, size: tuple[int, int]) -> None:
    app = app_for(folder)
    async with app.run_test(size=size) as pilot, heartbeat(0.15):
        await opened(app, pilot)
        if size == (40, 12):
            assert "needs 60x16" in text_of(app)
            return
        await go(app, pilot, GRADING)
        assert "Resolved" in text_of(app) and "Why" in text_of(app) and "Layers" not in text_of(app)
        assert "wins" in text_of(app)
        seen = set()
        for _ in range(4):
            await pilot.press("tab")
            await settle(pilot)
            seen |= {word for word in ("Layers", "Problems", "Resolved") if word in text_of(app)}
            assert "Why" in text_of(app)
        assert seen == {"Layers", "Problems", "Resolved"}
        await pilot.press("d")
        await settle(pilot)
        assert "A  now" in text_of(app) and "B  now" in text_of(app)


async def test_hostile_values_are_only_text(folder: Path) -> None:
    (folder / "evil.yaml").write_text(
        '"[/bold]\\e]0;title\\a": "[red]\\e[31m\\u202e\\x00 x"\n"日本": "名前\\n二行"\nlong: '
        + "x" * 5000
        + "\nnull_: null\n1: {2: [3, {4: 5}]}\n"
    )
    app = app_for(folder)
    async with app.run_test(size=WIDE, notifications=True) as pilot, heartbeat():
        await opened(app, pilot, ["--config", "evil.yaml", "++[=1", "++x=[/red]", "+a.b.c.d.e=1"])
        for _ in range(8):
            await pilot.press("j")
            await settle(pilot)
        await pilot.press("}", "}", "d", "c", "i")
        await settle(pilot)
        text = text_of(app)
        assert "\x1b" not in text and "\u202e" not in text and "\x00" not in text
        await pilot.press("escape", "slash", *"[/bold")
        await settle(pilot)
        assert "[/bold]␛]0;title␇" in text_of(app)


async def test_words_with_keys_in_a_target_are_left_out(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot, ["--config", "math.yaml", "--model-api-key", "sk-0123456789", "++a.api_key=****"])
        assert echo(app) == "gym env resolve --config math.yaml"
        assert "left out" in told(app)


async def test_a_configuration_file_is_a_target(folder: Path) -> None:
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        app.open_screen("config", Target(folder / "math.yaml"))
        await settle(pilot)
        assert GRADING in tree(app)


async def test_mouse_clicks_go_to_problems_and_rows(folder: Path) -> None:
    (folder / "env.yaml").unlink()
    app = app_for(folder)
    async with app.run_test(size=WIDE) as pilot:
        await opened(app, pilot)
        assert await pilot.click("#problems-list", offset=(4, 0))
        assert await pilot.click("#problems-list", offset=(4, 0))
        await settle(pilot)
        assert of(app).query_one(TreePane).rows_list.cursor_key == f"{MODEL}.openai_base_url"
