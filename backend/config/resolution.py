"""From a request to a resolved configuration: one pipeline, used to run and to validate.

Stages: layers (files, env.yaml, stand-ins, command line) are read and merged; directives; agent composition; unset values and
interpolations; servers, references, defaults. What is wrong in one stage is collected before it stops the next.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from backend.config import composition, defaults, stages, strictness
from backend.config.directives import apply_directives
from backend.config.errors import ConfigError, ConfigMergeError, ConfigSyntaxError
from backend.config.findings import Findings
from backend.config.handed_down import resolve_handed_down
from backend.config.includes import CONFIG_PATHS, LoadedFiles, config_path_entries, load_files
from backend.config.instances import Inventory, blocks, report_almost_servers, take_inventory
from backend.config.interpolation import (
    is_interpolation,
    resolve_text,
    resolve_tree,
)
from backend.config.legacy_agents import follow_legacy_agent_names
from backend.config.merge import merge_into
from backend.config.missing_values import report_unset
from backend.config.nodes import (
    KeyPath,
    Node,
    Origin,
    Origins,
    Setting,
    child,
    node_of,
    plain,
)
from backend.config.overrides import OverrideLayer, build_layer
from backend.config.references import check_references
from backend.config.request import ConfigRequest
from backend.config.resolved import ResolvedConfig, ServerInstance, remark_text, secrets_of, server_instances
from backend.config.schema import AGENTS
from backend.config.stages import StageRecorder
from backend.config.stand_in import remove_covered_stand_ins, stand_in_layer
from backend.config.yaml_source import Source, load_source
from backend.errors import GymError, Place
from backend.io.redact import Redactor, collect_secrets
from backend.io.roots import search_roots

__all__ = ["ENV_FILE", "ResolvedConfig", "ServerInstance", "resolve_collecting", "resolve_config"]

ENV_FILE = "env.yaml"


def resolve_config(request: ConfigRequest) -> ResolvedConfig:
    """The configuration that `request` asks for, as a run would use it.

    Raises the first problem found (the `ConfigError` family), with one line for each of the others.
    """
    findings = Findings()
    resolved = resolve_collecting(request, findings)
    findings.raise_first()
    assert resolved is not None
    return resolved


def resolve_collecting(
    request: ConfigRequest, findings: Findings, *, strict: bool = False, recorder: StageRecorder | None = None
) -> ResolvedConfig | None:
    """As `resolve_config`, but problems go to `findings`, and what is left without the broken parts is resolved all the same.

    None where nothing can be resolved. `recorder` is shown the tree after each stage.
    """
    try:
        if (handed_down := resolve_handed_down(request, findings, recorder)) is not None:
            return handed_down
        return _Resolution(request, findings, strict, recorder).run()
    except GymError as error:
        findings.broken(error)
        return None


class _Resolution:
    """One run of the pipeline."""

    def __init__(self, request: ConfigRequest, findings: Findings, strict: bool, recorder: StageRecorder | None) -> None:
        self.request = request
        self.findings = findings
        self.strict = strict
        self.recorder = recorder
        self.cwd = (request.cwd or Path.cwd()).absolute()
        self.roots = search_roots(request.search_dirs, self.cwd)
        self.unmatched: dict[str, Node] = {}

    def run(self) -> ResolvedConfig:
        for folder in self.request.search_dirs:
            if not os.path.isdir(self.cwd / folder):
                self.findings.warn(f"search folder '{folder}' does not exist")
        command_line = build_layer(self.request.flag_values, self.request.overrides, self._wrong_word)
        try:
            env_source = self._env_source()
        except ConfigError as error:
            self.findings.broken(error)
            env_source = None
        upper = self._upper_layers(env_source)
        files = self._files(upper, command_line)
        layers = [*(source.root for source in files.sources), *upper, command_line.root]
        secrets = frozenset(secrets_of(layers))
        self.findings.redactor = Redactor(secrets)
        if self.recorder:
            self.recorder.read(files, upper, command_line)
        root, held = self._merge(files, upper, command_line)
        self._note(stages.MERGED, root)
        sources: set[str] = set()
        root = apply_directives(root, self.findings, sources)
        self._compose(root, held)
        remove_covered_stand_ins(root)
        self._note(stages.INHERITED, root)
        written = root.copy()
        report_unset(root, self.findings)
        defaults.fill_absent_globals(root, self.cwd)
        resolve_tree(root, self.findings, as_validated=self.request.validate_only)
        self._note(stages.INTERPOLATED, root)
        inventory = self._servers(root)
        self._note(stages.VALIDATED, root)
        strictness.check(written, root, self.unmatched, inventory, self.roots, self.findings, sources, strict=self.strict)
        tree = plain(root)
        self.findings.redactor = Redactor(secrets | collect_secrets(tree))
        return ResolvedConfig(
            tree=tree,
            servers=server_instances(inventory, tree),
            origins=Origins(root),
            roots=self.roots,
            env_file=env_source.path if env_source else None,
            warnings=tuple(remark_text(finding) for finding in self.findings.warnings),
            redactor=self.findings.redactor,
            hydra=command_line.hydra,
        )

    def _note(self, stage: str, root: Node) -> None:
        if self.recorder:
            self.recorder.after(stage, root)

    def _wrong_word(self, error: GymError, key: str) -> None:
        self.findings.broken(error, key.partition(".")[0])

    def _wrong_merge(self, error: ConfigMergeError, path: KeyPath) -> None:
        self.findings.broken(error, str(path[0]))

    def _compose(self, root: Node, held: dict[str, Node]) -> None:
        try:
            composition.compose_agents(root, held, self.findings)
            follow_legacy_agent_names(root)
        except ConfigError as error:
            self.findings.broken(error, *(name for name, block in blocks(root) if AGENTS in block.value))

    def _env_source(self) -> Source | None:
        if not self.request.read_env_file:
            return None
        wanted = self.request.env_file
        if wanted is not None and not os.path.isfile(self.cwd / wanted):
            raise ConfigSyntaxError("the file does not exist", place=Origin("env_file", file=str(wanted)).place())
        path = self.cwd / wanted if wanted is not None else _first_file(self.roots, ENV_FILE)
        for root in self.roots if wanted is None else ():
            found = root / ENV_FILE
            if os.path.lexists(found) and not os.path.isfile(found):
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
            merge_into(root, layer, report=self._wrong_merge)
        overrides = command_line.root.copy()
        self.unmatched = {name: node for name, node in overrides.value.items() if name not in root.value}
        held = composition.hold_back_overrides(root, overrides)
        merge_into(root, overrides, report=self._wrong_merge)
        if files.entries or CONFIG_PATHS in root.value:
            paths = [node_of(entry, origin) for entry, origin in files.entries.items()]
            previous = root.value.get(CONFIG_PATHS)
            setting = Setting(Origin("default", "(all files that are loaded)"), paths)
            root.value[CONFIG_PATHS] = Node(paths, (*(previous.history if previous else ()), setting))
        return root, held

    def _servers(self, root: Node) -> Inventory:
        inventory = take_inventory(root)
        tolerate = child(root, "error_on_almost_servers")
        tolerated = tolerate is not None and tolerate.value is False
        report_almost_servers(inventory, self.findings, tolerated=tolerated)
        if tolerated:  # they are left out, so what refers to them refers to nothing
            inventory = replace(inventory, mendable=())
        check_references(inventory, self.findings, strict=self.strict)
        if self.request.check_components:
            strictness.check_components(
                inventory, self.roots, self.findings, required=self.strict or not self.request.validate_only
            )
        defaults.fill_server_defaults(root, inventory)
        defaults.settle_globals(root, self.cwd, self.findings)
        defaults.check_globals(root, inventory, self.findings)
        return inventory


def _first_file(roots: Sequence[Path], name: str) -> Path | None:
    return next((root / name for root in roots if os.path.isfile(root / name)), None)
