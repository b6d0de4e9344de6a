"""The lines of a log as blocks: a limited number of them, cheap to append to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from screens.widgets import glyphs
from screens.widgets.formatting import count
from screens.widgets.text_blocks import TextBlock

CHUNK = 100
"""Lines per block: what is laid out anew when a line arrives."""
KEPT = 10_000


class LogLines:
    """The last lines of a log; older ones are dropped by the chunk, and counted. A chunk holds lines of one kind."""

    def __init__(self, kept: int = KEPT) -> None:
        self.dropped = 0
        self._kept = max(CHUNK, kept)
        self._full: deque[tuple[int, TextBlock]] = deque()
        """Blocks, each with the number of its lines."""
        self._in_full = 0
        self._open: list[str] = []
        self._kind = "plain"
        self._begun = 0

    def append(self, lines: Iterable[str], kind: str = "plain") -> int:
        """Take lines of one of the kinds of text; returns how many they were, since a text may hold several."""
        taken = 0
        for text in lines:
            if kind != self._kind:
                self._close_chunk()
                self._kind = kind
            for line in text.removesuffix("\n").split("\n"):
                self._open.append(line)
                taken += 1
                if len(self._open) == CHUNK:
                    self._close_chunk()
        while self._in_full + len(self._open) > self._kept and self._full:
            size, _ = self._full.popleft()
            self._in_full -= size
            self.dropped += size
        return taken

    def blocks(self) -> Sequence[TextBlock]:
        """All lines, and at first what is missing before them."""
        blocks = [*(block for _, block in self._full), *([self._block()] if self._open else [])]
        if self.dropped:
            text = f"{glyphs.current().ellipsis} {count(self.dropped)} earlier lines are not kept"
            blocks.insert(0, TextBlock(key="dropped", body=text, kind="muted", no_head=True))
        return blocks

    def _close_chunk(self) -> None:
        if self._open:
            self._full.append((len(self._open), self._block()))
            self._in_full += len(self._open)
            self._begun += len(self._open)
            self._open = []

    def _block(self) -> TextBlock:
        body = "\n".join(self._open) + "\n"
        return TextBlock(key=("lines", self._begun), body=body, kind=self._kind, no_head=True, whole=True)
