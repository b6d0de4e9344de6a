"""The t quantile, against printed tables and at the seam of its two methods."""

from __future__ import annotations

from itertools import pairwise

import pytest

from backend.metrics.student_t import t_quantile_975


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [
        (1, 12.7062047361747),
        (2, 4.30265272974946),
        (3, 3.18244630528371),
        (4, 2.77644510519779),
        (5, 2.57058183563631),
        (9, 2.2621571627982),
        (10, 2.22813885198627),
        (29, 2.04522964213270),
        (30, 2.04227245630124),
        (100, 1.98397151852356),
    ],
)
def test_printed_values(degrees: int, quantile: float) -> None:
    assert t_quantile_975(degrees) == pytest.approx(quantile, rel=1e-12)


def test_it_falls_towards_the_normal_quantile_without_a_jump() -> None:
    values = [t_quantile_975(degrees) for degrees in range(1, 1500)]
    assert all(later < earlier for earlier, later in pairwise(values))
    step, next_step = values[998] - values[999], values[999] - values[1000]
    assert next_step == pytest.approx(step, rel=0.01)
    assert t_quantile_975(10**9) == pytest.approx(1.959963984540054, abs=1e-8)


def test_no_degrees_of_freedom() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        t_quantile_975(0)
