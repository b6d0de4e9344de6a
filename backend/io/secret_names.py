"""Which names are those of secrets: `api_key`, `x-api-key`, `judge_key`, `ApiToken`, `DB_PASSWD`, in any spelling.

Whatever ends in `key` or `token` is a secret unless the words before it say otherwise: nobody can list all the services that give out
keys, but what a configuration calls a key without meaning a secret (`sort_key`, `answer_key`) is a small vocabulary. Counters, ids and
settings that only sound alike (`max_tokens`, `token_ids`, `tokenizer`, `key_metrics`, `expose_secrets`) are none.

A name that ends in `key` and is no more than that is shown masked, but not *sure*: its value is not looked for elsewhere, where it may be
an ordinary word, and no command is refused for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from backend.io.late_pattern import late

_CHUNKS = late(r"[A-Za-z0-9]+")
_WORDS = late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset({
    "secret", "secrets", "credential", "credentials", "authorization", "bearer", "apikey", "cookie", "cookies", "jwt",
})  # fmt: skip
_SECRET_PAIRS = frozenset({("auth", "header"), ("auth", "headers"), ("basic", "auth"), ("http", "auth"), ("proxy", "auth")})
# Names written without separators: no word boundary tells `hftoken` from `tokenizer`, so only these compounds count.
_COMPOUND = late(
    r"passw(?:or)?d|passphrase|(?:api|access|secret|private|auth)(?:keys?|tokens?)\d*$|(?:bearer|refresh|session|hf|hub)token\d*$"
)
# Before `key` that is not the last word, and before `keys`.
_BEFORE_KEY = frozenset({
    "api", "access", "secret", "private", "signing", "encryption", "auth", "account", "subscription", "session", "master",
    "ssh", "tls", "license", "openai", "anthropic", "azure", "aws", "gemini", "google", "hf", "huggingface", "nvidia", "ngc",
    "openrouter", "wandb",
})  # fmt: skip
_READABLE_BEFORE_KEY = frozenset({
    # data bases and collections
    "sort", "group", "primary", "foreign", "partition", "composite", "unique", "surrogate", "candidate", "natural", "index", "join",
    "order", "cache", "shard", "hash", "dedup", "dedupe", "dup", "duplicate", "idempotency", "correlation", "routing", "lookup",
    # what a field is called
    "column", "field", "row", "json", "dict", "map", "mapping", "object", "property", "attribute", "attr", "param", "parameter", "arg",
    "option", "setting", "config", "path", "id", "class", "type", "kind", "category", "tag", "data", "dataset", "split", "record",
    "item", "entry", "entity", "name", "value", "label", "title", "description", "prefix", "suffix", "multi", "subset", "by",
    # what a task or a result is made of
    "input", "output", "inputs", "outputs", "question", "answer", "prompt", "message", "messages", "completion", "request", "response",
    "problem", "solution", "task", "sample", "example", "episode", "rollout", "turn", "step", "trace", "choice", "choices", "context",
    "instruction", "template", "target", "reference", "expected", "truth", "gold", "prediction", "text", "image", "images", "audio",
    "video", "content", "document", "payload", "artifact", "result", "results", "metric", "metrics", "reward", "score", "verdict",
    "feature", "topic", "language", "state", "status", "mask", "query", "history", "conversation", "system", "role", "test", "tests",
    "code", "rubric", "url", "file", "doc", "time", "date", "source", "schema", "uuid", "tool", "level", "subject", "observation", "action",
    "weight", "filter", "has", "tokenizer",
    # parts of trees, and keyboards
    "parent", "child", "nested", "env", "out", "delete", "hot", "modifier", "shortcut", "arrow",
    # the half of a pair that is given away
    "public",
})  # fmt: skip
_BEFORE_TOKENS = frozenset({
    "api", "access", "secret", "auth", "bearer", "refresh", "hf", "github", "gitlab", "bot", "slack", "discord", "telegram", "oauth",
    "login", "deploy",
})  # fmt: skip
_COUNTED_TOKENS = frozenset({
    "", "max", "min", "stop", "eos", "bos", "pad", "unk", "cls", "sep", "mask", "special", "added", "extra", "start", "end", "think",
    "thinking", "image", "audio", "video", "text", "new", "total", "num", "n", "input", "output", "prompt", "completion", "context",
    "cached", "cache", "reasoning", "generated", "generation", "draft", "accepted", "rejected", "prediction", "word", "words", "bad",
    "banned", "allowed", "suppress", "forced", "top", "target", "vocab", "subword", "control", "reserved", "ignore", "keep", "skip",
    "turn", "call", "role", "format",
})  # fmt: skip
"""Before `tokens`: a list of texts below such a name is what a model reads or writes."""
_READABLE_AFTER_TOKEN = frozenset({
    "id", "ids", "count", "counts", "limit", "limits", "capture", "budget", "usage", "per", "rate", "length", "metrics",
    "information", "type", "cap", "latency", "throughput", "level",
})  # fmt: skip
_READABLE_BEFORE_TOKEN = frozenset({
    "max", "min", "stop", "eos", "bos", "pad", "unk", "cls", "sep", "mask", "special", "image", "audio", "video", "per", "total", "num",
    "start", "end", "think", "abstention", "delimiter", "separator",
})  # fmt: skip
_COUNTING = frozenset({"max", "min", "num", "n", "total", "per", "to", "mean", "median", "avg"})
_COUNTED = frozenset({"new", "input", "output", "prompt", "completion", "generated", "first", "last", "next"})
_MAYBE = late("token|key|secret|credential|authori|auth|bearer|cookie|jwt|pwd|passw|passphrase", re.IGNORECASE)
"""What is in every secret's name; most names are dismissed by it, a hundred times as fast as by taking them apart."""
_SWITCHES = frozenset({"expose", "hide", "show", "mask", "redact"})
"""A name that begins like this and ends in one of `_SWITCHED` says what to do with secrets."""
_SWITCHED = frozenset({"secrets", "credentials", "cookies"})

