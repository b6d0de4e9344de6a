"""A resolution to look at: its layers, its tree after each stage, and for each key who set it, what that beat and which stage changed it.

Everything in a view may be shown: secrets are masked. A configuration with mistakes gives a view of what is left without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from backend.config import stages
from backend.config.findings import Finding, Findings
from backend.config.masking import Masker
from backend.config.nodes import PASSING_ON, KeyPath, Node, Origin, Setting, format_path, walk
from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_collecting
from backend.config.stages import LayerSource, StageRecorder
from backend.errors import GymError

Shape = Literal["value", "mapping", "list"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of settings; later ones win."""

    number: int
    """From 1, in the order of precedence."""
    kind: str
    """`default` (fills gaps only), `file`, `env_file`, `initial`, `stand_in`, `flag` or `override`."""
    title: str
    """The entry of `config_paths`, the path of env.yaml, the flag or override as typed."""
    file: Path | None
    included_by: int | None
    """Number of the layer whose `config_paths` names this one."""
    error: str | None
    """Why the file could not be read; such a layer sets nothing."""
    tree: Mapping[Any, Any]
    """What the layer sets, masked."""


@dataclass(frozen=True, slots=True)
class Step:
    """One link of the chain of a key: somebody set it, or passed its value on."""

    origin: Origin
    layer: int | None
    """Number of the layer; None for what only passes a value on (directive, composition, interpolation, environment variable)."""
    shape: Shape
    value: Any
    """Masked; of a mapping or list the number of its elements."""
    effect: str
    """What that did to an earlier value that was no plain value: `replaces a list (3 -> 1)`, `clears a mapping`; else empty."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one stage did to a key."""

    stage: str
    kind: Literal["added", "changed", "removed"]
    before: Any
    after: Any
    """Masked, as in `Step`; None for what is not there."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a tree."""

    path: KeyPath
    shape: Shape
    value: Any
    """Masked, as in `Step`."""
    chain: tuple[Step, ...]
    """In the order of precedence, the winner last."""
    secret: bool
    changes: tuple[Change, ...]
    """What the stages up to this one did to the key, in their order."""

    @property
    def key(self) -> str:
        """The path as text, `a.b[0].c`."""
        return format_path(self.path)

    @property
    def origin(self) -> Origin | None:
        """Where the value is written down: the last step that is not only passed on."""
        winner = self.winner
        return winner.origin if winner else None

    @property
    def winner(self) -> Step | None:
        """The step that wrote the value down."""
        written = [step for step in self.chain if step.origin.kind not in PASSING_ON] or list(self.chain)
        return written[-1] if written else None

    @property
    def beaten(self) -> tuple[Step, ...]:
        """What the value beat, the nearest first."""
        written = [step for step in self.chain if step.origin.kind not in PASSING_ON]
        return tuple(reversed(written[:-1]))


@dataclass(frozen=True, slots=True)
class Stage:
    """The tree as it was after one stage."""

    name: str
    """A key of `stages.STAGES`."""
    title: str
    entries: tuple[Entry, ...]
    """Parents before their children, in the order of the tree. In stage `read` the first key of each path is a layer."""
    removed: tuple[Entry, ...]
    """Keys that this stage took away, as they were before it."""


@dataclass(frozen=True)
class ResolvedView:
    """A resolution with all its stages; the last one that was reached is the result."""

    layers: tuple[Layer, ...]
    tree: Mapping[Any, Any]
    """The result, masked."""
    findings: tuple[Finding, ...]
    """Problems first, then remarks."""
    resolved: ResolvedConfig | None
    """None where there are problems."""
    error: GymError | None
    """The first problem with all others as details; None where there are none."""
    damaged: bool
    """Whether something could not be read or applied, so that the tree has holes; other problems leave it whole."""
    masker: Masker = field(repr=False)
    trees: Mapping[str, Node] = field(repr=False)
    """Values unmasked, by stage; for comparisons only."""
    build_stages: Callable[[], tuple[Stage, ...]] = field(repr=False, compare=False)
    """Makes `stages`, which takes longer than resolving and which not everybody asks for."""

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that were reached, in their order."""
        return self.build_stages()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The keys of the result."""
        return self.stages[-1].entries if self.stages else ()

    @cached_property
    def by_key(self) -> Mapping[str, Entry]:
        """The keys of the result by their dotted path."""
        return {entry.key: entry for entry in self.entries}

    def entry(self, key: str) -> Entry | None:
        """The entry of a dotted key of the result."""
        return self.by_key.get(key)


def resolve_view(request: ConfigRequest, *, strict: bool = False) -> ResolvedView:
    """Resolve `request` with everything that can be told about it; problems are in the view and never raised."""
    findings, recorder = Findings(), StageRecorder()
    resolved = resolve_collecting(request, findings, strict=strict, recorder=recorder)
    return _Builder(recorder, Masker(findings.redactor)).view(findings, None if findings.errors else resolved)


