"""The Results screen in pictures."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gym_tui.app import WorkbenchApp
from screens.results import screen as screen_module
from screens.widgets.pane import Pane, PaneState
from tests.run_folders import AGENT, event, summary, write_run
from tests.workbench import NARROW, NOW, WIDE, workbench

Picture = Callable[..., bool]
DEAD_PID = 4_194_305
OPEN = {"ended_at": None, "scored": None, "failed": None, "missing": None}


@pytest.fixture(autouse=True)
def one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's name is in the records of runs."""
    monkeypatch.setattr(socket, "gethostname", lambda: "node7")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Runs in all states, the newest still going on elsewhere."""
    folder = tmp_path / "results"

    def add(name: str, began: float, events: list[dict[str, Any]] | None = None, **facts: Any) -> None:
        command = [
            "gym",
            "eval",
            "run",
            "--benchmark",
            name.partition("/")[0],
            "--model-type",
            "openai_model",
            "--output",
            f"results/{name}.jsonl",
        ]
        run_folder = write_run(
            folder / f"{name}.jsonl", events, command=command, cwd="/home/ada/evaluations", output=f"{name}.jsonl", host=facts.pop("host", "node7"),
            pid=DEAD_PID, started_at=began, **{"ended_at": began + 252, **facts},
        )  # fmt: skip
        os.utime(run_folder / "events.ndjson", (began + 90, began + 90))

    def so_far(finished: int, mean: float) -> dict[str, Any]:
        return event(
            "collection.progress", NOW, finished=finished, failed=1, total=72, averages={AGENT: {"reward": mean}},
            counts={AGENT: finished},
        )  # fmt: skip

    add("first_steps/small-t02", NOW - 110, [so_far(27, 0.46)], state="running", host="node9", rollouts=72, **OPEN)
    add("first_steps/small-t10", NOW - 900, [so_far(41, 0.37)], state="running", rollouts=72, **OPEN)
    add(
        "first_steps/tiny",
        NOW - 5000,
        state="stopped",
        rollouts=72,
        scored=30,
        failed=2,
        missing=40,
        error="stopped by ada@node7",
    )
    add(
        "tools/weather",
        NOW - 9000,
        [],
        state="failed",
        error="the server tools_agent ended with code 1",
        scored=0,
        failed=3,
        missing=69,
    )
    told = {**summary(NOW - 90_000, 1988, 12, 0, 0.661), "failure_classes": {"judge_failed": 9, "timeout_exceeded": 3}}
    add(
        "math/large",
        NOW - 90_000,
        [told],
        scored=1988,
        failed=12,
        missing=0,
        rollouts=2000,
        config={"policy_model_name": "large-70b"},
    )
    (folder / "math" / "large_failures.jsonl").write_text(
        '{"_ng_failure_class": "judge_failed", "failure_reason": "the judge did not answer"}\n'
        '{"_ng_failure_class": "timeout_exceeded", "failure_reason": "300 s were not enough"}\n'
    )
    return Path("results")


def listing(path: Path, **settings: Any) -> WorkbenchApp:
    return workbench(path, "results", **settings)


def pressing(*keys: str) -> Callable[[Pilot[Any]], Any]:
    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press(*keys)

    return steps


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_runs(picture: Picture, root: Path, size: tuple[int, int]) -> None:
    assert picture(
        listing(root), size, ["▶ running 37%", "✗ died", "○ stopped", "✗ failed", "✓ done", "0.661 [0.56, 0.76]", "0.460 so far"]
    )


def test_runs_light(picture: Picture, root: Path) -> None:
    assert picture(listing(root, theme="gym-light"), WIDE, ["✓ done"])


def test_ascii(picture: Picture, root: Path) -> None:
    assert picture(listing(root, ascii=True), WIDE, ["> running 37%", "x died"], hides=["✗", "╭", "▶", "█"])


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_run_that_died(picture: Picture, root: Path, size: tuple[int, int]) -> None:
    assert picture(
        listing(root), size, ["What happened", f"process {DEAD_PID} is gone", "--resume", "cd /home/ada/evaluations"],
        steps=pressing("j", *(["tab"] if size == NARROW else [])),
    )  # fmt: skip


def test_failures_of_a_run(picture: Picture, root: Path) -> None:
    assert picture(listing(root), (120, 60), ["judge_failed", "the judge did not answer", "12 rollouts"], steps=pressing("end"))


def test_detail_alone(picture: Picture, root: Path) -> None:
    assert picture(listing(root), WIDE, ["large-70b", "node7", "4:12"], hides=["NAME"], steps=pressing("end", "tab", "z"))


def test_filtered(picture: Picture, root: Path) -> None:
    assert picture(listing(root), WIDE, ["2 of 5", "small-t02"], hides=["weather"], steps=pressing("slash", *"small-t"))


def test_letters_in_order(picture: Picture, root: Path) -> None:
    assert picture(listing(root), WIDE, ["1 of 5", "those with their letters"], steps=pressing("slash", *"twthr", "enter"))


def test_nothing_matches(picture: Picture, root: Path) -> None:
    assert picture(
        listing(root),
        NARROW,
        ["No run matches wheater", "nearest: tools/weather", "esc clears"],
        steps=pressing("slash", *"wheater"),
    )


def test_filter_with_a_mistake(picture: Picture, root: Path) -> None:
    assert picture(listing(root), NARROW, ["there is no state `gone`", "weather"], steps=pressing("slash", *"state:gone"))


def test_sorted_by_score(picture: Picture, root: Path) -> None:
    assert picture(listing(root), WIDE, ["score, reversed", "SCORE▲"], steps=pressing("s", "S"))


def test_empty(picture: Picture, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert picture(
        listing(Path("results")),
        WIDE,
        ["No runs below results", "r puts a first one on the command line", "No run under the cursor"],
    )


def test_failed(picture: Picture) -> None:
    assert picture(listing(Path("gone")), NARROW, ["✗ ", "cannot search", "ctrl+r tries again"])


def test_stale(picture: Picture, root: Path) -> None:
    async def move_away(pilot: Pilot[Any]) -> None:
        Path("results").rename("elsewhere")
        await pilot.press("ctrl+r")

    assert picture(listing(root), WIDE, ["old · 5", "cannot search results", "math/large"], steps=move_away)


@pytest.fixture
def held_search(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A search that goes on until the test ends."""
    end = threading.Event()

    def search(*words: Any) -> Any:
        reporter = words[-1]
        while not end.is_set() and reporter.wait(0.02):
            pass

    monkeypatch.setattr(screen_module, "search", search)
    monkeypatch.setattr(WorkbenchApp, "begin_work", lambda _app: None)
    monkeypatch.setattr(WorkbenchApp, "end_work", lambda _app: None)
    yield
    end.set()


@pytest.mark.usefixtures("held_search")
def test_loading(picture: Picture, root: Path) -> None:
    app = listing(root)
    assert picture(app, NARROW, ["Looking for runs below results"], until=lambda _app: _state(app) is PaneState.LOADING)


def test_least_size(picture: Picture, root: Path) -> None:
    assert picture(listing(root), (60, 16), ["running 37%", "tools/weather"])


def test_too_small(picture: Picture, root: Path) -> None:
    assert picture(listing(root), (40, 12), ["needs 60x16"], hides=["running"])


def _state(app: WorkbenchApp) -> PaneState:
    return app.screen.query_one("#runs", Pane).state
