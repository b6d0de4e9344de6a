"""95 % intervals of a mean score. Tasks are what is drawn at random: attempts at one task are not independent of each other."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from backend.metrics.descriptive import as_number, percentile_of_sorted, summarize
from backend.metrics.student_t import NORMAL_QUANTILE_975

RESAMPLES = 2000
SEED = 20_240_601
BOOTSTRAP_TASKS = 4000
"""Most tasks that are resampled, about a second's work. For more, the bootstrap's percentiles are those of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a mean score lies with 95 % confidence, on the scale of the scores."""

    low: float
    high: float
    method: str
    """`wilson`, `bootstrap` or `normal`."""

    def scaled(self, factor: float) -> Interval:
        """The same interval on another scale, for instance in percent."""
        return Interval(self.low * factor, self.high * factor, self.method)


def score_interval(tasks: Iterable[Sequence[float]]) -> Interval | None:
    """The interval of the mean over all scores, given the scores of each task.

    Single scores of 0 or 1 per task, or nothing but 0 or nothing but 1: the Wilson score interval over tasks. Otherwise the
    percentile bootstrap over tasks (2,000 resamples from a fixed seed, so that the same scores always give the same interval); above
    4,000 tasks its limit, the normal interval with the tasks as clusters, cut at 0 and 1 where all scores are between them. Scores
    that are not finite are left out, then tasks without scores. None where nothing can be said: without tasks, or with one task of
    several or graded scores.
    """
    totals, counts = array("d"), array("q")
    single_and_binary = True
    lowest, highest = math.inf, -math.inf
    for task in tasks:
        finite = [score for score in task if as_number(score) is not None]
        if finite:
            totals.append(math.fsum(finite))
            counts.append(len(finite))
            lowest, highest = min(lowest, *finite), max(highest, *finite)
            single_and_binary = single_and_binary and len(finite) == 1 and finite[0] in (0, 1)
    if not totals:
        return None
    # Resampling scores that are all 0, or all 1, would give an interval without width, as if other tasks could not differ.
    if single_and_binary or lowest == highest in (0, 1):
        return wilson(sum(total > 0 for total in totals), len(totals))
    if len(totals) < 2:
        return None
    if len(totals) <= BOOTSTRAP_TASKS:
        return bootstrap(list(zip(totals, counts, strict=True)))
    return within_scale(_clustered_normal(totals, counts), lowest, highest)


def wilson(successes: int, trials: int) -> Interval:
    """The interval of a proportion: Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927)."""
    z2 = NORMAL_QUANTILE_975**2
    share = successes / trials
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    reach = NORMAL_QUANTILE_975 / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    low = 0.0 if successes == 0 else max(0.0, centre - reach)
    high = 1.0 if successes == trials else min(1.0, centre + reach)
    return Interval(low, high, "wilson")


def within_scale(interval: Interval, lowest: float, highest: float) -> Interval:
    """The interval cut at 0 and 1 where the scores, from `lowest` to `highest`, are all between them: no mean lies beyond."""
    if lowest < 0 or highest > 1:
        return interval
    return Interval(max(0.0, interval.low), min(1.0, interval.high), interval.method)


def bootstrap(sums: Sequence[tuple[float, int]]) -> Interval:
    """Percentiles of the resampled means, given the sum and the number of each task's scores.

    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), section 13.3.
    """
    generator = random.Random(SEED)
    count = len(sums)
    if len({size for _, size in sums}) == 1:
        values = [total / size for total, size in sums]
        means = sorted(math.fsum(generator.choices(values, k=count)) / count for _ in range(RESAMPLES))
    else:
        means = sorted(_ratio(generator.choices(sums, k=count)) for _ in range(RESAMPLES))
    return Interval(percentile_of_sorted(means, 0.025), percentile_of_sorted(means, 0.975), "bootstrap")


def _ratio(sums: Sequence[tuple[float, int]]) -> float:
    return math.fsum(map(itemgetter(0), sums)) / sum(map(itemgetter(1), sums))


def _clustered_normal(totals: Sequence[float], counts: Sequence[int]) -> Interval:
    """Linearised variance of a ratio of sums over clusters: Cochran, "Sampling Techniques" (1977), section 6.3."""
    centre = math.fsum(totals) / sum(counts)
    size = sum(counts) / len(counts)
    residuals = summarize(array("d", ((total - centre * count) / size for total, count in zip(totals, counts, strict=True))))
    deviation = (residuals.std if residuals else None) or 0.0
    reach = NORMAL_QUANTILE_975 * deviation / math.sqrt(len(totals))
    return Interval(centre - reach, centre + reach, "normal")
