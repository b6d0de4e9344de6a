"""Keys that are still `???`: somebody must set them before anything can run."""

from __future__ import annotations

from backend.config.errors import ConfigMissingValuesError
from backend.config.findings import Findings
from backend.config.fixes import PLACEHOLDER, set_key
from backend.config.nodes import KeyPath, Node, format_path, walk
from backend.config.schema import MISSING
from backend.config.unresolved import POLICY_KEYS, unset_policy_hint


def report_unset(root: Node, findings: Findings) -> None:
    """One error for all unset keys of a tree, with a part for each; those that earlier problems explain are left out."""
    unset = [(path, node) for path, node in _missing(root) if not findings.explained([str(path[0])])]
    if not unset:
        return
    names = [format_path(path) for path, _ in unset]
    hint = "set them, for instance " + " ".join(f"++{name}={PLACEHOLDER}" for name in names[:3])
    findings.error(
        ConfigMissingValuesError(
            f"{len(names)} required config value(s) are unset",
            place=unset[0][1].source.place(),
            details=[f"  - {name} ({node.source})" for name, (_, node) in zip(names, unset, strict=True)],
            hint=unset_policy_hint() if names[0] in POLICY_KEYS else hint,
            parts=[_by_itself(path, node) for path, node in unset],
        )
    )


def _missing(root: Node) -> list[tuple[KeyPath, Node]]:
    return [(path, node) for path, node in walk(root) if isinstance(node.value, str) and node.value == MISSING]


def _by_itself(path: KeyPath, node: Node) -> ConfigMissingValuesError:
    name = format_path(path)
    flag = POLICY_KEYS.get(name)
    return ConfigMissingValuesError(
        f"required config value '{name}' is unset",
        place=node.source.place(name),
        fix=f"{flag} {PLACEHOLDER}" if flag else set_key(path, PLACEHOLDER),
    )
