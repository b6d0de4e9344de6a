from hypothesis import given
from hypothesis import strategies as st

from screens.widgets.text_blocks import Document, Part, Spot, TextBlock, plain_text

BUDGET = 1_000_000


def document(*blocks: TextBlock, width: int = 20) -> Document:
    result = Document(width)
    result.replace(blocks, keep=False)
    result.settle(0, 1 << 40, BUDGET)
    return result


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(count))


def test_rows_are_heads_bodies_and_what_is_cut_off() -> None:
    text = document(
        TextBlock("a", "one\ntwo", "A"),
        TextBlock("b", "hidden", "B", folded=True),
        TextBlock("c", numbered(500), "C"),
        TextBlock("d", "raw", no_head=True),
    )
    assert text.tops == [0, 3, 4, 206, 207]
    assert [text.spot(y) for y in (0, 1, 3, 4, 205, 206, 999)] == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 201), (3, 0), (3, 0)]
    parts = [text.layouts[spot.block].part(spot.row) for spot in (Spot(0, 0), Spot(0, 2), Spot(2, 200), Spot(2, 201), Spot(3, 0))]
    assert parts == [Part.HEAD, Part.BODY, Part.BODY, Part.MORE, Part.BODY]
    assert text.layouts[2].more == 300


def test_bodies_are_indented_and_wrapped_to_what_is_left() -> None:
    text = document(
        TextBlock("a", "x" * 40, "A"), TextBlock("b", "x" * 40, "B", gutter="┃"), TextBlock("c", "x" * 40, no_head=True)
    )
    assert [text.layouts[index].line(1 if index < 2 else 0) for index in range(3)] == ["x" * 18, "x" * 16, "x" * 20]


def test_blocks_with_the_same_key_go_on_as_they_were() -> None:
    text = document(TextBlock("a", numbered(500), "A"), TextBlock("b", "body", "B"))
    text.layouts[0].show_line(300)
    text.layouts[1].folded = True
    wrapped = text.layouts[0].wrapped
    text.replace([TextBlock("new", "x", "N"), TextBlock("a", numbered(500), "A!"), TextBlock("b", "other", "B")], keep=True)
    assert [layout.folded for layout in text.layouts] == [False, False, True]
    assert text.layouts[1].limit == 2000
    assert text.layouts[1].wrapped is wrapped
    text.replace([TextBlock("b", "other", "B")], keep=False)
    assert not text.layouts[0].folded


def test_an_anchor_stays_on_its_text_at_another_width() -> None:
    body = " ".join(f"word{number}" for number in range(2000))
    text = document(TextBlock("a", body, "A", whole=True), width=40)
    anchor = text.anchor(150)
    word = (text.layouts[0].line(150) or "").split()[0]
    text.resize(27)
    y = text.y_of_anchor(anchor, BUDGET)[0]
    assert word in (text.layouts[0].line(text.spot(y).row) or "").split()


def test_an_anchor_of_a_block_that_is_gone_is_what_came_after_it() -> None:
    text = document(*(TextBlock(key, "body", key) for key in "abc"))
    anchor = text.anchor(2)
    assert anchor is not None and anchor.key == "b"
    text.replace([TextBlock("a", "body", "a"), TextBlock("c", "body", "c")], keep=True)
    assert text.spot(text.y_of_anchor(anchor)[0]) == (1, 0)


def test_a_block_that_comes_in_from_above_keeps_its_end_in_place() -> None:
    text = Document(20)
    text.replace([TextBlock("a", "\n" * 9000 + "z" * 9000, "A", whole=True), TextBlock("b", "body", "B")], keep=False)
    guessed = text.tops[1]
    y, _ = text.settle(guessed - 3, 10, BUDGET)
    assert text.tops[1] == 1 + 9000 + 500
    assert guessed != text.tops[1]
    assert y == text.tops[1] - 3


def test_settling_stops_when_the_budget_is_spent() -> None:
    text = Document(80)
    text.replace([TextBlock("a", "x" * 5_000_000, "A", whole=True)], keep=False)
    _, left = text.settle(0, 40, 10_000)
    assert left <= 0
    assert text.unsettled(0, 40)
    assert 5_000_000 / 78 * 0.9 < text.height < 5_000_000 / 78 * 1.2


def test_plain_text_has_no_layout() -> None:
    assert plain_text(TextBlock("a", "one\n\ttwo\x1b", "head\nline", "12 tok")) == "head ⏎ line  12 tok\none\n    two␛"
    assert plain_text(TextBlock("a", "raw", "unused", no_head=True)) == "raw"
    assert plain_text(TextBlock("a", "", "head")) == "head"


@given(
    st.lists(st.tuples(st.text("ab \n", max_size=60), st.booleans(), st.booleans()), min_size=1, max_size=8),
    st.integers(4, 20),
    st.integers(0, 50),
)
def test_every_row_belongs_to_one_block(blocks: list[tuple[str, bool, bool]], width: int, y: int) -> None:
    text = document(
        *(
            TextBlock(index, body, f"head {index}", folded=folded, no_head=bare)
            for index, (body, folded, bare) in enumerate(blocks)
        ),
        width=width,
    )
    if not text.height:
        return
    spot = text.spot(y)
    assert text.y_of(*spot) == min(y, text.height - 1)
    assert 0 <= spot.row < text.layouts[spot.block].height
    assert text.y_of_anchor(text.anchor(y))[0] == min(y, text.height - 1)
    assert text.settle(y, 10, BUDGET) == (min(y, text.height - 1), BUDGET)
