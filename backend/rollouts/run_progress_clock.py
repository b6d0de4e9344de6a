"""Time as the events of a run tell it, and how fast rollouts finish."""

from __future__ import annotations

from array import array

_SECONDS = 300


class Timeline:
    """Times that never go back: a step of the system's clock towards the past is taken out of all later times.

    Times in are seconds since the epoch; times out are the same until the first such step.
    """

    def __init__(self) -> None:
        self.latest = 0.0
        self._correction = 0.0

    def advance(self, at: float) -> float:
        """The time of an event that was said at `at`."""
        corrected = at + self._correction
        if corrected < self.latest:
            self._correction += self.latest - corrected
        else:
            self.latest = corrected
        return self.latest

    @property
    def latest_said(self) -> float:
        """The time of the latest event as it was said: what `now` takes to mean `latest`."""
        return self.latest - self._correction

    def past(self, at: float) -> float:
        """A time that some event names, not later than that event."""
        return min(at + self._correction, self.latest)

    def now(self, now: float) -> float:
        """The present, not earlier than the latest event."""
        return max(now + self._correction, self.latest)


class RateMeter:
    """Counts per second of the last 300 seconds."""

    def __init__(self) -> None:
        self._counts = array("L", bytes(array("L").itemsize * _SECONDS))
        self._second = 0

    def add(self, at: float) -> None:
        """Something happened; times ascend."""
        second = int(at)
        for passed in range(max(self._second + 1, second - _SECONDS + 1), second + 1):
            self._counts[passed % _SECONDS] = 0
        self._second = max(self._second, second)
        self._counts[self._second % _SECONDS] += 1

    def count(self, now: float, seconds: int) -> int:
        """How often in the last `seconds` (at most 300), the running one included."""
        return sum(self._at(second) for second in range(int(now) - seconds + 1, int(now) + 1))

    def series(self, now: float, width: int = 5) -> list[float]:
        """Per second, in steps of `width` seconds that are over, oldest first, together 300 seconds."""
        end = int(now) // width * width
        return [
            sum(map(self._at, range(begin, begin + width))) / width
            for begin in range(end - _SECONDS // width * width, end, width)
        ]

    def _at(self, second: int) -> int:
        return self._counts[second % _SECONDS] if self._second - _SECONDS < second <= self._second else 0
