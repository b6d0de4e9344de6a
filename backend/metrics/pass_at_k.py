"""pass@k, averages of the first k attempts, and majority@k, over tasks with any number of attempts each.

All values are percentages, except for `avg_sample_std_dev`, which stays on the scale of the scores. Work grows with the number of
attempts, not with attempts times k: every k is computed from running values.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from backend.metrics.descriptive import as_number, mean, sample_std

ScoreFunction = Callable[[dict[str, Any]], Mapping[str, Any]]
Tasks = Sequence[Sequence[dict[str, Any]]]
ScoreDicts = list[list[dict[str, float]]]

NO_ANSWER = "no_answer"
PER_SAMPLE_KEY = "per_sample_aggregate"
_BINARY = frozenset({0.0, 1.0})
STATISTIC_SUFFIXES = ("/std_dev_across_runs", "/std_err_across_runs", "/avg_sample_std_dev")


def compute_pass_majority_metrics(
    tasks: Tasks, score_fn: ScoreFunction | None = None, answer_key: str | None = None
) -> tuple[dict[str, Any], ScoreDicts, list[str], int]:
    """pass@k, pass@1[avg-of-k] and, with `answer_key`, majority@k for k from 1 to the longest task.

    `tasks` holds the attempts of each task in order, `score_fn` gives an attempt's scores by name (default: `accuracy`, its
    reward), `answer_key` names the field with the extracted answer and adds the score `no_answer`. Returns the metrics, the scores
    of every attempt, the sorted score names and the largest k. A score that is missing, null or not finite is left out, with one
    warning that says how many were.
    """
    score_dicts = _score_all(tasks, score_fn, answer_key)
    names = sorted({name for task in score_dicts for scores in task for name in scores})
    max_k = max(map(len, tasks), default=0)
    if not max_k:
        return {}, score_dicts, names, max_k
    curves = {name: _curves(name, score_dicts, tasks, answer_key) for name in names}
    metrics: dict[str, Any] = {}
    for k in range(1, max_k + 1):
        for name in names:
            for label, curve in curves[name].items():
                value = curve[k - 1]
                if value is not None:
                    metrics[f"{label.format(k=k)}/{name}"] = 100 * value
    samples = {name: _per_sample(name, score_dicts, max_k) for name in names}
    metrics[PER_SAMPLE_KEY] = samples
    for k in range(2, max_k + 1):
        for name in names:
            runs = samples[name][:k]
            if len(runs) >= 2:
                key, deviation = f"pass@1[avg-of-{k}]/{name}", sample_std(runs)
                metrics[f"{key}/std_dev_across_runs"] = deviation
                metrics[f"{key}/std_err_across_runs"] = deviation / math.sqrt(len(runs))
    return metrics, score_dicts, names, max_k


def add_avg_sample_std_dev(metrics: dict[str, Any], all_score_dicts: ScoreDicts, score_names: Iterable[str], max_k: int) -> None:
    """Add `pass@1[avg-of-k]/<score>/avg_sample_std_dev` for k from 2 to `max_k`, in place.

    The mean, over tasks with at least two scores among their first k attempts, of the sample standard deviation of these scores; on
    the scale of the scores, not in percent.
    """
    for name in score_names:
        curve = _mean_over_tasks([_running_std(name, task) for task in all_score_dicts], max_k)
        for k in range(2, max_k + 1):
            value = curve[k - 1]
            if value is not None:
                metrics[f"pass@1[avg-of-{k}]/{name}/avg_sample_std_dev"] = value


def compute_subset_metrics(
    tasks: Tasks, subset_key: str, score_fn: ScoreFunction | None = None, answer_key: str | None = None
) -> dict[str, Any]:
    """The metrics of `compute_pass_majority_metrics` per subset, as `<subset>/<metric>`, without the per-sample lists.

    A task belongs to the subset that its first attempt names in `subset_key`; tasks without one are left out.
    """
    subsets: dict[str, list[Sequence[dict[str, Any]]]] = {}
    for task in tasks:
        subset = task[0].get(subset_key) if task else None
        if subset:
            subsets.setdefault(str(subset), []).append(task)
    result: dict[str, Any] = {}
    for subset, members in subsets.items():
        metrics = compute_pass_majority_metrics(members, score_fn, answer_key)[0]
        result.update((f"{subset}/{key}", value) for key, value in metrics.items() if key != PER_SAMPLE_KEY)
    return result


def highest_k_metrics(
    agent_metrics: Mapping[str, Any],
    pattern: str,
    score_names: Iterable[str] | None = None,
    exclude_names: Iterable[str] | None = None,
) -> dict[str, Any]:
    """The metrics `<pattern>/<score>` at the highest k there is, where `pattern` holds `{k}`, as in `pass@1[avg-of-{k}]`.

    Spreads of a metric (`…/std_dev_across_runs` and the like) are not scores. The filters by score name apply before the highest k
    is looked for.
    """
    before, placeholder, after = pattern.partition("{k}")
    if not placeholder:
        raise ValueError(f"the pattern {pattern!r} has no {{k}} in it")
    shape = re.compile(rf"{re.escape(before)}(?P<k>\d+){re.escape(after)}/(?P<score>.+)")
    wanted = None if score_names is None else set(score_names)
    unwanted = set(exclude_names or ())
    found: dict[int, dict[str, Any]] = {}
    for key, value in agent_metrics.items():
        match = shape.fullmatch(key)
        if match is None or key.endswith(STATISTIC_SUFFIXES):
            continue
        score = match["score"]
        if score not in unwanted and (wanted is None or score in wanted):
            found.setdefault(int(match["k"]), {})[key] = value
    return found[max(found)] if found else {}


def pass_at_k(values: Sequence[float], k: int) -> float | None:
    """One task's pass@k (0-1 for scores of 0 and 1) from all its scores; None with fewer than k of them.

    See `compute_pass_majority_metrics` for many tasks and every k.
    """
    numbers = [float(number) for value in values if (number := as_number(value)) is not None]
    return _pass_curve([numbers], k)[k - 1] if len(numbers) >= k else None


def _score_all(tasks: Tasks, score_fn: ScoreFunction | None, answer_key: str | None) -> ScoreDicts:
    dropped = 0
    result: ScoreDicts = []
    for task in tasks:
        scored = []
        for attempt in task:
            scores, complete = _scores_of(attempt, score_fn)
            dropped += not complete
            if answer_key is not None:
                scores[NO_ANSWER] = 1.0 if attempt.get(answer_key) is None else 0.0
            scored.append(scores)
        result.append(scored)
    if dropped:
        total = sum(map(len, tasks))
        warnings.warn(f"{dropped} of {total} rollouts have no usable score; they are left out of pass@k", stacklevel=3)
    return result


def _scores_of(attempt: dict[str, Any], score_fn: ScoreFunction | None) -> tuple[dict[str, float], bool]:
    """The finite scores of one attempt, and whether nothing was wrong with any."""
    reward = as_number(attempt.get("reward"))
    if score_fn is None:
        return ({}, False) if reward is None else ({"accuracy": float(reward)}, True)
    try:
        raw = score_fn(attempt)
    except Exception:
        # Score functions index `reward` directly. Without a usable reward that is the record's fault, else it is theirs.
        if reward is None:
            return {}, False
        raise
    scores = {name: float(number) for name, value in raw.items() if (number := as_number(value)) is not None}
    return scores, len(scores) == len(raw)


def _curves(name: str, score_dicts: ScoreDicts, tasks: Tasks, answer_key: str | None) -> dict[str, list[float | None]]:
    """The values over k = 1, 2, … of each family of metrics, by the template of its key."""
    max_k = max(map(len, tasks))
    curves: dict[str, list[float | None]] = {
        "pass@{k}": _pass_curve([[scores[name] for scores in task if name in scores] for task in score_dicts], max_k),
        "pass@1[avg-of-{k}]": _mean_over_tasks([_running_mean(name, task) for task in score_dicts], max_k),
    }
    if answer_key is not None:
        votes = [_running_majority(name, *pair, answer_key) for pair in zip(score_dicts, tasks, strict=True)]
        curves["majority@{k}"] = _mean_over_tasks(votes, max_k)
    return curves


def _pass_curve(tasks: list[list[float]], max_k: int) -> list[float | None]:
    """Mean over tasks with at least k scores of the chance that the best of k attempts passes.

    For scores of 0 and 1 the unbiased estimate 1 - C(n - c, k) / C(n, k) over all n attempts, c of them right: Chen et al.,
    "Evaluating Large Language Models Trained on Code" (2021), section 2.1. For other scores the maximum of the first k.
    """
    terms: list[list[float]] = [[] for _ in range(max_k)]
    weights: list[int] = [0] * max_k
    binary: Counter[tuple[int, int]] = Counter()
    for values in tasks:
        if _BINARY.issuperset(values):
            binary[len(values), values.count(1.0)] += 1
            continue
        best = -math.inf
        for position, value in enumerate(values[:max_k]):
            best = max(best, value)
            terms[position].append(best)
            weights[position] += 1
    for (count, right), how_many in binary.items():
        all_wrong = 1.0
        for k in range(1, min(count, max_k) + 1):
            # C(w, k) / C(n, k) from its predecessor.
            all_wrong *= max(count - right - k + 1, 0) / (count - k + 1)
            terms[k - 1].append(how_many * (1.0 - all_wrong))
            weights[k - 1] += how_many
    return [math.fsum(values) / weight if weight else None for values, weight in zip(terms, weights, strict=True)]


def _mean_over_tasks(curves: list[list[float | None]], max_k: int) -> list[float | None]:
    """Mean over tasks of each task's running value at k; a task with fewer attempts keeps its last value."""
    running: list[list[float]] = [[] for _ in range(max_k)]
    ended: list[list[float]] = [[] for _ in range(max_k + 1)]
    for curve in curves:
        for position, value in enumerate(curve):
            if value is not None:
                running[position].append(value)
        last = curve[-1] if curve else None
        if last is not None:
            ended[len(curve)].append(last)
    result: list[float | None] = []
    carried, carried_count = 0.0, 0
    for position in range(max_k):
        carried += math.fsum(ended[position])
        carried_count += len(ended[position])
        count = len(running[position]) + carried_count
        result.append((math.fsum(running[position]) + carried) / count if count else None)
    return result


