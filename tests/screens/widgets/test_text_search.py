import re

from hypothesis import given
from hypothesis import strategies as st

from backend.io.text import clean
from screens.widgets.text_blocks import TextBlock
from screens.widgets.text_search import MOST_HITS, Hit, Search
from screens.widgets.wrapping import PIECE

ALL = 1 << 62


def search(pattern: str, *bodies: str) -> Search:
    result = Search([TextBlock(index, body, f"Head {index}") for index, body in enumerate(bodies)], pattern)
    result.step(ALL)
    assert result.finished
    return result


def test_heads_and_bodies_in_order() -> None:
    found = search("head", "a head", "no", "HEAD head")
    assert found.hits == [(0, False, 0, 4), (0, True, 2, 6), (1, False, 0, 4), (2, False, 0, 4), (2, True, 0, 4), (2, True, 5, 9)]


def test_a_capital_letter_makes_case_count() -> None:
    assert len(search("HEAD", "a head", "HEAD").hits) == 1
    assert len(search("größe", "Größe GRÖSSE GRÖßE").hits) == 2


def test_the_pattern_is_plain_text() -> None:
    assert search("a.b[", "aXb[ a.b[").hits == [(0, True, 5, 9)]
    assert search("\x1b", "red \x1b[31m").hits == [(0, True, 4, 5)]


def test_hits_are_found_across_pieces() -> None:
    body = "x" * (PIECE - 2) + "needle" + "y" * PIECE + "needle"
    assert [hit.start for hit in search("needle", body).hits] == [PIECE - 2, 2 * PIECE + 4]
    assert [hit.start for hit in search("nädel", body.replace("needle", "nädel")).hits] == [PIECE - 2, 2 * PIECE + 3]


def test_slices_and_the_limit() -> None:
    many = Search([TextBlock("a", "x" * 1_000_000, "")], "x")
    spent = many.step(10)
    assert 0 < spent <= 2 * PIECE + 200
    many.step(ALL)
    assert many.finished and many.cut
    assert len(many.hits) == MOST_HITS


def test_going_round() -> None:
    found = search("a", "a b a", "b a")
    middle = Hit(0, True, 3, 0)
    assert [found.step_to(True, middle) for _ in range(4)] == [2, 3, 4, 0]
    assert found.step_to(False, middle) == 4
    fresh = search("a", "a b a")
    assert fresh.step_to(False, Hit(0, True, 0, 0)) == 0
    assert search("zz", "a").step_to(True, middle) is None


def test_hits_within_a_line_and_in_a_block() -> None:
    found = search("abc", "xabcx", "none", "abc")
    assert [hit.block for _, hit in found.within(0, True, 2, 5)] == [0]
    assert found.within(0, True, 4, 5) == []
    assert [found.has_hits(index) for index in range(3)] == [True, False, True]


def test_the_current_hit_is_found_again() -> None:
    blocks = [TextBlock("a", "one two one", "")]
    found = Search(blocks, "one")
    found.step(ALL)
    found.step_to(True, Hit(0, True, 3, 0))
    again = found.again([TextBlock("a", "one two one one", "")])
    again.step(ALL)
    assert again.current == 1
    assert len(again.hits) == 3


@given(body=st.text("aAbä \n\t", max_size=200), pattern=st.text("abä ", min_size=1, max_size=3))
def test_the_hits_are_those_of_a_regular_expression(body: str, pattern: str) -> None:
    found = [(hit.start, hit.end) for hit in search(pattern, body).hits if hit.in_body]
    expected = [match.span() for match in re.finditer(re.escape(pattern), clean(body), re.IGNORECASE)]
    assert found == expected
