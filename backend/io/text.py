"""The gate for text that models, servers and files bring along: what it says must not drive the terminal that shows it.

Control characters come out as one-column pictures: C0 controls and DEL as their symbols (`␛`, `␀`), C1 controls as `\\ufffd`. So do characters
that reorder or hide text: direction marks, zero-width characters, tags, runs of variation selectors, lone surrogates. The joiners and variation
selectors that scripts and emoji need stay. The result is plain text; it still has to be shown without markup.
"""

from __future__ import annotations

import re
import unicodedata

REPLACEMENT = "\ufffd"
NEWLINE_PICTURE = " ⏎ "

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {
    0x7F: 0x2421,
    0x2028: 0x2424,
    0x2029: 0x2424,
}
_HIDDEN = "\x80-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e007f"
_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029]")
_INVISIBLE = re.compile(f"[{_HIDDEN}{_JOINERS}{_SELECTORS}]")
_SELECTOR = re.compile(f"[{_SELECTORS}]")
_LINE_ENDS = re.compile(" *\n[ \n]*")


def printable(text: str) -> str:
    """`text` with newlines and tabs as they are, and a visible picture for every other character that could drive a terminal."""
    if _CONTROL.search(text):
        text = text.translate(_PICTURES)
    return text if text.isascii() else _INVISIBLE.sub(_picture, text)


def clean(text: str, *, tab_width: int = 4) -> str:
    """`text` ready to be drawn: `printable`, without the CR of CRLF, tabs as spaces up to the next multiple of `tab_width` columns.

    Idempotent. The only control character left is the newline; at most `tab_width` times as long as `text`.
    """
    if text.isprintable() and text.isascii():
        return text
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    text = printable(text)
    if "\t" not in text:
        return text
    if text.isascii():
        return text.expandtabs(tab_width)
    return "\n".join(_expanded(line, tab_width) for line in text.split("\n"))


def clean_line(text: str, limit: int | None = None) -> str:
    """`text` as one line, for a cell: each run of line ends becomes ` ⏎ `, a tab a space; cut to `limit` characters, the last of them `…`.

    Only the beginning of a text far longer than the limit is looked at.
    """
    if limit is not None:
        text = text.lstrip()[: 4 * limit + 16]
    line = _LINE_ENDS.sub(NEWLINE_PICTURE, clean(text.strip(), tab_width=1))
    return line if limit is None or len(line) <= limit else line[: max(limit - 1, 0)] + "…"[:limit]


def cell_width(text: str) -> int:
    """Terminal columns that clean text takes: East Asian wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _picture(match: re.Match[str]) -> str:
    """The character itself where its neighbours need it, else the replacement character."""
    char, text = match[0], match.string
    before, after = text[max(match.start() - 1, 0) : match.start()], text[match.end() : match.end() + 1]
    if char in _JOINERS:  # beside ASCII it joins nothing and only hides something
        needed = bool(before and after) and not before.isascii() and not after.isascii()
    elif _SELECTOR.match(char):  # a second one selects nothing
        needed = bool(before) and not _SELECTOR.match(before) and (char <= "\ufe0f" or not before.isascii())
    else:
        needed = False
    return char if needed else REPLACEMENT


def _expanded(line: str, tab_width: int) -> str:
    """Tab stops by columns, not by characters."""
    first, *cells = line.split("\t")
    text = first
    column = cell_width(first)
    for cell in cells:
        gap = tab_width - column % tab_width
        text += " " * gap + cell
        column += gap + cell_width(cell)
    return text
