"""Which letter each grading mode reads: observed cases, and properties that hold for any text."""

from __future__ import annotations

import logging
import signal
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources_servers.mcqa.extraction import GradingMode, allowed_options, extract_answer, last_box
from resources_servers.mcqa.output_regex import TIME_LIMIT, last_capture

STRICT: GradingMode = "strict_single_letter_boxed"
BOXED: GradingMode = "lenient_boxed"
COLON: GradingMode = "lenient_answer_colon"
MARKDOWN: GradingMode = "lenient_answer_colon_md"
MODES: list[GradingMode] = [STRICT, BOXED, COLON, MARKDOWN]

OPTIONS = [{"A": "Paris"}, {"B": "E. coli"}, {"C": "New  York"}, {"D": "None of these"}]


def extracted(text: str, mode: GradingMode, **metadata: object) -> str | None:
    return extract_answer(text, OPTIONS, mode, metadata)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        (r"\boxed{B}", "B"),
        (r"\boxed{b}", None),
        (r"\boxed{ (B) }", "B"),
        (r"\boxed{**B**}", "B"),
        (r"\boxed{B. coli}", "B"),
        (r"\boxed{C: New York}", "C"),
        (r"\boxed{C) New York}", "C"),
        (r"\boxed{C - New York}", None),
        (r"\boxed{A} \boxed{B}", "B"),
        (r"\boxed{A} \boxed{B", None),
        (r"\boxed{\text{C}}", "C"),
        (r"\boxed{\text{(C)}}", "C"),
        (r"\boxed{{D}}", "D"),
        (r"\boxed{AB}", None),
        (r"\boxed{E}", None),
        (r"\boxed{}", None),
        ("B", None),
        ("Answer: B", None),
    ],
)
def test_strict_box(text: str, letter: str | None) -> None:
    assert extracted(text, STRICT) == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        (r"\boxed{A}", "A"),
        (r"\boxed{paris}", "A"),
        (r"\boxed{the city of new york}", "C"),
        (r"\boxed{\text{New York}}", "C"),
        (r"\boxed{Paris or New York}", None),
        (r"\boxed{London}", None),
        ("Paris", None),
    ],
)
def test_lenient_box(text: str, letter: str | None) -> None:
    assert extracted(text, BOXED) == letter


@pytest.mark.parametrize(
    ("text", "colon", "markdown"),
    [
        ("Answer: B", "B", "B"),
        ("answer: b", "B", "B"),
        ("Answer: B.", None, "B"),
        ("**Answer:** B", None, "B"),
        ("Answer: A\nAnswer: B", "A", "B"),
        ("Answer: new   YORK", "C", None),
        (r"The final answer: \text{D}", "D", "D"),
        ("Answer: E", None, None),
        ("Answer:", None, None),
        ("B", None, None),
    ],
)
def test_answer_after_a_colon(text: str, colon: str | None, markdown: str | None) -> None:
    assert extracted(text, COLON) == colon
    assert extracted(text, MARKDOWN) == markdown


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("**Answer**: B", "B"),
        ("__Answer:__ (C) because", "C"),
        ("Answer: A/B", None),
        ("Answer: B or C", None),
        ("Answer: B, C", None),
        ("Answer: (A) and (D)", None),
        ("Answer: B or B", "B"),
        ("Answer: B or E", "B"),
        ("Answer: B, because A, C and D are wrong", "B"),
        ("Answer: either A or B", None),
        ("Answer: I choose D", "D"),
        ("Answer: a city, so C", "C"),
        ("Answer: D) none\nAnswer: no idea", "D"),
        ("Answer: A Answer: D", "D"),
        ("Answer：Ｂ", "B"),
        ("Answer: ب", "B"),
        ("Answer: د.", "D"),
        ("Answer: অ", "A"),
        ("Answer: ঢ", "D"),
        ("Answer: باريس", None),
        ("Answer: বাঘ", None),
    ],
)
def test_markdown_and_other_scripts(text: str, letter: str | None) -> None:
    assert extracted(text, MARKDOWN) == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("La réponse est (B).", "B"),
        ("la réponse est : **C**", "C"),
        ("La réponse est A. Answer: D", "D"),
        (r"\boxed{A}", "A"),
        (r"\boxed{paris}", None),
        ("(B).", None),
    ],
)
def test_answer_prefix(text: str, letter: str | None) -> None:
    assert extracted(text, MARKDOWN, answer_prefix="La réponse est") == letter


def test_without_a_prefix_a_box_is_no_last_resort() -> None:
    assert extracted(r"\boxed{A}", MARKDOWN) is None
    assert extracted(r"\boxed{A}", MARKDOWN, answer_prefix=" ") is None


@pytest.mark.parametrize(
    ("pattern", "text", "letter"),
    [
        (r"choice <(\w)>", "choice <a>, no: Choice <b>", "B"),
        (r"choice <(\w)>", "choice <z>", "Z"),
        (r"\b[A-D]\b", "A, then c", "C"),
        (r"city: ([^.]*)", "City: new\nYORK.", "C"),
        (r"(?:city: (\w+))|(?:letter: (\w))", "letter: d", "D"),
        ([r"nothing", r"city: (\w+)"], "city: Paris", "A"),
        ([r"city: (\w+)", r"letter: (\w)"], "city: Rome, letter: d", "D"),
        ([7, r"letter: (\w)"], "letter: d", "D"),
        (r"(", r"\boxed{B}", "B"),
        (r"city: (\w+)", r"city: Rome \boxed{B}", "B"),
        (r"(x?)", r"\boxed{B}", "B"),
        (7, r"\boxed{B}", "B"),
        ([], r"\boxed{B}", "B"),
    ],
)
def test_output_regex_comes_first(pattern: object, text: str, letter: str) -> None:
    assert extracted(text, STRICT, output_regex=pattern) == letter


