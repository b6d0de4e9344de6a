"""Completion follows the command table, offers no place for a key, and never changes what is already typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cli.commands import COMMANDS, GROUPS
from gym_tui.completion import VERBS, completions

HEADLESS = [*GROUPS, *(command.path[0] for command in COMMANDS if len(command.path) == 1 and command.path != ("tui",))]


def found(text: str, folder: Path = Path("/nonexistent")) -> list[str]:
    return [
        each.text for each in completions(text, screens=["results", "viewer"], themes=["gym-dark", "gym-light"], folder=folder)
    ]


def test_at_first_all_verbs_and_groups() -> None:
    assert found("") == [f"{name} " for name in (*(verb.name for verb in VERBS), *HEADLESS)]


def test_after_gym_only_headless_commands() -> None:
    assert found("gym ") == [f"gym {name} " for name in HEADLESS]
    assert found("gym op") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("scr", ["screen "]),
        ("screen v", ["screen viewer "]),
        ("theme gym-l", ["theme gym-light "]),
        ("ascii o", ["ascii on ", "ascii off "]),
        ("gym list be", ["gym list benchmarks "]),
        ("eval run --split t", ["eval run --split train "]),
        ("eval run --lim", ["eval run --limit "]),
        ("eval run --limit 3 --lim", []),
        ("eval run --model-api", []),
        ("eval run --input ~nobody-of-this-name/", []),
        ("quit x", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert found(text) == expected


def test_every_flag_but_that_for_a_key_is_offered() -> None:
    run = next(command for command in COMMANDS if command.path == ("eval", "run"))
    offered = {text.split()[-1] for text in found("eval run --")}
    assert {flag.names[0] for flag in run.flags} - {"--model-api-key"} <= offered
    assert "--model-api-key" not in offered


def test_paths_folders_first_hidden_ones_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "deep.jsonl").touch()
    (tmp_path / "a b.jsonl").touch()
    (tmp_path / ".hidden").touch()
    assert found("open ", tmp_path) == ["open sub/", "open 'a b.jsonl' "]
    assert found("open sub/", tmp_path) == ["open sub/deep.jsonl "]
    assert found("open .h", tmp_path) == ["open .hidden "]
    assert found("eval run --output su", tmp_path) == ["eval run --output sub/"]


@given(st.text(alphabet="abeglnrtuvop -='\"/.", max_size=30))
def test_a_completion_only_adds_to_the_line(text: str) -> None:
    for completed in found(text):
        assert completed.startswith((text, text[: text.rfind(" ") + 1]))


@pytest.fixture
def components(tmp_path: Path) -> Path:
    for name in (
        "benchmarks/trivia/config.yaml",
        "environments/walk/config.yaml",
        "resources_servers/quiz/configs/quiz.yaml",
        "resources_servers/quiz/configs/hard.yaml",
        "responses_api_agents/loop_agent/app.py",
        "more/benchmarks/trifle/config.yaml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eval run --benchmark tri", ["trivia"]),
        ("eval run --search-dir more --benchmark tri", ["trifle", "trivia"]),
        ("env start --environment w", ["walk"]),
        ("env validate --resources-server qu", ["quiz", "quiz/hard"]),
        ("env schema --resources-server qu", ["quiz"]),
        ("env resolve --agent-type loop", ["loop_agent"]),
        ("list agents loop", ["loop_agent"]),
        ("list environments ", ["trivia", "walk"]),
        ("list environments trivia w", []),
        ("list environments --domain ma", ["math"]),
    ],
)
def test_names_of_components(components: Path, text: str, expected: list[str]) -> None:
    head = text.rpartition(" ")[0]
    bundled = {"first_steps"}
    offered = [line.removeprefix(head).strip() for line in found(text, components)]
    assert [name for name in offered if name not in bundled and not name.startswith("-")] == expected
