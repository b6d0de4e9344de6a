"""Scores as the screens write them."""

from __future__ import annotations

from collections.abc import Callable

from backend.metrics.headline import PERCENT, RAW
from backend.rollouts.run_entry import Headline
from screens.widgets import glyphs

_Form = Callable[[float], str]


def score_text(headline: Headline | None) -> str:
    """A score with its interval: `0.361 [0.26, 0.48]`, in percent `36.1% [26, 48]`; one that is not final `0.361 so far`."""
    if headline is None:
        return glyphs.current().nothing
    number, bound = (
        _percent_forms() if headline.scale == PERCENT else _raw_forms() if headline.scale == RAW else _fraction_forms()
    )
    text = number(headline.value)
    if not headline.final:
        return f"{text} so far"
    if headline.low is None or headline.high is None:
        return text
    return f"{text} [{bound(headline.low)}, {bound(headline.high)}]"


def _fraction_forms() -> tuple[_Form, _Form]:
    return lambda value: f"{value:.3f}", lambda value: f"{value:.2f}"


def _percent_forms() -> tuple[_Form, _Form]:
    return lambda value: f"{value:.1f}%", lambda value: f"{value:.0f}"


def _raw_forms() -> tuple[_Form, _Form]:
    return lambda value: f"{value:.4g}", lambda value: f"{value:.3g}"
