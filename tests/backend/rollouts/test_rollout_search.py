"""Words in the raw text of rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.io.line_index import LineIndex
from backend.rollouts import rollout_search
from backend.rollouts.rollout_query import Word
from backend.rollouts.rollout_search import Filtering, Needle, RowTexts, SearchStep, search


class OneFile:
    """Rows of one file, as the search wants them."""

    def __init__(self, path: Path) -> None:
        self.index = LineIndex(path)
        while not self.index.extend(1):
            pass

    def __len__(self) -> int:
        return len(self.index)

    def run_of(self, row: int) -> tuple[LineIndex, int, int, int]:
        return self.index, row, len(self.index) - row - 1, row


def found(rows: OneFile, text: str, start: int, direction: int = 1) -> int | None:
    step = SearchStep(None, start, False)
    while step.row is None and not step.finished:
        step = search(rows, Needle(text), step.next_row, direction, 0)
    return step.row


@pytest.mark.parametrize("ascii_only", [True, False])
def test_text_is_found_however_json_writes_it(ascii_only: bool) -> None:
    data = json.dumps({"a": 'Say "naïve"\n漢'}, ensure_ascii=ascii_only).encode()
    assert Needle('"naïve"').find(data) >= 0
    assert Needle("\n漢").find(data) >= 0
    assert Needle("say").find(data) >= 0
    assert Needle("SAY").find(data) == -1
    assert Needle("Say").find(data) >= 0


@given(
    st.lists(st.sampled_from(["needle", "Needle", "hay", "hay " * 30, "x" * 90 + "needle"]), max_size=12),
    st.integers(0, 11),
    st.sampled_from([1, -1]),
    st.sampled_from([16, 64, 1 << 20]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)
def test_the_next_row_is_found_in_both_directions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str], start: int, direction: int, chunk: int
) -> None:
    monkeypatch.setattr(rollout_search, "CHUNK_BYTES", chunk)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    rows = OneFile(path)
    for word in ("needle", "Needle"):
        hits = [row for row, text in enumerate(texts) if word in (text.lower() if word == "needle" else text)]
        expected = [row for row in hits if (row - start) * direction >= 0]
        assert found(rows, word, start, direction) == (expected[0 if direction > 0 else -1] if expected else None)


def test_a_step_says_where_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a":"x"}\n{"a":"y"}\n{"a":"x"}\n')
    rows = OneFile(path)
    assert search(rows, Needle("x"), 0, 1, 1) == SearchStep(0, 1, False)
    assert search(rows, Needle("x"), 1, 1, 1) == SearchStep(2, 3, True)
    assert search(rows, Needle("x"), 3, 1, 1) == SearchStep(None, 3, True)
    assert search(rows, Needle("y"), 0, -1, 1) == SearchStep(None, -1, True)


def test_a_text_across_the_pieces_of_a_row_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_search, "CHUNK_BYTES", 10)
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"a": "0123needle9"}) + "\n")
    assert Needle("needle").is_in_row(OneFile(path).index, 0)


def test_filtering_keeps_the_rows_with_all_words(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(json.dumps({"a": text}) + "\n" for text in ("nothing", "red pear", "green apple", "red apple", "an apple"))
    )
    texts = RowTexts(OneFile(path))
    words = (Word("apple"), Word("green", negated=True))
    filtering = Filtering([1, 2, 3, 4], words, texts, lambda rows: rows[::-1])
    assert (filtering.progress, filtering.rows) == (0.0, [])
    while not filtering.advance(0):
        pass
    assert (filtering.progress, filtering.rows) == (1.0, [4, 3])
    assert Filtering([1, 3], (), texts, lambda rows: rows[::-1]).rows == [3, 1]


@pytest.mark.parametrize("spread", [1, 40])
def test_rows_read_together_or_alone_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spread: int) -> None:
    monkeypatch.setattr(rollout_search, "CHUNK_BYTES", 300)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"a": "needle" if row % 7 == 0 else "hay" * (row % 90)}) + "\n" for row in range(600)))
    candidates = range(0, 600, spread)
    filtering = Filtering(candidates, (Word("needle"),), RowTexts(OneFile(path)), list)
    while not filtering.advance(0):
        pass
    assert filtering.rows == [row for row in candidates if row % 7 == 0]
