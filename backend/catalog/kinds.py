"""The five kinds of components as data: how each is called, where its files are, and how a name becomes a path."""

from __future__ import annotations

from dataclasses import dataclass

from backend.config.schema import AGENTS, MODELS, RESOURCES

BENCHMARK = "benchmark"
ENVIRONMENT = "environment"
AGENT = "agent"
MODEL = "model"
RESOURCES_SERVER = "resources-server"


@dataclass(frozen=True, slots=True)
class ComponentKind:
    """One kind of component."""

    name: str
    plural: str
    """As in `gym list <plural>`."""
    title: str
    """As in sentences, and as the `type` of details."""
    short: str
    """For narrow columns and for `kind:` in queries."""
    flag: str
    """The selector that loads the configuration of one by name."""
    parent: str
    """Folder below a root."""
    configs: str | None
    """Folder below the component that holds its configurations; None for workloads, whose folder holds them itself."""

    @property
    def is_workload(self) -> bool:
        """Whether it brings tasks: a benchmark or an environment."""
        return self.configs is None

    def candidates(self, name: str) -> tuple[str, ...]:
        """Relative paths of the file that `NAME` or `NAME/FLAVOR` stands for, the preferred one first."""
        component, _, flavor = name.partition("/")
        if self.configs is not None:
            return (f"{self.parent}/{component}/{self.configs}/{flavor or component}.yaml",)
        if not flavor:
            usual = f"{self.parent}/{component}/config.yaml"
            return (usual, f"{self.parent}/{component}.yaml") if self.name == BENCHMARK else (usual,)
        return (f"{self.parent}/{name}/config.yaml", f"{self.parent}/{name}.yaml")

    def name_of(self, relative: str) -> str:
        """The name of the configuration file at `relative`, a path with `/` below the kind's folder.

        `x/config.yaml` and `x/configs/x.yaml` are `x`; a flavor keeps its stem, a workload deeper down its whole path.
        """
        stem = relative.removesuffix(".yaml")
        if self.configs is None:
            folder, _, last = stem.rpartition("/")
            return folder if last == "config" and folder and "/" not in folder else stem
        component, _, flavor = stem.partition(f"/{self.configs}/")
        return component if flavor == component else f"{component}/{flavor}"


KINDS: dict[str, ComponentKind] = {
    kind.name: kind
    for kind in (
        ComponentKind(BENCHMARK, "benchmarks", "benchmark", "bench", "--benchmark", "benchmarks", None),
        ComponentKind(ENVIRONMENT, "environments", "environment", "env", "--environment", "environments", None),
        ComponentKind(AGENT, "agents", "agent", "agent", "--agent-type", AGENTS, "configs"),
        ComponentKind(MODEL, "models", "model", "model", "--model-type", MODELS, "configs"),
        ComponentKind(
            RESOURCES_SERVER, "resources-servers", "resources server", "rs", "--resources-server", RESOURCES, "configs"
        ),
    )
}
"""By name, in the order in which screens and listings show them."""

WORKLOADS = (BENCHMARK, ENVIRONMENT)


def kind_named(word: str) -> ComponentKind | None:
    """The kind that a word means: its name, plural, title, short form or selector, or the beginning of one of them."""
    wanted = word.lower().lstrip("-").replace("_", "-").replace(" ", "-")
    if not wanted:
        return None
    for kind in KINDS.values():
        if wanted in (kind.name, kind.plural, kind.short, kind.flag.lstrip("-")):
            return kind
    return next((kind for kind in KINDS.values() if kind.plural.startswith(wanted)), None)


def article(kind: ComponentKind) -> str:
    """`a benchmark`, `an environment`."""
    return f"{'an' if kind.title[0] in 'aeiou' else 'a'} {kind.title}"
