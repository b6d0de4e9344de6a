"""The words of a command line as they may be shown: whatever a name in them gives away is masked, whatever its length.

A word need not be right to be shown: the rule for what cannot be read is that rather too much is masked than too little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backend.io.late_pattern import late
from backend.io.secret_names import is_secret_key, is_secret_path

MASK = "****"

_UNREVEALING = frozenset(("", "null", "true", "false"))
# A name and what follows it: `=`, and `:` or a blank where somebody has mistyped that.
_ASSIGNMENT = late(r"(?P<name>(?:~|\+{1,2}|--)?[\w.$-]+)(?P<sign>\s*[=:]\s*)")
_MISTYPED = late(r"(?P<name>\+{1,2}[\w.$-]+)(?P<sign>\s+)")
_LATER_ASSIGNMENT = late(r"""(?<![\w-])(?P<name>[\w.@-]+)["']?\s*=(?!=)""")
# argparse takes any unambiguous beginning of `--…-api-key`.
_CUT_SHORT = late(r"-a(?:pi?|pi-(?:ke?)?)?$")
_KEY_IN_BRACES = late(r"""(?<![\w.-])(?P<key>[\w.-]+)["']?\s*:\s*""")
_OPTION_IN_LIST = late(r"""(?<![\w-])--(?P<key>[\w.-]+)(?:=|["']?\s*,\s*)""")
_PAIR = late(r"""(?<![\w.-])(?i:name|key)["']?\s*:\s*["']?(?P<name>[\w.-]+)""")
_VALUE_OF_PAIR = frozenset(("value", "Value"))
_PIECE = late(r""""(?:[^"\\]|\\.){0,4000}"|'(?:[^'\\]|\\.){0,4000}'|[\[{]|[\]}]|,|[^"'\[\]{},]+|["']""")
_ANOTHER_KEY = late(r"""\s*["']?[\w.$-]+["']?\s*:""")
_AFTER_CLOSING = late(r"\s*(?:[,\]}]|$)")


def hidden(value: str) -> str:
    """What is shown instead of a secret value: itself where it says nothing."""
    return value if value.lower() in _UNREVEALING else MASK


def mask_words(words: Sequence[str], text: Callable[[str], str], *, sure: bool = False) -> list[str]:
    """The words with secrets masked by the names of their keys or options; `text` masks what else is in a word.

    With `sure`, only by names that leave no doubt.

    Knows `key=VALUE` with any prefix and dotted key, `--option VALUE`, `--option=VALUE`, and within a word `{key: VALUE}`,
    `{name: KEY, value: VALUE}` and `[--option, VALUE]`.
    """
    shown = []
    value_follows = False
    for word in words:
        is_option = word.startswith("--")
        value = _value_of_secret(word, sure)
        if value_follows and not is_option:
            word = hidden(word)
        elif value is not None:
            word = f"{word[:value]}{hidden(word[value:])}"
        else:
            word = _masked_inside(word, sure) if "{" in word or "[" in word else word
            word = _masked_later(word, sure) if "=" in word else word
        shown.append(text(word))
        value_follows = is_option and value is None and "=" not in word and _is_secret_name(word, sure)
    return shown


def mask_items(items: Sequence[object]) -> list[tuple[object, str]]:
    """For each item of a list what it shows and what that hides: a value after the option that names it, or after `NAME=`.

    Nothing is hidden by an item that is no such word.
    """
    pairs: list[tuple[object, str]] = []
    value_follows = False
    for item in items:
        shown, secret = item, ""
        if isinstance(item, str):
            start = _value_of_secret(item) if "=" in item else None
            if value_follows and not item.startswith("--"):
                shown, secret = hidden(item), item
            elif start is not None and " " not in item[:start]:
                shown, secret = f"{item[:start]}{hidden(item[start:])}", item[start:]
        value_follows = isinstance(item, str) and item.startswith("--") and "=" not in item and is_secret_key(item)
        pairs.append((shown, secret))
    return pairs


def hides_items(items: Sequence[object]) -> list[bool]:
    """For each item of a list whether it holds a secret by the rules of `mask_items`."""
    return [bool(secret) for _, secret in mask_items(items)]


def _value_of_secret(word: str, sure: bool = False) -> int | None:
    """Where the value begins in a word whose name is a secret's; None for other words."""
    match = _ASSIGNMENT.match(word) or _MISTYPED.match(word)
    return match.end() if match and _is_secret_name(match["name"], sure) else None


def _masked_later(word: str, sure: bool) -> str:
    """The word without what follows a secret's name anywhere in it: a key that cannot be read, or a command within a word."""
    for match in _LATER_ASSIGNMENT.finditer(word):
        if _is_secret_name(match["name"], sure) and "://" not in word[: match.start()]:
            return f"{word[: match.end()]}{hidden(word[match.end() :])}"
    return word


def _is_secret_name(name: str, sure: bool = False) -> bool:
    known = is_secret_path(name.lstrip("+~").split("."), sure=sure)
    return known or (name.startswith("--") and _CUT_SHORT.search(name) is not None)


def _masked_inside(word: str, sure: bool = False) -> str:
    """The word with the values of secret keys in its mappings and of secret options in its lists masked."""
    named = any(is_secret_key(match["name"], sure) for match in _PAIR.finditer(word))
    starts = {match.end(): True for match in _OPTION_IN_LIST.finditer(word) if is_secret_key(match["key"], sure)}
    for match in _KEY_IN_BRACES.finditer(word):
        if is_secret_key(match["key"], sure) or (named and match["key"] in _VALUE_OF_PAIR):
            starts[match.end()] = False
    pieces, end = [], 0
    for start, in_list in sorted(starts.items()):
        if start < end:
            continue
        stop = _end_of_value(word, start, in_list=in_list)
        pieces += [word[end:start], hidden(word[start:stop])]
        end = stop
    return "".join((*pieces, word[end:]))


def _end_of_value(word: str, start: int, *, in_list: bool) -> int:
    """Where the value that begins at `start` ends: before a comma and another key or item, or before the bracket that closes.

    In a mapping, a comma that no key follows belongs to it, as far as anybody can tell, and so does a bracket in the midst of text.
    """
    depth = 0
    for match in _PIECE.finditer(word, start):
        piece = match[0]
        if piece in "[{":
            depth += 1
        elif piece in "]}":
            if depth == 0 and _AFTER_CLOSING.match(word, match.end()):
                return match.start()
            depth = max(depth - 1, 0)
        elif piece == "," and depth == 0 and (in_list or _ANOTHER_KEY.match(word, match.end())):
            return match.start()
    return len(word)
