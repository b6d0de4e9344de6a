"""The one redactor: masks secrets by the name of their key, and by value wherever they turn up in text.

By name (`secret_names`), also where name and value stand beside each other: `{name: OPENAI_API_KEY, value: …}`, `["--api-key", …]`.
By value: every secret of at least `MIN_SECRET_LENGTH` characters or digits that is not a placeholder, each line of a multi-line secret
for itself, because text is masked line by line. Passwords inside URLs and connection strings, secret parameters of query strings,
secrets in override words, bearer tokens and basic credentials are masked in any text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from backend.io.late_pattern import late
from backend.io.secret_names import holds_secret, is_secret_key, is_secret_path
from backend.io.secret_words import MASK, hidden, hides_items, mask_items, mask_words

__all__ = [
    "MASK",
    "MIN_SECRET_LENGTH",
    "PLACEHOLDERS",
    "Redactor",
    "basic_credentials",
    "collect_secrets",
    "hides_items",
    "holds_key",
    "holds_secret",
    "is_maskable",
    "is_secret_key",
    "is_secret_path",
    "mask_command",
    "paired_value",
]

MIN_SECRET_LENGTH = 8
PLACEHOLDERS = frozenset({
    "dummy", "dummy_key", "dummy-key", "dummy_api_key", "none", "null", "empty", "not-needed", "changeme", "placeholder",
})  # fmt: skip

_PAIRS = (("name", "value"), ("key", "value"), ("Name", "Value"), ("Key", "Value"))
_PEM_MARKER = late(r"-----[A-Z0-9 ]+-----")
_LINE_ENDS = late(r"(?:\\[nr]|[\r\n])+")
_PEM_LINE_ENDS = late(r"(?:\\[nr]|\s)+")
_SCHEME = late(r"(?i)(?:bearer|basic|token)\s+(?P<value>\S+)")
# `Basic` is a word of prose; what follows it is a credential after the header's name, or where it is one when it is decoded.
_BEARER = late(r"(?i)(?P<scheme>\bbearer|authorization\W{1,5}basic)\s+(?P<value>[A-Za-z0-9._~+/=-]{8,})")
# An unencoded `@` belongs to the user or the password: the last one before the path ends them. What follows the colon and is no port is a
# password even when a `/` is in it.
_URL_CREDENTIALS = late(r"""://(?P<user>(?!\[)[^\s/:"'<>]*):(?P<value>[^\s/"'<>]+(?=@)|(?!\d*[/?#])[^\s"'<>]{1,200}(?=@))@""")
_QUERY = late(r"""(?P<lead>[?&;#](?P<key>[\w.%-]{1,80})=)(?P<value>[^&\s#"'<>\\]+)""")
_KEY_LIKE = late(
    r"(?<![\w-])(?:(?:sk|pk|rk|hf|gsk|csk|r8|fw|ghp|gho|ghu|ghs|github_pat|glpat|xox[abpr]|nvapi|tvly)[-_]\S|AKIA[0-9A-Z]|AIza\S)"
)
"""How keys of well-known services begin."""
_BASIC = late(r"(?i)(?P<scheme>\bbasic)\s+(?P<value>[A-Za-z0-9+/]{4,}={0,2})")
# `<…>` stands for a value that is still to be filled in.
_ASSIGNED = late(
    r"""(?<![\w.+~$-])(?P<lead>(?P<sign>\+{0,2}|--)(?P<key>[A-Za-z][\w.-]{0,80}+)\s?=\s?)(?P<value>"[^"\n]{1,500}"|'[^'\n]{1,500}'|[^\s,;&"'<>\\]+)"""
)
_PASSWORD = late(r"(?i)passw(?:or)?d|passphrase|secret")
"""What is a secret's name in a connection string; any other name may be one of a program's that is quoted."""


