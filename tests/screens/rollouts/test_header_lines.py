"""The numbers above the stream, as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.metrics.intervals import Interval
from backend.rollouts.run_progress_parts import Phase
from screens.rollouts import header_lines
from screens.rollouts.following import entry_of, read_whole_run
from screens.rollouts.snapshot import RunSnapshot
from screens.widgets import glyphs
from screens.widgets.scores import score_text
from tests.run_samples import START, add_events, live_run

AT = START + 95


@pytest.fixture
def shot(tmp_path: Path) -> RunSnapshot:
    live_run(tmp_path)
    return snapshot(tmp_path)


def snapshot(folder: Path, now: float = AT) -> RunSnapshot:
    return read_whole_run(entry_of(folder / "m_run", "m", now), now)


def texts(shot: RunSnapshot, width: int = 100, **options: Any) -> list[str]:
    return [line.plain for line in header_lines.header_lines(shot, width, narrow=options.get("narrow", False))]


def test_wide(shot: RunSnapshot) -> None:
    progress, pace, score, servers = texts(shot)
    assert progress.endswith("12 / 40   30.0 %")
    assert pace.startswith("rate ")
    assert "in flight 2/4" in pace
    assert "failures 1" in pace
    assert score.startswith("reward 0.500   95% CI [0.")
    assert "n=11 scored" in score
    assert "(0.458 with failures as 0)" in score  # 5.5 of 12
    assert servers.startswith("servers  mcqa_resources_server ")


def test_a_minus_sign_and_a_range_do_not_run_together(shot: RunSnapshot) -> None:
    raw = replace(shot, mean=0.57, interval=Interval(-0.391, 1.531, "normal"), reward_scale="raw")
    assert texts(raw)[2].startswith("reward 0.57   95% CI [-0.391, 1.53]   n=11 scored")
    assert texts(raw, 76, narrow=True)[2] == "reward 0.57   CI [-0.391, 1.53]   n=11"
    alone = replace(shot, interval=None)
    assert texts(alone, 76, narrow=True)[2] == "reward 0.500   n=11"


def test_the_closing_summary_has_the_last_word(tmp_path: Path) -> None:
    """The same mean and interval as Results shows, in the same words."""
    live_run(tmp_path, done=12, total=12, state="done")
    row = {
        "agent": "first_steps_agent",
        "name": "reward/mean",
        "value": 0.458,
        "scale": "0-1",
        "interval": {"low": 0.212, "high": 0.7},
    }
    summary = {"type": "run.summary", "state": "done", "scores": [row], "scored": 11, "failed": 1, "missing": 0, "t": START + 91}
    add_events(tmp_path / "m_run", [summary])
    shown = texts(snapshot(tmp_path))[2]
    assert shown.startswith("reward 0.458   95% CI [0.21, 0.70]")
    headline = entry_of(tmp_path / "m_run", "m", AT).headline
    assert score_text(headline) == "0.458 [0.21, 0.70]"


def test_what_has_no_room_is_left_out(shot: RunSnapshot) -> None:
    assert texts(shot, 60)[2].endswith("n=11 scored")
    assert all(len(line) <= 60 for line in texts(shot, 60)[:3])


def test_narrow_fits(shot: RunSnapshot) -> None:
    assert all(len(line) <= 76 for line in texts(shot, 76, narrow=True))


def test_titles(shot: RunSnapshot) -> None:
    assert header_lines.title(shot, "m.jsonl") == "m.jsonl · running 1:35"
    assert header_lines.right_title(shot) == "first_steps · small-7b"
    assert header_lines.foot(shot) == "x once: admit no more, finish 2 in flight · x twice: cancel"


def test_a_clock_that_went_back_is_never_negative(tmp_path: Path) -> None:
    live_run(tmp_path)
    assert "-" not in header_lines.title(snapshot(tmp_path, START - 3600), "m")


def test_nothing_has_come_back_for_a_while(tmp_path: Path) -> None:
    live_run(tmp_path)
    waiting = {"type": "collection.waiting", "finished": 12, "total": 40, "in_flight": 2, "seconds": 10.0, "t": START + 100}
    add_events(tmp_path / "m_run", [waiting])
    assert f"{glyphs.UNICODE.warning} no rollout has finished for 40 s" in texts(snapshot(tmp_path, START + 130))


def test_an_endpoint_that_does_not_answer(tmp_path: Path) -> None:
    live_run(tmp_path)
    state = {
        "type": "endpoint.state",
        "url": "http://x/v1",
        "key": "policy_base_url",
        "state": "unreachable",
        "reason": "refused",
    }
    add_events(tmp_path / "m_run", [{**state, "t": START + 90}])
    shot = snapshot(tmp_path)
    assert "! http://x/v1: unreachable refused" in texts(shot)
    ready = tuple(replace(server, state="up") for server in shot.servers)
    assert header_lines.state_word(replace(shot, phase=Phase.WAITING, servers=ready)) == "waiting for the model endpoint"
    assert header_lines.state_word(replace(shot, phase=Phase.WAITING, servers=ready, endpoints=())) == "servers ready"
    starting = (replace(shot.servers[0], state="starting"), *ready)
    assert header_lines.state_word(replace(shot, phase=Phase.WAITING, servers=starting)) == "waiting for servers"
