"""Checks beyond what starting a run needs: folders of implementations, keys nobody reads, overrides that hit nothing, absent files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from backend.config.errors import ConfigError
from backend.config.findings import Findings
from backend.config.fixes import set_key
from backend.config.instances import Inventory, ServerBlock, blocks, has_entrypoint
from backend.config.interpolation import is_interpolation
from backend.config.nodes import Node, child, find, format_path, parse_path, plain, walk
from backend.config.reach import REFERENCE
from backend.config.schema import GLOBAL_KEYS, MISSING, SAMPLING_KEYS, SERVER_TYPES, STAND_IN_IMPLEMENTATION
from backend.errors import closest
from backend.io.roots import resolve_path

_MISSPELT = 0.8
"""Similarity from which an unknown key is taken for a misspelling of a known one."""
_MOST_GUESSES = 100
"""Unknown keys for which a name that is less similar is looked for as well."""
_FILES_OF_DATASETS = ("jsonl_fpath", "prepare_script", "prompt_config")


def check_components(inventory: Inventory, roots: Sequence[Path], findings: Findings, *, required: bool) -> None:
    """Every server's implementation folder and entrypoint exist in some root; remarks unless they are `required`."""
    for server in inventory.meant:
        if server.implementation == STAND_IN_IMPLEMENTATION:
            continue
        relative = f"{server.kind}/{server.implementation}"
        folder = resolve_path(relative, roots)
        entrypoint = server.node.value.get("entrypoint")
        if not os.path.isdir(folder):
            near = closest(server.implementation, _component_names(server.kind, roots))
            _tell(
                findings,
                ConfigError(
                    f"In server instance '{server.name}', there is no implementation '{server.implementation}' of {server.kind}",
                    place=server.node.introduced.place(format_path(server.path)),
                    details=[f"Looked for {relative} in:", *(f"  {root}" for root in roots)],
                    nearest=near,
                    fix=f"{near}:" if near else None,
                ),
                required,
            )
        elif entrypoint is not None and isinstance(entrypoint.value, str) and not os.path.isfile(folder / entrypoint.value):
            path = (*server.path, "entrypoint")
            near = closest(entrypoint.value, [file.name for file in folder.glob("*.py")])
            _tell(
                findings,
                ConfigError(
                    f"In server instance '{server.name}', the entrypoint {folder / entrypoint.value} does not exist",
                    place=entrypoint.source.place(format_path(path)),
                    nearest=near,
                    fix=set_key(path, near) if near else None,
                ),
                required,
            )


def check(
    written: Node,
    root: Node,
    unmatched: Mapping[str, Node],
    inventory: Inventory,
    roots: Sequence[Path],
    findings: Findings,
    sources: AbstractSet[str],
    *,
    strict: bool,
) -> None:
    """Remarks on what nobody reads or finds; some are errors, and some are made at all, only when `strict`.

    `written` is the tree before interpolations were resolved; `unmatched` are the override blocks that no other layer has; `sources`
    the keys that directives have read.
    """
    for name, block in blocks(root):
        known = any(server.name == name for server in inventory.servers) or name in inventory.almost
        if not known and name not in unmatched and not has_entrypoint(block):
            findings.warn(
                f"'{name}' has a server type but no entrypoint: it is not started", block.introduced.place(name), absence=[name]
            )
    _check_override_targets(root, unmatched, inventory, findings, strict=strict)
    _check_near_misses(written, findings, sources, every=strict)
    if strict:
        for server in inventory.meant:
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
        near = closest(str(name), names)
        error = ConfigError(
            f"the override names the server '{name}', which no configuration defines",
            place=leaf.source.place(str(name)),
            nearest=near,
            hint=None if near else f"servers here: {', '.join(names) or '(none)'}",
            fix=leaf.source.text.replace(str(name), near, 1) if near else None,
        )
        _tell(findings, error, strict, absence=[str(name)])


def _check_near_misses(root: Node, findings: Findings, sources: AbstractSet[str], *, every: bool) -> None:
    """Top-level keys that nothing here reads: those that look like a misspelling, or all of them."""
    texts = (node.value for _, node in walk(root) if is_interpolation(node.value))
    read = sources | {key.partition(".")[0] for text in texts for key in REFERENCE.findall(text)}
    compared = 0
    for key, node in root.value.items():
        name = str(key)
        if name in GLOBAL_KEYS or name in read or name.startswith("_"):
            continue
        if isinstance(node.value, dict) and any(kind in node.value for kind in SERVER_TYPES):
            continue
        # A word of this command line is meant for this run; env.yaml serves many configurations.
        told = every or node.source.kind == "override"
        if told or (node.source.kind != "env_file" and closest(name, GLOBAL_KEYS, _MISSPELT)):
            sampling = f"responses_create_params.{name}" if name in SAMPLING_KEYS else None
            # Who sees hundreds of these reads no guesses, which take their time: only what is surely meant is named then.
            compared += 1
            right = sampling or closest(name, GLOBAL_KEYS, *([_MISSPELT] if compared > _MOST_GUESSES else []))
            findings.warn(
                f"nothing reads the global key '{name}'",
                node.source.place(name),
                f"a sampling setting is {sampling}" if sampling else None,
                nearest=right,
                fix=set_key(parse_path(right), str(node.value)) if right and not isinstance(node.value, dict | list) else None,
            )


def _check_dataset_files(server: ServerBlock, roots: Sequence[Path], findings: Findings) -> None:
    datasets = server.node.value.get("datasets")
    for index, entry in enumerate(datasets.value if datasets is not None and isinstance(datasets.value, list) else ()):
        for field in _FILES_OF_DATASETS:
            node = find(entry, (field,))
            if node is None or not isinstance(node.value, str) or node.value == MISSING or is_interpolation(node.value):
                continue
            path = resolve_path(node.value, roots)
            if not os.path.isfile(path):
                dataset = plain(entry).get("name")
                near = closest(path.name, [name for name in _file_names(path.parent) if Path(name).suffix == path.suffix])
                findings.warn(
                    f"the file {node.value} of dataset '{dataset}' does not exist",
                    node.source.place(format_path((*server.path, "datasets", index, field))),
                    None
                    if near
                    else "prepare or download it before a run"
                    if field == "jsonl_fpath"
                    else "write it, or mend the path",
                    nearest=near,
                    fix=f"{field}: {Path(node.value).with_name(near)}" if near else None,
                )


def _tell(findings: Findings, error: ConfigError, required: bool, *, absence: Iterable[str] = ()) -> None:
    if required:
        findings.error(error, absence=absence)
    else:
        findings.remark(error, absence=absence)


def _file_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _component_names(kind: str, roots: Sequence[Path]) -> Iterator[str]:
    for root in roots:
        try:
            yield from (name for name in os.listdir(root / kind) if os.path.isdir(root / kind / name))
        except OSError:
            continue
