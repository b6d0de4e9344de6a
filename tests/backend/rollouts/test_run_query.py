"""Filters and orders of the run list."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cli.commands import COMMANDS
from backend.errors import GymError
from backend.io.result_paths import ResultPaths
from backend.rollouts.run_entry import Headline, RunEntry
from backend.rollouts.run_query import SORT_KEYS, parse_run_query, sort_runs

NOW = 1_000_000.0


def entry(name: str, state: str = "done", value: float | None = None, scale: str = "0-1", **more: object) -> RunEntry:
    headline = None if value is None else Headline("reward/mean", value, scale)
    return RunEntry(ResultPaths(Path(f"results/{name}.jsonl")), name, state, headline=headline, **more)  # type: ignore[arg-type]


RUNS = [
    entry("a", "died", 0.4, benchmark="First_Steps", model="smol-135m", failed=2, started_at=NOW - 60),
    entry("b", "done", 0.9, benchmark="math", model="large", failed=0, started_at=NOW - 7200),
    entry("two words", "no record", 45.0, "0-100", agents=("simple_agent",), last_sign=NOW - 86_400 * 3),
    entry("d", "running", None, host="node7", failed=11, scored=4, missing=5, planned=20),
]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["a", "b", "two words", "d"]),
        ("state:died", ["a"]),
        ("state:d", ["a", "b"]),
        ('state:"no record"', ["two words"]),
        ("benchmark:first model:SMOL", ["a"]),
        ("score<0.5", ["a", "two words"]),
        ("score>=0.9", ["b"]),
        ("failed>0", ["a", "d"]),
        ("failed=0", ["b"]),
        ("missing:5 planned>10 scored<=4", ["d"]),
        ("age<2m", ["a"]),
        ("age>=2h", ["b", "two words"]),
        ("age>2d", ["two words"]),
        ("smol", ["a"]),
        ('"two words"', ["two words"]),
        ("agent:simple", ["two words"]),
        ("host:node", ["d"]),
        ("results/", ["a", "b", "two words", "d"]),
        ("-state:done -smol", ["two words", "d"]),
        ("name:b", ["b"]),
    ],
)
def test_filters(query: str, names: list[str]) -> None:
    parsed = parse_run_query(query)
    assert [run.name for run in RUNS if parsed.matches(run, NOW)] == names


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("scroe<1", "runs have no `scroe`", "Did you mean `score`?"),
        ("score<much", "`score<` needs a number, not `much`", "for example score<1"),
        ("state:ded", "there is no state `ded`", "Did you mean `died`?"),
        ("state:x", "there is no state `x`", "one of running, done, stopped, failed, died, no record"),
        ("model<3", "`model` is a text and cannot be compared with <", "write model:3"),
        ("model:", "`model:` says nothing to look for", "write model:TEXT"),
        ("age<soon", "`age` is compared with a duration, not `<soon`", "for example age<2h or age>3d"),
        ('name:"x', "the filter has a quote without its partner", 'write both, as in name:"two words"'),
    ],
)
def test_mistakes(query: str, message: str, hint: str) -> None:
    with pytest.raises(GymError) as raised:
        parse_run_query(query)
    assert (raised.value.message, raised.value.hint) == (message, hint)


@given(st.text(max_size=30))
def test_a_query_is_understood_or_refused(text: str) -> None:
    try:
        query = parse_run_query(text)
    except GymError:
        return
    assert all(query.matches(run, NOW) in (True, False) for run in RUNS)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("age", ["a", "b", "two words", "d"]),
        ("score", ["b", "two words", "a", "d"]),
        ("name", ["a", "b", "d", "two words"]),
        ("failed", ["d", "a", "b", "two words"]),
        ("state", ["d", "b", "a", "two words"]),
        ("benchmark", ["a", "b", "two words", "d"]),
        ("model", ["b", "a", "two words", "d"]),
        ("scored", ["d", "a", "b", "two words"]),
        ("missing", ["d", "a", "b", "two words"]),
    ],
)
def test_orders(key: str, names: list[str]) -> None:
    assert [run.name for run in sort_runs(RUNS, key)] == names


def test_runs_without_a_value_stay_last_when_the_order_is_turned_round() -> None:
    assert [run.name for run in sort_runs(RUNS, "score", reverse=True)] == ["a", "two words", "b", "d"]


def test_an_unknown_order() -> None:
    with pytest.raises(GymError, match="runs cannot be sorted by `size`"):
        sort_runs(RUNS, "size")


def test_the_command_line_offers_all_orders() -> None:
    (command,) = (command for command in COMMANDS if command.path == ("list", "runs"))
    (flag,) = (flag for flag in command.flags if flag.destination == "sort")
    assert flag.choices == tuple(SORT_KEYS)
