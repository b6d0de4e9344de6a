"""Two rollouts side by side as rows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from backend.rollouts.transcript import Kind, Transcript, Turn, transcript
from screens.viewer.diff_layout import DiffLayout, lay_out, plain_rows
from tests.rollout_samples import HOSTILE, message, reasoning, record


def layout(left: Transcript, right: Transcript, width: int = 60, **options: bool) -> DiffLayout:
    return lay_out(left, right, width, show_equal=options.get("show_equal", False), rest=lambda: True)


def sides(found: DiffLayout) -> list[tuple[str, str]]:
    return [
        ("".join(span.text for span in row.left).rstrip(), "".join(span.text for span in row.right).rstrip())
        for row in found.rows
    ]


ONE = transcript(record(0, 0, 1.0, [reasoning("same thoughts"), message("assistant", "The answer is \\boxed{12}.")]))
TWO = transcript(
    record(0, 1, 0.0, [reasoning("same thoughts"), message("assistant", "The answer is \\boxed{13}."), message("user", "sure?")])
)


def test_equal_turns_are_folded_and_words_that_differ_are_marked() -> None:
    found = layout(ONE, TWO)
    assert sides(found) == [
        ("system                            = equal, folded", "system                            = equal, folded"),
        ("user                              = equal, folded", "user                              = equal, folded"),
        ("reasoning    31 tok               = equal, folded", "reasoning    37 tok               = equal, folded"),
        ("assistant    31 tok               ~ differs", "assistant    38 tok               ~ differs"),
        ("  The answer is \\boxed{[-12-]}.", "  The answer is \\boxed{{+13+}}."),
        ("—", "user                              ! only here"),
        ("", "  sure?"),
    ]
    assert found.heads == (0, 1, 2, 3, 5)
    assert found.differences == (3, 5)
    assert {span.style for span in found.rows[4].left} == {"plain", "marked"}


def test_equal_turns_can_be_unfolded() -> None:
    found = layout(ONE, ONE, show_equal=True)
    assert found.differences == ()
    assert ("  same thoughts", "  same thoughts") in sides(found)
    assert all("folded" not in left for left, _ in sides(found))


def test_what_was_cut_off_says_so() -> None:
    cut = record(0, 0, 0.0, [message("assistant", "so")])
    cut["response"] |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert any("cut off (length)" in left for left, _ in sides(layout(transcript(cut), ONE, 90)))


def test_as_text_of_two_columns() -> None:
    lines = plain_rows(layout(ONE, TWO, 40)).splitlines()
    assert all(line[41] == "┃" for line in lines)


def test_a_comparison_nobody_waits_for_ends() -> None:
    assert lay_out(ONE, TWO, 60, show_equal=True, rest=lambda: False).rows == ()


TEXTS = st.text(max_size=120) | st.sampled_from([HOSTILE, "word " * 40, "日本語" * 30, "x" * 500])
TURNS = st.lists(st.builds(Turn, st.sampled_from(list(Kind)), TEXTS, title=st.sampled_from(["", "python", HOSTILE])), max_size=5)


@settings(max_examples=80, deadline=None)
@given(TURNS, TURNS, st.integers(20, 70))
def test_no_row_is_wider_than_its_side_and_nothing_drives_the_terminal(left: list[Turn], right: list[Turn], width: int) -> None:
    found = layout(Transcript(tuple(left)), Transcript(tuple(right)), width, show_equal=True)
    for row in sides(found):
        for text in row:
            assert cell_len(text) <= width
            assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in text)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "cc", "d."]), max_size=30), st.lists(st.sampled_from(["a", "b", "cc", "e"]), max_size=30)
)
def test_without_the_marks_both_texts_are_there(left: list[str], right: list[str]) -> None:
    texts = [" ".join(left), " ".join(right)]
    one, other = (Transcript((Turn(Kind.ASSISTANT, text),)) for text in texts)
    found = layout(one, other, 30, show_equal=True)
    for side, text, marks in ((0, texts[0], ("[-", "-]")), (1, texts[1], ("{+", "+}"))):
        body = " ".join(row[side].strip() for row, entry in zip(sides(found), found.rows, strict=True) if not entry.is_head)
        for mark in marks:
            body = body.replace(mark, "")
        assert body.split() == text.split()
