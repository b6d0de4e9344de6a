"""Configuration trees as YAML text that reads back as the same values."""

from __future__ import annotations

from typing import Any

import yaml

from backend.config.yaml_loader import FLOAT, FLOAT_STARTS, FLOAT_TAG

_BASE_DUMPER: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_BASE_DUMPER):
    """PyYAML's safe dumper; it quotes texts that only this dialect takes for numbers, and writes equal lists twice, not as aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_implicit_resolver(FLOAT_TAG, FLOAT, FLOAT_STARTS)


def to_yaml(tree: Any) -> str:
    """`tree` (plain values) as YAML in block style, keys in their order; ends with a line end."""
    options: dict[str, Any] = {"sort_keys": False, "default_flow_style": False, "allow_unicode": True, "width": 1 << 20}
    try:
        text: str = yaml.dump(tree, Dumper=_Dumper, **options)
    except UnicodeEncodeError:  # a lone surrogate, from bytes that are no text
        text = yaml.dump(_encodable(tree), Dumper=_Dumper, **options)
    return text


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