class _Builder:
    """Turns recorded trees into entries."""

    def __init__(self, recorder: StageRecorder, masker: Masker) -> None:
        self.masker = masker
        layers = [replace(layer, root=masker.keys(layer.root)) for layer in recorder.layers]
        self.recorder = StageRecorder(layers, {name: masker.keys(tree) for name, tree in recorder.trees.items()})
        self.numbers = {_layer_key(layer): number for number, layer in enumerate(recorder.layers, 1)}
        self.titles = {layer.title: number for number, layer in enumerate(recorder.layers, 1)}
        self.steps: dict[tuple[int, int, bool], Step] = {}
        """By the ids of a setting and the one before it, which the recorded trees keep: stages and heirs share them."""

    def view(self, findings: Findings, resolved: ResolvedConfig | None) -> ResolvedView:
        last = next((self.recorder.trees[name] for name in reversed(stages.STAGES) if name in self.recorder.trees), Node({}, ()))
        return ResolvedView(
            layers=tuple(self._layer(number, layer) for number, layer in enumerate(self.recorder.layers, 1)),
            tree=self.masker.tree(last),
            findings=findings.as_findings(),
            resolved=resolved,
            error=findings.combined(),
            damaged=findings.damaged,
            masker=self.masker,
            trees=self.recorder.trees,
            build_stages=lambda: tuple(self._stages()),
        )

    def _layer(self, number: int, layer: LayerSource) -> Layer:
        return Layer(
            number=number,
            kind=layer.kind,
            title=self.masker.redactor.text(layer.title),
            file=layer.file,
            included_by=self.titles.get(layer.included_by) if layer.included_by else None,
            error=layer.error,
            tree=self.masker.tree(layer.root),
        )

    def _stages(self) -> Iterator[Stage]:
        if not self.recorder.layers:
            return
        yield Stage(stages.READ, stages.STAGES[stages.READ], tuple(self._as_read()), ())
        before: dict[KeyPath, Entry] | None = None
        for name, root in self.recorder.trees.items():
            entries = tuple(self._entries(name, root, before))
            paths = {entry.path for entry in entries}
            gone = tuple(entry for path, entry in (before or {}).items() if path not in paths)
            yield Stage(name, stages.STAGES[name], entries, gone)
            before = {entry.path: entry for entry in entries}

    def _as_read(self) -> Iterator[Entry]:
        for number, layer in enumerate(self.recorder.layers, 1):
            if layer.root.value:
                title = f"L{number} {self.masker.redactor.text(layer.title)}"
                for path, node in walk(layer.root):
                    yield self._entry((title, *path), path, node, ())

    def _entries(self, stage: str, root: Node, before: Mapping[KeyPath, Entry] | None) -> Iterator[Entry]:
        for path, node in walk(root):
            if not path:
                continue
            if before is None:
                changes = tuple(_merge_change(stage, node, self.masker, path))
            else:
                changes = tuple(_stage_change(stage, before.get(path), node, self.masker, path))
            yield self._entry(path, path, node, changes)

    def _entry(self, path: KeyPath, keys: KeyPath, node: Node, changes: tuple[Change, ...]) -> Entry:
        secret = self.masker.is_secret(keys, node.history)
        shape, value = _shown(node.value, self.masker, secret=secret)
        return Entry(path, shape, value, tuple(self._steps(node.history, secret=secret)), secret, changes)

    def _steps(self, history: Sequence[Setting], *, secret: bool) -> Iterator[Step]:
        before: Setting | None = None
        for setting in history:
            known = (id(before), id(setting), secret)
            step = self.steps.get(known)
            if step is None:
                step = self.steps[known] = self._step(setting, before.raw if before else None, secret=secret)
            yield step
            before = setting

    def _step(self, setting: Setting, before: Any, *, secret: bool) -> Step:
        shape, value = _shown(setting.raw, self.masker, secret=secret)
        effect = effect_of(before, setting.raw) if setting.origin.kind not in PASSING_ON else ""
        return Step(self.masker.origin(setting.origin), self.numbers.get(_origin_key(setting.origin)), shape, value, effect)


def _merge_change(stage: str, node: Node, masker: Masker, path: KeyPath) -> Iterator[Change]:
    """Whether the merge gave a key another value than the first layer that set it."""
    if len(node.history) > 1 and not isinstance(node.value, dict):
        first, last = node.history[-2], node.history[-1]
        if first.value != last.value:
            secret = masker.is_secret(path, node.history)
            yield Change(
                stage, "changed", _shown(first.raw, masker, secret=secret)[1], _shown(last.raw, masker, secret=secret)[1]
            )


def _stage_change(stage: str, before: Entry | None, node: Node, masker: Masker, path: KeyPath) -> Iterator[Change]:
    secret = masker.is_secret(path, node.history)
    shape, value = _shown(node.value, masker, secret=secret)
    if before is None:
        yield Change(stage, "added", None, value)
        return
    yield from before.changes
    if (before.shape, before.value) != (shape, value) and not shape == before.shape == "mapping":
        yield Change(stage, "changed", before.value, value)


def _shown(raw: Any, masker: Masker, *, secret: bool) -> tuple[Shape, Any]:
    if isinstance(raw, dict):
        return "mapping", len(raw)
    if isinstance(raw, list):
        return "list", len(raw)
    return "value", masker.value(raw, secret=secret)


def effect_of(before: Any, after: Any) -> str:
    """What setting `after` does to a mapping or list that a key held, which people expect to be added to."""
    if isinstance(before, list):
        return f"replaces a list ({len(before)} -> {len(after)})" if isinstance(after, list) else "replaces a list"
    if isinstance(before, dict) and not isinstance(after, dict):
        return "clears a mapping" if after is None else "replaces a mapping"
    return ""


def _layer_key(layer: LayerSource) -> tuple[str, str]:
    return (layer.kind, str(layer.file) if layer.file else layer.title if layer.kind in ("flag", "override") else "")


def _origin_key(origin: Origin) -> tuple[str, str]:
    file = origin.file if origin.kind != "initial" else None  # a text in the environment has a name, but no file
    return (origin.kind, file or (origin.text if origin.kind in ("flag", "override") else ""))
