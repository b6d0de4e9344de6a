"""One component in detail: what is known of it, what it needs before it can run, how to use it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from backend.catalog.entries import NO_DATA, CatalogEntry, Details, Need
from backend.catalog.kinds import AGENT, BENCHMARK, KINDS, MODEL, WORKLOADS, article
from backend.catalog.listing import component_names, find_component
from backend.catalog.selectors import nearest_name
from backend.config.schema import MODELS, POLICY_MODEL, RESOURCES
from backend.config.unresolved import POLICY_KEYS
from backend.errors import GymError, Place
from backend.io.roots import resolve_path

_USUAL_MODEL_TYPES = ("vllm_model", "llama_cpp_model")
_USUAL_SERVERS = ("example_single_tool_call", "mcqa")
_ENV_FILE = "env.yaml"


def inspect_component(kinds: Sequence[str], name: str, roots: Sequence[Path]) -> Details:
    """What there is to say about the component of one of `kinds` that a name stands for.

    Raises GymError for a name that is none of them, with the nearest one, or that is one of several.
    """
    found = [entry for kind in kinds if (entry := find_component(kind, name, roots)) is not None]
    if len(found) > 1:
        places = " and ".join(f"{article(entry.described_kind)} ({entry.path})" for entry in found)
        raise GymError(f"the name '{name}' is ambiguous: {places}", hint="say which with --kind")
    if not found:
        raise GymError(f"Unknown {KINDS[kinds[0]].title} '{name}'.", hint=_hint(kinds, name, roots))
    return details_of(found[0], roots)


def details_of(entry: CatalogEntry, roots: Sequence[Path]) -> Details:
    """As `inspect_component`, for an entry of a listing."""
    return Details(entry, _facts(entry), _inherited(entry), tuple(_needs(entry, roots)), _usage_example(entry, roots))


def _facts(entry: CatalogEntry) -> tuple[tuple[str, str], ...]:
    if entry.kind == AGENT:
        composition = "self-contained (B)" if entry.self_contained else "composable (A)"
        facts = {"path": str(entry.path), "composition": composition, "variants": ", ".join(entry.variants)}
    elif entry.kind in WORKLOADS:
        manifest = entry.manifest
        facts = {
            "config": str(entry.path),
            "status": entry.status,
            "manifest": str(manifest.path) if manifest else "",
            "version": manifest.version if manifest else "",
            "profile": manifest.integration_profile if manifest else "",
            "modality": manifest.modality if manifest else "",
            "licensing": manifest.licensing if manifest else "",
            "lifecycle": manifest.lifecycle if manifest else "",
            "resources servers": ", ".join(entry.written.resources_servers),
            "agent": ", ".join(entry.written.agents[:1]),
            "datasets": ", ".join(entry.written.datasets),
        }
    else:
        facts = {"config": str(entry.path)}
    facts["hides"] = ", ".join(map(str, entry.shadowed))
    facts["broken"] = f"{entry.broken.place}: {entry.broken.message}" if entry.broken else ""
    return tuple((label, value) for label, value in facts.items() if value)


def _inherited(entry: CatalogEntry) -> tuple[tuple[str, str], ...]:
    if entry.kind not in WORKLOADS:
        return ()
    composed = {
        "resources servers": (entry.written.resources_servers, [server.implementation for server in entry.resources_servers]),
        "agents": (entry.written.agents, [server.implementation for server in entry.agents]),
        "datasets": (entry.written.datasets, [dataset.name for dataset in entry.datasets]),
    }
    return tuple((label, _listed(names)) for label, (written, names) in composed.items() if not set(names) <= set(written))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _usage_example(entry: CatalogEntry, roots: Sequence[Path]) -> str | None:
    """A command that can be typed as it stands; None where a component is of no use alone."""
    model = _first_there(_USUAL_MODEL_TYPES, MODELS, roots)
    if entry.kind == AGENT:
        return None
    if entry.kind == MODEL:
        server = _first_there(_USUAL_SERVERS, RESOURCES, roots)
        return f"gym env start --resources-server {server} --model-type {shlex.quote(entry.name)}"
    return f"gym env start {entry.flag} {shlex.quote(entry.selector)} --model-type {model}"


def _first_there(names: Sequence[str], parent: str, roots: Sequence[Path]) -> str:
    there = (name for name in names if any(os.path.isdir(root / parent / name) for root in roots))
    return next(there, names[0])


def _needs(entry: CatalogEntry, roots: Sequence[Path]) -> Iterator[Need]:
    for dataset in entry.datasets:
        if dataset.path and dataset.file is None and (dataset.type == "benchmark" or entry.kind != BENCHMARK):
            command = None
            if dataset.prepare_script and entry.flag == KINDS[BENCHMARK].flag:
                command = ("gym", "eval", "prepare", entry.flag, entry.selector)
            rest = "" if entry.state == NO_DATA else f"; only runs of the split {dataset.type} need it"
            yield Need("data", dataset.path, f"the data set {dataset.name} is not there{rest}", command)
        if dataset.prompt_config and not os.path.exists(resolve_path(dataset.prompt_config, roots)):
            yield Need("prompt", dataset.prompt_config, f"the prompt of the data set {dataset.name} is not there")
    instances = {server.instance for server in entry.servers}
    for instance in dict.fromkeys(server.model_server for server in entry.agents if server.model_server):
        if instance not in instances:
            usual = instance == POLICY_MODEL
            yield Need("model", instance, "choose one with --model-type" if usual else "is not declared in the configuration")
    given = _keys_of_env_file(roots) if entry.unset else set()
    for key in entry.unset:
        if key not in given:
            flag = POLICY_KEYS.get(key)
            message = f"is not set; {flag} or env.yaml gives it" if flag else "is not set"
            yield Need("value", key, message, place=Place(str(entry.configs[-1]) if entry.configs else None, key=key))


def _keys_of_env_file(roots: Sequence[Path]) -> set[str]:
    """The top-level keys that the user's `env.yaml` gives."""
    from backend.config.yaml_source import load_plain  # with PyYAML, which the rest of an inspection does without

    path = resolve_path(_ENV_FILE, roots)
    try:
        return {str(key) for key in load_plain(path)} if os.path.isfile(path) else set()
    except GymError:
        return set()


def _hint(kinds: Sequence[str], name: str, roots: Sequence[Path]) -> str:
    for other in KINDS:
        if other not in kinds and find_component(other, name, roots) is not None:
            return f"it is {article(KINDS[other])}: see `gym list {KINDS[other].plural} {shlex.quote(name)}`"
    near = nearest_name(name, component_names(kinds, roots))
    return f"Did you mean `{near}`?" if near else f"see `gym list {KINDS[kinds[0]].plural}`"