def collect_secrets(tree: Any) -> frozenset[str]:
    """The secret values below `tree` that are worth masking by value, multi-line ones whole and line by line."""
    return frozenset(part for secret in _secrets_of(tree) for part in _parts(secret) if is_maskable(part))


def is_maskable(value: str) -> bool:
    """Whether a secret is long and particular enough to be masked wherever it turns up in text."""
    return len(value) >= MIN_SECRET_LENGTH and value.lower() not in PLACEHOLDERS and not value.startswith("${")


def holds_key(words: Sequence[str]) -> bool:
    """Whether a command line holds a key for certain: by its name, or by a name that may be one and a value that looks like one."""
    for word, masked in zip(words, mask_command(words, Redactor()), strict=True):
        if word != masked and _KEY_LIKE.search(word):
            return True
    return mask_command(words, Redactor(), sure=True) != list(words)


def basic_credentials(user: str, password: str) -> str:
    """What the `Basic` scheme of HTTP sends (RFC 7617), in UTF-8."""
    return base64.b64encode(f"{user}:{password}".encode("utf-8", "replace")).decode("ascii")


class Redactor:
    """Masks the secrets it was given, and whatever a key's name gives away, in trees and in text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets = frozenset(part for secret in secrets for part in _parts(secret) if is_maskable(part))
        # As URLs and JSON write them.
        forms = {form for secret in self.secrets for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1])}
        forms |= {json.dumps(secret, ensure_ascii=False)[1:-1] for secret in self.secrets}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    @classmethod
    def for_tree(cls, *trees: Any) -> Redactor:
        """A redactor for all secrets found below some trees."""
        return cls(secret for tree in trees for secret in collect_secrets(tree))

    def text(self, text: str, *, sure: bool = False) -> str:
        """`text` with every known secret masked, and what is one by its form wherever it stands; with `sure`, only where a name leaves no doubt."""
        if self._pattern:
            text = self._pattern.sub(MASK, text)
        if "://" in text:
            text = _URL_CREDENTIALS.sub(rf"://\g<user>:{MASK}@", text)
        if "=" in text:
            text = _QUERY.sub(_masked_by_key, text)
            text = _ASSIGNED.sub(partial(_masked_assignment, sure=sure), text)
        if "asic" in text.lower():
            text = _BASIC.sub(_masked_basic, text)
        return _BEARER.sub(rf"\g<scheme> {MASK}", text)

    def tree(self, value: Any, parent: Any = None) -> Any:
        """A copy of `value` with secrets masked by key name and by value, also where a value has become a key.

        Below a secret key, mappings and lists keep their shape, and null, booleans and `""` stay: they hide nothing. `parent` is the
        key that holds `value`.
        """
        if isinstance(value, Mapping):
            paired = paired_value(value)
            items = zip(self.keys(value), value.items(), strict=True)
            return {
                shown: _masked(item) if key == paired or holds_secret(key, item, parent) else self.tree(item, key)
                for shown, (key, item) in items
            }
        if isinstance(value, list | tuple):
            return [self.tree(item) for item, _ in mask_items(value)]
        if isinstance(value, str):
            return self.text(value)
        return MASK if _digits(value) in self.secrets else value

    def key(self, key: Any) -> Any:
        """A key of a mapping as it may be shown."""
        return self.text(key) if isinstance(key, str) else key

    def keys(self, keys: Iterable[Any]) -> list[Any]:
        """The keys of a mapping as they may be shown; those that look the same when they are masked are numbered, so that none is lost."""
        shown: dict[Any, None] = {}
        for key in keys:
            name = masked = self.key(key)
            number = 2
            while name in shown:
                name, number = f"{masked} ({number})", number + 1
            shown[name] = None
        return list(shown)


def paired_value(value: Mapping[Any, Any]) -> str | None:
    """The key that holds a secret whose name is the value of another key: `{name: OPENAI_API_KEY, value: …}`."""
    for name, paired in _PAIRS:
        if paired in value and isinstance(value.get(name), str) and is_secret_key(value[name]):
            return paired
    return None


def mask_command(words: Sequence[str], redactor: Redactor, *, sure: bool = False) -> list[str]:
    """The words of a command line as they may be kept: masked by value, and whatever its length by the name of its key or option.

    With `sure`, only by names that leave no doubt.
    """
    return mask_words(words, partial(redactor.text, sure=sure), sure=sure)


def _masked_by_key(match: re.Match[str]) -> str:
    return match["lead"] + hidden(match["value"]) if is_secret_key(match["key"]) else match[0]


def _masked_assignment(match: re.Match[str], *, sure: bool) -> str:
    return match["lead"] + hidden(match["value"]) if _is_assigned_secret(match, sure) else match[0]


def _is_assigned_secret(match: re.Match[str], sure: bool = True) -> bool:
    """Whether the key is a secret's; `+key=value` is how messages describe a word."""
    key = match["key"]
    return bool(match["sign"] or _PASSWORD.search(key)) and key != "key" and is_secret_path(key.split("."), sure=sure)


