"""What listings show of a `manifest.yaml`. Whether a manifest is right in every detail is checked elsewhere."""

from __future__ import annotations

from backend.catalog.facts import Facts
from backend.errors import GymError

SHOWN = ("name", "version", "kind", "integration_profile", "domain", "description", "modality")
"""Required texts."""
_DEFAULTS = {"licensing": "unknown", "lifecycle": "active"}


def manifest_facts(path: str, text: str) -> Facts:
    """The shown fields of a manifest; `broken` says why it cannot be one."""
    from backend.config.yaml_source import parse_plain  # as late as in `facts.config_facts`

    try:
        tree = parse_plain(text, path)
    except GymError as error:
        return {"broken": {"message": error.message, "line": error.place.line if error.place else None}}
    missing = [key for key in SHOWN if not isinstance(tree.get(key), str)]
    if missing:
        return {"broken": {"message": f"the manifest lacks {', '.join(missing)}"}}
    return {**{key: tree[key] for key in SHOWN}, **{key: str(tree.get(key) or value) for key, value in _DEFAULTS.items()}}


def mismatch(facts: Facts, kind: str, parent: str, name: str) -> str | None:
    """Why these facts are of no use for the workload `name` below `parent`; None when they are."""
    if facts.get("broken"):
        return str(facts["broken"]["message"])
    if facts["kind"] != kind:
        return f"its kind is {facts['kind']!r}, but it is below {parent}/"
    return f"its name is {facts['name']!r}, but its folder makes it {name!r}" if facts["name"] != name else None
