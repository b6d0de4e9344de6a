"""What is read of one component, what it is made of, and the text that is made from that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backend.catalog.entries import Broken, CatalogEntry
from backend.catalog.listing import whole_catalog
from screens.catalog.detail_blocks import TABS, Surroundings, file_under, tab_blocks
from screens.catalog.finding import FoundRuns
from screens.catalog.links import Jump, TypeCommand, composition, users_of
from screens.catalog.reading import MOST_TEXT_BYTES, Reading, read_component
from screens.widgets.text_blocks import TextBlock, plain_text
from tests.component_samples import BROKEN_LINE, SECRET, write_catalog, write_file, write_hostile, write_model


@pytest.fixture
def entries(tmp_path: Path) -> dict[str, CatalogEntry]:
    write_catalog(tmp_path)
    return {entry.name: entry for entry in whole_catalog([tmp_path], cache=False).entries}


def reading(entry: CatalogEntry) -> Reading:
    return read_component(entry, [entry.root], lambda: False)


def blocks(tab: str, read: Reading, entries: dict[str, CatalogEntry]) -> list[TextBlock]:
    around = Surroundings(tuple(entries.values()), FoundRuns((), True), 0.0, lambda path: os.path.relpath(path, read.entry.root))
    return tab_blocks(tab, read, around)


def text(tab: str, read: Reading, entries: dict[str, CatalogEntry]) -> str:
    return "\n".join(plain_text(block) for block in blocks(tab, read, entries))


def test_the_readme_comes_with_what_is_known_and_needed(entries: dict[str, CatalogEntry]) -> None:
    shown = text("readme", reading(entries["math_verified"]), entries)
    assert "Short answers, checked symbolically" in shown and "--benchmark math_verified" in shown
    assert "policy_model  choose one with --model-type" in shown
    assert "Short-answer mathematics graded by a *symbolic* checker." in shown
    assert "has no README.md" in text("readme", reading(entries["aime24_verified"]), entries)


def test_the_configuration_is_numbered_own_file_first_and_secrets_are_masked(entries: dict[str, CatalogEntry]) -> None:
    config = blocks("config", reading(entries["math_verified"]), entries)
    assert [block.head for block in config] == [
        "benchmarks/math_verified/config.yaml", "resources_servers/math_with_judge/configs/math_with_judge.yaml"
    ]  # fmt: skip
    assert config[0].body.startswith(" 1  config_paths: [") and config[1].folded
    assert "\n 3  math_verified_rs:" in config[0].body
    shown = text("config", reading(entries["openai_model"]), entries)
    assert "api_key: ****" in shown and SECRET not in shown


def test_data_is_counted_and_its_first_row_shown(entries: dict[str, CatalogEntry]) -> None:
    data = blocks("data", reading(entries["math_verified"]), entries)
    assert data[0].head == "math_verified" and data[0].head_right.startswith("500 rows · ")
    assert "licence      CC-BY-4.0" in data[0].body and "repeats      4" in data[0].body
    assert '"question": "What is 2 plus 3?"' in data[1].body
    missing = blocks("data", reading(entries["math_hard_verified"]), entries)
    assert missing[0].head == "! math_hard_verified" and missing[0].head_right == "missing"
    assert "declares no data" in text("data", reading(entries["walk"]), entries)


@pytest.mark.parametrize(("content", "rows"), [(b"", 0), (b"{}", 1), (b"{}\n", 1), (b"{}\n{}", 2), (b"\xff\n\n", 2)])
def test_rows_are_lines(tmp_path: Path, content: bytes, rows: int) -> None:
    write_catalog(tmp_path)
    (tmp_path / "benchmarks/math_verified/data/benchmark.jsonl").write_bytes(content)
    entry = next(each for each in whole_catalog([tmp_path], cache=False).entries if each.name == "math_verified")
    assert reading(entry).data[0].rows == rows


def test_links_lead_to_what_a_component_is_made_of_and_back(entries: dict[str, CatalogEntry]) -> None:
    found = {
        block.key.target for block in blocks("links", reading(entries["math_verified"]), entries) if isinstance(block.key, Jump)
    }
    assert found == {("agent", "simple_agent"), ("resources-server", "math_with_judge")}
    parts = list(composition(entries["math_with_judge"], tuple(entries.values())))
    assert [part.target for part in parts] == [None], "a component is no part of itself"
    users = users_of(entries["math_with_judge"], tuple(entries.values()))
    assert [user.name for user in users] == ["aime24_verified", "math_hard_verified", "math_verified"]
    shown = text("links", reading(entries["simple_agent"]), entries)
    assert "Used by 3" in shown and "chosen at run time" in shown


def test_a_preset_stands_for_its_model(tmp_path: Path) -> None:
    write_catalog(tmp_path)
    write_file(tmp_path / "responses_api_models/only/configs/preset.yaml", "policy_model: {responses_api_models: {only: {}}}\n")
    write_file(
        tmp_path / "environments/uses/config.yaml",
        "m: {responses_api_models: {only: {}}}\nr: {resources_servers: {gone: {}}}\n",
    )
    entries = {entry.name: entry for entry in whole_catalog([tmp_path], cache=False).entries}
    parts = {part.server.implementation: part.target for part in composition(entries["uses"], tuple(entries.values()))}
    assert parts == {"only": ("model", "only/preset"), "gone": None}


def test_missing_data_comes_with_a_command_only_when_there_is_one(
    entries: dict[str, CatalogEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    from screens.catalog import detail_blocks

    read = reading(entries["math_hard_verified"])
    prepare = TypeCommand(("eval", "prepare", "--benchmark", "math_hard_verified"))
    there = [command for command in detail_blocks.COMMANDS if command.path == ("eval", "run")]
    monkeypatch.setattr(detail_blocks, "COMMANDS", there)
    assert prepare not in [block.key for block in blocks("readme", read, entries)]
    monkeypatch.setattr(detail_blocks, "COMMANDS", [*there, type(there[0])(("eval", "prepare"), "prepare data", "x")])
    assert prepare in [block.key for block in blocks("readme", read, entries)]


def test_a_broken_component_shows_where(entries: dict[str, CatalogEntry]) -> None:
    entry = entries["math_proof_verifier"]
    read = reading(entry)
    assert entry.broken is not None and entry.broken.line is not None
    for tab in ("readme", "config", "links"):
        first = blocks(tab, read, entries)[0]
        assert first.head == "! Broken" and entry.broken.message in first.body
        assert f"math_proof_verifier.yaml, line {entry.broken.line}" in first.body
        assert f"{BROKEN_LINE}  proofs: [a, b" in first.body
    path, line = file_under(read, None)
    assert path.name == "math_proof_verifier.yaml" and line == entry.broken.line


def test_both_places_of_a_name_are_shown(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for root in (first, second):
        write_model(root, "openai_model")
    (entry,) = whole_catalog([first, second], cache=False).entries
    shown = text("links", read_component(entry, [first, second], lambda: False), {entry.name: entry})
    assert "responses_api_models/openai_model/configs/openai_model.yaml" in shown
    assert "../two/responses_api_models/openai_model/configs/openai_model.yaml" in shown


def test_what_cannot_be_read_is_told_in_its_place(entries: dict[str, CatalogEntry]) -> None:
    entry = entries["math_verified"]
    assert entry.readme is not None
    entry.readme.unlink()
    (entry.root / "resources_servers/math_with_judge/configs/math_with_judge.yaml").unlink()
    assert "No such file" in text("readme", reading(entry), entries)
    assert "No such file" in text("config", reading(entry), entries)


def test_long_readmes_are_cut_and_say_so(entries: dict[str, CatalogEntry]) -> None:
    entry = entries["math_verified"]
    assert entry.readme is not None
    entry.readme.write_text("word " * MOST_TEXT_BYTES)
    readme = reading(entry).readme
    assert readme is not None and len(readme.text) == MOST_TEXT_BYTES and "only the first 400 kB" in readme.problem


def test_a_pipe_in_place_of_data_keeps_nobody_waiting(tmp_path: Path) -> None:
    write_catalog(tmp_path)
    path = tmp_path / "benchmarks/math_verified/data/benchmark.jsonl"
    path.unlink()
    os.mkfifo(path)
    entry = next(each for each in whole_catalog([tmp_path], cache=False).entries if each.name == "math_verified")
    assert reading(entry).data[0].rows is None


def test_every_tab_of_every_hostile_component_can_be_made(tmp_path: Path) -> None:
    write_hostile(tmp_path)
    entries = {entry.name: entry for entry in whole_catalog([tmp_path], cache=False).entries}
    assert len(entries) == 4
    for entry in entries.values():
        for tab in TABS:
            assert blocks(tab, reading(entry), entries)


def test_a_problem_without_a_place_is_a_message(entries: dict[str, CatalogEntry]) -> None:
    from dataclasses import replace

    entry = replace(entries["walk"], broken=Broken("something is wrong"))
    assert plain_text(blocks("readme", reading(entry), entries)[0]).endswith("\nsomething is wrong")
