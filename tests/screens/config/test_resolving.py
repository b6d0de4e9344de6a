"""Resolving entries: what makes which layer, and what a broken one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from screens.config.resolving import Resolution, ShownPaths, resolve_entries
from screens.config.words import entries_of, toggled
from screens.widgets.background import Reporter
from tests.config_samples import SECRET, write_config


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_config(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resolve(*words: str, off: int | None = None) -> Resolution:
    entries = entries_of(words)
    return resolve_entries(entries if off is None else toggled(entries, off), Reporter(lambda _value: None))


def lines(resolution: Resolution) -> list[tuple[int | None, str, int | None]]:
    return [(line.layer.number if line.layer else None, line.title, line.entry) for line in resolution.lines]


def test_each_layer_knows_its_words(folder: Path) -> None:
    (folder / "other.yaml").write_text("split: train\n")
    found = resolve(
        "+a=1", "--config", "other.yaml,math.yaml", "-m", "tiny", "+a2=2", "--benchmark", "first_steps", "++a=1", "+config_paths=[x.yaml]"
    )  # fmt: skip
    assert lines(found) == [
        (1, "defaults", None),
        (2, "other.yaml", 1),
        (3, "shared.yaml", None),
        (4, "math.yaml", 1),
        (5, "resources_servers/mcqa/configs/mcqa.yaml", None),
        (6, "benchmarks/first_steps/config.yaml", 4),
        (7, "x.yaml", None),
        (8, "env.yaml", None),
        (9, "-m tiny", 2),
        (10, "+a=1", 0),
        (11, "+a2=2", 3),
        (12, "++a=1", 5),
        (13, "+config_paths=[x.yaml]", 6),
    ]


def test_entries_without_a_layer_stand_where_it_would_be(folder: Path) -> None:
    found = resolve("--search-dir", "sub", "--config", "math.yaml", "--benchmark", "nope", "+a=1", "b=2", "--no-model")
    assert [(line.title, bool(line.problem)) for line in found.lines if line.layer is None] == [
        ("--search-dir sub", False), ("--benchmark nope", True), ("--no-model", False), ("b=2", True),
    ]  # fmt: skip
    titles = [line.title for line in found.lines]
    assert titles.index("math.yaml") < titles.index("--benchmark nope") < titles.index("+a=1") < titles.index("b=2")
    messages = [finding.message for finding in found.findings if finding.severity == "error"]
    assert any("nope" in message for message in messages) and any("Could not override 'b'" in message for message in messages)


def test_what_is_off_keeps_its_place(folder: Path) -> None:
    (folder / "other.yaml").write_text("split: train\n")
    found = resolve("--config", "other.yaml", "--config", "math.yaml", "+a=1", off=0)
    assert [(line.title, line.on) for line in found.lines] == [
        ("defaults", True), ("--config other.yaml", False), ("shared.yaml", True), ("math.yaml", True), ("env.yaml", True), ("+a=1", True),
    ]  # fmt: skip
    assert found.words == "--config math.yaml +a=1"


def test_nothing_in_it_is_secret(folder: Path) -> None:
    found = resolve("--config", "math.yaml", "++policy_api_key=sk-other-secret-5678", f"++note=see {SECRET}")
    shown = repr((found.lines, found.findings, found.trees, found.words))
    assert SECRET not in shown and "sk-other-secret-5678" not in shown
    assert found.words == "--config math.yaml '++policy_api_key=****' '++note=see ****'"


def test_paths_are_shown_below_the_nearest_root() -> None:
    paths = ShownPaths([Path("/"), Path("/a/b"), Path("/a/b/c")])
    assert paths.text("/a/b/c/d.yaml:3 and /a/b/x, /a/b") == "d.yaml:3 and x, ."
    assert paths.text("/a/bc/x and z/a/b/x") == "/a/bc/x and z/a/b/x"
    assert ShownPaths([]).text("/a/b") == "/a/b"