def _masked_basic(match: re.Match[str]) -> str:
    return f"{match['scheme']} {MASK}" if _is_basic(match) else match[0]


def _is_basic(match: re.Match[str]) -> bool:
    """Whether this is user and password, and no word of prose."""
    try:
        return ":" in base64.b64decode(match["value"], validate=True).decode("utf-8")
    except ValueError:
        return False


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return value if value is None or value == "" or isinstance(value, bool) else MASK


def _digits(value: Any) -> str:
    """The digits of an integer; nothing for other values, and for integers beyond any key's length, which Python may not print."""
    whole = isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 1024
    return str(abs(value)) if whole else ""


def _secrets_of(value: Any, parent: Any = None, *, inside_secret: bool = False, inside_doubtful: bool = False) -> Iterator[str]:
    """Below a name that is not sure, only what looks like a key."""
    if isinstance(value, Mapping):
        paired = paired_value(value)
        for key, item in value.items():
            sure = inside_secret or key == paired or holds_secret(key, item, parent, sure=True)
            doubtful = inside_doubtful or holds_secret(key, item, parent)
            yield from _secrets_of(item, key, inside_secret=sure, inside_doubtful=doubtful)
    elif isinstance(value, list | tuple):
        for item, (_, part) in zip(value, mask_items(value), strict=True):
            if part:
                yield part
            yield from _secrets_of(item, inside_secret=inside_secret, inside_doubtful=inside_doubtful)
    elif isinstance(value, str):
        if inside_secret or (inside_doubtful and _KEY_LIKE.match(value)):
            yield value
            if scheme := _SCHEME.fullmatch(value.strip()):
                yield scheme["value"]
        in_url = list(_URL_CREDENTIALS.finditer(value)) if "://" in value else []
        in_query = (match for match in _QUERY.finditer(value) if is_secret_key(match["key"])) if "=" in value else ()
        assigned = (match for match in _ASSIGNED.finditer(value) if _is_assigned_secret(match)) if "=" in value else ()
        yield from (match["value"].strip("\"'") for match in assigned)
        yield from (match["value"] for match in _BASIC.finditer(value) if _is_basic(match))
        for match in (*in_url, *in_query):
            yield from (match["value"], unquote(match["value"]))
        for match in in_url:
            yield basic_credentials(unquote(match["user"]), unquote(match["value"]))
    elif inside_secret:
        yield _digits(value)


def _parts(secret: str) -> set[str]:
    """The whole secret, and each of its lines: ended by line ends, by `\\n` written out, and in a PEM key folded into one line by spaces."""
    ends = _PEM_LINE_ENDS if _PEM_MARKER.search(secret) else _LINE_ENDS
    lines = (*secret.split("\n"), *ends.split(_PEM_MARKER.sub("\n", secret)))
    return {part for part in map(str.strip, (secret, *lines)) if not _PEM_MARKER.fullmatch(part)}
