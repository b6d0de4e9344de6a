"""What the catalogue keeps of a YAML file: its shape, and the few values that listings show.

All other values are left out, so that the cache of facts holds no secret and stays small. The shape stays whole: a configuration composed
of several files keeps its merges and directives.
"""

from __future__ import annotations

import re
from typing import Any

from backend.config.schema import COPY, DELETE_KEY, INHERIT_FROM, MISSING
from backend.errors import GymError

Facts = dict[str, Any]
"""JSON values only."""

CONFIG_PATHS = "config_paths"
_BLOCK_TEXTS = frozenset({"domain", "description", "value"})
"""Kept in server blocks only: elsewhere a `value` may be anything."""
_BLOCK_DEPTH = 4
"""Below instance, type and implementation."""
_DATASET_FIELDS = frozenset({"jsonl_fpath", "prompt_config", "prepare_script", "num_repeats", "license"})
_KEPT = frozenset({"datasets", "name", "type", "allowed_agents", INHERIT_FROM, COPY, DELETE_KEY}) | _DATASET_FIELDS
_REFERENCE = re.compile(r"^\$\{(?:(?:inherit_from|copy):)?[\w.-]+\}$")
"""An interpolation of another key; those of the environment may carry secrets as defaults."""


def config_facts(path: str, text: str) -> Facts:
    """Facts of a configuration file.

    `benchmarks` counts the mappings with `type: benchmark` at any depth, `includes` are its `config_paths`, `tree` is its shape. A file
    that is no YAML mapping has `broken` instead: message, line and column.
    """
    from backend.config.yaml_source import parse_plain  # PyYAML takes 0.03 s to import, and a warm cache does without

    try:
        tree = parse_plain(text, path)
    except GymError as error:
        place = error.place
        return {"broken": {"message": error.message, "line": place and place.line, "column": place and place.column}}
    includes = tree.pop(CONFIG_PATHS, None)
    reader = _Reader()
    shape = reader.shape(tree, "", 0)
    return {
        "benchmarks": reader.benchmarks,
        "includes": [item for item in includes if isinstance(item, str)] if isinstance(includes, list) else [],
        "tree": shape,
    }


def benchmark_facts(path: str, text: str) -> Facts:
    """As `config_facts`, but a file whose name and text cannot declare a benchmark is not parsed and has `unparsed` instead of a tree."""
    if ("benchmark" in text and "type" in text) or path.endswith("/config.yaml"):
        return config_facts(path, text)
    return {"benchmarks": 0, "unparsed": True}


class _Reader:
    """One walk over a parsed file; a mapping that several aliases stand for is walked once for each."""

    def __init__(self) -> None:
        self.benchmarks = 0
        """Mappings with `type: benchmark`."""

    def shape(self, value: Any, key: str, depth: int) -> Any:
        if isinstance(value, dict):
            self.benchmarks += value.get("type") == "benchmark"
            return {str(name): self.shape(item, str(name), depth + 1) for name, item in value.items()}
        if isinstance(value, list):
            items = [self.shape(item, key, depth + 1) for item in value]
            return items if key in _KEPT else []
        if isinstance(value, str | int | float) and (key in _KEPT or (key in _BLOCK_TEXTS and depth == _BLOCK_DEPTH)):
            return value
        if isinstance(value, str) and (value == MISSING or _REFERENCE.match(value)):
            return value
        return None
