"""Lines of logs: times, levels, filters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from screens.servers.log_lines import LogFilter, LogLine, LogParser

NOW = 1_795_000_000.0
"""2026-11-18 11:06:40 UTC."""


def parse(*lines: str, arrived: bool = False) -> list[LogLine]:
    return LogParser().parse(lines, NOW, arrived=arrived)


@pytest.mark.parametrize(
    ("text", "seconds_before", "clock", "rest"),
    [
        ("2026-11-18 11:06:10,447 ERROR no", 29.553, "11:06:10.447", "ERROR no"),
        ("2026-11-18T11:06:10Z INFO yes", 30.0, "11:06:10", "INFO yes"),
        ("2026-11-18T13:06:10.5+02:00 INFO yes", 29.5, "13:06:10.5", "INFO yes"),
        ("2026-11-18 11:06:10.123456 x", 29.876544, "11:06:10.123", "x"),
        ("[11:06:10] x", 30.0, "11:06:10", "x"),
        ("INFO 11:06:10 x", 30.0, "11:06:10", "INFO 11:06:10 x"),
        ("23:00:00 of yesterday", 43_600.0, "23:00:00", "of yesterday"),
    ],
)
def test_times_are_found(text: str, seconds_before: float, clock: str, rest: str) -> None:
    (line,) = parse(text)
    assert line.at is not None
    assert NOW - line.at == pytest.approx(seconds_before, abs=1e-3)
    assert line.clock == clock
    assert line.with_time() == f"{clock:<12} {rest}"


@pytest.mark.parametrize(
    "text", ["", "no time", "99:99:99 x", "2026-13-45 11:00:00 x", "started at a place that is far away 11:06:10"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    (line,) = parse(text)
    assert line.at is None
    assert line.with_time() in (f"{'':<12} {text}".rstrip(), f"{line.clock:<12} {text[line.rest :]}".rstrip())


def test_lines_that_have_just_come_have_the_time_of_their_arrival() -> None:
    first, second = parse("INFO: hello", "   more", arrived=True)
    assert (first.at, first.clock, second.at, second.clock) == (NOW, "11:06:40", NOW, "")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ERROR:    Application startup failed", "error"),
        ('{"level": "error", "msg": 1}', "error"),
        ("level=warning msg=slow", "warning"),
        ('INFO:     127.0.0.1:1 - "POST /verify HTTP/1.1" 500 Internal Server Error', "error"),
        ('INFO:     127.0.0.1:1 - "POST /verify HTTP/1.1" 200 OK', "plain"),
        ("ValueError: no", "error"),
        ("json.decoder.JSONDecodeError: no", "error"),
        ("KeyboardInterrupt", "error"),
        ("no errors were found, 0 error", "plain"),
        ("app.py:3: DeprecationWarning: old", "warning"),
        ("WARNING  slow", "warning"),
    ],
)
def test_levels(text: str, kind: str) -> None:
    assert parse(text)[0].kind == kind


def test_a_traceback_belongs_to_its_error() -> None:
    lines = parse(
        "INFO: fine", "Traceback (most recent call last):", '  File "app.py", line 3, in run', "    1 / 0", "ZeroDivisionError: no", "",
        "During handling of the above exception, another exception occurred:", "", "Traceback (most recent call last):",
        "  File", "my.own.Problem", "INFO: fine again",
    )  # fmt: skip
    assert [line.kind for line in lines] == ["plain", *["error"] * 10, "plain"]


def test_colours_are_taken_away_and_nothing_else() -> None:
    (line,) = parse("\x1b[1;31mERROR\x1b[0m \x1b]0;title\x07 x")
    assert line.text == "ERROR \x1b]0;title\x07 x"
    assert line.kind == "error"


def test_filters() -> None:
    lines = parse("11:06:10 INFO POST /verify", "11:00:00 ERROR Post /run", "   its detail", "POST untimed")
    texts = [line.text for line in lines]

    def chosen(**parts: object) -> list[int]:
        return [texts.index(line.text) for line in LogFilter(**parts).chosen(lines, NOW)]  # type: ignore[arg-type]

    assert chosen() == [0, 1, 2, 3]
    assert chosen(only_errors=True) == [1, 2]
    assert chosen(words="post") == [0, 1, 3]
    assert chosen(words="POST") == [0, 3]
    assert chosen(words="post -verify -untimed") == [1]
    assert chosen(words=" - ") == []
    assert chosen(seconds=60) == [0]
    assert chosen(seconds=900) == [0, 1, 2, 3]
    assert LogFilter().passes_all and not LogFilter("x").passes_all and LogFilter("  ").passes_all


@given(st.lists(st.text(max_size=60), max_size=20), st.booleans())
def test_every_line_stays_a_line(lines: list[str], arrived: bool) -> None:
    parsed = LogParser().parse(lines, NOW, arrived=arrived)
    assert len(parsed) == len(lines)
    for raw, line in zip(lines, parsed, strict=True):
        assert "\x1b[" in raw or line.text == raw
        assert line.with_time().endswith(line.text[line.rest :].rstrip())


@given(
    st.lists(st.sampled_from(["ERROR a", "  more", "INFO b", "WARN c", "11:06:00 d"]), max_size=20),
    st.text("abcd -ER", max_size=6),
)
def test_a_filter_chooses_in_order_and_nothing_twice(lines: list[str], words: str) -> None:
    parsed = parse(*lines)
    everything = list(LogFilter().chosen(parsed, NOW))
    chosen = list(LogFilter(words, only_errors=True).chosen(parsed, NOW))
    assert everything == parsed
    rest = iter(parsed)
    assert all(any(line is other for other in rest) for line in chosen)


def test_a_long_line_takes_no_time() -> None:
    import time

    began = time.process_time()
    parse(*["a." * 50_000, "ERROR " * 20_000, " " * 100_000, "\x1b[" * 50_000] * 5)
    assert time.process_time() - began < 2
