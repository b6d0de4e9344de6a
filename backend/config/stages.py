"""What a configuration looks like after each stage of its resolution, noted down for whoever wants to see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from backend.config.includes import LoadedFiles
from backend.config.nodes import Node
from backend.config.overrides import OverrideLayer

READ = "read"
MERGED = "merged"
INHERITED = "inherited"
INTERPOLATED = "interpolated"
VALIDATED = "validated"
STAGES = {
    READ: "files as read",
    MERGED: "merged",
    INHERITED: "directives applied, agents composed",
    INTERPOLATED: "defaults of global keys filled in, interpolations evaluated",
    VALIDATED: "validated, hosts and ports of servers filled in",
}
"""Stages in order, with what happened in each."""

DEFAULTS = "defaults"


@dataclass(frozen=True, slots=True)
class LayerSource:
    """One source of settings as it was read; later ones win."""

    kind: str
    """`file`, `env_file`, `initial`, `stand_in`, `flag`, `override`, or `default` for what only fills gaps."""
    title: str
    """The entry of `config_paths`, the flag or override as it may be shown."""
    file: Path | None
    root: Node
    included_by: str | None = None
    """Title of the layer that includes it."""
    error: str | None = None
    """Why a file could not be read."""


@dataclass(slots=True)
class StageRecorder:
    """Keeps copies of the tree after each stage that was completed."""

    layers: list[LayerSource] = field(default_factory=list)
    trees: dict[str, Node] = field(default_factory=dict)

    def read(self, files: LoadedFiles, upper: Sequence[Node], command_line: OverrideLayer) -> None:
        """The layers, in the order in which they merge."""
        self.layers = [LayerSource("default", DEFAULTS, None, Node({}, ()))]
        for loaded in files.files:
            root = loaded.source.root if loaded.source else Node({}, ())
            path = loaded.source.path if loaded.source else None
            error = loaded.error.message if loaded.error else None
            self.layers.append(LayerSource("file", loaded.entry, path, root, loaded.included_by, error))
        for layer in upper:
            origin = layer.origin
            self.layers.append(
                LayerSource(origin.kind, origin.file or origin.text, Path(origin.file) if origin.file else None, layer)
            )
        for origin, root in command_line.words:
            self.layers.append(LayerSource(origin.kind, origin.text, None, root))

    def after(self, stage: str, root: Node) -> None:
        """The tree after a stage."""
        self.trees[stage] = root.copy()
