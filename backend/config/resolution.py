"""From a request to a resolved configuration: one pipeline, used to run and to validate.

Stages: layers (files, env.yaml, stand-ins, command line) are read and merged; directives; agent composition; unset values and
interpolations; servers, references, defaults. What is wrong in one stage is collected before it stops the next.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.config import composition, defaults, strictness
from backend.config.directives import apply_directives
from backend.config.errors import ConfigMissingValuesError, ConfigSyntaxError
from backend.config.findings import Finding, Findings, Unresolvable, raise_errors
from backend.config.includes import CONFIG_PATHS, LoadedFiles, config_path_entries, load_files
from backend.config.instances import Inventory, check_references, report_almost_servers, take_inventory
from backend.config.interpolation import (
    POLICY_KEYS,
    is_interpolation,
    missing_paths,
    resolve_text,
    resolve_tree,
    unset_policy_hint,
)
from backend.config.merge import merge_into
from backend.config.nodes import KeyPath, Node, Origin, Origins, child, find, format_path, node_of, parse_path, plain
from backend.config.overrides import OverrideLayer, build_layer
from backend.config.request import ConfigRequest
from backend.config.stand_in import remove_covered_stand_ins, stand_in_layer
from backend.config.yaml_source import Source, load_source
from backend.errors import GymError, Place
from backend.io.redact import Redactor
from backend.io.roots import search_roots

ENV_FILE = "env.yaml"


@dataclass(frozen=True, slots=True)
class ServerInstance:
    """A server to be started."""

    name: str
    kind: str
    """`resources_servers`, `responses_api_agents` or `responses_api_models`."""
    implementation: str
    entrypoint: str
    host: str
    port: int | None
    """None: to be chosen when the server starts."""
    num_workers: int | None
    block: Mapping[str, Any]
    """The implementation block with interpolations resolved."""


@dataclass(frozen=True)
class ResolvedConfig:
    """A configuration as a run uses it."""

    tree: dict[str, Any]
    servers: tuple[ServerInstance, ...]
    """In the order of the configuration."""
    origins: Origins
    roots: tuple[Path, ...]
    env_file: Path | None
    warnings: tuple[str, ...]
    redactor: Redactor
    """Knows the secrets of the tree, of env.yaml and of the command line."""
    hydra: Mapping[str, Any] = field(default_factory=dict)
    """Hydra's own settings from the command line by full key, for instance `hydra.run.dir`."""

    def get(self, dotted: str, default: Any = None) -> Any:
        """The value at a dotted path, `default` where there is none."""
        node = find(self.origins.root, parse_path(dotted))
        return default if node is None else plain(node)

    def server(self, name: str) -> ServerInstance | None:
        """The server instance of that name."""
        return next((server for server in self.servers if server.name == name), None)


def resolve_config(request: ConfigRequest) -> ResolvedConfig:
    """The configuration that `request` asks for, as a run would use it.

    Raises the first problem found (the `ConfigError` family), with one line for each of the others.
    """
    findings = Findings()
    resolved = resolve_collecting(request, findings)
    if findings.errors or resolved is None:
        raise_errors(findings.errors)
    assert resolved is not None
    return resolved


def resolve_collecting(request: ConfigRequest, findings: Findings, *, strict: bool = False) -> ResolvedConfig | None:
    """As `resolve_config`, but problems go to `findings`; None where a stage could not be completed."""
    try:
        return _Resolution(request, findings, strict).run()
    except Unresolvable:
        return None
    except GymError as error:
        findings.error(error)
        return None


