"""The one redactor: masks secrets by the name of their key, and by value wherever they turn up in text.

By name, in any spelling and nesting: `api_key`, `x-api-key`, `ApiToken`, `DB_PASSWD`, but not counters and settings that only sound
alike (`max_tokens`, `tokenizer`, `key_metrics`, `expose_secrets`). By value: every secret of at least `MIN_SECRET_LENGTH` characters
or digits that is not a placeholder, each line of a multi-line secret for itself, because text is masked line by line. Passwords
inside URLs, secret parameters of query strings and bearer tokens are masked in any text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

MASK = "****"
MIN_SECRET_LENGTH = 8
PLACEHOLDERS = frozenset({
    "dummy", "dummy_key", "dummy-key", "dummy_api_key", "none", "null", "empty", "not-needed", "changeme", "placeholder",
})  # fmt: skip

_CHUNKS = re.compile(r"[A-Za-z0-9]+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset({
    "secret", "secrets", "credential", "credentials", "authorization", "bearer", "apikey", "cookie", "cookies", "jwt",
})  # fmt: skip
# Names written without separators: no word boundary tells `hftoken` from `tokenizer`, so only these compounds count.
_COMPOUND = re.compile(
    r"passw(?:or)?d|passphrase|(?:api|access|secret|private|auth)(?:keys?|tokens?)\d*$|(?:bearer|refresh|session|hf|hub)token\d*$"
)
_BEFORE_KEY = frozenset({
    "api", "access", "secret", "private", "signing", "encryption", "auth", "account", "subscription", "session", "master",
    "ssh", "tls", "license", "openai", "anthropic", "azure", "aws", "gemini", "google", "hf", "huggingface", "nvidia", "ngc",
    "openrouter", "wandb",
})  # fmt: skip
_BEFORE_TOKENS = frozenset({"api", "access", "secret", "auth", "bearer", "refresh", "hf"})
_READABLE_AFTER_TOKEN = frozenset({
    "id", "ids", "count", "counts", "limit", "limits", "capture", "budget", "usage", "per", "rate", "length", "metrics",
    "information", "type", "cap",
})  # fmt: skip
_READABLE_BEFORE_TOKEN = frozenset({
    "max", "min", "stop", "eos", "bos", "pad", "unk", "cls", "sep", "mask", "special", "image", "audio", "video", "new",
    "per", "total", "num", "input", "output", "prompt", "first", "last",
})  # fmt: skip
_MAYBE = re.compile("token|key|secret|credential|authori|bearer|cookie|jwt|pwd|passw|passphrase", re.IGNORECASE)
"""What is in every secret's name; most names are dismissed by it, a hundred times as fast as by taking them apart."""
_SWITCHES = frozenset({"expose", "hide", "show", "mask", "redact"})
"""A key that begins like this says what to do with secrets."""

_SERVER_TYPES = frozenset({"responses_api_models", "resources_servers", "responses_api_agents"})
_NAMED_BELOW = _SERVER_TYPES | {"agent_map", "num_repeats", "fan_out"}
"""The keys in these mappings are names of servers; somebody may call one `secret_santa` or `token_counter`."""

_UNREVEALING = frozenset(("", "null", "true", "false"))
_PEM_MARKER = re.compile(r"-----[A-Z0-9 ]+-----")
_LINE_ENDS = re.compile(r"(?:\\[nr]|[\r\n])+")
_PEM_LINE_ENDS = re.compile(r"(?:\\[nr]|\s)+")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token)\s+(?P<value>\S+)")
# `Basic` is a word of prose; what follows it is a credential only after the header's name.
_BEARER = re.compile(r"(?i)(?P<scheme>\bbearer|authorization\W{1,5}basic)\s+(?P<value>[A-Za-z0-9._~+/=-]{8,})")
# An unencoded `@` belongs to the user or the password: the last one before the path ends them. What follows the colon and is no port is a
# password even when a `/` is in it.
_URL_CREDENTIALS = re.compile(
    r"""://(?P<user>(?!\[)[^\s/:"'<>]*):(?P<value>[^\s/"'<>]+(?=@)|(?!\d*[/?#])[^\s"'<>]{1,200}(?=@))@"""
)
_QUERY = re.compile(r"""(?P<lead>[?&;#](?P<key>[\w.%-]{1,80})=)(?P<value>[^&\s#"'<>\\]+)""")
_IN_BRACES = re.compile(
    r"""(?P<lead>(?<![\w.-])(?P<key>[\w.-]+)["']?\s*:\s*)(?P<value>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|[^\s,{}\[\]"'][^,{}\[\]]*)"""
)
# argparse takes any unambiguous beginning of `--…-api-key`.
_CUT_SHORT = re.compile(r"-a(?:pi?|pi-(?:ke?)?)?$")


@lru_cache(maxsize=1 << 16)
def is_secret_key(key: str) -> bool:
    """Whether a mapping key names a secret."""
    return _MAYBE.search(key) is not None and _names_secret(key)


