"""Finding a text in the blocks of a document, a piece at a time."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from backend.io.text import clean, clean_line
from screens.widgets.text_blocks import TextBlock
from screens.widgets.wrapping import PIECE, clean_pieces

MOST_HITS = 50_000
"""Nobody walks through more; the search stops there and says so."""
_BLOCK_COST = 800
_SLOW = 4
"""How many times as long a character beyond ASCII takes."""


class Hit(NamedTuple):
    """Where the text was found: a block, and characters of its clean body, or of its head."""

    block: int
    in_body: bool
    start: int
    end: int


class Search:
    """The hits of one pattern, in the order of the document. Plain text; case counts only when the pattern has a capital letter."""

    def __init__(self, blocks: Sequence[TextBlock], pattern: str) -> None:
        self.pattern = clean(pattern, tab_width=1)
        self.hits: list[Hit] = []
        self.finished = not self.pattern
        self.current: int | None = None
        """The index of the hit that was jumped to last."""
        self._find = _finder(self.pattern)
        self._resumed: Hit | None = None
        self._steps = self._run(blocks)

    @property
    def cut(self) -> bool:
        """Whether there are more hits than are counted."""
        return len(self.hits) >= MOST_HITS

    def again(self, blocks: Sequence[TextBlock]) -> Search:
        """The same search in other blocks; the current hit stays the current one if it is found again."""
        search = Search(blocks, self.pattern)
        search._resumed = self._resumed if self.current is None else self.hits[self.current]
        return search

    def step(self, budget: int) -> int:
        """Search on until about `budget` is spent (in characters of ASCII); returns what was spent."""
        spent = 0
        while not self.finished and spent < budget:
            cost = next(self._steps, None)
            if cost is None or self.cut:
                self.finished = True
            spent += cost or 0
        if self._resumed is not None and self.current is None:
            at = bisect_left(self.hits, self._resumed)
            if at < len(self.hits) and self.hits[at] == self._resumed:
                self.current = at
        return spent

    def within(self, index: int, in_body: bool, start: int, end: int) -> list[tuple[int, Hit]]:
        """The hits, with their numbers, that touch some characters of a block."""
        first = bisect_left(self.hits, Hit(index, in_body, start - len(self.pattern) + 1, 0))
        last = bisect_right(self.hits, Hit(index, in_body, end, 0))
        return [(number, self.hits[number]) for number in range(first, last)]

    def has_hits(self, index: int) -> bool:
        """Whether a block's body has hits."""
        at = bisect_left(self.hits, Hit(index, True, 0, 0))
        return at < len(self.hits) and self.hits[at].block == index

    def step_to(self, forward: bool, origin: Hit) -> int | None:
        """The number of the hit to jump to: the one after (or before) the current one, at first the one nearest to `origin`; goes round."""
        if not self.hits:
            return None
        if self.current is not None:
            self.current += 1 if forward else -1
        else:
            at = bisect_left(self.hits, origin)
            self.current = at if forward else at - 1
        self.current %= len(self.hits)
        return self.current

    def _run(self, blocks: Sequence[TextBlock]) -> Iterator[int]:
        for index, block in enumerate(blocks):
            if not block.no_head:
                head = clean_line(block.head)
                for start, end in self._find(head, 0):
                    self.hits.append(Hit(index, False, start, end))
            yield _BLOCK_COST + len(block.head)
            yield from self._run_body(index, block.body)

    def _run_body(self, index: int, body: str) -> Iterator[int]:
        carried, base, overlap = "", 0, len(self.pattern) - 1
        for piece in clean_pieces(body, PIECE):
            text = carried + piece
            begin = 0
            for start, end in self._find(text, 0):
                self.hits.append(Hit(index, True, base + start, base + end))
                begin = end
                if self.cut:
                    return
            kept = max(begin, len(text) - overlap)
            carried, base = text[kept:], base + kept
            yield len(text) * (1 if text.isascii() else _SLOW)


def _finder(pattern: str) -> Callable[[str, int], Iterator[tuple[int, int]]]:
    exact = pattern != pattern.lower()
    expression = re.compile(re.escape(pattern), 0 if exact else re.IGNORECASE)

    def find(text: str, begin: int) -> Iterator[tuple[int, int]]:
        if not (exact or text.isascii()):
            yield from (found.span() for found in expression.finditer(text, begin))
            return
        text = text if exact else text.lower()
        at = text.find(pattern, begin)
        while at >= 0:
            yield at, at + len(pattern)
            at = text.find(pattern, at + len(pattern))

    return find
