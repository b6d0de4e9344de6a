"""What listings show of a `manifest.yaml`. One that is not valid in every detail counts as none."""

from __future__ import annotations

from backend.catalog.facts import Facts
from backend.errors import GymError

SHOWN = ("name", "version", "kind", "integration_profile", "domain", "description", "modality")
"""Required texts."""
_DEFAULTS = {"licensing": "unknown", "lifecycle": "active"}


def manifest_facts(path: str, text: str) -> Facts:
    """The shown fields of a manifest; `broken` says why it cannot be one."""
    from backend.catalog.manifest_schema import manifest_problems  # as late as in `facts.config_facts`
    from backend.config.yaml_source import parse_plain

    try:
        tree = parse_plain(text, path)
    except GymError as error:
        return {"broken": {"message": error.message, "line": error.place.line if error.place else None}}
    if problems := manifest_problems(tree):
        return {"broken": {"message": "; ".join(problems)}}
    shown = {key: tree[key] for key in SHOWN}
    return {key: text.strip() for key, text in (shown | {key: tree.get(key, value) for key, value in _DEFAULTS.items()}).items()}


def mismatch(facts: Facts, kind: str, parent: str, name: str) -> str | None:
    """Why these facts are of no use for the workload `name` below `parent`; None when they are."""
    if facts.get("broken"):
        return str(facts["broken"]["message"])
    if facts["kind"] != kind:
        return f"its kind is {facts['kind']!r}, but it is below {parent}/"
    return f"its name is {facts['name']!r}, but its folder makes it {name!r}" if facts["name"] != name else None
