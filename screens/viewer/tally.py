"""What the rows of a file have in common that titles and the legend tell: which cannot be read, and what rewards there are."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from math import isnan

from backend.rollouts.rollout_keys import UNREADABLE, RolloutKeys

_PIECE = 1 << 14
_UNREADABLE_FLAGS = re.compile(b"[" + b"".join(b"\\x%02x" % flags for flags in range(256) if flags & UNREADABLE) + b"]")


@dataclass(frozen=True, slots=True)
class Tally:
    """Of the first `rows` rows of a file."""

    keys: RolloutKeys
    rows: int = 0
    unreadable: tuple[int, ...] = ()
    """Rows that are no rollout."""
    has_more_than_one: bool = False
    has_negative: bool = False
    has_unscored: bool = False
    """Whether a rollout has neither a reward nor failed."""

    def grown(self, rows: int) -> Tally:
        """The same of more rows; only these are looked at. For threads."""
        unreadable = [*self.unreadable]
        more, negative, unscored = self.has_more_than_one, self.has_negative, self.has_unscored
        for begin in range(self.rows, rows, _PIECE):
            end = min(rows, begin + _PIECE)
            flags = self.keys.flags[begin:end].tobytes()
            unreadable += [begin + found.start() for found in _UNREADABLE_FLAGS.finditer(flags)]
            rewards, failures = self.keys.rewards[begin:end], self.keys.failures[begin:end]
            more = more or _any(rewards, (1.0).__lt__, failures, flags)
            negative = negative or _any(rewards, (0.0).__gt__, failures, flags)
            unscored = unscored or _any(rewards, isnan, failures, flags)
        return Tally(self.keys, max(rows, self.rows), tuple(unreadable), more, negative, unscored)


def _any(rewards: array[float], is_meant: Callable[[float], bool], failures: Iterable[int], flags: bytes) -> bool:
    """Whether a reward that is drawn as one is meant. Most pieces have none: that is found out without a look at the other columns."""
    first = next((place for place, meant in enumerate(map(is_meant, rewards)) if meant), None)
    if first is None:
        return False
    rest = zip(islice(rewards, first, None), islice(failures, first, None), flags[first:], strict=True)
    return any(not failed and not flag & UNREADABLE and is_meant(reward) for reward, failed, flag in rest)
