"""The one redactor: masks secrets by the name of their key, and by value wherever they turn up in text.

By name, in any case and nesting: keys whose words contain one of `SECRET_WORDS`, except counters and settings that only sound
alike (`max_tokens`, `tokenizer`, `key_metrics`). By value: every secret of at least `MIN_SECRET_LENGTH` characters that is not a
placeholder. Credentials inside URLs are masked in any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "****"
MIN_SECRET_LENGTH = 8
PLACEHOLDERS = frozenset(
    {
        "dummy",
        "dummy_key",
        "dummy-key",
        "dummy_api_key",
        "none",
        "null",
        "empty",
        "not-needed",
        "changeme",
        "placeholder",
    }
)

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_SINGLE = frozenset(
    {
        "token",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "secrets",
        "credential",
        "credentials",
        "authorization",
        "bearer",
        "apikey",
        "cookie",
    }
)
_KEY_PREFIXES = frozenset(
    {"api", "access", "secret", "private", "signing", "encryption", "auth", "account", "subscription", "session"}
)
_NOT_SECRET_AFTER_TOKEN = frozenset(
    {
        "id",
        "ids",
        "count",
        "counts",
        "limit",
        "limits",
        "capture",
        "budget",
        "usage",
        "per",
        "rate",
        "length",
        "metrics",
        "information",
        "type",
        "cap",
    }
)
_NOT_SECRET_BEFORE_TOKEN = frozenset(
    {"max", "min", "stop", "eos", "bos", "pad", "per", "total", "num", "input", "output", "prompt", "first", "last"}
)
_URL_CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^\s/@:]*):(?P<password>[^\s/@]+)@")
_BEARER = re.compile(r"(?i)\b(?P<scheme>bearer|basic)\s+(?P<value>[A-Za-z0-9._~+/=-]{8,})")


def is_secret_key(key: str) -> bool:
    """Whether a mapping key names a secret."""
    words = [word.lower() for word in _WORDS.findall(key)]
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else None
        previous = words[index - 1] if index else None
        if word == "token":
            if following not in _NOT_SECRET_AFTER_TOKEN and previous not in _NOT_SECRET_BEFORE_TOKEN:
                return True
        elif word in _SECRET_SINGLE or (word in ("key", "keys") and previous in _KEY_PREFIXES):
            return True
    return words in (["key"], ["keys"])


def collect_secrets(tree: Any) -> frozenset[str]:
    """The secret values below `tree` that are worth masking by value."""
    found: set[str] = set()
    _collect(tree, found, inside_secret=False)
    return frozenset(found)


def is_maskable(value: str) -> bool:
    """Whether a secret is long and particular enough to be masked wherever it turns up in text."""
    return len(value) >= MIN_SECRET_LENGTH and value.lower() not in PLACEHOLDERS and not value.startswith("${")


class Redactor:
    """Masks the secrets it was given, and whatever a key's name gives away, in trees and in text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets = frozenset(secret for secret in secrets if is_maskable(secret))
        longest_first = sorted(self.secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    @classmethod
    def for_tree(cls, *trees: Any) -> Redactor:
        """A redactor for all secrets found below some trees."""
        return cls(secret for tree in trees for secret in collect_secrets(tree))

    def text(self, text: str) -> str:
        """`text` with every known secret, URL credential and bearer token masked."""
        if self._pattern:
            text = self._pattern.sub(MASK, text)
        if "://" in text:
            text = _URL_CREDENTIALS.sub(rf"\g<scheme>\g<user>:{MASK}@", text)
        return _BEARER.sub(rf"\g<scheme> {MASK}", text)

    def tree(self, value: Any) -> Any:
        """A copy of `value` with secrets masked by key name and by value; lists under a secret key keep their length."""
        if isinstance(value, Mapping):
            return {key: _masked(item) if is_secret_key(str(key)) else self.tree(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(item) for item in value]
        return self.text(value) if isinstance(value, str) else value


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return MASK


def _collect(value: Any, found: set[str], *, inside_secret: bool) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _collect(item, found, inside_secret=inside_secret or is_secret_key(str(key)))
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, found, inside_secret=inside_secret)
    elif isinstance(value, str):
        if inside_secret and is_maskable(value):
            found.add(value)
        for match in _URL_CREDENTIALS.finditer(value):
            if is_maskable(match["password"]):
                found.add(match["password"])
