"""Copying out of the workbench: the terminal is asked to take a text (OSC 52), and where that is in doubt a file holds it too."""

from __future__ import annotations

import base64
import os
import shlex
from collections.abc import Mapping
from typing import Any

from textual.app import App

from backend.errors import GymError
from backend.io.redact import Redactor, mask_command
from gym_tui.private_files import home_relative, keep_private
from screens.widgets.formatting import byte_size, count

CUT_ABOVE = 74_000
"""Bytes of text: terminals cut or drop what is longer than 100,000 characters in base64."""
NOT_SENT_ABOVE = 1_000_000
_SCREEN_PIECE = 700
"""GNU screen passes on at most 768 bytes at a time."""


def copy_out(app: App[Any], text: str, what: str) -> str:
    """Copy `text`, and return what to tell about it: how much, and where it went."""
    if not text:
        return f"nothing to copy: {what} is empty"
    size = len(text.encode("utf-8", "surrogatepass"))
    doubt = doubt_about(os.environ, size)
    driver = app._driver
    sent = driver is not None and size <= NOT_SENT_ABOVE
    if driver is not None and sent:
        for piece in clipboard_sequences(text, os.environ):
            driver.write(piece)
    amount = f"{count(len(text))} characters" if len(text) < 10_000 else byte_size(size)
    told = f"copied {what} ({amount}) to the terminal's clipboard" if sent else f"copied {what} ({amount})"
    if not doubt and sent:
        return told
    try:
        path = keep_private("copies", "copy", text)
    except GymError as error:
        return f"{told}; {doubt or 'it went nowhere else'}, and no file could be written: {error.message}"
    return f"{told}; {doubt or 'too much for a clipboard'}, so it is also in {home_relative(path)}"


def masked_command(command: str) -> str:
    """A command line without keys in it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return Redactor().text(command)
    masked = mask_command(words, Redactor())
    return command if masked == words else shlex.join(masked)


def clipboard_sequences(text: str, environment: Mapping[str, str]) -> list[str]:
    """What to write to the terminal. In tmux twice: once for tmux, once through it, because its settings decide which of them arrives."""
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    plain = f"\x1b]52;c;{encoded}\x07"
    if environment.get("TMUX"):
        return [plain, "\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\"]
    if environment.get("STY"):
        pieces = [plain[start : start + _SCREEN_PIECE] for start in range(0, len(plain), _SCREEN_PIECE)]
        return ["".join(f"\x1bP{piece}\x1b\\" for piece in pieces)]
    return [plain]


def doubt_about(environment: Mapping[str, str], size: int) -> str:
    """Why the terminal may not take `size` bytes; empty when it most likely will."""
    if size > CUT_ABOVE:
        return f"terminals cut what is above {byte_size(CUT_ABOVE)}"
    if environment.get("TMUX"):
        return "tmux may keep it back (`set -g set-clipboard on` lets it through)"
    if environment.get("STY"):
        return "GNU screen may keep it back"
    if environment.get("TERM_PROGRAM") == "Apple_Terminal":
        return "this terminal takes nothing from programs"
    if environment.get("TERM") == "linux":
        return "the console has no clipboard"
    if environment.get("VTE_VERSION"):
        return "terminals of this family mostly ignore it"
    return ""
