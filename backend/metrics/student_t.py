"""The 0.975 quantile of Student's t distribution, for two-sided 95 % intervals of a mean."""

from __future__ import annotations

import functools
import math

NORMAL_QUANTILE_975 = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""
_COVERAGE = 0.95
_SERIES_LIMIT = 1000
"""Degrees of freedom up to which the exact series is used; beyond, the expansion's error is below 1e-13."""


@functools.lru_cache(maxsize=4096)
def t_quantile_975(degrees: int) -> float:
    """t such that a t-distributed variable with `degrees` (at least 1) degrees of freedom is below it with probability 0.975.

    Up to 1,000 degrees of freedom Newton's method on the finite series for the central probability, beyond that the expansion in
    powers of 1/degrees: formulas 26.7.3, 26.7.4 and 26.7.5 of Abramowitz and Stegun, "Handbook of Mathematical Functions".
    """
    if degrees < 1:
        raise ValueError(f"degrees of freedom must be at least 1, not {degrees}")
    if degrees > _SERIES_LIMIT:
        return _expansion(degrees)
    # The central probability is concave for t > 0 and the normal quantile lies left of the root: the steps only go right.
    t = NORMAL_QUANTILE_975
    for _ in range(60):
        step = (_COVERAGE - _central_probability(t, degrees)) / (2 * _density(t, degrees))
        t += step
        if abs(step) <= 1e-15 * t:
            break
    return t


def _central_probability(t: float, degrees: int) -> float:
    """P(-t < T < t)."""
    angle = math.atan2(t, math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    if degrees == 1:
        return 2 * angle / math.pi
    odd = degrees % 2
    term = cosine if odd else 1.0
    terms = [term]
    for power in range(2 + odd, degrees - 1, 2):
        term *= (power - 1) / power * cosine * cosine
        terms.append(term)
    total = sine * math.fsum(terms)
    return 2 / math.pi * (angle + total) if odd else total


def _density(t: float, degrees: int) -> float:
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    return math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))


def _expansion(degrees: int) -> float:
    z = NORMAL_QUANTILE_975
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / degrees**power for power, term in enumerate(terms))
