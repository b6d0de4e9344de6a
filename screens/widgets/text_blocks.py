"""A document of foldable blocks as rows of a width: which block and which of its rows stands at which height. Draws nothing.

Rows of a block: its head (unless it has none), the lines of its body as far as they are shown, and a row that says how many more there are.
Heights of what nobody has looked at yet are estimates; whoever shows rows asks `settle` for them first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import NamedTuple

from rich.segment import Segment

from backend.io.text import clean, clean_line
from screens.widgets.wrapping import WrappedText, estimate_lines

KINDS = ("plain", "system", "user", "assistant", "reasoning", "tool", "result", "error", "warning", "muted")
FIRST_LINES = 200
"""A body above this many lines starts cut."""
MORE_TIMES = 10
COUNTED = 200_000
"""Bodies up to this many characters are wrapped whole, so that what is cut off can be counted."""
INDENT = 2
_BEGINNING = 400
"""What it costs to begin with a block, in the unit of `WrappedText.extend`."""
MARKDOWN_LIMIT = 100_000
MARKDOWN_MARKS_LIMIT = 5_000
UNWRAPPED_WIDTH = 1000
"""Without wrapping, longer lines go on in the next one: no terminal is that wide, and a row stays cheap to draw."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """One part of a document: a head line and a body under it. Texts may be untrusted and of any length."""

    key: Hashable
    """What makes it itself: folds and the cursor follow it when other blocks are set."""
    body: str = ""
    head: str = ""
    head_right: str = ""
    kind: str = "plain"
    """One of `KINDS`."""
    folded: bool = False
    """Whether it starts folded."""
    gutter: str = ""
    """Drawn in front of each line of the body when it is not empty."""
    markdown: bool = False
    no_head: bool = False
    """For logs and raw JSON: no head, no indent, no folding."""
    whole: bool = False
    """Never start cut."""
    rule: bool = False
    """The head goes on as a rule, for separators."""


class Part(Enum):
    """What a row of a block is."""

    HEAD = "head"
    BODY = "body"
    MORE = "more"


class Spot(NamedTuple):
    """A row of the document that stays itself when other blocks change their height."""

    block: int
    """The index of the block."""
    row: int


class Anchor(NamedTuple):
    """A row of the document that can be found again after blocks or the width have changed."""

    key: Hashable
    block: int
    row: int
    offset: int | None
    """The character of the body that the row begins with; None for heads."""


class BlockLayout:
    """One block at one width."""

    __slots__ = ("_estimate", "block", "drawn", "folded", "limit", "undrawable", "width", "wrapped")

    def __init__(self, block: TextBlock, width: int) -> None:
        self.block = block
        self.folded = block.folded
        self.limit: int | None = None if block.whole else FIRST_LINES
        self.width = width
        self.wrapped: WrappedText | None = None
        self.drawn: list[list[Segment]] | None = None
        """The lines of the body as drawn Markdown."""
        self.undrawable = not block.markdown
        self._estimate: int | None = None

    @property
    def foldable(self) -> bool:
        return not self.block.no_head and bool(self.block.body)

    @property
    def opened(self) -> bool:
        """Whether the body is shown."""
        return self.block.no_head or not self.folded

    @property
    def indent(self) -> int:
        """Cells in front of the body's lines."""
        return (0 if self.block.no_head else INDENT) + (2 if self.block.gutter else 0)

    @property
    def body_row(self) -> int:
        """The row of the body's first line."""
        return 0 if self.block.no_head else 1

    @property
    def total(self) -> tuple[int, bool]:
        """How many lines the body has, and whether that is certain."""
        if self.drawn is not None:
            return len(self.drawn), True
        if self.wrapped is None:
            if self._estimate is None:
                self._estimate = estimate_lines(self.block.body, self.width - self.indent)
            return self._estimate, not self.block.body
        return len(self.wrapped.lines) + self.wrapped.rest, self.wrapped.finished

    @property
    def shown(self) -> int:
        """How many lines of the body are shown."""
        if not self.opened:
            return 0
        total = self.total[0]
        return total if self.limit is None else min(total, self.limit)

    @property
    def more(self) -> int:
        """How many lines of the body are cut off."""
        return self.total[0] - self.shown if self.opened else 0

    @property
    def height(self) -> int:
        return self.body_row + self.shown + (self.more > 0)

    def part(self, row: int) -> Part:
        """What a row is."""
        if row < self.body_row:
            return Part.HEAD
        return Part.BODY if row < self.body_row + self.shown else Part.MORE

    @property
    def wanted(self) -> int:
        """How many lines have to be known for what is shown; 0 when they are."""
        if not self.opened or self.drawn is not None or not self.block.body:
            return 0
        most = 1 << 62
        target = most if self.limit is None or len(self.block.body) <= COUNTED else self.limit + 1
        known = self.wrapped
        return 0 if known is not None and (known.finished or len(known.lines) >= target) else target

    def extend(self, lines: int, budget: int) -> int:
        """Find that many lines of the body, or spend the budget; returns what was spent."""
        spent = 0
        if self.wrapped is None:
            self.wrapped = WrappedText(self.block.body, self.width - self.indent)
            spent = _BEGINNING
        return spent + self.wrapped.extend(lines, budget)

    def resize(self, width: int) -> None:
        """Forget what depends on the width."""
        self.width = width
        self.wrapped = self.drawn = self._estimate = None

    def line(self, row: int) -> str | None:
        """The text of a row of the body; None when it is not known yet."""
        number = row - self.body_row
        if self.drawn is not None:
            return "".join(segment.text for segment in self.drawn[number]) if number < len(self.drawn) else ""
        if self.wrapped is None or number >= len(self.wrapped.lines):
            return None
        return self.wrapped.lines[number]

    def show_line(self, number: int) -> None:
        """Raise the limit until this line of the body is shown."""
        while self.limit is not None and number >= self.limit:
            self.limit *= MORE_TIMES

    def take_over(self, old: BlockLayout) -> None:
        """Go on from the state that a block with the same key had."""
        self.folded, self.limit = old.folded, old.limit if not self.block.whole else None
        same_body = old.width == self.width and old.indent == self.indent and old.block.body == self.block.body
        if same_body:
            self.wrapped = old.wrapped
            if old.block.markdown == self.block.markdown:
                self.drawn, self.undrawable = old.drawn, old.undrawable