class _Resolution:
    """One run of the pipeline."""

    def __init__(self, request: ConfigRequest, findings: Findings, strict: bool) -> None:
        self.request = request
        self.findings = findings
        self.strict = strict
        self.cwd = (request.cwd or Path.cwd()).absolute()
        self.roots = search_roots(request.search_dirs, self.cwd)
        self.unmatched: dict[str, Node] = {}

    def run(self) -> ResolvedConfig:
        for folder in self.request.search_dirs:
            if not (self.cwd / folder).is_dir():
                self.findings.warn(f"search folder '{folder}' does not exist")
        command_line = build_layer(self.request.flag_values, self.request.overrides)
        env_source = self._env_source()
        upper = self._upper_layers(env_source)
        files = self._files(upper, command_line)
        self.findings.stop_on_errors()
        root, held = self._merge(files, upper, command_line)
        root = apply_directives(root, self.findings)
        composition.compose_agents(root, held, self.findings)
        composition.add_legacy_agent_aliases(root)
        remove_covered_stand_ins(root)
        written = root.copy()
        unset = missing_paths(root)
        self._report_unset(root, unset)
        resolve_tree(root, self.findings)
        inventory = self._servers(root)
        strictness.check(written, root, self.unmatched, inventory, self.roots, self.findings, strict=self.strict)
        secrets = [plain(layer) for layer in (*upper, command_line.root)]
        tree = plain(root)
        return ResolvedConfig(
            tree=tree,
            servers=tuple(_instance(inventory, tree, position) for position in range(len(inventory.servers))),
            origins=Origins(root),
            roots=self.roots,
            env_file=env_source.path if env_source else None,
            warnings=tuple(_as_text(finding) for finding in self.findings.warnings),
            redactor=Redactor.for_tree(tree, *secrets),
            hydra=command_line.hydra,
        )

    def _env_source(self) -> Source | None:
        if not self.request.read_env_file:
            return None
        wanted = self.request.env_file
        if wanted is not None and not (self.cwd / wanted).is_file():
            raise ConfigSyntaxError("the file does not exist", place=Origin("env_file", file=str(wanted)).place())
        path = self.cwd / wanted if wanted is not None else _first_file(self.roots, ENV_FILE)
        for root in self.roots if wanted is None else ():
            found = root / ENV_FILE
            if os.path.lexists(found) and not found.is_file():
                raise ConfigSyntaxError("this is not a file that can be read", place=Place(str(found)), hint="mend or remove it")
            if found == path:
                break
        if path is None:
            return None
        source = load_source(path, "env_file")
        for message, place in source.remarks:
            self.findings.warn(message, place)
        return source

    def _upper_layers(self, env_source: Source | None) -> list[Node]:
        """What ranks above the files and below the command line."""
        layers = [env_source.root] if env_source else []
        if self.request.initial is not None:
            layers.append(node_of(dict(self.request.initial), Origin("initial", "(caller)")))
        if self.request.stand_in_model:
            layers.append(stand_in_layer())
        return layers

    def _files(self, upper: Sequence[Node], command_line: OverrideLayer) -> LoadedFiles:
        entries = [(path, Origin("flag", "--config")) for path in self.request.config_paths]
        seen = Node({}, ())
        for layer in (*upper, command_line.root):
            merge_into(seen, layer)
        replacing = command_line.root.value.get(CONFIG_PATHS)
        if replacing is not None:
            if entries or command_line.config_paths:
                self.findings.warn(
                    f"{replacing.source} replaces the list of configurations; those of flags are not loaded",
                    hint="use +config_paths=[…] to add to it",
                )
            entries = config_path_entries(seen)
        elif entries or command_line.config_paths:
            for text, origin in command_line.config_paths:
                value = resolve_text(seen, text) if is_interpolation(text) else text
                added = node_of({CONFIG_PATHS: value if isinstance(value, list) else [value]}, origin)
                entries.extend(config_path_entries(added))
        else:
            entries = config_path_entries(seen)
        return load_files(entries, self.roots, self.findings)

    def _merge(self, files: LoadedFiles, upper: Sequence[Node], command_line: OverrideLayer) -> tuple[Node, dict[str, Node]]:
        root = Node({}, ())
        for layer in (*(source.root for source in files.sources), *upper):
            merge_into(root, layer)
        overrides = command_line.root.copy()
        self.unmatched = {name: node for name, node in overrides.value.items() if name not in root.value}
        held = composition.hold_back_overrides(root, overrides)
        merge_into(root, overrides)
        if files.entries or CONFIG_PATHS in root.value:
            node = node_of(list(files.entries), Origin("default", "(all files that are loaded)"))
            previous = root.value.get(CONFIG_PATHS)
            node.history = (*(previous.history if previous else ()), *node.history)
            root.value[CONFIG_PATHS] = node
        return root, held

    def _report_unset(self, root: Node, unset: Sequence[KeyPath]) -> None:
        if not unset:
            return
        names = [format_path(path) for path in unset]
        lines = [f"  - {name}{_written_in(find(root, path))}" for name, path in zip(names, unset, strict=True)]
        first = find(root, unset[0])
        assert first is not None
        hint = "set them, for instance " + " ".join(f"++{name}=<value>" for name in names[:3])
        if names[0] in POLICY_KEYS:
            hint = unset_policy_hint()
        self.findings.error(
            ConfigMissingValuesError(
                f"{len(names)} required config value(s) are unset", place=first.source.place(), details=lines, hint=hint
            )
        )

    def _servers(self, root: Node) -> Inventory:
        inventory = take_inventory(root)
        tolerate = child(root, "error_on_almost_servers")
        report_almost_servers(inventory, self.findings, tolerated=tolerate is not None and tolerate.value is False)
        check_references(inventory, self.findings, strict=self.strict)
        if self.request.check_components:
            strictness.check_components(inventory, self.roots, self.findings)
        defaults.fill_server_defaults(root, inventory)
        defaults.fill_global_defaults(root, self.cwd, self.findings)
        defaults.check_globals(root, inventory, self.findings)
        return inventory


def _instance(inventory: Inventory, tree: Mapping[str, Any], position: int) -> ServerInstance:
    server = inventory.servers[position]
    block = tree[server.name][server.kind][server.implementation]
    workers = block.get("num_workers")
    return ServerInstance(
        name=server.name,
        kind=server.kind,
        implementation=server.implementation,
        entrypoint=str(block["entrypoint"]),
        host=str(block["host"]),
        port=block["port"],
        num_workers=int(workers) if workers is not None else None,
        block=block,
    )


def _first_file(roots: Sequence[Path], name: str) -> Path | None:
    return next((root / name for root in roots if os.path.isfile(root / name)), None)


def _written_in(node: Node | None) -> str:
    return f" ({node.source})" if node is not None and str(node.source) else ""


def _as_text(finding: Finding) -> str:
    return f"{finding} ({finding.hint})" if finding.hint else str(finding)
