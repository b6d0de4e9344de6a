"""The pane beside the log: what is known of the server or the stack under the cursor."""

from __future__ import annotations

from textual.app import ComposeResult

from screens.servers.board import ServerView, StackView
from screens.servers.detail_blocks import server_blocks, stack_blocks
from screens.widgets.pane import Pane
from screens.widgets.text_blocks import plain_text
from screens.widgets.virtual_text import VirtualText
from screens.widgets.workbench import workbench_of


class DetailPane(Pane):
    """Draws what the last snapshot says; nothing is read here."""

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__("Detail", id=id, classes=classes)
        self._shown: tuple[str, str] | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield VirtualText(id="detail-text")

    @property
    def text(self) -> VirtualText:
        """Where the details stand."""
        return self.query_one("#detail-text", VirtualText)

    def draw(self, stack: StackView | None, view: ServerView | None) -> None:
        """Show a server, without one its stack, without that nothing."""
        if stack is None:
            self._shown = None
            self.text.set_blocks(())
            self.set_heading("Detail", "", "")
            self.show_empty("Nothing under the cursor")
            return
        workbench = workbench_of(self)
        shown_path = workbench.shown_path
        blocks = server_blocks(view, stack, workbench.clock(), shown_path) if view else stack_blocks(stack, shown_path)
        key = (stack.record.id, view.server.name if view is not None else "")
        self.show_ready()
        self.set_heading(f"Detail  {view.server.name if view is not None else stack.title}", foot="y copies the part")
        text = self.text
        stays_at_top = (text.cursor, text.scroll_offset.y) == (0, 0)
        text.set_blocks(blocks, keep_place=key == self._shown)
        if stays_at_top and text.cursor:
            text.move_to(0)  # the part that was the first one is further down now: nobody has chosen to look at it
        self._shown = key

    def part_under_cursor(self) -> tuple[str, str] | None:
        """The text of a part of the details, and what it is called."""
        blocks = self.text.blocks
        if not blocks:
            return None
        block = blocks[self.text.cursor]
        return block.body or plain_text(block), block.head.lower()
