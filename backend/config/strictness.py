"""Checks beyond what starting a run needs: folders of implementations, keys nobody reads, overrides that hit nothing, absent files."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from backend.config.errors import ConfigError
from backend.config.findings import Findings
from backend.config.instances import Inventory, ServerBlock, blocks, has_entrypoint
from backend.config.interpolation import is_interpolation
from backend.config.nodes import Node, child, find, format_path, plain, walk
from backend.config.schema import GLOBAL_KEYS, SAMPLING_KEYS, SERVER_TYPES, STAND_IN_IMPLEMENTATION
from backend.errors import GymError, did_you_mean
from backend.io.roots import resolve_path

_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?\s*([A-Za-z_][\w-]*)")
_MISSPELT = 0.8
"""Similarity from which an unknown key is taken for a misspelling of a known one."""
_FILES_OF_DATASETS = ("jsonl_fpath", "prompt_config")


def check_components(inventory: Inventory, roots: Sequence[Path], findings: Findings) -> None:
    """Every server's implementation folder and entrypoint exist in some root."""
    for server in inventory.servers:
        if server.implementation == STAND_IN_IMPLEMENTATION:
            continue
        relative = f"{server.kind}/{server.implementation}"
        folder = resolve_path(relative, roots)
        entrypoint = server.node.value["entrypoint"]
        if not folder.is_dir():
            findings.error(
                ConfigError(
                    f"In server instance '{server.name}', there is no implementation '{server.implementation}' of {server.kind}",
                    place=server.node.source.place(format_path(server.path)),
                    details=[f"Looked for {relative} in:", *(f"  {root}" for root in roots)],
                    hint=did_you_mean(server.implementation, _component_names(server.kind, roots)),
                )
            )
        elif isinstance(entrypoint.value, str) and not (folder / entrypoint.value).is_file():
            findings.error(
                ConfigError(
                    f"In server instance '{server.name}', the entrypoint {folder / entrypoint.value} does not exist",
                    place=entrypoint.source.place(format_path((*server.path, "entrypoint"))),
                )
            )


def check(
    written: Node,
    root: Node,
    unmatched: Mapping[str, Node],
    inventory: Inventory,
    roots: Sequence[Path],
    findings: Findings,
    *,
    strict: bool,
) -> None:
    """Remarks on what nobody reads or finds; some are errors, and some are made at all, only when `strict`.

    `written` is the tree before interpolations were resolved; `unmatched` are the override blocks that no other layer has.
    """
    for name, block in blocks(root):
        known = any(server.name == name for server in inventory.servers) or name in inventory.almost
        if not known and name not in unmatched and not has_entrypoint(block):
            findings.warn(f"'{name}' has a server type but no entrypoint: it is not started", block.source.place(name))
    _check_override_targets(root, unmatched, inventory, findings, strict=strict)
    _check_near_misses(written, findings, every=strict)
    if strict:
        for server in inventory.servers:
            _check_dataset_files(server, roots, findings)


def _check_override_targets(
    root: Node, unmatched: Mapping[str, Node], inventory: Inventory, findings: Findings, *, strict: bool
) -> None:
    names = [server.name for server in inventory.servers]
    for name, block in unmatched.items():
        if not isinstance(block.value, dict) or not any(kind in block.value for kind in SERVER_TYPES) or name in names:
            continue
        target = child(root, name)
        if target is not None and (name in inventory.almost or has_entrypoint(target)):
            continue
        leaf = next((node for _, node in walk(block) if not isinstance(node.value, dict)), block)
        error: GymError = ConfigError(
            f"the override names the server '{name}', which no configuration defines",
            place=leaf.source.place(),
            hint=did_you_mean(str(name), names) or f"servers here: {', '.join(names) or '(none)'}",
        )
        if strict:
            findings.error(error)
        else:
            findings.warn(error.message, error.place, error.hint)


def _check_near_misses(root: Node, findings: Findings, *, every: bool) -> None:
    """Top-level keys that nothing here reads: those that look like a misspelling, or all of them."""
    read = {match[1] for _, node in walk(root) if is_interpolation(node.value) for match in _REFERENCE.finditer(node.value)}
    for key, node in root.value.items():
        name = str(key)
        if name in GLOBAL_KEYS or name in read or name.startswith("_"):
            continue
        if isinstance(node.value, dict) and any(kind in node.value for kind in SERVER_TYPES):
            continue
        near = difflib.get_close_matches(name, GLOBAL_KEYS, n=1, cutoff=_MISSPELT)
        # A word of this command line is meant for this run; env.yaml serves many configurations.
        if every or node.source.kind == "override" or (near and node.source.kind != "env_file"):
            hint = (
                f"a sampling setting is responses_create_params.{name}"
                if name in SAMPLING_KEYS
                else did_you_mean(name, GLOBAL_KEYS)
            )
            findings.warn(f"nothing reads the global key '{name}'", node.source.place(), hint)


def _check_dataset_files(server: ServerBlock, roots: Sequence[Path], findings: Findings) -> None:
    datasets = server.node.value.get("datasets")
    for index, entry in enumerate(datasets.value if datasets is not None and isinstance(datasets.value, list) else ()):
        for field in _FILES_OF_DATASETS:
            node = find(entry, (field,))
            if node is not None and isinstance(node.value, str) and not resolve_path(node.value, roots).is_file():
                name = plain(entry).get("name")
                place = node.source.place(format_path((*server.path, "datasets", index, field)))
                findings.warn(f"the file {node.value} of dataset '{name}' does not exist", place)


def _component_names(kind: str, roots: Sequence[Path]) -> Iterator[str]:
    for root in roots:
        try:
            yield from (entry.name for entry in os.scandir(root / kind) if entry.is_dir())
        except OSError:
            continue