_SERVER_TYPES = frozenset({"responses_api_models", "resources_servers", "responses_api_agents"})
_NAMED_BELOW = _SERVER_TYPES | {"agent_map", "num_repeats", "fan_out"}
"""The keys in these mappings are names of servers; somebody may call one `secret_santa` or `token_counter`."""


@lru_cache(maxsize=1 << 16)
def is_secret_key(key: str, sure: bool = False) -> bool:
    """Whether a mapping key names a secret; with `sure`, whether there is no doubt."""
    return _MAYBE.search(key) is not None and names_secret(key, sure)


def names_secret(key: str, sure: bool = False) -> bool:
    """As `is_secret_key`, without its quick look."""
    words = _words_of(key)
    if not words or (words[0] in _SWITCHES and words[-1] in _SWITCHED):
        return False
    last = len(words) - 1
    for position, word in enumerate(words):
        previous = words[position - 1] if position else ""
        if word == "key" and position == last:
            if previous in _BEFORE_KEY or not ((previous and sure) or previous in _READABLE_BEFORE_KEY):
                return True
        elif word == "token":
            if not _is_readable_token(words, position):
                return True
        elif (
            word in _SECRET_WORDS
            or (previous, word) in _SECRET_PAIRS
            or (word in ("key", "keys") and previous in _BEFORE_KEY)
            or (word == "tokens" and previous in _BEFORE_TOKENS)
            or (word == "pwd" and previous)
        ):
            return True
    return words == ["keys"] or any(_COMPOUND.search(chunk.lower()) for chunk in _CHUNKS.findall(key))


def holds_secret(key: Any, value: Any = None, parent: Any = None, *, sure: bool = False) -> bool:
    """Whether `value`, below `key` in the mapping that is called `parent`, is a secret by its name. A server's name gives none away.

    `…_tokens` is a number in most places; where it is a list of texts, these are secrets unless they are what a model reads.
    """
    if parent in _NAMED_BELOW or (isinstance(value, Mapping) and not _SERVER_TYPES.isdisjoint(value)):
        return False
    name = str(key)
    return is_secret_key(name, sure) or (not sure and isinstance(value, list | tuple) and _is_list_of_tokens(name, value))


def is_secret_path(path: Sequence[Any], value: Any = None, *, sure: bool = False) -> bool:
    """Whether a key of `path`, from the top of a tree, holds a secret; `value` is what the last one holds."""
    inner = [*([None] * (len(path) - 2)), value]
    below = [*([item] if isinstance(key, int) else {key: None} for key, item in zip(path[1:], inner, strict=False)), value]
    return any(holds_secret(*each, sure=sure) for each in zip(path, below, (None, *path), strict=False))


def _words_of(key: str) -> list[str]:
    """The words of a name in lower case, without the number at the end of `api_key_2`."""
    words = [word.lower() for word in _WORDS.findall(key)]
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    return words


def _is_readable_token(words: Sequence[str], position: int) -> bool:
    """Whether the `token` at this position is a piece of text or counts some."""
    before = ("", "", *words)[position : position + 2]
    return (
        (position + 1 < len(words) and words[position + 1] in _READABLE_AFTER_TOKEN)
        or before[1] in _READABLE_BEFORE_TOKEN
        or (before[1] in _COUNTED and before[0] in _COUNTING)
    )


def _is_list_of_tokens(name: str, items: Sequence[Any]) -> bool:
    """Whether these are texts (None stands for any value) in a list that is called `…_tokens`, and no counted pieces of text."""
    if "oken" not in name.lower():
        return False
    words = ["", *_words_of(name)]
    return (
        words[-1] == "tokens"
        and words[-2] not in _COUNTED_TOKENS
        and all(item is None or isinstance(item, str) for item in items)
        and bool(items)
    )
