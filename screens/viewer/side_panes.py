"""The right side of the viewer: the reward with what the verifier left, and facts of the rollout."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Vertical

from screens.viewer.conversation import Page
from screens.widgets.formatting import byte_size, joined
from screens.widgets.pane import Pane
from screens.widgets.text_blocks import TextBlock
from screens.widgets.virtual_text import VirtualText


class SidePanes(Vertical):
    """Both panes, one above the other."""

    def compose(self) -> ComposeResult:
        with Pane("Reward", id="reward", classes="-solo"):
            yield VirtualText(id="reward-text")
        with Pane("Facts", id="facts", classes="-solo"):
            yield VirtualText(id="facts-text")

    def show_page(self, page: Page, repeats: str) -> None:
        """Show what belongs to a page; `repeats` is a line about the task's repeats."""
        place = joined((f"{page.place.path.name}:{page.place.line}", byte_size(page.place.size)))
        body = "\n\n".join(part for part in (page.reward_block.body, repeats, place) if part)
        self._show("reward", replace(page.reward_block, body=body))
        self._show("facts", page.facts_block)

    def show_nothing(self) -> None:
        """There is no rollout."""
        for name in ("reward", "facts"):
            self._show(name, TextBlock(name, no_head=True))

    def _show(self, name: str, block: TextBlock) -> None:
        self.query_one(f"#{name}", Pane).show_ready()
        self.query_one(f"#{name}-text", VirtualText).set_blocks((block,))