def _names_secret(key: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(key)]
    if not words or words[0] in _SWITCHES:
        return False
    for previous, word, following in zip(("", *words), words, (*words[1:], ""), strict=False):
        if word == "token":
            if following not in _READABLE_AFTER_TOKEN and previous not in _READABLE_BEFORE_TOKEN:
                return True
        elif (
            word in _SECRET_WORDS
            or (word in ("key", "keys") and previous in _BEFORE_KEY)
            or (word == "tokens" and previous in _BEFORE_TOKENS)
            or (word == "pwd" and previous)
        ):
            return True
    return words in (["key"], ["keys"]) or any(_COMPOUND.search(chunk.lower()) for chunk in _CHUNKS.findall(key))


def holds_secret(key: Any, value: Any = None, parent: Any = None) -> bool:
    """Whether `value`, below `key` in the mapping that is called `parent`, is a secret by its name. A server's name gives none away."""
    named = parent in _NAMED_BELOW or (isinstance(value, Mapping) and not _SERVER_TYPES.isdisjoint(value))
    return not named and is_secret_key(str(key))


def is_secret_path(path: Sequence[Any], value: Any = None) -> bool:
    """Whether a key of `path`, from the top of a tree, holds a secret; `value` is what the last one holds."""
    below = [*({key: None} for key in path[1:]), value]
    return any(map(holds_secret, path, below, (None, *path)))


def collect_secrets(tree: Any) -> frozenset[str]:
    """The secret values below `tree` that are worth masking by value, multi-line ones whole and line by line."""
    return frozenset(part for secret in _secrets_of(tree) for part in _parts(secret) if is_maskable(part))


def is_maskable(value: str) -> bool:
    """Whether a secret is long and particular enough to be masked wherever it turns up in text."""
    return len(value) >= MIN_SECRET_LENGTH and value.lower() not in PLACEHOLDERS and not value.startswith("${")


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

    def text(self, text: str) -> str:
        """`text` with every known secret, URL credential, secret query parameter and bearer token masked."""
        if self._pattern:
            text = self._pattern.sub(MASK, text)
        if "://" in text:
            text = _URL_CREDENTIALS.sub(rf"://\g<user>:{MASK}@", text)
        if "=" in text:
            text = _QUERY.sub(_masked_by_key, text)
        return _BEARER.sub(rf"\g<scheme> {MASK}", text)

    def tree(self, value: Any, parent: Any = None) -> Any:
        """A copy of `value` with secrets masked by key name and by value, also where a value has become a key.

        Below a secret key, mappings and lists keep their shape, and null, booleans and `""` stay: they hide nothing. `parent` is the
        key that holds `value`.
        """
        if isinstance(value, Mapping):
            return {
                self.key(key): _masked(item) if holds_secret(key, item, parent) else self.tree(item, key)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.tree(item) for item in value]
        if isinstance(value, str):
            return self.text(value)
        return MASK if _digits(value) in self.secrets else value

    def key(self, key: Any) -> Any:
        """A key of a mapping as it may be shown."""
        return self.text(key) if isinstance(key, str) else key


def mask_command(words: Sequence[str], redactor: Redactor) -> list[str]:
    """The words of a command line as they may be kept: masked by value, and whatever its length by the name of its key or option.

    Knows `key=VALUE` with any prefix and dotted key, `--option VALUE`, `--option=VALUE`, and `{key: VALUE}` within a word.
    """
    shown = []
    value_follows = False
    for word in words:
        key, equals, value = word.partition("=")
        is_option = word.startswith("--")
        secret = bool(equals or is_option) and _is_secret_word(key)
        if value_follows and not is_option:
            word, secret = _hidden(word), False
        elif secret and equals:
            word = f"{key}={_hidden(value)}"
        elif "{" in word:
            word = _IN_BRACES.sub(_masked_by_key, word)
        shown.append(redactor.text(word))
        value_follows = secret and is_option and not equals
    return shown


def _is_secret_word(key: str) -> bool:
    return is_secret_path(key.lstrip("+~").split(".")) or (key.startswith("--") and _CUT_SHORT.search(key) is not None)


def _hidden(value: str) -> str:
    return value if value.lower() in _UNREVEALING else MASK


def _masked_by_key(match: re.Match[str]) -> str:
    return match["lead"] + _hidden(match["value"]) if is_secret_key(match["key"]) else match[0]


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


def _secrets_of(value: Any, parent: Any = None, *, inside_secret: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets_of(item, key, inside_secret=inside_secret or holds_secret(key, item, parent))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_of(item, inside_secret=inside_secret)
    elif isinstance(value, str):
        if inside_secret:
            yield value
            if scheme := _SCHEME.fullmatch(value.strip()):
                yield scheme["value"]
        in_url = list(_URL_CREDENTIALS.finditer(value)) if "://" in value else []
        in_query = (match for match in _QUERY.finditer(value) if is_secret_key(match["key"])) if "=" in value else ()
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
