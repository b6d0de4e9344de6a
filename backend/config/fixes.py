"""Copyable ways to mend a configuration: a word for the command line, or a line for the file where no word reaches."""

from __future__ import annotations

import shlex
from typing import Any

from backend.config.nodes import KeyPath, format_path
from backend.config.schema import DATASET_TYPES, DOMAINS, LICENSES, SOURCES
from backend.errors import closest

PLACEHOLDER = "<value>"

_ALLOWED = {"domain": DOMAINS, "license": LICENSES}
_EXAMPLES = {
    "entrypoint": "app.py",
    "host": "127.0.0.1",
    "port": "null",
    "num_workers": "1",
    "num_repeats": "1",
    "domain": "other",
    "license": "TBD",
    "datasets": "[]",
    "jsonl_fpath": "data/example.jsonl",
    "prepare_script": "prepare.py",
    "name": "<name>",
}


def set_key(path: KeyPath, value: str) -> str:
    """What sets the key at `path`: an override, or the line for the file where the key is inside a list."""
    if any(isinstance(key, int) and not isinstance(key, bool) for key in path):
        return f"{path[-1]}: {value}"
    word = f"++{format_path(path)}={value}"
    return word if "<" in value else shlex.quote(word) if " " in word else word


def for_field(path: KeyPath, value: Any) -> tuple[str | None, str | None]:
    """The nearest right value for a wrong or missing field of a server, and what sets it."""
    field = str(path[-1])
    allowed = _ALLOWED.get(field, ())
    if field == "type":
        allowed = SOURCES if "source" in path else DATASET_TYPES
    near = closest(value, allowed) if isinstance(value, str) else None
    example = near or _EXAMPLES.get(field) or (allowed[-1] if allowed else None)
    return near, set_key(path, example) if example else None
