"""Which option did an answer choose? Pure functions from text to a letter; they never raise, and their time is linear in the text.

`extract_answer` is the door. The rules of the mode `lenient_answer_colon_md` are in `answer_lines`, those of a row's own
`output_regex` in `output_regex`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from resources_servers.mcqa.answer_lines import letter_in_answer_lines
from resources_servers.mcqa.output_regex import last_capture

RowGradingMode = Literal["strict_single_letter_boxed", "lenient_boxed", "lenient_answer_colon"]
"""What a row may ask for."""
GradingMode = Literal["strict_single_letter_boxed", "lenient_boxed", "lenient_answer_colon", "lenient_answer_colon_md"]
"""What a server's configuration may ask for."""

_BOX = "\\boxed{"
_BRACE = re.compile(r"[{}]")
_TEXT_COMMAND = re.compile(r"\\text\{([^{}]*)\}")
_ONE_CAPITAL = re.compile(r"[^A-Za-z]*([A-Z])[^A-Za-z]*")
_CAPITAL_AND_MARK = re.compile(r"([A-Z])[:).\-]")
_FIRST_ANSWER = re.compile(r"answer\s*:\s*(.+)", re.IGNORECASE)


def extract_answer(
    text: str,
    options: Iterable[Mapping[str, str | None]] | None,
    grading_mode: GradingMode,
    template_metadata: Mapping[str, Any] | None = None,
) -> str | None:
    """The upper-case letter that `text` chooses, or None when it does not choose one.

    `options` are single-key mappings from a letter to an option's text. A row's own `template_metadata["output_regex"]` (one
    pattern or a list) comes first, then the rules of `grading_mode`. The letter is one of the options, except where it comes
    from `output_regex`: the author of a pattern may read any letter.
    """
    if not text.strip():
        return None
    allowed = allowed_options(options)
    metadata = template_metadata or {}
    chosen = _choose_by_pattern(text, allowed, metadata.get("output_regex"))
    if chosen is not None:
        return chosen
    match grading_mode:
        case "strict_single_letter_boxed":
            return _choose_strictly(last_box(text), allowed)
        case "lenient_boxed":
            return _choose_leniently(last_box(text), allowed)
        case "lenient_answer_colon":
            return _choose_by_first_answer(text, allowed)
        case "lenient_answer_colon_md":
            prefix = metadata.get("answer_prefix")
            if not isinstance(prefix, str) or not prefix.strip():
                return letter_in_answer_lines(text, allowed)
            return letter_in_answer_lines(text, allowed, prefix) or _choose_strictly(last_box(text), allowed)


def allowed_options(options: Iterable[Mapping[str, str | None]] | None) -> dict[str, str]:
    """Text by upper-case letter of the options that can be chosen: those under one alphabetic character and with a text."""
    return {
        key.upper(): text
        for option in options or ()
        for key, text in option.items()
        if len(key) == 1 and key.isalpha() and text is not None
    }


def last_box(text: str) -> str | None:
    r"""What stands in the last `\boxed{…}` with braces counted, `\text{…}` unwrapped; None without one, or when it is not closed."""
    start = text.rfind(_BOX)
    if start < 0:
        return None
    content = start + len(_BOX)
    depth = 1
    for brace in _BRACE.finditer(text, content):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return _TEXT_COMMAND.sub(r"\1", text[content : brace.start()])
    return None


def normalized(text: str) -> str:
    """`text` in lower case with runs of white space as one blank: how option texts are compared."""
    return " ".join(text.lower().split())


def _choose_strictly(box: str | None, allowed: Mapping[str, str]) -> str | None:
    if box is None:
        return None
    match = _ONE_CAPITAL.fullmatch(box) or _CAPITAL_AND_MARK.match(box.strip())
    return match[1] if match and match[1] in allowed else None


def _choose_leniently(box: str | None, allowed: Mapping[str, str]) -> str | None:
    if box is None:
        return None
    letter = _choose_strictly(box, allowed)
    if letter is not None:
        return letter
    content = normalized(box)
    found = [letter for letter, text in allowed.items() if normalized(text) and normalized(text) in content]
    return found[0] if len(found) == 1 else None


def _choose_by_first_answer(text: str, allowed: Mapping[str, str]) -> str | None:
    match = _FIRST_ANSWER.search(text)
    if match is None:
        return None
    payload = _TEXT_COMMAND.sub(r"\1", match[1]).strip()
    return payload.upper() if payload.upper() in allowed else _letter_of_text(payload, allowed)


def _choose_by_pattern(text: str, allowed: Mapping[str, str], patterns: Any) -> str | None:
    for pattern in [patterns] if isinstance(patterns, str) else patterns if isinstance(patterns, list) else ():
        captured = last_capture(pattern, text) if isinstance(pattern, str) else None
        if captured is None:
            continue
        captured = captured.strip()
        if len(captured) == 1 and captured.isalpha():
            return captured.upper()
        letter = _letter_of_text(captured, allowed)
        if letter is not None:
            return letter
    return None


def _letter_of_text(payload: str, allowed: Mapping[str, str]) -> str | None:
    wanted = normalized(payload)
    return next((letter for letter, text in allowed.items() if wanted and normalized(text) == wanted), None)
