"""Scores as the screens write them."""

from __future__ import annotations

import pytest

from backend.rollouts.run_entry import Headline
from screens.widgets.scores import score_text


@pytest.mark.parametrize(
    ("headline", "text"),
    [
        (None, "—"),
        (Headline("reward/mean", 0.36111, "0-1", 0.25981, 0.47647), "0.361 [0.26, 0.48]"),
        (Headline("pass@1/accuracy", 36.111, "0-100", 25.98, 47.64), "36.1% [26, 48]"),
        (Headline("reward/mean", 1234.5, "raw"), "1234"),
        (Headline("reward/mean", 0.5, "0-1", final=False), "0.500 so far"),
    ],
)
def test_scores_come_with_their_interval(headline: Headline | None, text: str) -> None:
    assert score_text(headline) == text