def _running_mean(name: str, task: list[dict[str, float]]) -> list[float | None]:
    total, count = 0.0, 0
    curve: list[float | None] = []
    for scores in task:
        if name in scores:
            total += scores[name]
            count += 1
        curve.append(total / count if count else None)
    return curve


def _running_std(name: str, task: list[dict[str, float]]) -> list[float | None]:
    """Sample standard deviation of the scores among the first k attempts, None below two of them (Welford's recurrence)."""
    count, centre, squares = 0, 0.0, 0.0
    curve: list[float | None] = []
    for scores in task:
        if name in scores:
            value = scores[name]
            count += 1
            difference = value - centre
            centre += difference / count
            squares += difference * (value - centre)
        curve.append(math.sqrt(squares / (count - 1)) if count >= 2 else None)
    return curve


def _running_majority(
    name: str, scored: list[dict[str, float]], task: Sequence[dict[str, Any]], answer_key: str
) -> list[float | None]:
    """Score of the most frequent (answer, score) pair among the first k attempts, tied pairs averaged, 0 without any answer."""
    votes: dict[tuple[Any, float], int] = {}
    most, tied, tied_sum = 0, 1, 0.0
    curve: list[float | None] = []
    for scores, attempt in zip(scored, task, strict=True):
        answer = attempt.get(answer_key)
        if answer is not None and name in scores:
            pair = (_comparable(answer), scores[name])
            votes[pair] = count = votes.get(pair, 0) + 1
            if count > most:
                most, tied, tied_sum = count, 1, scores[name]
            elif count == most:
                tied, tied_sum = tied + 1, tied_sum + scores[name]
        curve.append(tied_sum / tied)
    return curve


def _per_sample(name: str, score_dicts: ScoreDicts, max_k: int) -> list[float]:
    """Percent mean over tasks of attempt 0, 1, …; attempts that no task has a score for are skipped."""
    columns: list[list[float]] = [[] for _ in range(max_k)]
    for task in score_dicts:
        for position, scores in enumerate(task):
            if name in scores:
                columns[position].append(scores[name])
    return [100 * mean(column) for column in columns if column]


def _comparable(answer: Any) -> Any:
    """`answer`, or its JSON text when it is a list or an object: votes are counted by equality."""
    try:
        hash(answer)
    except TypeError:
        return "json", json.dumps(answer, sort_keys=True, default=repr)
    return answer
