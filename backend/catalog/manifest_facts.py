"""What listings show of a `manifest.yaml`. Whether a manifest is right in every detail is checked elsewhere."""

from __future__ import annotations

from backend.catalog.scan import Facts
from backend.errors import GymError

SHOWN = ("name", "version", "kind", "integration_profile", "domain", "description", "modality")
"""Required texts."""
_DEFAULTS = {"licensing": "unknown", "lifecycle": "active"}


def manifest_facts(path: str, text: str) -> Facts:
    """The shown fields of a manifest; `broken` says why it cannot be one."""
    from backend.config.yaml_source import parse_plain  # as late as in `scan.config_facts`

    try:
        tree = parse_plain(text, path)
    except GymError as error:
        return {"broken": error.message}
    missing = [key for key in SHOWN if not isinstance(tree.get(key), str)]
    if missing:
        return {"broken": f"the manifest lacks {', '.join(missing)}"}
    return {**{key: tree[key] for key in SHOWN}, **{key: str(tree.get(key) or value) for key, value in _DEFAULTS.items()}}