def test_a_pattern_that_does_not_finish_is_no_match(caplog: pytest.LogCaptureFixture) -> None:
    begin = time.monotonic()
    with caplog.at_level(logging.WARNING):
        assert extracted("a" * 60 + "!" + r"\boxed{B}", STRICT, output_regex=[r"(a+)+$"]) == "B"
    assert time.monotonic() - begin < TIME_LIMIT + 2
    assert "(a+)+$" in caplog.text


def test_the_time_limit_puts_back_the_timer_and_handler_of_others() -> None:
    def others(_signal: int, _frame: object) -> None: ...

    handler = signal.signal(signal.SIGALRM, others)
    delay, interval = signal.setitimer(signal.ITIMER_REAL, 30, 7)
    try:
        assert last_capture("b", "abc") == "b"
        left, repeat = signal.getitimer(signal.ITIMER_REAL)
        assert 25 < left <= 30 and repeat == 7
        assert signal.getsignal(signal.SIGALRM) is others
    finally:
        signal.setitimer(signal.ITIMER_REAL, delay, interval)
        signal.signal(signal.SIGALRM, handler)


def test_patterns_work_outside_the_main_thread() -> None:
    results: list[str | None] = []
    thread = threading.Thread(target=lambda: results.append(last_capture("<(.)>", "<A> <B>")))
    thread.start()
    thread.join()
    assert results == ["B"]


def test_options_that_cannot_be_chosen() -> None:
    options = [{"a": "one"}, {"B": None}, {"1": "two"}, {"CC": "three"}, {"D": ""}]
    assert allowed_options(options) == {"A": "one", "D": ""}
    assert extract_answer(r"\boxed{B}", options, STRICT) is None
    assert extract_answer(r"\boxed{A}", options, STRICT) == "A"
    assert extract_answer(r"\boxed{thing one}", options, BOXED) == "A"
    assert extract_answer(r"\boxed{A}", None, STRICT) is None
    assert extract_answer("", OPTIONS, COLON) is None
    assert extract_answer("\n ", OPTIONS, COLON, {"output_regex": r"\s"}) is None


def test_braces_are_counted() -> None:
    assert last_box(r"\boxed{\frac{1}{2}} and \boxed{a{b}c} d}") == "a{b}c"


texts = st.text() | st.lists(
    st.sampled_from(
        [r"\boxed{", "}", "{", r"\text{", "Answer:", "answer: ", "**", "A", "b", " or ", "/", ", ", "\n", "Paris", "ب", "(", ")"]
    )
).map("".join)
option_lists = st.none() | st.lists(
    st.dictionaries(st.sampled_from("ABCDe1") | st.text(max_size=2), st.none() | st.text(max_size=8), max_size=2)
)


@given(texts, option_lists, st.sampled_from(MODES), st.none() | st.text(max_size=5))
def test_any_text_gives_an_allowed_letter_or_none(
    text: str, options: list[dict[str, str | None]] | None, mode: GradingMode, prefix: str | None
) -> None:
    letter = extract_answer(text, options, mode, {"answer_prefix": prefix})
    assert letter is None or letter in allowed_options(options)


@settings(deadline=None)
@given(texts, st.text(alphabet=r"()[]{}\\|*+?.^$abAB<>wds1,", max_size=12), st.sampled_from(MODES))
def test_any_pattern_gives_a_letter_or_none(text: str, pattern: str, mode: GradingMode) -> None:
    letter = extract_answer(text, OPTIONS, mode, {"output_regex": pattern})
    assert letter is None or (len(letter.lower()) >= 1 and letter == letter.upper())


@given(st.sampled_from("ABCD"), st.text(alphabet=" \n.*()[]:"))
def test_every_mode_reads_its_own_plain_form(letter: str, noise: str) -> None:
    assert extract_answer(rf"{noise}\boxed{{{letter}}}{noise}", OPTIONS, STRICT) == letter
    assert extract_answer(rf"{noise}\boxed{{{letter}}}{noise}", OPTIONS, BOXED) == letter
    assert extract_answer(f"{noise}\nAnswer: {letter}\n{noise}", OPTIONS, COLON) == letter
    assert extract_answer(f"{noise}\nAnswer: {letter}\n{noise}", OPTIONS, MARKDOWN) == letter


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "piece",
    [
        r"\boxed{",
        r"\text{",
        r"\boxed{\text{",
        "}",
        "answer:",
        "answer ",
        "answer:\n",
        "Answer: A or ",
        "A, ",
        "*_",
        " \t",
        "Answer: Paris ",
    ],
)
def test_time_is_bounded_on_hostile_text(piece: str, mode: GradingMode) -> None:
    text = (piece * (200_000 // len(piece))) + "answer: " + "}" * 100
    begin = time.process_time()
    extract_answer(text, OPTIONS, mode, {"answer_prefix": "The answer is"})
    assert time.process_time() - begin < 4