class Document:
    """Blocks one below the other."""

    def __init__(self, width: int = 80) -> None:
        self.layouts: list[BlockLayout] = []
        self.width = width
        self._heights: list[int] | None = None
        self._tops: list[int] | None = None

    def __len__(self) -> int:
        return len(self.layouts)

    def replace(self, blocks: Sequence[TextBlock], *, keep: bool) -> None:
        """Show other blocks; with `keep`, those whose keys were there before go on as they were."""
        old = {layout.block.key: layout for layout in self.layouts} if keep else {}
        layouts = []
        for block in blocks:
            before = old.get(block.key)
            if before is not None and before.block is block and before.width == self.width:
                layouts.append(before)
                continue
            layout = BlockLayout(block, self.width)
            if before is not None:
                layout.take_over(before)
            layouts.append(layout)
        self.layouts = layouts
        self.changed()

    @property
    def widest(self) -> int:
        """Cells of the widest line that is known."""
        return max(
            (layout.indent + layout.wrapped.widest for layout in self.layouts if layout.opened and layout.wrapped), default=0
        )

    def resize(self, width: int) -> None:
        """Lay everything out for another width."""
        self.width = width
        for layout in self.layouts:
            layout.resize(width)
        self.changed()

    def changed(self, index: int | None = None) -> None:
        """The height of a block, or of any block, is to be asked for again."""
        if index is None or self._heights is None:
            self._heights = None
        else:
            self._heights[index] = self.layouts[index].height
        self._tops = None

    @property
    def tops(self) -> list[int]:
        """The first row of each block in the document, and at last its height."""
        if self._heights is None:
            self._heights = [layout.height for layout in self.layouts]
        if self._tops is None:
            self._tops = list(accumulate(self._heights, initial=0))
        return self._tops

    @property
    def height(self) -> int:
        return self.tops[-1]

    @property
    def has_heads(self) -> bool:
        return any(not layout.block.no_head for layout in self.layouts)

    def spot(self, y: int) -> Spot:
        """What stands at a height of the document, which must not be empty; the last row for all below."""
        y = max(0, min(y, self.height - 1))
        index = min(bisect_right(self.tops, y) - 1, len(self.layouts) - 1)
        return Spot(index, y - self.tops[index])

    def y_of(self, index: int, row: int = 0) -> int:
        """Where a row of a block stands."""
        return self.tops[index] + max(0, min(row, self.layouts[index].height - 1))

    def index_of(self, key: Hashable) -> int | None:
        """Where the block with a key is."""
        return next((index for index, layout in enumerate(self.layouts) if layout.block.key == key), None)

    def anchor(self, y: int) -> Anchor | None:
        """What to find again later; None when there is nothing."""
        if not self.height:
            return None
        index, row = self.spot(y)
        layout = self.layouts[index]
        number = row - layout.body_row
        offset = None
        if layout.wrapped is not None and layout.drawn is None and 0 <= number < len(layout.wrapped.lines):
            offset = layout.wrapped.starts[number]
        return Anchor(layout.block.key, index, row, offset)

    def y_of_anchor(self, anchor: Anchor | None, budget: int = 0) -> tuple[int, int]:
        """Where an anchor is now, and what is left of the `budget` for finding it. What is gone is replaced by what came after it."""
        if anchor is None or not self.layouts:
            return 0, budget
        index = anchor.block
        if index >= len(self.layouts) or self.layouts[index].block.key != anchor.key:
            found = self.index_of(anchor.key)
            if found is None:
                return self.tops[min(index, len(self.layouts) - 1)], budget
            index = found
        layout = self.layouts[index]
        row = anchor.row
        if anchor.offset is not None and layout.opened and layout.drawn is None:
            while budget > 0 and not (layout.wrapped and layout.wrapped.covers(anchor.offset)):
                budget -= layout.extend(1 << 62, min(budget, 20_000))
                self.changed(index)
            if layout.wrapped and layout.wrapped.covers(anchor.offset):
                row = layout.body_row + layout.wrapped.line_of(anchor.offset)
        return self.y_of(index, row), budget

    def settle(self, y: int, rows: int, budget: int) -> tuple[int, int]:
        """Find the lines that stand between `y` and `y + rows`; returns where the row at `y` is afterwards, and what is left of the budget.

        A block that comes in from above and turns out to be longer or shorter keeps its end where it was.
        """
        if not self.height:
            return 0, budget
        y = max(0, min(y, self.height - 1))
        first, row = self.spot(y)
        top = self.tops[first]
        index, begin = first, top
        while index < len(self.layouts) and budget > 0 and begin <= top + row + rows:
            layout = self.layouts[index]
            if layout.wanted:
                fresh, before = layout.wrapped is None, layout.height
                budget -= layout.extend(layout.wanted, budget)
                self.changed(index)
                if index == first and fresh and row:
                    row = max(0, row + layout.height - before)
            begin += layout.height
            index += 1
        return top + row, budget

    def unsettled(self, y: int, rows: int) -> bool:
        """Whether lines between `y` and `y + rows` are still to be found."""
        if not self.height:
            return False
        first, last = self.spot(y).block, self.spot(y + rows).block
        return any(self.layouts[index].wanted for index in range(first, last + 1))


def plain_text(block: TextBlock) -> str:
    """A block as plain text: what it says, without folds, cuts and indents."""
    head = "  ".join(part for part in (clean_line(block.head), clean_line(block.head_right)) if part)
    parts = ([head] if head and not block.no_head else []) + ([clean(block.body)] if block.body else [])
    return "\n".join(parts)


def can_draw_markdown(text: str) -> bool:
    """Whether a text is drawn as Markdown: the time it takes grows with the length and, faster, with the marks."""
    return len(text) < MARKDOWN_LIMIT and sum(text.count(mark) for mark in "[|*_`<>") < MARKDOWN_MARKS_LIMIT
