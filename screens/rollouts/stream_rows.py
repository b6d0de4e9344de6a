"""The rows of the two streams: what has finished, newest first, and what is in flight, longest first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from backend.rollouts.run_progress_parts import Finished, InFlight
from screens.widgets import glyphs
from screens.widgets.columns import Column
from screens.widgets.formatting import age, count, score, short_time
from screens.widgets.virtual_list import Cell, Row

FINISHED_COLUMNS = (
    Column("task", "TASK", 6, right=True),
    Column("rollout", "REP", 3, right=True),
    Column("reward", "REWARD", 6, right=True),
    Column("turns", "TURNS", 5, right=True, keep=1),
    Column("tokens", "OUT TOK", 7, right=True, keep=3),
    Column("time", "TIME", 7, right=True, keep=4),
    Column("end", "END", 9, keep=2),
    Column("preview", "PREVIEW", least=12),
)
IN_FLIGHT_COLUMNS = (
    Column("task", "TASK", 5, right=True),
    Column("rollout", "REP", 3, right=True),
    Column("stage", "STAGE", least=13),
    Column("server", "SERVER", 14, keep=1),
    Column("for", "FOR", 7, right=True),
    Column("sign", "SIGN", 6, right=True, keep=2),
)

QUIET_SECONDS = 60
"""Without a sign of life for longer, a rollout stands out."""


class Preview:
    """What only the record tells: number of turns, how it ended, the beginning of the answer."""

    __slots__ = ("end", "text", "turns")

    def __init__(self, turns: int | None, end: str, text: str) -> None:
        self.turns = turns
        self.end = end
        self.text = text


class FinishedRows:
    """Finished rollouts; `preview` gives what is known of a record, and asks for it where it is not."""

    def __init__(self, lines: Sequence[Finished], preview: Callable[[Finished], Preview | None]) -> None:
        self.lines = lines
        self._preview = preview
        self._index: dict[Hashable, int] | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def row(self, index: int) -> Row:
        line = self.lines[index]
        signs = glyphs.current()
        failed = line.failure is not None
        known = None if failed else self._preview(line)
        attempt = f" (attempt {line.attempt + 1})" if line.attempt else ""
        if failed:
            end, text = line.failure or "", f"{line.failure}: {line.reason}" if line.reason else line.failure or ""
        else:
            end, text = (known.end, known.text) if known else ("", signs.ellipsis)
        turns = str(known.turns) if known is not None and known.turns is not None else signs.nothing
        cells = (
            str(line.task),
            str(line.rollout),
            Cell(score(line.reward), _reward_style(line.reward)),
            turns,
            count(line.output_tokens),
            short_time(line.seconds),
            Cell(end, "bad" if failed else "muted"),
            Cell(text + attempt, "bad" if failed else "plain"),
        )
        return Row(cells, sign=signs.failed if failed else "", sign_style="bad")

    def key(self, index: int) -> Hashable:
        line = self.lines[index]
        return line.task, line.rollout

    def index_of(self, key: Hashable) -> int | None:
        if self._index is None:
            self._index = {(line.task, line.rollout): index for index, line in enumerate(self.lines)}
        return self._index.get(key)


class InFlightRows:
    """Rollouts on their way, with their stage and how long ago they gave a sign of life."""

    def __init__(self, lines: Sequence[InFlight]) -> None:
        self.lines = lines

    def __len__(self) -> int:
        return len(self.lines)

    def row(self, index: int) -> Row:
        line = self.lines[index]
        stage = line.stage or "sent"
        again = f" (attempt {line.attempt + 1})" if line.attempt else ""
        quiet = Cell(age(line.last_sign_seconds), "warn" if line.last_sign_seconds > QUIET_SECONDS else "muted")
        return Row(
            (str(line.task), str(line.rollout), f"{stage}{again}", Cell(line.detail, "muted"), short_time(line.seconds), quiet)
        )

    def key(self, index: int) -> Hashable:
        line = self.lines[index]
        return line.task, line.rollout

    def index_of(self, key: Hashable) -> int | None:
        return next((index for index, line in enumerate(self.lines) if (line.task, line.rollout) == key), None)


def _reward_style(reward: float | None) -> str:
    if reward is None:
        return "muted"
    return "good" if reward >= 1 else "bad" if reward <= 0 else "warn"
