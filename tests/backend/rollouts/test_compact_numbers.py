"""The compact map behaves as a dict of first appearances."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backend.rollouts.compact_numbers import CompactNumbers

keys = st.integers(min_value=0, max_value=(1 << 64) - 1) | st.integers(min_value=0, max_value=40)


@given(st.lists(keys, max_size=300), st.lists(keys, max_size=20))
def test_as_a_dict(added: list[int], asked: list[int]) -> None:
    numbers = CompactNumbers()
    expected: dict[int, int] = {}
    for key in added:
        is_new = key not in expected
        assert numbers.add(key) == (expected.setdefault(key, len(expected)), is_new)
    assert len(numbers) == len(expected)
    for key in (*added, *asked):
        assert numbers.get(key) == expected.get(key)
        assert (key in numbers) == (key in expected)


def test_growth_and_negative_keys() -> None:
    numbers = CompactNumbers()
    for key in range(-5000, 5000):
        numbers.add(key * 7919)
    assert len(numbers) == 10_000
    assert numbers.get(-5000 * 7919) == 0
    assert numbers.get(4999 * 7919) == 9999
