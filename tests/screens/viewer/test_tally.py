"""What rows have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.rollouts.rollout_keys import FROM_FAILURES, SUPERSEDED, RolloutKeys
from screens.viewer import tally
from screens.viewer.repeat_strip import Outcome, outcome_of
from screens.viewer.tally import Tally

Row = tuple[float | None, bool, bool, int]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, -0.5, 0.0, 0.5, 1.0, 1.5]), st.booleans(), st.booleans(),
        st.sampled_from([0, SUPERSEDED, FROM_FAILURES]),
    ),
    max_size=30,
)  # fmt: skip


@given(ROWS, st.integers(0, 30), st.sampled_from([1, 3, 100]))
def test_a_tally_in_steps_of_any_size(rows: list[Row], half: int, piece: int) -> None:
    keys = RolloutKeys()
    for reward, failed, unreadable, flags in rows:
        found = {"reward": reward} | ({"_ng_failure_class": "timeout"} if failed else {})
        keys.append(None if unreadable else found, flags)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "_PIECE", piece)
        counted = Tally(keys).grown(min(half, len(rows))).grown(len(rows))
    drawn = [(outcome_of(reward, failed=failed, unreadable=unreadable), reward or 0.0) for reward, failed, unreadable, _ in rows]
    assert counted.rows == len(rows)
    assert list(counted.unreadable) == [place for place, (outcome, _) in enumerate(drawn) if outcome is Outcome.UNREADABLE]
    assert counted.has_more_than_one == any(outcome is Outcome.FULL and reward > 1 for outcome, reward in drawn)
    assert counted.has_negative == any(outcome is Outcome.NONE and reward < 0 for outcome, reward in drawn)
    assert counted.has_unscored == any(outcome is Outcome.UNKNOWN for outcome, _ in drawn)
