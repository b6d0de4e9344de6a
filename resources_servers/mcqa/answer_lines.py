"""The mode `lenient_answer_colon_md`: the last usable `Answer: …` of a text that may be Markdown and need not be English.

Labels may stand in emphasis (`**Answer:** B`) and may be in the row's own words (`answer_prefix`). Letters of other scripts that
number the options of translated question sets count as A to D.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

_ANSWER_LABEL = r"answer[*_ \t]*:"
_LETTERS_OF_OTHER_SCRIPTS = dict(zip("أبجدঅবডঢ", "ABCDABCD", strict=True))
# A letter of a word is no option letter; Arabic and Bengali vowel signs belong to the word too, but are not \w.
_OTHER_LETTER = re.compile(
    rf"(?<!\w)[{''.join(_LETTERS_OF_OTHER_SCRIPTS)}](?![\w\u064b-\u065f\u0981-\u0983\u09bc-\u09d7])",
)
_AROUND_PAYLOAD = "*_.,;: \t\r\f\v"
_OPENING = "([{\"'`$"
_LEADING_CAPITAL = re.compile(r"([A-Z])(?!\w)")
_LEADING_SMALL_LETTER = re.compile(r"([a-z])(?=[):.\]}\"'`$]|$)")
_STANDALONE_CAPITAL = re.compile(r"(?<!\w)([A-Z])(?!\w)")
_LISTED_LETTERS = re.compile(
    r"(?<!\w)([A-Z])[)\].]*\s*(?:[/,;&|]|\b(?:or|and)\b)(?:\s*(?:or|and)\b)?\s*[(\[]*(?=([A-Z])(?!\w))",
)


def letter_in_answer_lines(text: str, allowed: Container[str], prefix: str | None = None) -> str | None:
    """The allowed letter (upper case) in the last usable payload behind `Answer:` or `prefix`, None when there is none.

    A payload reaches to the end of its line or to the next label. One that lists two different allowed letters (`A/B`, `B or C`)
    is not usable.
    """
    text = unicodedata.normalize("NFKC", text)
    label = _ANSWER_LABEL
    if prefix is not None:
        label = f"{re.escape(unicodedata.normalize('NFKC', prefix.strip()))}|{label}"
    labels = list(re.finditer(label, text, re.IGNORECASE))
    end = len(text)
    for found in reversed(labels):
        letter = _letter_in_payload(text[found.end() : end].split("\n", 1)[0], allowed)
        if letter is not None:
            return letter
        end = found.start()
    return None


def _letter_in_payload(payload: str, allowed: Container[str]) -> str | None:
    payload = _OTHER_LETTER.sub(lambda match: _LETTERS_OF_OTHER_SCRIPTS[match[0]], payload)
    payload = payload.strip(_AROUND_PAYLOAD).lstrip(_OPENING)
    leading = _LEADING_CAPITAL.match(payload) or _LEADING_SMALL_LETTER.match(payload)
    if leading and leading[1].upper() in allowed:
        listed = _LISTED_LETTERS.match(payload)
        return None if listed and _differ(listed, allowed) else leading[1].upper()
    if any(_differ(listed, allowed) for listed in _LISTED_LETTERS.finditer(payload)):
        return None
    standalone = [match[1] for match in _STANDALONE_CAPITAL.finditer(payload) if match[1] in allowed]
    return standalone[-1] if standalone else None


def _differ(listed: re.Match[str], allowed: Container[str]) -> bool:
    return listed[1] != listed[2] and listed[1] in allowed and listed[2] in allowed
