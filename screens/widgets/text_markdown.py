"""Markdown as lines of styled segments: without colours, links that can be clicked, pictures or syntax highlighting.

HTML is shown as it stands, because what a model says between tags is to be read too. Entities are decoded by the parser, so that the
gate for untrusted text stands behind it as well as in front.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import set_cell_size
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from backend.io.text import clean

_THEME = Theme(
    {
        "markdown.paragraph": "none",
        "markdown.text": "none",
        "markdown.em": "italic",
        "markdown.strong": "bold",
        "markdown.s": "strike",
        "markdown.code": "bold",
        "markdown.code_block": "none",
        "markdown.block_quote": "dim",
        "markdown.list": "none",
        "markdown.item": "none",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.hr": "dim",
        "markdown.h1.border": "none",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "bold",
        "markdown.h6": "bold italic",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "markdown.kbd": "bold",
    },
)
_TO_ASCII = str.maketrans("•▌─━│┃┼╇╈╋┄┈", "*|--||+++++-")


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Padding(Text(str(self.text).rstrip(), style="markdown.code_block", overflow="fold"), (0, 0, 0, 2))


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table").parse(text)
        _clean_tokens(self.parsed)


def markdown_lines(
    text: str, width: int, *, ascii_only: bool = False, cancelled: Callable[[], bool] = lambda: False
) -> list[list[Segment]]:
    """`text` drawn as Markdown in lines of at most `width` cells; no lines when `cancelled` says so.

    The styles hold attributes only (bold, italic, dim, …).
    """
    console = Console(
        width=max(width, 4),
        theme=_THEME,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        _environ={},
    )
    segments: list[Segment] = []
    for segment in console.render(_Markdown(clean(text)), console.options.update(height=None)):
        if cancelled():
            return []
        segments.append(segment)
    lines = list(Segment.split_lines(segments))
    while lines and not "".join(segment.text for segment in lines[-1]).strip():
        lines.pop()
    return [_fitted(line, width, ascii_only) for line in lines]


def _fitted(line: Iterable[Segment], width: int, ascii_only: bool) -> list[Segment]:
    """A line without control segments, cut where a table or a word could not be made narrow enough."""
    kept: list[Segment] = []
    room = width
    for segment in line:
        if segment.control or not segment.text:
            continue
        text = segment.text.translate(_TO_ASCII) if ascii_only else segment.text
        size = segment.cell_length
        if size > room:
            text, size = set_cell_size(text, room), room
        if text:
            kept.append(Segment(text, segment.style.without_color if segment.style else None))
        room -= size
    return kept


def _clean_tokens(tokens: Iterable[Token]) -> None:
    for token in tokens:
        token.content = clean(token.content)
        token.info = clean(token.info)
        token.attrs = {name: clean(value) if isinstance(value, str) else value for name, value in token.attrs.items()}
        _clean_tokens(token.children or ())
        if token.type == "image":  # Rich would move pictures out of their line
            described = "".join(child.content for child in token.children or ()) or "image"
            token.type, token.tag, token.content = "text", "", f"[{described}] ({token.attrs.get('src', '')})"
            token.children = None
