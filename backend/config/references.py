"""Fields of servers that name other servers: whether what they name is there."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from backend.config.errors import ConfigError, ServerRefNotFoundError
from backend.config.findings import Findings
from backend.config.fixes import set_key
from backend.config.instances import Inventory, ServerBlock
from backend.config.interpolation import is_interpolation
from backend.config.nodes import KeyPath, Node, format_path
from backend.config.schema import MISSING, MODELS, POLICY_MODEL, SERVER_TYPES
from backend.errors import closest


def check_references(inventory: Inventory, findings: Findings, *, strict: bool) -> None:
    """Every `{type, name}` field of a server must name a server of that type.

    Misspelled types and references deeper than a direct field are not followed at run time; they are remarks, and errors when
    `strict`. What is both is told by a strict check only, as a remark.
    """
    known: dict[str, list[str]] = {kind: [] for kind in SERVER_TYPES}
    for server in inventory.meant:
        known[server.kind].append(server.name)
    for server in inventory.meant:
        for path, node in _reference_like(server):
            kind, name = (node.value[key].value for key in ("type", "name"))
            direct = len(path) == 1
            if kind in known:
                if name in known[kind] or name == MISSING or is_interpolation(name):
                    continue
                error: ConfigError = _reference_error(server, path, node, kind, name, known[kind])
            elif (direct or strict) and (near := closest(kind, SERVER_TYPES)):
                error = ServerRefNotFoundError(
                    f"In server instance '{server.name}', field '{format_path(path)}' has the unknown type '{kind}'",
                    place=node.value["type"].source.place(format_path((*server.path, *path, "type"))),
                    nearest=near,
                    fix=set_key((*server.path, *path, "type"), near),
                )
            else:
                continue
            absence = (server.name, name) if kind in known else ()
            if sum((direct, kind in known, strict)) >= 2:
                findings.error(error, absence=absence)
            else:
                findings.remark(error, absence=absence)


def _reference_like(server: ServerBlock) -> Iterator[tuple[KeyPath, Node]]:
    pending: list[tuple[KeyPath, Node]] = [((), server.node)]
    while pending:
        path, node = pending.pop(0)
        items = node.value.items() if isinstance(node.value, dict) else enumerate(node.value)
        for key, item in items:
            if not isinstance(item.value, dict | list) or (not path and key == "datasets"):
                continue
            here = (*path, key)
            if isinstance(item.value, dict) and all(
                name in item.value and isinstance(item.value[name].value, str) for name in ("type", "name")
            ):
                yield here, item
            else:
                pending.append((here, item))


def _reference_error(server: ServerBlock, path: KeyPath, node: Node, kind: str, name: str, known: list[str]) -> ConfigError:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        advice = f"Did you mean: {', '.join(repr(item) for item in near)}?"
    else:
        advice = f"Available {kind}: {', '.join(repr(item) for item in known) or '(none)'}"
    hint = advice
    if kind == MODELS and not near:
        what = "--model-type openai_model" if name == POLICY_MODEL else "--config"
        hint = f"{advice}. Add a configuration that defines it, for instance with {what}"
    return ServerRefNotFoundError(
        f"In server instance '{server.name}', field '{format_path(path)}' references {kind}/'{name}',"
        " which is not defined in the merged config",
        place=node.value["name"].source.place(format_path((*server.path, *path))),
        nearest=near[0] if near else None,
        fix=set_key((*server.path, *path, "name"), near[0])
        if near
        else "--model-type openai_model"
        if (kind, name) == (MODELS, POLICY_MODEL)
        else None,
        hint=hint,
    )
